#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "rpcrdma/testing/engines.h"
#include "rpcrdma/testing/vectors.h"

// Spoiled messages as the tests of both engines read them.
namespace weft::rpcrdma::testing {

constexpr std::size_t kInline = 4096;
constexpr std::size_t kEachUnspoiled = 50;  // one message in so many is delivered as it is

// word_at reads 0 where the octets end before.
inline std::uint32_t word_at(const Octets& octets, std::size_t offset) {
  std::uint32_t value = 0;
  if (offset + 4 > octets.size()) return 0;
  return xdr::XdrReader(ConstBytes(octets).subspan(offset)).u32(value) ? value : 0;
}

// hex shows the first 400 octets.
inline std::string hex(const Octets& octets) {
  return to_hex(
      Octets(octets.begin(), octets.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(octets.size(), 400))));
}

// Read is a message as a peer decodes it. The payload is empty where the header does not decode.
struct Read {
  explicit Read(const Octets& message) {
    xdr::XdrReader in(message);
    error = v1::parse_header(in, header);
    if (error == v1::HeaderError::kNone) payload = copy_of(in.rest());
  }
  v1::Header header;
  v1::HeaderError error = v1::HeaderError::kNone;
  Octets payload;
};

}  // namespace weft::rpcrdma::testing
