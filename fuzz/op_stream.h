#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "base/bytes.h"

// Input of a target that is a list of operations.
namespace weft::fuzz {

inline void must(bool holds) {
  if (!holds) std::abort();
}

class Input {
 public:
  explicit Input(ConstBytes octets) : rest_(octets) {}
  bool empty() const { return rest_.empty(); }
  std::uint8_t u8() {
    if (rest_.empty()) return 0;
    const std::uint8_t value = rest_[0];
    rest_ = rest_.subspan(1);
    return value;
  }
  std::uint16_t u16() {
    const auto high = static_cast<unsigned>(u8());
    return static_cast<std::uint16_t>(high << 8 | u8());
  }
  std::uint32_t u32() {
    const auto high = static_cast<std::uint32_t>(u16());
    return high << 16 | u16();
  }
  ConstBytes bytes(std::size_t len) {
    const ConstBytes out = rest_.first(std::min(len, rest_.size()));
    rest_ = rest_.subspan(out.size());
    return out;
  }

 private:
  ConstBytes rest_;
};

}  // namespace weft::fuzz
