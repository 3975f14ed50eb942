#pragma once

#include "apps/dissect/layer_writer.h"
#include "apps/dissect/transport_header.h"
#include "base/bytes.h"
#include "rpcrdma/policies.h"

namespace weft::apps::dissect {

// tell_lists adds the chunk lists of a header to the line.
void tell_lists(const rpcrdma::ChunkListsView& lists, LayerWriter& layer);

// tell_header_fields adds each word of an RPC-over-RDMA header as a field. The header is one that
// parse_transport_header has read.
void tell_header_fields(rpcrdma::Protocol protocol, const TransportHeader& header, ConstBytes message,
                        LayerWriter& layer);

}  // namespace weft::apps::dissect
