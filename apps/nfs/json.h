#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weft::nfs {

// JsonLine is one JSON object (RFC 8259) under construction. Keys are plain ASCII. Numbers are written exactly, but
// many readers keep them as doubles, which are exact only up to 2^53. An identifier that uses all of its 64 bits (fsid,
// fileid) goes out as a string, by add_id.
class JsonLine {
 public:
  // Octets that are not UTF-8 become U+FFFD. Characters that could drive a terminal are escaped.
  JsonLine& add(std::string_view key, std::string_view value);
  JsonLine& add(std::string_view key, const char* value) { return add(key, std::string_view(value)); }
  JsonLine& add(std::string_view key, std::uint64_t value);
  JsonLine& add(std::string_view key, double value);
  // An identifier, in decimal digits as a string.
  JsonLine& add_id(std::string_view key, std::uint64_t value) { return add(key, std::to_string(value)); }
  JsonLine& add(std::string_view key, bool value);
  std::string str() const { return text_ + "}"; }

 private:
  void add_key(std::string_view key);
  std::string text_ = "{";
};

}  // namespace weft::nfs
