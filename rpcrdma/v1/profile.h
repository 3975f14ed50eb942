#pragma once

#include "rpcrdma/profile.h"

namespace weft::rpcrdma::v1 {

// Version 1 of RFC 8166 for the engines.
extern const Profile kProfile;

}  // namespace weft::rpcrdma::v1
