#pragma once

#include <chrono>

namespace weft {

// The driver always hands in TimePoint: no protocol core reads a clock.
using TimePoint = std::chrono::steady_clock::time_point;
using Duration = std::chrono::steady_clock::duration;

}  // namespace weft
