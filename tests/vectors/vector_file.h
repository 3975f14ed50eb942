#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft::vectors {

// Record is one record of a vector file: its name and its "key: value" lines in order; a key may occur more than once.
struct Record {
  std::string name;
  std::vector<std::pair<std::string, std::string>> fields;

  // The value of the first line with this key; nullopt where no line has it.
  std::optional<std::string> find(std::string_view key) const;
  // The value of every line with this key.
  std::vector<std::string> all(std::string_view key) const;
  // The octets of `key`.hex, or of `key`.hdr followed by `key`.payload; nothing where there are neither.
  std::optional<std::vector<std::uint8_t>> octets(std::string_view key) const;
};

// read_vector_file reads a file of records that are separated by empty lines and begin with "name: NAME", "id: NAME" or
// with "[NAME] title" (the title becomes a field of that key). Lines with '#' in front are skipped. Throws
// std::runtime_error where the file cannot be opened.
std::vector<Record> read_vector_file(const std::string& path);

// from_hex reads pairs of hexadecimal digits. Throws std::runtime_error on anything else.
std::vector<std::uint8_t> from_hex(std::string_view hex);

// from_pattern reads hexadecimal digits, "ramp=S len=N" (octet i is S + i) or "fill=V len=N".
std::vector<std::uint8_t> from_pattern(std::string_view text);

}  // namespace weft::vectors
