#pragma once

#include <variant>

#include "tests/wire_v2/message.h"

// A decoder of RPC-over-RDMA version 2 for tests. rpcgen makes it from the drafts' own descriptions (x/). It shares no
// code with rpcrdma, so an error that both have comes from the documents.
namespace weft::wire_v2 {

// read returns the message if the octets are XDR of its type, whether or not anybody may send it.
std::variant<Message, Fault> read(Octets octets, Profile profile);

// decode returns the message if a sender that keeps the rules may have sent it, and else the first fault. It knows this
// message alone (Conversation knows the others).
std::variant<Message, Fault> decode(Octets octets, Profile profile);

}  // namespace weft::wire_v2
