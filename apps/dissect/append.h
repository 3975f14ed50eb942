#pragma once

#include <fmt/compile.h>

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

// Text on the dissector's hot path: most of the time for a message goes into its lines.
namespace weft::apps::dissect {

// copy_text copies text and returns the place behind it. A line is made of short words: moves of two registers take
// less time than a call of memcpy.
inline char* copy_text(char* to, std::string_view text) {
  const char* const from = text.data();
  const std::size_t len = text.size();
  const auto move_ends = [=]<std::size_t kLen>() {  // both ends, which overlap
    std::array<char, kLen> front, back;
    std::memcpy(front.data(), from, kLen);
    std::memcpy(back.data(), from + (len - kLen), kLen);
    std::memcpy(to, front.data(), kLen);
    std::memcpy(to + (len - kLen), back.data(), kLen);
  };
  if (len > 32) {
    std::memcpy(to, from, len);
  } else if (len >= 16) {
    move_ends.template operator()<16>();
  } else if (len >= 8) {
    move_ends.template operator()<8>();
  } else if (len >= 4) {
    move_ends.template operator()<4>();
  } else if (len >= 2) {
    move_ends.template operator()<2>();
  } else if (len == 1) {
    *to = *from;
  }
  return to + len;
}

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
    end_at(copy_text(room(text.size()), text));
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
struct Hex32 {
  static constexpr std::size_t kLen = 10;
  explicit constexpr Hex32(std::uint32_t number) : value(number) {}
  std::uint32_t value;
};

// The two digits of each number below 100.
inline constexpr auto kDecimalPairs = [] {
  std::array<std::array<char, 2>, 100> pairs{};
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    pairs[i] = {static_cast<char>('0' + i / 10), static_cast<char>('0' + i % 10)};
  }
  return pairs;
}();

// The least number of each number of decimal digits, from one digit on.
inline constexpr auto kPowersOf10 = [] {
  std::array<std::uint64_t, 20> powers{};
  for (std::size_t i = 1; i < powers.size(); ++i) powers[i] = i == 1 ? 10 : 10 * powers[i - 1];
  return powers;
}();
constexpr std::size_t num_digits(std::uint64_t value) {
  // 1233 / 4096 is about the logarithm of 2 to the base 10: at most one digit is missing.
  const std::size_t about = static_cast<std::size_t>(std::bit_width(value | 1)) * 1233 >> 12;
  return about + (value >= kPowersOf10[about] ? 1 : 0);
}

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
constexpr std::size_t longest(Hex32) {
  return Hex32::kLen;
}

template <Replacement kHow>
char* put(char* to, std::string_view text) {
  return copy_text(to, text);
}

template <Replacement kHow>
char* put(char* to, Hex32 number) {
  static_assert(kHow.width == 0 && !kHow.has_prefix && !kHow.is_hex);
  constexpr std::uint64_t kEach = 0x0101010101010101;
  // An octet for each digit, the first one the lowest.
  std::uint64_t digits = __builtin_bswap32(number.value);
  digits = (digits | digits << 16) & 0x0000ffff0000ffff;
  digits = (digits | digits << 8) & 0x00ff00ff00ff00ff;
  digits = (digits >> 4 | digits << 8) & 0x0f0f0f0f0f0f0f0f;
  const std::uint64_t letters = (digits + 6 * kEach) >> 4 & kEach;  // 1 for each digit above 9
  digits += '0' * kEach + letters * ('a' - '0' - 10);
  if constexpr (std::endian::native == std::endian::big) digits = __builtin_bswap64(digits);
  std::memcpy(to, "0x", 2);
  std::memcpy(to + 2, &digits, sizeof(digits));
  return to + Hex32::kLen;
}

template <std::unsigned_integral T>
char* put_decimal(char* to, T value) {
  const std::size_t len = num_digits(value);
  char* at = to + len;
  for (; value >= 100; value /= 100) std::memcpy(at -= 2, kDecimalPairs[value % 100].data(), 2);
  const std::array<char, 2>& pair = kDecimalPairs[value];
  *--at = pair[1];
  if (value >= 10) *--at = pair[0];
  return to + len;
}

template <std::unsigned_integral T>
char* put_hex(char* to, T value, std::size_t width) {
  const auto num = static_cast<std::size_t>(std::max(1, (static_cast<int>(std::bit_width(value)) + 3) / 4));
  for (std::size_t i = num; i < width; ++i) *to++ = '0';
  for (std::size_t i = num; i-- != 0; value = static_cast<T>(value >> 4)) to[i] = "0123456789abcdef"[value & 0x0f];
  return to + num;
}

template <Replacement kHow, std::integral T>
char* put(char* to, T value) {
  static_assert(!std::same_as<T, char> && !std::same_as<T, bool>);
  if constexpr (kHow.is_hex) {
    constexpr std::size_t kPrefix = kHow.has_prefix ? 2 : 0;
    if constexpr (kHow.has_prefix) to = put<kHow>(to, std::string_view("0x"));
    return put_hex(to, value, std::max(kHow.width, kPrefix) - kPrefix);
  } else {
    static_assert(kHow.width == 0 && !kHow.has_prefix);
    if constexpr (std::signed_integral<T>) {
      if (value < 0) *to++ = '-';
      const auto number = static_cast<std::make_unsigned_t<T>>(value);
      return put_decimal(to, value < 0 ? static_cast<std::make_unsigned_t<T>>(0 - number) : number);
    } else {
      return put_decimal(to, value);
    }
  }
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
