#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "rpcrdma/reassembly.h"
#include "rpcrdma/xdr/xdr.h"

namespace weft::rpcrdma {

// Frame: what the first words of a message say, in profiles whose credits count messages.
struct Frame {
  enum class Type : std::uint8_t {
    kMalformed,  // no message of this version, or too short
    kGrant,      // nothing but credits
    kError,
    kProperties,  // transport properties
    kMiddle,      // a part of an RPC message that a later message continues
    kInline,      // the only part of an RPC message, or the last one
    kExternal,    // an RPC message in the Call chunk or the Reply chunk
  };
  Type type = Type::kMalformed;
  Reassembly::Part::Direction direction = Reassembly::Part::Direction::kCall;
  std::uint32_t xid = 0;
  std::uint32_t remaining = 0;          // kMiddle: octets of the RPC message that the peer says are to follow
  std::optional<std::uint32_t> credit;  // empty: the message does not tell it in this version's way (W2-4.3-2)
};

// Framing: how a profile frames RPC messages if its credits count messages. One RPC message may then be several
// messages (draft-ietf-nfsv4-rpcrdma-version-two-07 sections 4.1 and 4.2). Functions without state.
struct Framing {
  std::size_t middle_header_len = 0;  // octets before the Payload stream of a kMiddle
  // frame judges the first words. The rest may still be malformed.
  Frame (*frame)(ConstBytes message);
  // payload: the Payload stream of a kMiddle or kInline. Empty if the header is malformed.
  std::optional<ConstBytes> (*payload)(ConstBytes message);
  // remaining: octets of the Payload stream that later messages have.
  void (*emit_middle)(xdr::XdrWriter& out, Reassembly::Part::Direction direction, std::uint32_t xid,
                      std::uint32_t remaining);
  void (*emit_grant)(xdr::XdrWriter& out);
};

// Octets of the Payload stream that a message has at least, if it has any.
inline constexpr std::size_t kLeastPart = 4;
// Octets of the Payload stream for which the last message must have room. With less room, a stream of an odd length
// would leave nothing for the part before the last one.
inline constexpr std::size_t kLeastLast = 2 * kLeastPart;
// Octets of the longest RPC message that goes in several messages. A usual bound for the results of a Reply of unknown
// length is one mebibyte. The rest is for the headers of the RPC message.
inline constexpr std::size_t kMaxContinued = (1 << 20) + (64 << 10);
// Octets of results that every Call may have without a chunk for them. A requester that relies on longer Replies in
// several messages may get shorter results.
inline constexpr std::size_t kContinuedResults = 16 << 10;
// The credit word of every message, in every version, in octets from its start (R1-4.1-01 for version 1).
inline constexpr std::size_t kCreditOffset = 8;

}  // namespace weft::rpcrdma
