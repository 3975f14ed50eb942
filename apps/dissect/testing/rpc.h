#pragma once

#include <algorithm>
#include <utility>

#include "apps/dissect/testing/wire.h"
#include "rpcrdma/rpc_message.h"
#include "rpcrdma/v1/header.h"

// RPC-over-RDMA version 1 on a connection made by hand.
namespace weft::apps::dissect::testing {

inline Octets rpc_call(std::uint32_t xid, std::uint32_t procedure, const Octets& args) {
  Octets octets;
  rpcrdma::xdr::XdrWriter out(octets);
  rpcrdma::emit_call(out, {xid, 100003, 3, procedure, {}, {}});
  out.raw(args);
  return octets;
}

inline Octets rpc_reply(std::uint32_t xid, const Octets& results) {
  Octets octets;
  rpcrdma::xdr::XdrWriter out(octets);
  rpcrdma::ReplyHeader reply;
  reply.xid = xid;
  rpcrdma::emit_reply(out, reply);
  out.raw(results);
  return octets;
}

inline Octets message(rpcrdma::v1::Header header, const Octets& payload) {
  Octets octets;
  rpcrdma::xdr::XdrWriter out(octets);
  emit_header(out, header);
  out.raw(payload);
  return octets;
}

// fh "file", offset 4096, count 65536
inline Octets read_args() {
  Octets args;
  rpcrdma::xdr::XdrWriter out(args);
  out.opaque(Octets{'f', 'i', 'l', 'e'});
  out.u64(4096);
  out.u32(65536);
  return args;
}

// Talk: a connection that a dissector reads, and the messages on it.
struct Talk {
  Told told;
  Dissector dissector{{}, told};
  Wire wire{dissector};

  void send(Wire::End from, const Octets& payload) {
    wire.send(from, wire.fpdu(from, untagged(rdmap::Opcode::kSend, ++msn[from], payload)), 60000);
  }
  // The same in several segments.
  void send_long(Wire::End from, const Octets& payload) {
    constexpr std::size_t kSegment = 60000;
    ++msn[from];
    for (std::size_t at = 0; at < payload.size(); at += kSegment) {
      const std::size_t end = std::min(at + kSegment, payload.size());
      const Octets part(payload.begin() + static_cast<std::ptrdiff_t>(at),
                        payload.begin() + static_cast<std::ptrdiff_t>(end));
      const auto mo = static_cast<std::uint32_t>(at);
      wire.send(from, wire.fpdu(from, untagged(rdmap::Opcode::kSend, msn[from], part, mo, end == payload.size())),
                65535);
    }
  }
  void lose(Wire::End from, const Octets& payload) {
    wire.lose(from, wire.fpdu(from, untagged(rdmap::Opcode::kSend, ++msn[from], payload)));
  }
  // A Call of NFSv3, which the client sends with these lists.
  void call(std::uint32_t xid, std::uint32_t procedure = 0, rpcrdma::ChunkListsView lists = {},
            const Octets& args = {}) {
    rpcrdma::v1::Header header;
    header.xid = xid;
    header.credit = kCredits;
    header.lists = std::move(lists);
    send(Wire::kClient, message(header, rpc_call(xid, procedure, args)));
  }
  void reply(std::uint32_t xid, rpcrdma::ChunkListsView lists = {}, std::uint32_t credit = kCredits,
             const Octets& results = {}) {
    rpcrdma::v1::Header header;
    header.xid = xid;
    header.credit = credit;
    header.lists = std::move(lists);
    send(Wire::kServer, message(header, rpc_reply(xid, results)));
  }
  // A message of version 1 in the reverse direction (RFC 8167): a Call of the server, or the client's Reply.
  void send_reverse(Wire::End from, std::uint32_t xid, std::uint32_t credit = kCredits) {
    rpcrdma::v1::Header header;
    header.xid = xid;
    header.credit = credit;
    send(from, message(header, from == Wire::kServer ? rpc_call(xid, 0, {}) : rpc_reply(xid, {})));
  }
  void write(std::uint32_t stag, std::uint64_t to, std::size_t len) {
    wire.send(Wire::kServer, wire.fpdu(Wire::kServer, tagged(rdmap::Opcode::kWrite, stag, to, pattern(len))), 60000);
  }
  // The server reads memory of the client.
  void read(std::uint32_t stag, std::uint64_t to, std::uint32_t len, std::uint32_t sink_stag = 0x99,
            std::uint64_t sink_to = 0) {
    const auto request = rdmap::emit_read_request_header(
        {.sink_stag = {sink_stag}, .sink_to = sink_to, .size = len, .src_stag = {stag}, .src_to = to});
    wire.send(Wire::kServer, wire.fpdu(Wire::kServer, untagged(rdmap::Opcode::kReadRequest, ++num_reads,
                                                               {request.begin(), request.end()})));
  }
  void read_response(std::size_t len, std::uint32_t sink_stag = 0x99, std::uint64_t sink_to = 0) {
    wire.send(Wire::kClient,
              wire.fpdu(Wire::kClient, tagged(rdmap::Opcode::kReadResponse, sink_stag, sink_to, pattern(len))), 60000);
  }

  static constexpr std::uint32_t kCredits = 32;
  std::uint32_t msn[2] = {};
  std::uint32_t num_reads = 0;
};

}  // namespace weft::apps::dissect::testing
