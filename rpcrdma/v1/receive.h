#pragma once

#include <cstdint>
#include <optional>

#include "rpcrdma/bytes.h"
#include "rpcrdma/message.h"

// What a version 1 receiver does with a message, before anything that needs the RPC program (RFC 8166 section 4.5).
// Functions without state, so that every malformed message can be held against them.
namespace weft::rpcrdma::v1 {

// receive_call judges one Send that reached a responder. xid and version are set for every verdict but kDiscard.
CallVerdict receive_call(ConstBytes message, const ChunkLimits& limits, ReceivedCall& call);

// reply_xid reads the XID of a message that is long enough to be looked at; nothing otherwise (RFC 8166 section 4.5,
// and 20 octets for RDMA_ERROR ERR_CHUNK).
std::optional<std::uint32_t> reply_xid(ConstBytes message);

// receive_reply judges one Send that reached a requester, for the pending RPC with the message's XID.
ReplyVerdict receive_reply(ConstBytes message, const Offered& offered, ReceivedReply& reply);

}  // namespace weft::rpcrdma::v1
