#pragma once

#include <fmt/compile.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

// Text on the dissector's hot path: most of the time for a message goes into its lines.
namespace weft::apps::dissect {

// Hex32: a number of 32 bits as "0x1234abcd".
class Hex32 {
 public:
  explicit constexpr Hex32(std::uint32_t value) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    for (std::size_t i = sizeof(text_); i-- > 2; value >>= 4) text_[i] = kDigits[value & 0x0f];
  }
  constexpr std::string_view str() const { return {text_, sizeof(text_)}; }

 private:
  char text_[10] = {'0', 'x'};
};

// longest returns the most characters that append needs for one value. A format may pad numbers to kPadded characters
// and must not pad text.
inline constexpr std::size_t kPadded = 24;
template <typename T>
requires std::is_arithmetic_v<T>
constexpr std::size_t longest(T) {
  return kPadded;
}
constexpr std::size_t longest(std::string_view text) {
  return text.size();
}

// append formats values to the end of text. format is a format string that fmt has compiled (FMT_COMPILE("{}")). The
// characters go where they stay: room is made once, for the longest that the values can be.
template <typename Format, typename... T>
void append(std::string& text, const Format& format, const T&... values) {
  const std::size_t before = text.size();
  text.resize(before + (fmt::string_view(format).size() + ... + longest(values)));
  const char* const end = fmt::format_to(text.data() + before, format, values...);
  text.resize(static_cast<std::size_t>(end - text.data()));
}

}  // namespace weft::apps::dissect
