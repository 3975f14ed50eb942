// Memory that a thread has freed goes back to the system, after larger blocks were freed, too. A program of its own,
// and without sanitizers, because theirs is another malloc.
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "apps/common/idle_trim.h"

namespace {

std::size_t resident() {
  std::size_t pages = 0, resident_pages = 0;
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr || std::fscanf(file, "%zu %zu", &pages, &resident_pages) != 2) std::exit(2);
  std::fclose(file);
  return resident_pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

using Block = std::vector<char>;  // every page is written

}  // namespace

int main() {
  weft::apps::bound_unused_heap();
  Block(20 << 20);
  const std::size_t before = resident();
  std::size_t most = 0;
  std::thread([&most] {
    const std::vector<Block> blocks(300, Block(100000));
    most = resident();
  }).join();
  weft::apps::trim_heap();
  const std::size_t grown = resident() - before;
  std::printf("%zu octets more at the most, %zu after the trim\n", most - before, grown);
  constexpr std::size_t kUsed = 25 << 20, kKept = 4 << 20;
  return most - before > kUsed && grown < kKept ? 0 : 1;
}
