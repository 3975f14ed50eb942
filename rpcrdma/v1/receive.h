#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "rpcrdma/message.h"

// The checks of a version 1 receiver on a message, before any check that needs the RPC program (RFC 8166 section 4.5).
// Functions without state, so that tests can run every malformed message through them.
namespace weft::rpcrdma::v1 {

// receive_call judges one Send that reached a responder. xid and version are set for every verdict but kDiscard.
CallVerdict receive_call(ConstBytes message, const ChunkLimits& limits, ReceivedCall& call);

// reply_xid reads the XID of a message. Empty if the message is too short to be judged (RFC 8166 section 4.5, and 20
// octets for RDMA_ERROR ERR_CHUNK).
std::optional<std::uint32_t> reply_xid(ConstBytes message);

// receive_reply judges one Send that reached a requester, for the pending RPC with the message's XID.
ReplyVerdict receive_reply(ConstBytes message, const Offered& offered, ReceivedReply& reply);

}  // namespace weft::rpcrdma::v1
