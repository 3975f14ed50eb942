#pragma once

#include <span>

#include "rpcrdma/policies.h"
#include "rpcrdma/profile.h"

// The only place that lists the profiles.
namespace weft::rpcrdma {

const Profile& profile_of(Protocol protocol);
// Version 1 (RFC 8166).
const Profile& profile_1();
// profiles_of: the same for several, in this order.
Profiles profiles_of(std::span<const Protocol> protocols);

}  // namespace weft::rpcrdma
