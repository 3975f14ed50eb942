#pragma once

#include "rpcrdma/message.h"

namespace weft::rpcrdma {

// disagreement compares the lists of a Reply with the offered ones, which every version has the responder return with
// the lengths that it filled. Null if they agree, else the reason for the log.
const char* disagreement(const ChunkListsView& returned, const Offered& offered);

}  // namespace weft::rpcrdma
