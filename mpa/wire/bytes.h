#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

namespace weft {

// ConstBytes and MutBytes are views of octets that somebody else owns; they never outlive the call they are passed to
// unless a declaration says how long the owner keeps them.
using ConstBytes = std::span<const std::uint8_t>;
using MutBytes = std::span<std::uint8_t>;

// TimePoint is always handed in by the driver: no protocol core reads a clock.
using TimePoint = std::chrono::steady_clock::time_point;
using Duration = std::chrono::steady_clock::duration;

}  // namespace weft
