#pragma once

#include <chrono>

#include "apps/serve/nfs_service.h"

namespace weft::serve {

// expected_cost guesses how long a worker needs for a Call, before it begins: by the procedure, and by the octets that
// the Call asks for. A guess that is wrong only moves the Call within its client's first turns: DiskPool measures what
// each Call has cost.
std::chrono::microseconds expected_cost(const rpcrdma::ServedCall& call, const BulkArgs& args);

}  // namespace weft::serve
