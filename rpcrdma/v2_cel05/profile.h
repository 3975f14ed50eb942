#pragma once

#include "rpcrdma/profile.h"

namespace weft::rpcrdma::v2_cel05 {

// kProfile: version 2 as draft-cel-nfsv4-rpcrdma-version-two-05 has it.
extern const Profile kProfile;

}  // namespace weft::rpcrdma::v2_cel05
