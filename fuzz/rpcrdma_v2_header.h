#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "rpcrdma/v2/first_message.h"
#include "rpcrdma/v2/header_error.h"
#include "rpcrdma/xdr/xdr.h"
#include "tests/wire_v2/agreement.h"

// The common part of the targets of both drafts of version 2.
namespace weft::fuzz {

inline void check(bool holds) {
  if (!holds) std::abort();
}

// A message that is accepted comes out octet for octet and has no answer, one that is refused is told apart from it.
template <typename Header>
void parse_emit_parse(ConstBytes message) {
  using rpcrdma::v2::HeaderError;
  Header header;
  ConstBytes payload;
  const HeaderError error = parse_message(message, header, payload);
  check(error != HeaderError::kTooShort || message.size() < 16);
  if (error != HeaderError::kNone) {
    answer(header, error);
    return;
  }
  check(!answer(header, error));
  std::vector<std::uint8_t> octets;
  rpcrdma::xdr::XdrWriter out(octets);
  emit_header(out, header);
  out.raw(payload);
  check(std::equal(octets.begin(), octets.end(), message.begin(), message.end()));
  Header again;
  ConstBytes rest;
  check(parse_message(octets, again, rest) == HeaderError::kNone && again == header && rest.size() == payload.size());
}

// The decoder of tests/wire_v2, which shares no code with the codec, finds the same fields.
inline void agree(ConstBytes message, wire_v2::Profile profile) {
  check(wire_v2::disagreement(message, profile).empty());
}

// As the first message at a server, and as the answer to a client's opening.
inline void as_first_message(ConstBytes message) {
  namespace v2 = rpcrdma::v2;
  const v2::FirstMessage protocol = v2::classify_first_message(message);
  check(protocol == v2::FirstMessage::kUnknown || message.size() >= 16);
  rpcrdma::xdr::XdrReader in(message);
  std::uint32_t xid = 0;
  if (!in.u32(xid)) return;
  for (const v2::Draft draft : {v2::Draft::kCel05, v2::Draft::kWg07}) {
    for (const bool is_call : {false, true}) v2::refusal({.draft = draft, .xid = xid, .is_call = is_call}, message);
  }
}

}  // namespace weft::fuzz
