#pragma once

#include "apps/dissect/rpc_layer.h"
#include "rpcrdma/rpc_message.h"

// The words of RPC headers as fields (RFC 5531 sections 8 and 9).
namespace weft::apps::dissect {

// tell_call_fields adds the words of a Call. behind: at its arguments.
void tell_call_fields(const rpcrdma::CallHeaderView& call, const rpcrdma::xdr::XdrReader& behind, RpcLayer& layer);
// tell_reply_fields adds the words of a Reply. behind: at its results.
void tell_reply_fields(const rpcrdma::ReplyHeader& reply, const rpcrdma::xdr::XdrReader& behind, RpcLayer& layer);

}  // namespace weft::apps::dissect
