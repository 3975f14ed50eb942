#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace weft::rpcrdma {

using ConstBytes = std::span<const std::uint8_t>;
using MutBytes = std::span<std::uint8_t>;

}  // namespace weft::rpcrdma
