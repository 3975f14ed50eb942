#pragma once

// Shared by the tests of DDP's requirements: a stream that sends while the test reads its segments, and the header and
// payload of each.

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <numeric>
#include <utility>
#include <variant>
#include <vector>

#include "base/time.h"
#include "ddp/segment.h"
#include "tests/sim/victim.h"

namespace weft::conformance {

using rdmap::SendOp;
using rdmap::SendWr;
using sim::Octets;

inline constexpr std::uint32_t kStag = 0x5d6e7f02;  // of the region that tests write into

// Captured is one segment from the wire. segment.payload is a view into ulpdu.
struct Captured {
  Octets ulpdu;
  ddp::Segment segment;

  bool tagged() const { return std::holds_alternative<ddp::TaggedHeader>(segment.header); }
  const ddp::TaggedHeader& t() const { return std::get<ddp::TaggedHeader>(segment.header); }
  const ddp::UntaggedHeader& u() const { return std::get<ddp::UntaggedHeader>(segment.header); }
  bool last() const { return tagged() ? t().last : u().last; }
  std::size_t payload_len() const { return segment.payload.size(); }
  std::size_t header_len() const { return tagged() ? ddp::kTaggedHeaderLen : ddp::kUntaggedHeaderLen; }
  // Octets [from, to) of the segment.
  Octets octets(std::size_t from, std::size_t to) const {
    return {ulpdu.begin() + static_cast<std::ptrdiff_t>(from), ulpdu.begin() + static_cast<std::ptrdiff_t>(to)};
  }
};

// The segments of a stream of whole FPDUs.
inline std::vector<Captured> capture(ConstBytes stream) {
  std::vector<Captured> out;
  for (Octets& ulpdu : sim::deframe(stream)) {
    out.emplace_back();
    out.back().ulpdu = std::move(ulpdu);
    const auto segment = ddp::parse_segment_wire(out.back().ulpdu);
    EXPECT_TRUE(segment);
    if (segment) out.back().segment = *segment;
  }
  return out;
}

inline Octets ramp(std::size_t len, std::uint8_t first = 0) {
  Octets octets(len);
  std::iota(octets.begin(), octets.end(), first);
  return octets;
}

// Sender is an initiator in Full Operation, PD 0, whose peer is the test.
struct Sender : rdmap::testing::Side {
  static rdmap::StreamConfig config(std::size_t fpdu_limit) {
    rdmap::StreamConfig config;
    config.mpa_revision = 1;
    config.fpdu_limit = fpdu_limit;
    return config;
  }
  // fpdu_limit 1: the least there is, a MULPDU of 128.
  explicit Sender(std::size_t fpdu_limit = 1) : Sender(config(fpdu_limit)) {}
  explicit Sender(const rdmap::StreamConfig& config) : Side(config) {
    stream.start_initiator({}, recvs, now);
    transmit(now);
    receive(sim::startup_frame(mpa::FrameKind::kReply, 1), now);
    drain();
  }

  // Posts data to be sent or written. An op ignores the arguments that it does not need.
  void post(SendOp op, Octets data, std::uint32_t stag = 0, std::uint64_t to = 0) {
    SendWr wr;
    wr.wr_id = next_wr_id++;
    wr.op = op;
    wr.inline_data = std::move(data);
    wr.remote_stag = ddp::Stag{stag};
    wr.remote_to = to;
    ASSERT_EQ(stream.post_send(std::move(wr)), rdmap::PostResult::kOk);
  }
  void post_read(std::uint32_t len = 0, std::uint32_t sink = 0, std::uint64_t sink_to = 0) {
    SendWr wr;
    wr.wr_id = next_wr_id++;
    wr.op = SendOp::kRdmaRead;
    if (len > 0) wr.sg_list = {{sink_to, len, ddp::Stag{sink}}};
    wr.remote_stag = ddp::Stag{1};
    ASSERT_EQ(stream.post_send(std::move(wr)), rdmap::PostResult::kOk);
  }
  std::vector<Captured> sent(std::size_t emss = 1460) { return capture(transmit(now, emss)); }
  // A ULPDU from the peer.
  void feed(ConstBytes ulpdu) {
    receive(sim::frame_fpdu(ulpdu), now);
    drain();
  }

  TimePoint now{};
  std::uint64_t next_wr_id = 1;
};

// A segment as the test's own peer sends it.
inline Octets tagged(const ddp::TaggedHeader& header, ConstBytes payload = {}) {
  Octets out(ddp::kTaggedHeaderLen);
  ddp::emit_header(header, std::span(out).first<ddp::kTaggedHeaderLen>());
  out.insert(out.end(), payload.begin(), payload.end());
  return out;
}
inline Octets untagged(const ddp::UntaggedHeader& header, ConstBytes payload = {}) {
  Octets out(ddp::kUntaggedHeaderLen);
  ddp::emit_header(header, std::span(out).first<ddp::kUntaggedHeaderLen>());
  out.insert(out.end(), payload.begin(), payload.end());
  return out;
}

inline constexpr std::uint8_t kWriteControl = 0x40;         // RDMAP version 1, opcode 0
inline constexpr std::uint8_t kReadRequestControl = 0x41;   // opcode 1
inline constexpr std::uint8_t kReadResponseControl = 0x42;  // opcode 2
inline constexpr std::uint8_t kSendControl = 0x43;          // opcode 3
inline constexpr std::uint8_t kSendInvalidateControl = 0x44;
inline constexpr std::uint8_t kTerminateControl = 0x47;

inline bool is_terminate(const Octets& ulpdu) {
  return ulpdu.size() >= ddp::kUntaggedHeaderLen + 4 && (ulpdu[0] & 0x80) == 0 && ulpdu[1] == kTerminateControl;
}

}  // namespace weft::conformance
