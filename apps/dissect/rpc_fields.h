#pragma once

#include "apps/dissect/rpc_layer.h"
#include "rpcrdma/rpc_message.h"

// The words of RPC headers as fields (RFC 5531 sections 8 and 9).
namespace weft::apps::dissect {

// tell_auths adds the credential and the verifier of a Call.
void tell_auths(const rpcrdma::CallHeaderView& call, RpcLayer& layer);
// tell_reply_status adds the verifier of a Reply, its status, and what the status has with it.
void tell_reply_status(const rpcrdma::ReplyHeader& reply, RpcLayer& layer);

}  // namespace weft::apps::dissect
