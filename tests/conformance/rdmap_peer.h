#pragma once

// One stream whose peer is the test: ULPDUs built and taken apart here octet by octet, without the code under test.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "rdmap/testing/pair.h"
#include "tests/sim/victim.h"

namespace weft::conformance {

using rdmap::Completion;
using rdmap::PostResult;
using rdmap::SendOp;
using rdmap::SendWr;
using rdmap::SgeList;
using rdmap::WorkOp;
using rdmap::WorkStatus;
using rdmap::testing::ids;
using sim::Octets;

inline constexpr std::uint32_t kRegion = 0x1a2b3c01;  // of the region that tests write into
inline constexpr std::uint32_t kSource = 0x2b3c4d02;  // of the region that tests read from

inline void put(Octets& out, std::uint64_t value, std::size_t len) {
  for (std::size_t i = len; i-- > 0;) out.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
}
inline std::uint64_t get(ConstBytes octets, std::size_t at, std::size_t len) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < len; ++i) value = value << 8 | octets[at + i];
  return value;
}
inline Octets ramp(std::size_t len, std::size_t first = 0) {
  Octets out(len);
  for (std::size_t i = 0; i < len; ++i) out[i] = static_cast<std::uint8_t>(first + i + i / 251);
  return out;
}

// Segment is a DDP segment taken apart by bit positions (RFC 5040 Figure 3, Appendix A).
struct Segment {
  bool tagged = false, last = false;
  unsigned resrv = 0, dv = 0, rv = 0, rsv = 0, opcode = 0;
  std::uint32_t invalidate_stag = 0, qn = 0, msn = 0, mo = 0;  // untagged
  std::uint32_t stag = 0;                                      // tagged
  std::uint64_t to = 0;
  Octets payload;
  Octets ulpdu;
};

inline Segment decode(const Octets& u) {
  Segment s;
  s.ulpdu = u;
  s.tagged = (u.at(0) & 0x80) != 0;
  s.last = (u[0] & 0x40) != 0;
  s.resrv = (u[0] & 0x3cu) >> 2;
  s.dv = u[0] & 0x03u;
  s.rv = (u.at(1) & 0xc0u) >> 6;
  s.rsv = (u[1] & 0x30u) >> 4;
  s.opcode = u[1] & 0x0fu;
  if (s.tagged) {
    s.stag = static_cast<std::uint32_t>(get(u, 2, 4));
    s.to = get(u, 6, 8);
    s.payload.assign(u.begin() + 14, u.end());
  } else {
    s.invalidate_stag = static_cast<std::uint32_t>(get(u, 2, 4));
    s.qn = static_cast<std::uint32_t>(get(u, 6, 4));
    s.msn = static_cast<std::uint32_t>(get(u, 10, 4));
    s.mo = static_cast<std::uint32_t>(get(u, 14, 4));
    s.payload.assign(u.begin() + 18, u.end());
  }
  return s;
}

// The message to build: the members of Segment that differ from a good message.
inline Octets untagged(unsigned control, std::uint32_t qn, std::uint32_t msn, ConstBytes payload, bool last = true,
                       std::uint32_t mo = 0, std::uint32_t invalidate_stag = 0) {
  Octets out;
  put(out, last ? 0x41 : 0x01, 1);
  put(out, control, 1);
  put(out, invalidate_stag, 4);
  put(out, qn, 4);
  put(out, msn, 4);
  put(out, mo, 4);
  out.insert(out.end(), payload.begin(), payload.end());
  return out;
}
inline Octets send(std::uint32_t msn, ConstBytes payload, bool last = true, std::uint32_t mo = 0,
                   unsigned control = 0x43, std::uint32_t invalidate_stag = 0) {
  return untagged(control, 0, msn, payload, last, mo, invalidate_stag);
}
inline Octets tagged(unsigned control, std::uint32_t stag, std::uint64_t to, ConstBytes payload, bool last = true) {
  Octets out;
  put(out, last ? 0xc1 : 0x81, 1);
  put(out, control, 1);
  put(out, stag, 4);
  put(out, to, 8);
  out.insert(out.end(), payload.begin(), payload.end());
  return out;
}
inline Octets write(std::uint32_t stag, std::uint64_t to, ConstBytes payload, bool last = true) {
  return tagged(0x40, stag, to, payload, last);
}
inline Octets read_response(std::uint32_t stag, std::uint64_t to, ConstBytes payload, bool last = true) {
  return tagged(0x42, stag, to, payload, last);
}
inline Octets read_request(std::uint32_t msn, std::uint32_t sink, std::uint64_t sink_to, std::uint32_t size,
                           std::uint32_t src, std::uint64_t src_to, unsigned control = 0x41) {
  Octets body;
  put(body, sink, 4);
  put(body, sink_to, 8);
  put(body, size, 4);
  put(body, src, 4);
  put(body, src_to, 8);
  return untagged(control, 1, msn, body);
}
// The Terminate that a good peer sends; body: control octets and headers.
inline Octets terminate(const Octets& body, std::uint32_t msn = 1) {
  return untagged(0x47, 2, msn, body);
}
// The Terminate that answers `bad`: octet 0 and 1 of the control word, M, D (and R) set, headers copied from it.
inline Octets terminate_for(const Octets& bad, unsigned layer_etype, unsigned code, bool rdma_header = false) {
  Octets body;
  put(body, layer_etype, 1);
  put(body, code, 1);
  put(body, rdma_header ? 0xe0 : 0xc0, 1);
  put(body, 0, 1);
  put(body, bad.size(), 2);
  const std::ptrdiff_t header_len = ((bad[0] & 0x80) != 0 ? 14 : 18) + (rdma_header ? 28 : 0);
  body.insert(body.end(), bad.begin(), bad.begin() + header_len);
  return terminate(body);
}

inline SendWr work(SendOp op, std::uint64_t wr_id, SgeList sg_list, std::uint32_t stag = 0, std::uint64_t to = 0,
                   bool solicited = false) {
  SendWr wr;
  wr.op = op;
  wr.wr_id = wr_id;
  wr.sg_list = std::move(sg_list);
  wr.remote_stag = ddp::Stag{stag};
  wr.remote_to = to;
  wr.solicited = solicited;
  return wr;
}

// Subject is a responder in Full Operation (PD 7, stream 1) that may speak. It sends from and reads into region kLocal
// (65,536 octets of a ramp at address 0). kInbox is for its receives.
struct Subject : rdmap::testing::Side {
  static constexpr std::uint32_t kLocal = 0x11111101;
  static constexpr std::uint32_t kInbox = 0x22222202;
  static constexpr std::size_t kLocalLen = 65536;

  static rdmap::StreamConfig config() {
    rdmap::StreamConfig config;
    config.scope = {.pd = 7, .stream = 1};
    return config;
  }

  explicit Subject(std::uint16_t ird = 16, std::uint16_t ord = 16, rdmap::StreamConfig config = Subject::config())
      : Side(config) {
    memory.add(kLocal, {7, {}, 0, false, false, true, ramp(kLocalLen)});
    memory.add(kInbox, {7, {}, 0, false, false, true, Octets(kLocalLen, 0xa5)});
    stream.start_responder(now);
    receive(sim::startup_frame(mpa::FrameKind::kRequest, 1), now);
    drain();
    stream.accept({}, recvs, ird, ord, 7, now);
    transmit(now);
    feed(write(1, 0, {}));  // MPA-7.1.2-14: it may not speak before this
    drain();
  }

  // A region of len octets of 0xa5 that the peer may use.
  Octets& remote(std::uint32_t stag, std::uint64_t base, std::size_t len, bool read = true, bool write = true,
                 std::vector<std::uint32_t> streams = {}) {
    return memory.add(stag, {7, std::move(streams), base, read, write, true, Octets(len, 0xa5)}).octets;
  }
  // Receives of len octets each, wr_id 100 and up.
  void post_recvs(std::size_t num, std::uint32_t len = 64) {
    for (std::size_t i = 0; i < num; ++i, ++num_recvs)
      recvs.post(100 + num_recvs, {{num_recvs * len, len, ddp::Stag{kInbox}}});
  }
  PostResult post(SendWr wr) { return stream.post_send(std::move(wr)); }
  void feed(const Octets& ulpdu, std::size_t chunk = SIZE_MAX) { receive(sim::frame_fpdu(ulpdu), now, chunk); }
  void feed_all(const std::vector<Octets>& ulpdus) {
    Octets all;
    for (const Octets& ulpdu : ulpdus) {
      const Octets fpdu = sim::frame_fpdu(ulpdu);
      all.insert(all.end(), fpdu.begin(), fpdu.end());
    }
    receive(all, now);
  }
  // The segments that it sends now, and all later ones that follow from them.
  std::vector<Segment> sent() {
    std::vector<Segment> out;
    for (const Octets& ulpdu : sim::deframe(transmit(now, emss))) out.push_back(decode(ulpdu));
    drain();
    return out;
  }
  // Completions of one kind since the last call of drain(), oldest first.
  std::vector<Completion> of(WorkOp op) const {
    std::vector<Completion> out;
    for (const Completion& c : completions)
      if (c.op == op) out.push_back(c);
    return out;
  }

  TimePoint now{};
  std::size_t emss = 1460;
  std::size_t num_recvs = 0;
};

inline const ddp::Stag kKey{Subject::kLocal};

}  // namespace weft::conformance
