#pragma once

#include "rpcrdma/profile.h"

// The only place that lists the profiles.
namespace weft::rpcrdma {

// Version 1 (RFC 8166).
const Profile& profile_1();

}  // namespace weft::rpcrdma
