#pragma once

#include <cstdint>
#include <utility>

#include "rpcrdma/v1/header.h"
#include "rpcrdma/xdr/xdr.h"
#include "tests/exhaust/attack.h"

namespace weft::exhaust {

// A Call over RPC-over-RDMA version 1, with its RPC message inline.
inline Octets v1_message(std::uint32_t xid, const Octets& rpc, rpcrdma::ChunkListsView lists = {}) {
  rpcrdma::v1::Header header;
  header.xid = xid;
  header.credit = 128;
  header.lists = std::move(lists);
  Octets octets;
  rpcrdma::xdr::XdrWriter out(octets);
  emit_header(out, header);
  out.raw(rpc);
  return octets;
}

}  // namespace weft::exhaust
