#pragma once

#include "rpcrdma/message.h"

// The treatment of a message of cel05 by an engine: the verdicts of its Profile.
namespace weft::rpcrdma::v2_cel05 {

// message_kind reads the direction (section 7.2.2). Operations on properties have none: a responder refuses
// all but RESPROP, which is an answer.
MessageKind message_kind(ConstBytes message);
CallVerdict receive_call(ConstBytes message, const ChunkLimits& limits, ReceivedCall& call);
ReplyVerdict receive_reply(ConstBytes message, const Offered& offered, ReceivedReply& reply);

}  // namespace weft::rpcrdma::v2_cel05
