#pragma once

#include <cstdint>
#include <vector>

#include "rpcrdma/rpc_message.h"
#include "rpcrdma/xdr/xdr.h"

namespace weft::gateway {

// add_item adds the octets of an item to the parts of a record, and its roundup.
inline void add_item(std::vector<rpcrdma::ConstBytes>& parts, rpcrdma::ConstBytes item) {
  static constexpr std::uint8_t kZeros[4] = {};
  parts.push_back(item);
  parts.push_back(rpcrdma::ConstBytes(kZeros).first(rpcrdma::xdr::round_up(item.size()) - item.size()));
}

// is_call: whether an RPC message is a Call by its msg_type.
inline bool is_call(rpcrdma::ConstBytes message) {
  rpcrdma::xdr::XdrReader in(message);
  std::uint32_t xid = 0, type = 0;
  return in.u32(xid) && in.u32(type) && type == static_cast<std::uint32_t>(rpcrdma::MsgType::kCall);
}

}  // namespace weft::gateway
