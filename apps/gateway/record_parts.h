#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "apps/onc_tcp/stream.h"
#include "rpcrdma/call.h"
#include "rpcrdma/rpc_message.h"
#include "rpcrdma/xdr/xdr.h"

namespace weft::gateway {

// add_item adds the octets of an item and its roundup to the parts of a record.
inline void add_item(std::vector<ConstBytes>& parts, ConstBytes item) {
  static constexpr std::uint8_t kZeros[4] = {};
  parts.push_back(item);
  parts.push_back(ConstBytes(kZeros).first(rpcrdma::xdr::round_up(item.size()) - item.size()));
}

// is_call tells whether an RPC message is a Call by its msg_type.
inline bool is_call(ConstBytes message) {
  rpcrdma::xdr::XdrReader in(message);
  std::uint32_t xid = 0, type = 0;
  return in.u32(xid) && in.u32(type) && type == static_cast<std::uint32_t>(rpcrdma::MsgType::kCall);
}

struct OwnedRecord : onc_tcp::OutRecord {
  std::vector<std::uint8_t> octets;
  std::shared_ptr<const void> attached;  // destroyed with the record, once the record was sent
};

// owned_record makes a record of the octets that `fill`, a function of the vector, puts into it.
template <typename Fill>
std::unique_ptr<OwnedRecord> owned_record(Fill fill) {
  auto record = std::make_unique<OwnedRecord>();
  fill(record->octets);
  record->parts.push_back(record->octets);
  return record;
}

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

// header_record makes a Reply without results.
inline std::unique_ptr<OwnedRecord> header_record(const rpcrdma::ReplyHeader& header) {
  return owned_record([&](std::vector<std::uint8_t>& octets) {
    rpcrdma::xdr::XdrWriter out(octets);
    rpcrdma::emit_reply(out, header);
  });
}

// refusal answers a Call whose header does not parse. It returns null for a message that is not a Call.
inline std::unique_ptr<OwnedRecord> refusal(rpcrdma::CallParse parsed, std::uint32_t xid) {
  if (parsed == rpcrdma::CallParse::kRpcMismatch) return header_record(rpc_mismatch(xid));
  if (parsed == rpcrdma::CallParse::kGarbage) return header_record(accepted(xid, rpcrdma::AcceptStat::kGarbageArgs));
  return nullptr;
}

// PassedCall is a Call that came over TCP and is passed on.
struct PassedCall {
  // Fills `spec` from `args` and the header. Both lie in the octets that become `record`.
  void take(const rpcrdma::CallHeaderView& header, ConstBytes args) {
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

  onc_tcp::Record record;  // as received; `spec` views it
  rpcrdma::OpaqueAuth cred, verf;
  rpcrdma::CallSpec spec;
};

}  // namespace weft::gateway
