#include "apps/common/output.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "apps/common/command.h"

namespace weft::apps {

std::string format_octets(double octets) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t unit = 0;
  while (octets >= 1024 && unit + 1 < std::size(kUnits)) {
    octets /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f} B", octets) : fmt::format("{:.2f} {}", octets, kUnits[unit]);
}

std::string format_rate(double octets_per_s) {
  if (octets_per_s >= 1e9) return fmt::format("{:.2f} GB/s", octets_per_s / 1e9);
  if (octets_per_s >= 1e6) return fmt::format("{:.2f} MB/s", octets_per_s / 1e6);
  return fmt::format("{:.1f} kB/s", octets_per_s / 1e3);
}

std::string format_duration_ns(double ns) {
  if (ns < 1e3) return fmt::format("{:.0f} ns", ns);
  if (ns < 1e6) return fmt::format("{:.2f} us", ns / 1e3);
  if (ns < 1e9) return fmt::format("{:.2f} ms", ns / 1e6);
  return fmt::format("{:.2f} s", ns / 1e9);
}

std::string counted(std::uint64_t num, std::string_view noun) {
  return fmt::format("{} {}{}", num, noun, num == 1 ? "" : "s");
}

void print_ready(const std::string& what) {
  std::printf("ready %s\n", what.c_str());
  std::fflush(stdout);
}

namespace {

// Whether the reader of standard output left, or did not read when the program had to end.
bool is_left_by_reader() {
  pollfd output{STDOUT_FILENO, POLLOUT, 0};
  return ::poll(&output, 1, 0) >= 0 && (output.revents == 0 || (output.revents & POLLERR) != 0);
}

}  // namespace

int finish_output(int status) {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
  const int error = errno;  // 0: an earlier write failed
  if (status != kExitDone) return status;
  if (error == EPIPE || is_left_by_reader()) return kExitReaderLeft;
  return fail("cannot write to standard output" + (error == 0 ? "" : std::string(": ") + std::strerror(error)));
}

}  // namespace weft::apps
