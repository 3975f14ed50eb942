#pragma once

#include <variant>

#include "tests/wire_v2/message.h"

// A decoder of RPC-over-RDMA version 2 for tests: rpcgen's, made of the drafts' own descriptions (x/). It shares
// nothing with rpcrdma: what both get wrong alike, both must have got from the documents.
namespace weft::wire_v2 {

// decode: the message, where a sender that keeps the rules may have sent it; else the first thing that is wrong. It
// knows this message alone (Conversation knows the others).
std::variant<Message, Fault> decode(Octets octets, Profile profile);

}  // namespace weft::wire_v2
