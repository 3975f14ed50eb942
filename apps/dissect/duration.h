#pragma once

#include <array>
#include <string>
#include <string_view>

#include "apps/dissect/packet.h"

namespace weft::apps::dissect {

// DurationText: "999 ns", "20.00 us", "1.50 s". Integers alone, and no memory: this is in every Reply's line.
class DurationText {
 public:
  explicit DurationText(Timestamp time);
  std::string_view str() const { return {text_.data(), len_}; }

 private:
  std::array<char, 24> text_;
  std::size_t len_ = 0;
};

inline std::string duration_str(Timestamp time) {
  return std::string(DurationText(time).str());
}

}  // namespace weft::apps::dissect
