#include "apps/metrics/process_start.h"

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>

namespace weft::metrics {
namespace {

// The 22nd field of /proc/self/stat (proc(5)): ticks from the start of the system to the start of the process. 0 if it
// is unknown. The second field may contain blanks and ends with the last parenthesis.
std::uint64_t start_ticks() {
  std::ifstream file("/proc/self/stat");
  std::string line;
  std::getline(file, line);
  const std::size_t end = line.rfind(')');
  if (end == std::string::npos) return 0;
  std::istringstream fields(line.substr(end + 1));
  std::string skipped;
  for (int i = 3; i < 22; ++i) fields >> skipped;
  std::uint64_t ticks = 0;
  fields >> ticks;
  return ticks;
}

double measure() {
  const double now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  timespec up{};
  ::clock_gettime(CLOCK_BOOTTIME, &up);
  const double up_s = static_cast<double>(up.tv_sec) + static_cast<double>(up.tv_nsec) / 1e9;
  const double started = static_cast<double>(start_ticks()) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  return now - up_s + started;
}

}  // namespace

double process_start_time() {
  // Measured once: a second measurement would differ a little.
  static const double kStart = measure();
  return kStart;
}

}  // namespace weft::metrics
