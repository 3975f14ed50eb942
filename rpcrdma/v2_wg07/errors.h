#pragma once

#include <string_view>

#include "rpcrdma/transport_error.h"
#include "rpcrdma/v2_wg07/header.h"

// RDMA2_ERROR (section 7) and the engines' TransportError.
namespace weft::rpcrdma::v2_wg07 {

// Every TransportError has a code here: kChunk and kBadHeader are RDMA2_ERR_BAD_XDR.
Error to_wire(const TransportError& error);
TransportError from_wire(const Error& error);
std::string_view error_name(TransportError::Code code);

}  // namespace weft::rpcrdma::v2_wg07
