#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "apps/onc_tcp/stream.h"
#include "rpcrdma/call.h"
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

struct OwnedRecord : onc_tcp::OutRecord {
  std::vector<std::uint8_t> octets;
};

inline rpcrdma::ReplyHeader accepted(std::uint32_t xid, rpcrdma::AcceptStat stat) {
  rpcrdma::ReplyHeader out;
  out.xid = xid;
  out.accept = stat;
  return out;
}

inline rpcrdma::ReplyHeader rpc_mismatch(std::uint32_t xid) {
  rpcrdma::ReplyHeader out;
  out.xid = xid;
  out.denied = true;
  out.reject = rpcrdma::RejectStat::kRpcMismatch;
  out.low = out.high = rpcrdma::kRpcVersion;
  return out;
}

// send_header sends a Reply that has no results.
inline void send_header(onc_tcp::Stream& stream, const rpcrdma::ReplyHeader& header) {
  auto record = std::make_unique<OwnedRecord>();
  rpcrdma::xdr::XdrWriter out(record->octets);
  rpcrdma::emit_reply(out, header);
  record->parts.push_back(record->octets);
  stream.send(std::move(record));
}

// refuse answers a Call whose header does not parse; what is no Call has no answer.
inline void refuse(onc_tcp::Stream& stream, rpcrdma::CallParse parsed, std::uint32_t xid) {
  if (parsed == rpcrdma::CallParse::kRpcMismatch) send_header(stream, rpc_mismatch(xid));
  if (parsed == rpcrdma::CallParse::kGarbage) send_header(stream, accepted(xid, rpcrdma::AcceptStat::kGarbageArgs));
}

// PassedCall is a Call that came by TCP, as it goes on.
struct PassedCall {
  // `args`, with what the header says, for `spec`; both stand in what becomes `record`.
  void take(const rpcrdma::CallHeaderView& header, rpcrdma::ConstBytes args) {
    cred = header.cred.copy();
    verf = header.verf.copy();
    spec.program = header.program;
    spec.version = header.version;
    spec.procedure = header.procedure;
    spec.cred = &cred;
    spec.verf = &verf;
    spec.xid = header.xid;
    spec.args = args;
  }
  std::uint32_t xid() const { return *spec.xid; }  // the client's

  onc_tcp::Record record;  // as it came; `spec` views it
  rpcrdma::OpaqueAuth cred, verf;
  rpcrdma::CallSpec spec;
};

}  // namespace weft::gateway
