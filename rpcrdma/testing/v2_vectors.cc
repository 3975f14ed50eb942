#include "rpcrdma/testing/v2_vectors.h"

#include "tests/vectors/vector_file.h"

namespace weft::rpcrdma::testing {

namespace {

std::vector<V2Vector> load_all() {
  std::vector<V2Vector> all;
  for (const vectors::Record& record : vectors::read_vector_file("tests/vectors/rpcrdma2-vectors.txt")) {
    all.push_back({.id = record.name,
                   .profile = record.find("profile").value_or(""),
                   .expect = record.find("expect").value_or(""),
                   .reply = record.find("reply").value_or(""),
                   .octets = vectors::from_hex(record.find("hex").value_or(""))});
  }
  return all;
}

}  // namespace

std::vector<V2Vector> load_v2_vectors(std::string_view profile) {
  std::vector<V2Vector> all = load_all();
  std::erase_if(all, [profile](const V2Vector& vector) { return vector.profile.find(profile) == std::string::npos; });
  return all;
}

V2Vector load_v2_vector(const std::string& id) {
  for (V2Vector& vector : load_all()) {
    if (vector.id == id) return vector;
  }
  ADD_FAILURE() << "no vector " << id;
  return {};
}

void put_word(Octets& octets, std::size_t at, std::uint32_t word) {
  for (std::size_t i = 0; i < 4; ++i) octets[at + i] = static_cast<std::uint8_t>(word >> (24 - 8 * i));
}

}  // namespace weft::rpcrdma::testing
