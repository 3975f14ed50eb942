#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "apps/dissect/testing/rpc.h"
#include "rdmap/header.h"
#include "rdmap/terminate.h"

// A connection whose one side accuses the other of a fault, in a Terminate.
namespace weft::apps::dissect::testing {

inline constexpr std::uint32_t kStag = 0x77;

inline Octets read_request(std::uint32_t msn, std::uint32_t stag, std::uint64_t to, std::uint32_t size,
                           std::uint32_t sink = 0x99) {
  const auto header = rdmap::emit_read_request_header(
      {.sink_stag = {sink}, .sink_to = 0, .size = size, .src_stag = {stag}, .src_to = to});
  return untagged(rdmap::Opcode::kReadRequest, msn, {header.begin(), header.end()});
}

inline Octets with(Octets octets, std::size_t at, std::uint8_t value) {
  octets[at] = value;
  return octets;
}

inline rpcrdma::ChunkListsView offer(std::uint32_t stag, std::uint32_t len) {
  rpcrdma::ChunkListsView lists;
  lists.write_list = {{{.handle = stag, .length = len}}};
  return lists;
}

// Court: a connection, the side that is accused, and the message that the Terminate names.
struct Court {
  Talk talk;
  Wire::End accused = Wire::kClient;
  Octets named;
  std::uint32_t msn = 0;

  void open() { talk.wire.open(); }
  // Startup frames of RFC 6581.
  void open_enhanced(mpa::EnhancedWords request, mpa::EnhancedWords reply) {
    talk.wire.syn(Wire::kClient);
    talk.wire.syn(Wire::kServer);
    for (const bool is_reply : {false, true}) {
      Octets words;
      mpa::emit_enhanced_words(is_reply ? reply : request, words);
      Octets frame;
      mpa::emit_startup_frame({.kind = is_reply ? mpa::FrameKind::kReply : mpa::FrameKind::kRequest,
                               .c = true,
                               .s = true,
                               .rev = 2,
                               .private_data = words},
                              frame);
      talk.wire.send(is_reply ? Wire::kServer : Wire::kClient, frame);
    }
  }
  void say(const Octets& ulpdu) {
    named = ulpdu;
    talk.wire.send(accused, talk.wire.fpdu(accused, ulpdu), 60000);
  }
  void send(std::size_t len = 8) { say(untagged(rdmap::Opcode::kSend, ++msn, pattern(len))); }
  void write(std::uint32_t stag = kStag, std::uint64_t to = 0, std::size_t len = 8) {
    say(tagged(rdmap::Opcode::kWrite, stag, to, pattern(len)));
  }
  // The capture misses a packet of the accused.
  void lose() {
    talk.wire.lose(accused, talk.wire.fpdu(accused, untagged(rdmap::Opcode::kSend, ++msn, pattern(40))));
    send();
  }
  // A Call of NFS offers memory to the server, which is accused of what follows.
  void accuse_server() {
    talk.call(1);
    talk.reply(1);
    talk.call(2, 6, offer(kStag, 1000), read_args());
    accused = Wire::kServer;
    msn = 1;
  }
  std::optional<Verdict> verdict(const rdmap::Terminate& what, bool has_header) {
    rdmap::TerminateMessage message{.what = what};
    if (has_header) {
      const std::size_t len = (named[0] & 0x80) != 0 ? ddp::kTaggedHeaderLen : ddp::kUntaggedHeaderLen;
      message.segment_len = static_cast<std::uint16_t>(named.size());
      std::copy_n(named.begin(), len, message.ddp_header.begin());
      message.ddp_header_len = len;
      const bool is_read = rdmap::parse_control(named[1]).opcode == 1 && named.size() >= len + 28;
      message.has_rdma_header = is_read && what.layer == rdmap::Layer::kRdma && what.etype == 1;
      if (message.has_rdma_header) std::copy_n(named.begin() + std::ptrdiff_t(len), 28, message.rdma_header.begin());
    }
    Octets body(rdmap::kTerminateMaxLen);
    body.resize(rdmap::emit_terminate(message, body));
    const auto accuser = accused == Wire::kClient ? Wire::kServer : Wire::kClient;
    talk.told.findings.clear();
    talk.told.facts.clear();
    talk.wire.send(accuser, talk.wire.fpdu(accuser, untagged(rdmap::Opcode::kTerminate, 1, body)));
    talk.dissector.finish();
    for (const Facts& facts : talk.told.facts) {
      if (facts.is_terminate) return facts.verdict;
    }
    return std::nullopt;
  }
};

}  // namespace weft::apps::dissect::testing
