#pragma once

#include "rpcrdma/profile.h"

// The one place that knows which profiles there are.
namespace weft::rpcrdma {

// Version 1 (RFC 8166).
const Profile& profile_1();

}  // namespace weft::rpcrdma
