#pragma once

#include "base/bytes.h"
#include "rpcrdma/message.h"

namespace weft::rpcrdma::v1 {

// message_kind finds out whether a message is a Call or a Reply (RFC 8167 sections 2.4 and 4.1).
MessageKind message_kind(ConstBytes message);

}  // namespace weft::rpcrdma::v1
