#pragma once

#include "rpcrdma/rpc_message.h"

namespace weft::rpcrdma {

// may_reduce: whether DDP-eligible items of a Call with this credential, and of its Reply, may travel in chunks of
// their own. They may not if RPCSEC_GSS has wrapped them for integrity or privacy, nor in RPCSEC_GSS control messages
// (RFC 8166 section 8.2.2): then the whole message is one opaque piece. For a credential that cannot be read the answer
// is false.
bool may_reduce(AuthView cred);

}  // namespace weft::rpcrdma
