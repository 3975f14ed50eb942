#pragma once

#include "apps/dissect/layer_writer.h"
#include "apps/dissect/rpc_decoder.h"
#include "base/bytes.h"
#include "rpcrdma/policies.h"

namespace weft::apps::dissect {

// tell_header_fields adds each word of an RPC-over-RDMA header as a field. The header is one that
// parse_transport_header has read.
void tell_header_fields(rpcrdma::Protocol protocol, const TransportHeader& header, ConstBytes message,
                        LayerWriter& layer);

}  // namespace weft::apps::dissect
