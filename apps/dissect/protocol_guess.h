#pragma once

#include <optional>

#include "base/bytes.h"
#include "rpcrdma/policies.h"

namespace weft::apps::dissect {

// guess_protocol finds the version of RPC-over-RDMA whose message this is, and the draft of version 2. Empty: none, or
// no message of RPC-over-RDMA. Without the first message of a connection, only a message that is one version's and no
// other's tells.
std::optional<rpcrdma::Protocol> guess_protocol(ConstBytes message);

// guess_faulty does the same for the first message of a connection, if it breaks a rule: the RPC Call in it shows that
// it is one of RPC-over-RDMA.
std::optional<rpcrdma::Protocol> guess_faulty(ConstBytes message);

}  // namespace weft::apps::dissect
