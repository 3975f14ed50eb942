#include "bench/scratch_folder.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <system_error>

namespace weft::bench {

ScratchFolder::ScratchFolder(const char* name) {
  std::string path = std::string("/dev/shm/") + name + "-XXXXXX";
  std::array<int, 2> ends{};
  if (mkdtemp(path.data()) == nullptr || pipe2(ends.data(), O_CLOEXEC) != 0) {
    std::perror(path.c_str());
    std::exit(1);
  }
  path_ = path;
  const Fd gone(ends[0]);
  held_ = Fd(ends[1]);
  remover_ = fork();
  if (remover_ != 0) return;
  setsid();  // Ctrl-C is not meant for it
  held_.reset();
  char none = 0;
  while (read(gone.get(), &none, 1) < 0) continue;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
  _exit(0);
}

ScratchFolder::~ScratchFolder() {
  held_.reset();
  waitpid(remover_, nullptr, 0);
}

}  // namespace weft::bench
