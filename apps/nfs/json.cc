#include "apps/nfs/json.h"

#include <fmt/format.h>

#include <cmath>

#include "apps/common/printable.h"

namespace weft::nfs {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

// An escape loses nothing, so every character that could drive a terminal is escaped, beyond the demands of RFC 8259
// section 7.
void append_escaped(std::string& out, std::string_view text) {
  while (!text.empty()) {
    const apps::CodePoint front = apps::front_code_point(text);
    if (!front.well_formed) {
      out += kReplacement;
    } else if (apps::is_control(front.value)) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(front.value));
    } else {
      if (front.value == '"' || front.value == '\\') out += '\\';
      out += text.substr(0, front.len);
    }
    text.remove_prefix(front.len);
  }
}

}  // namespace

void JsonLine::add_key(std::string_view key) {
  if (text_.size() > 1) text_ += ',';
  text_ += '"';
  text_ += key;
  text_ += "\":";
}

JsonLine& JsonLine::add(std::string_view key, std::string_view value) {
  add_key(key);
  text_ += '"';
  append_escaped(text_, value);
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
