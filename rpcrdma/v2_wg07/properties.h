#pragma once

#include "rpcrdma/v2/properties.h"

namespace weft::rpcrdma::v2_wg07 {

// kProperties: draft-ietf-nfsv4-rpcrdma-version-two-07 section 5.2.
extern const v2::PropertyTable kProperties;

}  // namespace weft::rpcrdma::v2_wg07
