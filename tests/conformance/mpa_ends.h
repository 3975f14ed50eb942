#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "mpa/crc32c.h"
#include "mpa/fpdu.h"
#include "tests/conformance/ddp_peer.h"

// Ends of MPA connections with and without CRCs and Markers.
namespace weft::conformance {

// The flags of a startup frame, and their place.
constexpr std::uint8_t kM = 0x80, kC = 0x40;
constexpr std::size_t kFlagsAt = 16;

inline Octets startup(mpa::FrameKind kind, bool m, bool c) {
  mpa::StartupFrame frame;
  frame.kind = kind;
  frame.m = m;
  frame.c = c;
  frame.rev = 1;
  Octets out;
  mpa::emit_startup_frame(frame, out);
  return out;
}

inline rdmap::StreamConfig revision_1(bool crc = true, bool markers = false) {
  rdmap::StreamConfig config;
  config.mpa_revision = 1;
  config.crc = crc;
  config.markers = markers;
  return config;
}

// End is one end in Full Operation. The configuration sets its own flags, the arguments set the peer's.
struct End : rdmap::testing::Side {
  End(bool initiator, const rdmap::StreamConfig& config, bool peer_m, bool peer_c) : Side(config) {
    if (initiator) {
      stream.start_initiator({}, recvs, now);
      ours = transmit(now);
      receive(startup(mpa::FrameKind::kReply, peer_m, peer_c), now);
    } else {
      stream.start_responder(now);
      receive(startup(mpa::FrameKind::kRequest, peer_m, peer_c), now);
      drain();
      stream.accept({}, recvs, 16, 16, 0, now);
      ours = transmit(now);
    }
    drain();
  }
  void write(Octets data) {
    SendWr wr;
    wr.op = SendOp::kRdmaWrite;
    wr.signaled = false;
    wr.inline_data = std::move(data);
    wr.remote_stag = ddp::Stag{7};
    ASSERT_EQ(stream.post_send(std::move(wr)), rdmap::PostResult::kOk);
  }
  TimePoint now{};
  Octets ours;  // our startup frame
};

inline Octets with_junk_crc(ConstBytes ulpdu) {
  Octets fpdu = sim::frame_fpdu(ulpdu);
  for (std::size_t i = fpdu.size() - 4; i < fpdu.size(); ++i) fpdu[i] ^= 0x5a;
  return fpdu;
}
inline Octets a_write() {
  return tagged({.rsvd_ulp = kWriteControl});
}

// Walk reads one direction of a connection with Markers octet by octet. It collects the ULPDUs, and checks the position
// of each Marker and each CRC.
struct Walk {
  explicit Walk(ConstBytes stream) {
    std::size_t fpdu_at = 0;  // of the ULPDU_Length, on the wire
    std::size_t covered_from = 0;
    Octets fpdu;
    const auto whole_len = [&] { return mpa::fpdu_len(std::size_t{fpdu[0]} << 8 | fpdu[1]); };
    for (std::size_t at = 0; at < stream.size(); ++at) {
      if (at % 512 == 0) {
        const std::size_t pointer = std::size_t{stream[at + 2]} << 8 | stream[at + 3];
        EXPECT_EQ(stream[at] | stream[at + 1], 0) << "reserved, at " << at;
        EXPECT_EQ(pointer % 4, 0u) << at;
        EXPECT_EQ(pointer, fpdu.empty() ? 0 : at - fpdu_at) << at;
        if (fpdu.empty()) covered_from = at;
        at += 3;
        ++num_markers;
        continue;
      }
      if (fpdu.empty()) {
        fpdu_at = at;
        if (at % 512 != 4) covered_from = at;
      }
      fpdu.push_back(stream[at]);
      if (fpdu.size() < 2 || fpdu.size() < whole_len()) continue;
      const std::uint32_t crc = mpa::crc32c(stream.subspan(covered_from, at + 1 - 4 - covered_from));
      EXPECT_EQ(mpa::parse_crc(stream.subspan(at - 3).first<4>()), crc) << "FPDU before " << at;
      const std::size_t ulpdu_len = std::size_t{fpdu[0]} << 8 | fpdu[1];
      ulpdus.emplace_back(fpdu.begin() + 2, fpdu.begin() + 2 + static_cast<std::ptrdiff_t>(ulpdu_len));
      fpdu.clear();
    }
    EXPECT_TRUE(fpdu.empty()) << "an unfinished FPDU";
  }
  std::vector<Octets> ulpdus;
  std::size_t num_markers = 0;
};

}  // namespace weft::conformance
