#pragma once

#include <cstdint>

namespace weft::rdmap {

enum class Layer : std::uint8_t { kRdma = 0, kDdp = 1, kLlp = 2 };

// Terminate is what a Terminate Message says (RFC 5040 section 4.8): layer, error type and error code.
struct Terminate {
  Layer layer = Layer::kRdma;
  std::uint8_t etype = 0;  // 4 bits
  std::uint8_t code = 0;
  friend bool operator==(const Terminate&, const Terminate&) = default;
};

}  // namespace weft::rdmap
