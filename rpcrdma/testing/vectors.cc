#include "rpcrdma/testing/vectors.h"

#include <fstream>
#include <sstream>

namespace weft::rpcrdma::testing {

std::vector<std::uint8_t> from_hex(const std::string& hex) {
  std::vector<std::uint8_t> octets;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    octets.push_back(static_cast<std::uint8_t>(std::stoul(hex.substr(i, 2), nullptr, 16)));
  }
  return octets;
}

std::string to_hex(const std::vector<std::uint8_t>& octets) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (const std::uint8_t octet : octets) {
    hex += kDigits[octet >> 4];
    hex += kDigits[octet & 15];
  }
  return hex;
}

std::vector<Vector> load_vectors(char kind) {
  std::ifstream in("tests/vectors/rpcrdma1-vectors.txt");
  std::vector<Vector> all;
  std::string line;
  while (std::getline(in, line)) {
    if (line.size() > 5 && line[0] == '[' && line[4] == ']') {
      all.push_back(
          {.id = line.substr(1, 3), .title = line.substr(6), .octets = {}, .to = {}, .expect = {}, .answer = {}});
      continue;
    }
    if (all.empty() || line.empty() || line[0] == '#') continue;
    const std::size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    const std::string key = line.substr(0, colon);
    const std::string value = line.substr(colon + 2);
    Vector& vector = all.back();
    if (key == "hex") vector.octets = from_hex(value);
    if (key == "answer") vector.answer = from_hex(value);
    if (key == "to") vector.to = value;
    if (key == "expect") vector.expect = value;
    if (key == "len") {
      const std::size_t at = value.find("header: ");
      if (at != std::string::npos) vector.header_len = std::stoul(value.substr(at + 8));
    }
  }
  std::erase_if(all, [kind](const Vector& vector) { return vector.id[0] != kind; });
  return all;
}

Vector load_vector(const std::string& id) {
  for (const Vector& vector : load_vectors(id[0])) {
    if (vector.id == id) return vector;
  }
  return {.id = id, .title = {}, .octets = {}, .to = {}, .expect = {}, .answer = {}};
}

}  // namespace weft::rpcrdma::testing
