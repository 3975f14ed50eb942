#include "apps/nfs/json.h"

#include <fmt/format.h>

#include <cmath>

namespace weft::nfs {
namespace {

// Octets of the well-formed UTF-8 sequence at the front of text, 0 for none (RFC 3629 section 4).
std::size_t sequence_len(std::string_view text) {
  const auto octet = [&text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = octet(0);
  if (lead < 0x80) return 1;
  std::size_t len = 0;
  unsigned char low = 0x80, high = 0xbf;
  if (lead >= 0xc2 && lead <= 0xdf) {
    len = 2;
  } else if (lead >= 0xe0 && lead <= 0xef) {
    len = 3;
    if (lead == 0xe0) low = 0xa0;
    if (lead == 0xed) high = 0x9f;
  } else if (lead >= 0xf0 && lead <= 0xf4) {
    len = 4;
    if (lead == 0xf0) low = 0x90;
    if (lead == 0xf4) high = 0x8f;
  }
  if (len == 0 || len > text.size() || octet(1) < low || octet(1) > high) return 0;
  for (std::size_t i = 2; i < len; ++i) {
    if (octet(i) < 0x80 || octet(i) > 0xbf) return 0;
  }
  return len;
}

void append_escaped(std::string& out, std::string_view text) {
  for (const char c : text) {
    const auto octet = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (octet < 0x20 || octet == 0x7f) {
      out += fmt::format("\\u{:04x}", octet);
    } else {
      out += c;
    }
  }
}

}  // namespace

std::string utf8(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t len = sequence_len(text);
    out += len == 0 ? std::string_view("\xef\xbf\xbd") : text.substr(0, len);
    text.remove_prefix(len == 0 ? 1 : len);
  }
  return out;
}

std::string printable(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    const auto octet = static_cast<unsigned char>(c);
    if (octet < 0x20 || octet == 0x7f) c = '?';
  }
  return out;
}

void JsonLine::add_key(std::string_view key) {
  if (text_.size() > 1) text_ += ',';
  text_ += '"';
  text_ += key;
  text_ += "\":";
}

JsonLine& JsonLine::add(std::string_view key, std::string_view value) {
  add_key(key);
  text_ += '"';
  append_escaped(text_, utf8(value));
  text_ += '"';
  return *this;
}

JsonLine& JsonLine::add(std::string_view key, std::uint64_t value) {
  add_key(key);
  text_ += std::to_string(value);
  return *this;
}

JsonLine& JsonLine::add(std::string_view key, double value) {
  add_key(key);
  text_ += std::isfinite(value) ? fmt::format("{:.9g}", value) : "null";
  return *this;
}

JsonLine& JsonLine::add(std::string_view key, bool value) {
  add_key(key);
  text_ += value ? "true" : "false";
  return *this;
}

}  // namespace weft::nfs
