#pragma once

#include "rpcrdma/rpc_message.h"

namespace weft::rpcrdma {

// may_reduce: whether DDP-eligible items of a Call with this credential, and of its Reply, may travel in chunks of
// their own. Not where RPCSEC_GSS has wrapped them for integrity or privacy, nor in its control messages (RFC 8166
// section 8.2.2): then the whole message is one opaque piece. A credential that cannot be read is taken for the worst.
bool may_reduce(AuthView cred);

}  // namespace weft::rpcrdma
