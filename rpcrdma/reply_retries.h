#pragma once

#include <cstdint>

#include "rpcrdma/call.h"

namespace weft::rpcrdma {

// num_retries_allowed: how many short Reply chunk retries the binding allows, judged by all of the arguments
// (U1-3.1-06, U1-6.2.1-04).
std::uint32_t num_retries_allowed(const CallSpec& spec);
// Whether the Reply has no predictable length (RFC 8267 section 3.1).
bool is_unpredictable(const CallSpec& spec);

}  // namespace weft::rpcrdma
