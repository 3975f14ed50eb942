#include "tests/vectors/vector_file.h"

#include <fstream>
#include <stdexcept>

namespace weft::vectors {
namespace {

std::uint8_t digit(char c) {
  if (c >= '0' && c <= '9') return static_cast<std::uint8_t>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<std::uint8_t>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<std::uint8_t>(c - 'A' + 10);
  throw std::runtime_error(std::string("not a hexadecimal digit: ") + c);
}

std::string trimmed(std::string_view text) {
  while (!text.empty() && (text.back() == ' ' || text.back() == '\r')) text.remove_suffix(1);
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  return std::string(text);
}

void add_line(const std::string& line, Record& record) {
  if (line.front() == '[') {
    const std::size_t end = line.find(']');
    if (end == std::string::npos) throw std::runtime_error("no ']' in: " + line);
    record.name = line.substr(1, end - 1);
    record.fields.emplace_back("title", trimmed(std::string_view(line).substr(end + 1)));
    return;
  }
  const std::size_t colon = line.find(':');
  if (colon == std::string::npos && record.fields.empty()) return;  // a table between records
  if (colon == std::string::npos) throw std::runtime_error("no ':' in: " + line);
  record.fields.emplace_back(line.substr(0, colon), trimmed(std::string_view(line).substr(colon + 1)));
  const std::string& key = record.fields.back().first;
  if (key == "name" || key == "id") record.name = record.fields.back().second;
}

}  // namespace

std::optional<std::string> Record::find(std::string_view key) const {
  for (const auto& [name, value] : fields)
    if (name == key) return value;
  return std::nullopt;
}

std::vector<std::string> Record::all(std::string_view key) const {
  std::vector<std::string> values;
  for (const auto& [name, value] : fields)
    if (name == key) values.push_back(value);
  return values;
}

std::optional<std::vector<std::uint8_t>> Record::octets(std::string_view key) const {
  if (const auto hex = find(std::string(key) + ".hex")) return from_hex(*hex);
  const auto header = find(std::string(key) + ".hdr");
  const auto payload = find(std::string(key) + ".payload");
  if (!header || !payload) return std::nullopt;
  auto octets = from_hex(*header);
  const auto rest = from_pattern(*payload);
  octets.insert(octets.end(), rest.begin(), rest.end());
  return octets;
}

std::vector<Record> read_vector_file(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error("cannot open " + path + " (tests run in the top folder)");
  std::vector<Record> records;
  Record record;
  const auto flush = [&] {
    if (!record.name.empty()) records.push_back(std::move(record));
    record = {};
  };
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line == "\r") {
      flush();
    } else if (line.front() != '#') {
      add_line(line, record);
    }
  }
  flush();
  return records;
}

std::vector<std::uint8_t> from_hex(std::string_view hex) {
  if (hex.size() % 2 != 0) throw std::runtime_error("odd number of hexadecimal digits");
  std::vector<std::uint8_t> octets(hex.size() / 2);
  for (std::size_t i = 0; i < octets.size(); ++i)
    octets[i] = static_cast<std::uint8_t>(digit(hex[2 * i]) << 4 | digit(hex[2 * i + 1]));
  return octets;
}

std::vector<std::uint8_t> from_pattern(std::string_view text) {
  const bool ramp = text.starts_with("ramp=");
  if (!ramp && !text.starts_with("fill=")) return from_hex(text);
  const std::size_t len_at = text.find(" len=");
  if (len_at == std::string_view::npos) throw std::runtime_error("no len= in a pattern");
  const auto first = std::stoul(std::string(text.substr(5, len_at - 5)), nullptr, 0);
  const auto len = std::stoul(std::string(text.substr(len_at + 5)), nullptr, 0);
  std::vector<std::uint8_t> octets(len);
  for (std::size_t i = 0; i < len; ++i) octets[i] = static_cast<std::uint8_t>(ramp ? first + i : first);
  return octets;
}

}  // namespace weft::vectors
