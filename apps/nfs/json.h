#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weft::nfs {

// JsonLine is one JSON object (RFC 8259) in the making. Keys are plain ASCII.
class JsonLine {
 public:
  // Octets that are not UTF-8 become U+FFFD.
  JsonLine& add(std::string_view key, std::string_view value);
  JsonLine& add(std::string_view key, const char* value) { return add(key, std::string_view(value)); }
  JsonLine& add(std::string_view key, std::uint64_t value);
  JsonLine& add(std::string_view key, double value);
  JsonLine& add(std::string_view key, bool value);
  std::string str() const { return text_ + "}"; }

 private:
  void add_key(std::string_view key);
  std::string text_ = "{";
};

// utf8: text with every octet that is not part of well-formed UTF-8 replaced by U+FFFD.
std::string utf8(std::string_view text);

// printable: text for a terminal, control characters as '?', so that a file name cannot drive the terminal.
std::string printable(std::string_view text);

}  // namespace weft::nfs
