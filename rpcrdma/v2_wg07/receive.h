#pragma once

#include <optional>

#include "rpcrdma/framing.h"
#include "rpcrdma/message.h"

// A receiver's verdict on a message of wg07: pure functions. For Profile and Framing.
namespace weft::rpcrdma::v2_wg07 {

MessageKind message_kind(ConstBytes message);
CallVerdict receive_call(ConstBytes message, const ChunkLimits& limits, ReceivedCall& call);
ReplyVerdict receive_reply(ConstBytes message, const Offered& offered, ReceivedReply& reply);
Frame frame(ConstBytes message);
std::optional<ConstBytes> payload(ConstBytes message);

}  // namespace weft::rpcrdma::v2_wg07
