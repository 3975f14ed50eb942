#pragma once

#include <chrono>
#include <optional>

namespace weft {

// The driver always hands in TimePoint: no protocol core reads a clock.
using TimePoint = std::chrono::steady_clock::time_point;
using Duration = std::chrono::steady_clock::duration;

// earliest gives the earlier of two deadlines, either of which may be missing.
inline std::optional<TimePoint> earliest(std::optional<TimePoint> a, std::optional<TimePoint> b) {
  return a && (!b || *a < *b) ? a : b;
}

}  // namespace weft
