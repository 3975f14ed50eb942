#pragma once

#include <cstdint>

#include "rpcrdma/bytes.h"

namespace weft::rpcrdma::v1 {

// MessageKind: which of the two engines of a connection a message is for (RFC 8167 sections 2.4 and 4.1).
enum class MessageKind : std::uint8_t {
  kCall,     // for the responder: its credit word is a request
  kReply,    // for the requester: its credit word is a grant
  kUnclear,  // nothing in it says: its credit word means nothing
};

// message_kind looks at one Send where Calls and Replies arrive both. What it answers says nothing yet about whether
// the message is in order.
MessageKind message_kind(ConstBytes message);

}  // namespace weft::rpcrdma::v1
