#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace weft {

// ConstBytes and MutBytes are views of octets with another owner. They never outlive the call that they are passed to,
// unless a declaration says how long the owner keeps the octets.
using ConstBytes = std::span<const std::uint8_t>;
using MutBytes = std::span<std::uint8_t>;

}  // namespace weft
