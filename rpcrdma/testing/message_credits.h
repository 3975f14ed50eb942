#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <variant>

#include "rpcrdma/message_credits.h"
#include "rpcrdma/testing/v2_vectors.h"
#include "rpcrdma/v2_wg07/header.h"

// The messages of the tests of MessageCredits: the word of credits goes through the octets of wg07.
namespace weft::rpcrdma::testing {

// The octets of a message with this word.
inline Octets message_of(MessageCredits::Kind kind, std::uint32_t word) {
  using Kind = MessageCredits::Kind;
  v2_wg07::Header header{.credit = word, .body = v2_wg07::CallMiddle{}};
  if (kind == Kind::kGrant) header.body = v2_wg07::Grant{};
  if (kind == Kind::kError) header.body = v2_wg07::Error{};
  return emit(header, Octets(kind == Kind::kOther ? 4 : 0));
}
inline v2_wg07::Header parsed(const Octets& message) {
  v2_wg07::Header header;
  EXPECT_EQ(parse(message, header), v2::HeaderError::kNone);
  return header;
}
inline MessageCredits::Kind kind_of(const v2_wg07::Header& header) {
  using Kind = MessageCredits::Kind;
  if (std::holds_alternative<v2_wg07::Grant>(header.body)) return Kind::kGrant;
  return std::holds_alternative<v2_wg07::Error>(header.body) ? Kind::kError : Kind::kOther;
}

}  // namespace weft::rpcrdma::testing
