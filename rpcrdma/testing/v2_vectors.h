#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "rpcrdma/chunk_lists.h"
#include "rpcrdma/v1/header.h"
#include "rpcrdma/v2/header_error.h"
#include "rpcrdma/v2_cel05/header.h"
#include "rpcrdma/v2_wg07/header.h"
#include "rpcrdma/xdr/xdr.h"
#include "tests/conformance/ran.h"

// The vector file of RPC-over-RDMA version 2, and what both drafts' codecs have to do with each of its messages.
namespace weft::rpcrdma::testing {

using Octets = std::vector<std::uint8_t>;

struct V2Vector {
  std::string id;       // "S01", "W01"
  std::string profile;  // "cel05", "wg07", "cel05+wg07", "flags" or "v1"
  std::string expect;   // "accept", or the name of an error code
  std::string reply;    // id of the vector that has the layout of the answer; empty for none
  Octets octets;

  bool is_valid() const { return expect.starts_with("accept"); }
};

// All records whose profile names `profile`.
std::vector<V2Vector> load_v2_vectors(std::string_view profile);
// The one with this id; octets are empty where there is none.
V2Vector load_v2_vector(const std::string& id);

void put_word(Octets& octets, std::size_t at, std::uint32_t word);

// The protocol of a Header. Functions of one draft are found by their Header, too.
inline const char* protocol_of(const v1::Header& /*header*/) {
  return "1";
}
inline const char* protocol_of(const v2_cel05::Header& /*header*/) {
  return "2-cel05";
}
inline const char* protocol_of(const v2_wg07::Header& /*header*/) {
  return "2-wg07";
}

template <typename Header>
Octets emit(const Header& header, ConstBytes payload = {}) {
  conformance::ran(protocol_of(header));
  Octets octets;
  xdr::XdrWriter out(octets);
  emit_header(out, header);
  out.raw(payload);
  return octets;
}

template <typename Header>
v2::HeaderError parse(ConstBytes octets, Header& header, ConstBytes& payload) {
  conformance::ran(protocol_of(header));
  header = {};
  return parse_message(octets, header, payload);
}
template <typename Header>
v2::HeaderError parse(ConstBytes octets, Header& header) {
  ConstBytes payload;
  return parse(octets, header, payload);
}

// expect_both_ways: the octets have these fields, and the fields make these octets.
template <typename Header>
void expect_both_ways(const V2Vector& vector, const Header& fields) {
  Header header;
  ConstBytes payload;
  ASSERT_EQ(parse(vector.octets, header, payload), v2::HeaderError::kNone) << vector.id;
  EXPECT_EQ(header, fields) << vector.id;
  EXPECT_EQ(emit(fields, payload), vector.octets) << vector.id;
}

template <typename Header>
void expect_every_cut_refused(const V2Vector& vector) {
  Header header;
  ConstBytes payload;
  ASSERT_EQ(parse_message(vector.octets, header, payload), v2::HeaderError::kNone) << vector.id;
  const std::size_t header_len = vector.octets.size() - payload.size();
  for (std::size_t len = 0; len < header_len; ++len) {
    const Octets cut(vector.octets.begin(), vector.octets.begin() + static_cast<std::ptrdiff_t>(len));
    const v2::HeaderError error = parse(cut, header);
    EXPECT_NE(error, v2::HeaderError::kNone) << vector.id << " cut at " << len;
    EXPECT_EQ(error == v2::HeaderError::kTooShort, len < 16) << vector.id << " cut at " << len;
  }
}

// expect_words_harmless replaces each word by hostile values: parsing never reads outside (ASan) and, where it
// succeeds, gives fields that make the same octets.
template <typename Header>
void expect_words_harmless(const V2Vector& vector) {
  for (std::size_t at = 0; at + 4 <= vector.octets.size(); at += 4) {
    for (const std::uint32_t word : {0u, 1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u, 9u, 10u, 11u, 12u, 13u, 33u, 100u, 0x7fffffffu,
                                     0x80000001u, 0xffffffffu}) {
      Octets octets = vector.octets;
      put_word(octets, at, word);
      Header header;
      ConstBytes payload;
      if (parse_message(octets, header, payload) != v2::HeaderError::kNone) continue;
      EXPECT_EQ(emit(header, payload), octets) << vector.id << " word " << at << " = " << word;
    }
  }
}

}  // namespace weft::rpcrdma::testing
