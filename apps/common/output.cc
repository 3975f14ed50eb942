#include "apps/common/output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

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

void print_ready(const std::string& what) {
  std::printf("ready %s\n", what.c_str());
  std::fflush(stdout);
}

}  // namespace weft::apps
