#pragma once

#include <fmt/compile.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

// Text on the dissector's hot path: most of the time for a message goes into its lines.
namespace weft::apps::dissect {

// Line: text that grows at its end. It keeps its memory for the next text when it is cleared. Unlike a std::string it
// lends the memory behind the text, so that a number is written where it stays.
class Line {
 public:
  Line() = default;
  Line& operator=(std::string_view text) {
    clear();
    return *this += text;
  }
  Line& operator+=(std::string_view text) {
    char* const to = room(text.size());
    if (!text.empty()) std::memcpy(to, text.data(), text.size());
    end_at(to + text.size());
    return *this;
  }
  // room returns memory for `len` characters behind the text. end_at takes those before `end` into the text.
  char* room(std::size_t len) {
    if (memory_.size() - size_ < len) grow(len);
    return memory_.data() + size_;
  }
  void end_at(const char* end) { size_ = static_cast<std::size_t>(end - memory_.data()); }
  void clear() { size_ = 0; }
  bool empty() const { return size_ == 0; }
  std::string_view str() const { return {memory_.data(), size_}; }

 private:
  // Rare: kept out of the functions that every message runs through.
  [[gnu::noinline]] void grow(std::size_t len) { memory_.resize(std::max(2 * memory_.size(), size_ + len)); }

  std::string memory_;
  std::size_t size_ = 0;  // of the text at its front
};

// Hex32: a number of 32 bits as "0x1234abcd".
class Hex32 {
 public:
  explicit constexpr Hex32(std::uint32_t value) {
    for (std::size_t i = sizeof(text_); i > 2; value >>= 8) {
      const std::array<char, 2>& pair = kPairs[value & 0xff];
      text_[--i] = pair[1];
      text_[--i] = pair[0];
    }
  }
  constexpr std::string_view str() const { return {text_, sizeof(text_)}; }

 private:
  // The two digits of each octet.
  static constexpr std::array<std::array<char, 2>, 256> kPairs = [] {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::array<std::array<char, 2>, 256> pairs{};
    for (std::size_t i = 0; i < pairs.size(); ++i) pairs[i] = {kDigits[i >> 4], kDigits[i & 0x0f]};
    return pairs;
  }();

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

template <Replacement kHow>
char* put(char* to, std::string_view text) {
  if (!text.empty()) std::memcpy(to, text.data(), text.size());
  return to + text.size();
}

template <Replacement kHow, std::integral T>
char* put(char* to, T value) {
  static_assert(!std::same_as<T, char> && !std::same_as<T, bool>);
  constexpr int kBase = kHow.is_hex ? 16 : 10;
  if constexpr (kHow.width == 0 && !kHow.has_prefix) return std::to_chars(to, to + kPadded, value, kBase).ptr;
  std::array<char, kPadded> digits;
  const auto written = std::to_chars(digits.data(), digits.data() + digits.size(), value, kBase);
  const auto num = static_cast<std::size_t>(written.ptr - digits.data());
  constexpr std::size_t kPrefix = kHow.has_prefix ? 2 : 0;
  if constexpr (kHow.has_prefix) to = put<kHow>(to, std::string_view("0x"));
  for (std::size_t i = num + kPrefix; i < kHow.width; ++i) *to++ = '0';
  return put<kHow>(to, std::string_view(digits.data(), num));
}

// append formats values to the end of a line. format is a format string that fmt has compiled (FMT_COMPILE("{}")). fmt
// itself copies octet by octet, and a message has hundreds of them.
template <typename Format, typename... T>
void append(Line& line, const Format&, const T&... values) {
  constexpr fmt::string_view kFormat{Format()};
  static constexpr std::string_view kText(kFormat.data(), kFormat.size());
  static constexpr auto kReplacements = split<sizeof...(T)>(kText);
  static_assert(!kReplacements.back().is_there, "more replacements than values");
  char* to = line.room((kText.size() + ... + longest(values)));
  // The text before each replacement has a known length: the compiler makes moves of words of it.
  const auto put_text = [&to]<std::size_t kBegin, std::size_t kLen>() {
    std::memcpy(to, kText.data() + kBegin, kLen);
    to += kLen;
  };
  const auto put_all = [&]<std::size_t... kI>(std::index_sequence<kI...>) {
    ((put_text.template operator()<kReplacements[kI].begin, kReplacements[kI].len>(),
      to = put<kReplacements[kI]>(to, values)),
     ...);
  };
  put_all(std::index_sequence_for<T...>());
  put_text.template operator()<kReplacements.back().begin, kReplacements.back().len>();
  line.end_at(to);
}

}  // namespace weft::apps::dissect
