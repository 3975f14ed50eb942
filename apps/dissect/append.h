#pragma once

#include <fmt/compile.h>

#include <array>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

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

// Replacement: a "{}" of a format, and the text before it. Of fmt's specifications append knows "#", "0", a width and
// "x".
struct Replacement {
  std::size_t begin = 0, len = 0;  // of the text before it
  std::size_t width = 0;
  bool has_prefix = false, is_hex = false, is_there = true;
};

// split finds the replacements of a format. The last entry has the text behind them.
template <std::size_t kNum>
consteval std::array<Replacement, kNum + 1> split(std::string_view format) {
  std::array<Replacement, kNum + 1> all;
  std::size_t at = 0;
  for (Replacement& one : all) {
    one.begin = at;
    while (at < format.size() && format[at] != '{') ++at;
    one.len = at - one.begin;
    one.is_there = at < format.size();
    if (!one.is_there) continue;
    for (++at; at < format.size() && format[at] != '}'; ++at) {
      const char c = format[at];
      one.has_prefix |= c == '#';
      one.is_hex |= c == 'x';
      if (c >= '0' && c <= '9') one.width = one.width * 10 + static_cast<std::size_t>(c - '0');
    }
    ++at;
  }
  return all;
}

// longest returns the most characters that append needs for one value. A format may pad numbers to kPadded characters
// and must not pad text.
inline constexpr std::size_t kPadded = 24;
template <std::integral T>
constexpr std::size_t longest(T) {
  return kPadded;
}
constexpr std::size_t longest(std::string_view text) {
  return text.size();
}

inline char* put(char* to, const Replacement&, std::string_view text) {
  if (!text.empty()) std::memcpy(to, text.data(), text.size());
  return to + text.size();
}

template <std::integral T>
char* put(char* to, const Replacement& how, T value) {
  static_assert(!std::same_as<T, char> && !std::same_as<T, bool>);
  char* const end = to + kPadded;
  if (how.width == 0 && !how.has_prefix) return std::to_chars(to, end, value, how.is_hex ? 16 : 10).ptr;
  std::array<char, kPadded> digits;
  const auto written = std::to_chars(digits.data(), digits.data() + digits.size(), value, how.is_hex ? 16 : 10);
  const auto num = static_cast<std::size_t>(written.ptr - digits.data());
  const std::size_t prefix = how.has_prefix ? 2 : 0;
  if (how.has_prefix) to = put(to, how, std::string_view("0x"));
  for (std::size_t i = num + prefix; i < how.width; ++i) *to++ = '0';
  return put(to, how, std::string_view(digits.data(), num));
}

// append formats values to the end of text. format is a format string that fmt has compiled (FMT_COMPILE("{}")). fmt
// itself copies octet by octet, and a message has hundreds of them.
template <typename Format, typename... T>
void append(std::string& text, const Format&, const T&... values) {
  constexpr fmt::string_view kFormat{Format()};
  constexpr std::string_view kText(kFormat.data(), kFormat.size());
  static constexpr auto kReplacements = split<sizeof...(T)>(kText);
  static_assert(!kReplacements.back().is_there, "more replacements than values");
  const auto write = [&](char* to) {
    std::size_t i = 0;
    [[maybe_unused]] const auto put_next = [&](const auto& value) {
      const Replacement& how = kReplacements[i++];
      to = put(to, how, kText.substr(how.begin, how.len));
      to = put(to, how, value);
    };
    (put_next(values), ...);
    const Replacement& last = kReplacements.back();
    return put(to, last, kText.substr(last.begin, last.len));
  };
  constexpr std::size_t kRoom = 256;
  const std::size_t most = (kText.size() + ... + longest(values));
  if (most <= kRoom) {
    std::array<char, kRoom> room;
    text.append(room.data(), static_cast<std::size_t>(write(room.data()) - room.data()));
    return;
  }
  const std::size_t before = text.size();
  text.resize(before + most);
  text.resize(static_cast<std::size_t>(write(text.data() + before) - text.data()));
}

}  // namespace weft::apps::dissect
