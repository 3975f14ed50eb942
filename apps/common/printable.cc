#include "apps/common/printable.h"

#include <fmt/format.h>

#include <algorithm>

namespace weft::apps {
namespace {

struct Range {
  char32_t first;
  char32_t last;
};

constexpr Range kControls[] = {
    {0x00, 0x1f},      // C0
    {0x7f, 0x9f},      // DEL and C1
    {0x061c, 0x061c},  // Arabic letter mark
    {0x200e, 0x200f},  // left-to-right and right-to-left marks
    {0x2028, 0x2029},  // line and paragraph separators
    {0x202a, 0x202e},  // embeddings and overrides
    {0x2066, 0x2069},  // isolates
};

bool is_continuation(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
}

// Most text has nothing else.
bool is_plain(char c) {
  return c >= ' ' && c <= '~';
}

}  // namespace

CodePoint front_code_point(std::string_view text) {
  const auto octet = [&text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = octet(0);
  const CodePoint broken{lead, 1, false};
  if (lead < 0x80) return {lead, 1, true};
  // The bounds of the second octet exclude overlong forms, surrogates and code points beyond U+10FFFF (RFC 3629 section
  // 4).
  std::size_t len = 0;
  unsigned char low = 0x80, high = 0xbf;
  char32_t value = 0;
  if (lead >= 0xc2 && lead <= 0xdf) {
    len = 2;
    value = lead & 0x1fu;
  } else if (lead >= 0xe0 && lead <= 0xef) {
    len = 3;
    value = lead & 0x0fu;
    if (lead == 0xe0) low = 0xa0;
    if (lead == 0xed) high = 0x9f;
  } else if (lead >= 0xf0 && lead <= 0xf4) {
    len = 4;
    value = lead & 0x07u;
    if (lead == 0xf0) low = 0x90;
    if (lead == 0xf4) high = 0x8f;
  }
  if (len == 0 || len > text.size() || octet(1) < low || octet(1) > high) return broken;
  for (std::size_t i = 1; i < len; ++i) {
    if (!is_continuation(text[i])) return broken;
    value = value << 6 | (octet(i) & 0x3fu);
  }
  return {value, len, true};
}

bool is_control(char32_t c) {
  for (const Range& range : kControls) {
    if (c >= range.first && c <= range.last) return true;
  }
  return false;
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (;;) {
    const auto plain = static_cast<std::size_t>(std::ranges::find_if_not(text, is_plain) - text.begin());
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) return out;
    const CodePoint front = front_code_point(text);
    if (front.well_formed && !is_control(front.value)) {
      out += text.substr(0, front.len);
    } else if (front.len == 1) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned>(front.value));
    } else {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(front.value));
    }
    text.remove_prefix(front.len);
  }
}

std::string printable_tail(std::string_view text, std::size_t max_len) {
  if (text.size() <= max_len) return printable(text);
  text.remove_prefix(text.size() - max_len);
  // A character has at most three continuation octets. Further ones do not belong to it.
  for (int i = 0; i < 3 && !text.empty() && is_continuation(text.front()); ++i) text.remove_prefix(1);
  return "..." + printable(text);
}

}  // namespace weft::apps
