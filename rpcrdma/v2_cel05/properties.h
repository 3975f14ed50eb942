#pragma once

#include "rpcrdma/v2/properties.h"

namespace weft::rpcrdma::v2_cel05 {

// kProperties: draft-cel-nfsv4-rpcrdma-version-two-05 section 6.2.
extern const v2::PropertyTable kProperties;

}  // namespace weft::rpcrdma::v2_cel05
