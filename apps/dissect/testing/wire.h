#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/dissect/dissector.h"
#include "ddp/segment.h"
#include "mpa/startup_frame.h"
#include "mpa/testing/naive_framer.h"
#include "rdmap/header.h"

// An iWARP connection made by hand, as the TCP segments of a capture.
namespace weft::apps::dissect::testing {

using Octets = std::vector<std::uint8_t>;

inline Octets pattern(std::size_t len, std::uint8_t first = 1) {
  Octets octets(len);
  for (std::size_t i = 0; i < len; ++i) octets[i] = static_cast<std::uint8_t>(first + i * 7);
  return octets;
}

inline Octets untagged(rdmap::Opcode opcode, std::uint32_t msn, const Octets& payload, std::uint32_t mo = 0,
                       bool last = true) {
  ddp::UntaggedHeader header{.last = last, .rsvd_ulp = rdmap::control_octet(opcode), .qn = rdmap::queue_of(opcode)};
  header.msn.value = msn;
  header.mo = mo;
  Octets ulpdu(ddp::kUntaggedHeaderLen);
  emit_header(header, std::span(ulpdu).first<ddp::kUntaggedHeaderLen>());
  ulpdu.insert(ulpdu.end(), payload.begin(), payload.end());
  return ulpdu;
}

inline Octets tagged(rdmap::Opcode opcode, std::uint32_t stag, std::uint64_t to, const Octets& payload,
                     bool last = true) {
  Octets ulpdu(ddp::kTaggedHeaderLen);
  emit_header(ddp::TaggedHeader{.last = last, .rsvd_ulp = rdmap::control_octet(opcode), .stag = {stag}, .to = to},
              std::span(ulpdu).first<ddp::kTaggedHeaderLen>());
  ulpdu.insert(ulpdu.end(), payload.begin(), payload.end());
  return ulpdu;
}

inline Octets startup(mpa::FrameKind kind, bool markers = false, bool crc = true, const Octets& private_data = {}) {
  Octets octets;
  mpa::emit_startup_frame({.kind = kind, .m = markers, .c = crc, .rev = 1, .private_data = private_data}, octets);
  return octets;
}

// Told: what a Listener hears, as text.
struct Told final : Listener {
  std::vector<std::string> connections;
  std::vector<std::string> lines;     // "> LINE", "< LINE"
  std::vector<std::string> findings;  // requirement ids
  std::vector<std::string> whats;     // of the findings
  std::vector<std::string> effects;
  std::vector<TcpCounters> counters;
  std::vector<Facts> facts;
  std::vector<std::string> unjudged;  // why

  void on_connection(const Connection& connection) override {
    connections.push_back(connection.client + " to " + connection.server);
  }
  void on_frame(const Frame& frame) override {
    for (const Layer& layer : frame.layers) {
      if (!layer.line.empty())
        lines.push_back((frame.from == Side::kClient ? "> " : "< ") + std::string(layer.line.str()));
    }
    for (const Finding& finding : frame.findings) {
      findings.emplace_back(finding.requirement);
      whats.push_back(finding.what);
      effects.push_back(finding.effect.text);
    }
    facts.push_back(frame.facts);
  }
  void on_unjudged(const Unjudged& of) override { unjudged.emplace_back(of.why); }
  void on_connection_end(std::uint32_t, const TcpCounters& of) override { counters.push_back(of); }
};

// Wire: both directions of a connection between 10.0.0.1:40000 (the client) and 10.0.0.2:20049.
struct Wire {
  enum End : std::uint8_t { kClient, kServer };

  // Where the segments go.
  using To = std::function<void(const TcpSegment&)>;

  explicit Wire(Dissector& dissector, bool markers = false, bool crc = true)
      : Wire([&dissector](const TcpSegment& segment) { dissector.on_segment(segment); }, markers, crc) {}
  explicit Wire(To to, bool markers = false, bool crc = true)
      : on_segment(std::move(to)),
        framers{mpa::testing::NaiveFramer(crc, markers), mpa::testing::NaiveFramer(crc, markers)} {}

  TcpSegment segment(End from, const Octets& payload) {
    TcpSegment out{.packet = ++packets, .time = now};
    out.src.address[0] = out.dst.address[0] = 10;
    out.src.address[3] = from == kClient ? 1 : 2;
    out.dst.address[3] = from == kClient ? 2 : 1;
    out.src.port = from == kClient ? 40000 : 20049;
    out.dst.port = from == kClient ? 20049 : 40000;
    out.seq = seq[from];
    out.ack = seq[1 - from];
    out.has_ack = true;
    out.payload = payload;
    out.payload_len = payload.size();
    now += std::chrono::microseconds(10);
    return out;
  }
  void syn(End from) {
    TcpSegment out = segment(from, {});
    out.syn = true;
    out.has_ack = from == kServer;
    ++seq[from];
    on_segment(out);
  }
  // The octets in segments of `cut` octets.
  void send(End from, const Octets& octets, std::size_t cut = 1448) {
    for (std::size_t at = 0; at < octets.size(); at += cut) {
      const Octets piece(octets.begin() + static_cast<std::ptrdiff_t>(at),
                         octets.begin() + static_cast<std::ptrdiff_t>(std::min(at + cut, octets.size())));
      on_segment(segment(from, piece));
      seq[from] += static_cast<std::uint32_t>(piece.size());
    }
  }
  // Octets that the capture misses.
  void lose(End from, const Octets& octets) { seq[from] += static_cast<std::uint32_t>(octets.size()); }
  Octets fpdu(End from, const Octets& ulpdu) { return framers[from].frame(ulpdu); }
  void open(bool markers = false, bool crc = true) {
    syn(kClient);
    syn(kServer);
    send(kClient, startup(mpa::FrameKind::kRequest, markers, crc));
    send(kServer, startup(mpa::FrameKind::kReply, markers, crc));
  }

  To on_segment;
  mpa::testing::NaiveFramer framers[2];
  std::uint32_t seq[2] = {0xfffff000, 77};  // the client's wraps soon
  std::uint64_t packets = 0;
  Timestamp now = std::chrono::seconds(1000);
};

}  // namespace weft::apps::dissect::testing
