#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "rpcrdma/testing/engines.h"
#include "rpcrdma/testing/v2_vectors.h"
#include "rpcrdma/v2_wg07/header.h"

// Messages of wg07 as the peer of an engine makes and reads them.
namespace weft::rpcrdma::testing {

inline constexpr std::uint32_t kManyCredits = 1000;  // credits
inline constexpr std::uint32_t kCallHeader = 40;     // octets of the header of an RPC Call without a credential

struct Wg07Message {
  v2_wg07::Header header;
  Octets payload;

  template <typename Body>
  bool is() const {
    return std::holds_alternative<Body>(header.body);
  }
  // The body; fails the test if it has another type.
  template <typename Body>
  Body body() const {
    EXPECT_TRUE(is<Body>()) << "another type";
    return is<Body>() ? std::get<Body>(header.body) : Body{};
  }
};

inline Wg07Message wg07_parse(const Octets& octets) {
  Wg07Message message;
  ConstBytes payload;
  EXPECT_EQ(parse(octets, message.header, payload), v2::HeaderError::kNone);
  message.payload = copy_of(payload);
  return message;
}

// credit: the number of the last message that the engine may send.
template <typename Body>
Octets wg07_octets(std::uint32_t xid, std::uint32_t credit, const Body& body, const Octets& payload = {}) {
  return emit(v2_wg07::Header{.xid = xid, .credit = credit, .body = body}, payload);
}

inline Octets part_of(const Octets& octets, std::size_t from, std::size_t to) {
  return {octets.begin() + static_cast<std::ptrdiff_t>(from), octets.begin() + static_cast<std::ptrdiff_t>(to)};
}

// The Payload stream of all these messages together.
inline Octets joined(const std::vector<Octets>& messages) {
  Octets all;
  for (const Octets& one : messages) {
    const Octets payload = wg07_parse(one).payload;
    all.insert(all.end(), payload.begin(), payload.end());
  }
  return all;
}

}  // namespace weft::rpcrdma::testing
