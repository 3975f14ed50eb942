#pragma once

#include "rpcrdma/profile.h"

namespace weft::rpcrdma::v2_wg07 {

// kProfile: version 2 as draft-ietf-nfsv4-rpcrdma-version-two-07 has it.
extern const Profile kProfile;

}  // namespace weft::rpcrdma::v2_wg07
