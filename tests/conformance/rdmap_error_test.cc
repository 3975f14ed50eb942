// RFC 5040 section 7: errors in arriving messages. The ULP hears of each.
#include <gtest/gtest.h>

#include <cerrno>

#include "tests/conformance/rdmap_peer.h"

namespace weft::conformance {
namespace {

// The outcome of one bad ULPDU: the Terminate, nothing placed, nothing delivered, one event.
Octets refuse(const Octets& bad, bool rfc7306 = true) {
  rdmap::StreamConfig config = Subject::config();
  config.rfc7306 = rfc7306;
  Subject s(16, 16, config);
  s.remote(kRegion, 0x1000, 64);
  s.post_recvs(2);
  const auto regions = s.memory.regions;
  s.feed(bad);
  const auto sent = s.sent();
  EXPECT_EQ(sent.size(), 1u) << "the Terminate, no Read Response";
  for (const auto& [stag, region] : regions) EXPECT_EQ(s.memory.regions[stag].octets, region.octets);
  for (const Completion& c : s.completions) EXPECT_NE(c.status, WorkStatus::kSuccess);
  s.stream.on_llp_action_done(rdmap::LlpAction::kShutdownWrite);
  s.stream.on_rx_eof(s.now);
  s.drain();
  EXPECT_EQ(s.closed.size(), 1u);
  if (!s.closed.empty()) {
    EXPECT_EQ(s.closed[0].reason, rdmap::CloseReason::kTerminateSent);
    EXPECT_TRUE(s.closed[0].terminate.has_value());
    EXPECT_FALSE(s.closed[0].text.empty());
  }
  return sent.empty() ? Octets{} : sent[0].ulpdu;
}

TEST(RdmapError, EachDdpFieldHasItsCode) {
  RecordProperty("proves", "RDMAP-7.2-01 RDMAP-4.8-05 RDMAP-7.1-03");
  struct Case {
    Octets bad;
    unsigned layer_etype, code;
  };
  Octets version_tagged = write(kRegion, 0x1000, ramp(8)), version_untagged = send(1, ramp(8));
  version_tagged[0] = 0xc2;
  version_untagged[0] = 0x42;
  const Case cases[] = {{version_tagged, 0x11, 0x04},
                        {version_untagged, 0x12, 0x06},
                        {untagged(0x43, 9, 1, ramp(8)), 0x12, 0x01},
                        {send(2, ramp(8)), 0x12, 0x03},
                        {send(1, ramp(8), true, 1), 0x12, 0x04},
                        {write(0x999, 0x1000, ramp(8)), 0x11, 0x00},
                        {write(kRegion, 0x1000 + 57, ramp(8)), 0x11, 0x01},
                        {write(kRegion, 0xfff, ramp(8)), 0x11, 0x01},
                        {write(kRegion, ~std::uint64_t{0} - 6, ramp(8)), 0x11, 0x03}};
  for (const Case& c : cases) EXPECT_EQ(refuse(c.bad), terminate_for(c.bad, c.layer_etype, c.code));
}

TEST(RdmapError, OpcodesAreCheckedAgainstTheirHeaderBeforePlacement) {
  RecordProperty("proves", "RDMAP-7.2-02 RDMAP-4.1-21 RDMAP-4.8-08 RDMAP-5.1-03 RDMAP-5.3-07");
  for (unsigned opcode = 0; opcode < 16; ++opcode) {
    SCOPED_TRACE(opcode);
    const unsigned control = 0x40 | opcode;
    // RFC 7306 gives 8 to 11 a meaning where it is on.
    if (opcode >= 8) {
      for (const std::uint32_t qn : {0u, 1u, 2u}) {
        const Octets bad = untagged(control, qn, 1, ramp(8));
        EXPECT_EQ(refuse(bad, false), terminate_for(bad, 0x02, 0x06)) << qn;
        if (opcode >= 12) {
          EXPECT_EQ(refuse(bad), terminate_for(bad, 0x02, 0x06)) << qn;
        }
      }
    }
    const bool is_tagged = opcode == 0 || opcode == 2;
    if (is_tagged) {
      const Octets bad = untagged(control, 0, 1, ramp(8));
      EXPECT_EQ(refuse(bad), terminate_for(bad, 0x02, 0x06));
    } else {
      const Octets bad = tagged(control, kRegion, 0x1000, ramp(8));
      EXPECT_EQ(refuse(bad), terminate_for(bad, 0x02, 0x06));
    }
    if (opcode >= 3 && opcode <= 6) {
      for (const std::uint32_t qn : {1u, 2u}) {
        const Octets bad = untagged(control, qn, 1, ramp(8));
        EXPECT_EQ(refuse(bad), terminate_for(bad, 0x02, 0x06)) << qn;
      }
    }
  }
  const Octets request = read_request(1, 1, 0, 8, kRegion, 0x1000);
  for (const std::uint32_t qn : {0u, 2u}) {
    Octets bad = request;
    bad[9] = static_cast<std::uint8_t>(qn);
    EXPECT_EQ(refuse(bad), terminate_for(bad, 0x02, 0x06));
  }
}

TEST(RdmapError, VersionIsCheckedOnEveryMessage) {
  RecordProperty("proves", "RDMAP-7.2-03 RDMAP-4.1-08 RDMAP-7.2-05 RDMAP-4.8-08");
  for (const unsigned rv : {0x00u, 0x80u, 0xc0u}) {
    for (const Octets& good :
         {send(1, ramp(8)), write(kRegion, 0x1000, ramp(8)), read_request(1, 1, 0, 8, kRegion, 0x1000)}) {
      Octets bad = good;
      bad[1] = static_cast<std::uint8_t>(rv | (bad[1] & 0x0f));
      EXPECT_EQ(refuse(bad), terminate_for(bad, 0x02, 0x05));
    }
  }
  const Octets gap = read_request(2, 1, 0, 8, kRegion, 0x1000);
  EXPECT_EQ(refuse(gap), terminate_for(gap, 0x12, 0x03));
}

TEST(RdmapError, AnStagOfOneStreamIsNoOthers) {
  RecordProperty("proves", "RDMAP-8.1.1-02");
  const Octets w = write(kRegion, 0, ramp(8)), r = read_request(1, 1, 0, 8, kRegion, 0),
               i = send(1, ramp(4), true, 0, 0x44, kRegion);
  for (const std::uint32_t number : {1u, 2u}) {
    for (const Octets& probe : {w, r, i}) {
      rdmap::StreamConfig config = Subject::config();
      config.scope.stream = number;
      Subject s(16, 16, config);
      s.remote(kRegion, 0, 64, true, true, {1});
      s.post_recvs(1);
      s.feed(probe);
      const auto sent = s.sent();
      const auto& region = s.memory.regions[kRegion];
      if (number == 1) {  // its own: each of the three works
        EXPECT_EQ(sent.size(), probe == r ? 1u : 0u);
        EXPECT_EQ(region.octets[7], probe == w ? 7 : 0xa5);
        EXPECT_EQ(region.valid, probe != i);
        continue;
      }
      ASSERT_EQ(sent.size(), 1u);
      EXPECT_EQ(sent[0].ulpdu, probe == w   ? terminate_for(w, 0x11, 0x02)
                               : probe == r ? terminate_for(r, 0x01, 0x03, true)
                                            : terminate_for(i, 0x01, 0x09));
      EXPECT_EQ(region.octets, Octets(64, 0xa5));
      EXPECT_TRUE(region.valid);
    }
  }
}

TEST(RdmapError, NothingIsProcessedBehindAnError) {
  RecordProperty("proves", "RDMAP-7-01 RDMAP-7-02 RDMAP-7.1-05");
  Subject s;
  s.remote(kRegion, 0, 64);
  s.post_recvs(3);
  s.feed(send(1, ramp(8)));
  const Octets bad = write(0x999, 0, ramp(8));
  s.feed_all({bad, write(kRegion, 0, ramp(8)), send(2, ramp(8)), write(0x888, 0, ramp(1))});
  const auto sent = s.sent();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].ulpdu, terminate_for(bad, 0x11, 0x00));
  EXPECT_EQ(s.memory.regions[kRegion].octets, Octets(64, 0xa5));
  EXPECT_EQ(s.completions.size(), 1u);
}

// An FPDU cut short, then a FIN; a reset; and silence after our own FIN. No Terminate can say these.
TEST(RdmapError, IsToldWhereNoTerminateCanBeSent) {
  RecordProperty("proves", "RDMAP-6.2.1-02 RDMAP-6.2-03");
  for (const int how : {0, 1, 2}) {
    Subject s;
    s.post_recvs(2, 100);
    ASSERT_EQ(s.post(work(SendOp::kRdmaRead, 1, {{0, 80, ddp::Stag{Subject::kLocal}}}, 0x77, 0)), PostResult::kOk);
    ASSERT_EQ(s.post(work(SendOp::kSend, 2, {{0, 8, ddp::Stag{Subject::kLocal}}})), PostResult::kOk);
    ASSERT_EQ(s.sent().size(), 2u);
    s.feed(read_response(Subject::kLocal, 0, ramp(40), false));
    s.feed(send(1, ramp(8), false));
    if (how == 0) {
      const Octets fpdu = sim::frame_fpdu(read_response(Subject::kLocal, 40, ramp(40)));
      s.receive(ConstBytes(fpdu).first(20), s.now);
      s.stream.on_rx_eof(s.now);
    } else {
      s.stream.on_llp_error(how == 1 ? ECONNRESET : ETIMEDOUT, s.now);
    }
    EXPECT_FALSE(s.stream.wants_tx());
    EXPECT_TRUE(s.sent().empty()) << "the LLP stream is gone: nothing is written to it";
    ASSERT_EQ(s.completions.size(), 3u);
    for (const Completion& c : s.completions) EXPECT_EQ(c.status, WorkStatus::kFlushed);
    ASSERT_EQ(s.closed.size(), 1u);
    EXPECT_EQ(s.closed[0].reason, rdmap::CloseReason::kLlp);
    EXPECT_EQ(s.closed[0].terminate, (rdmap::Terminate{rdmap::Layer::kLlp, 0, 1}));
    EXPECT_EQ(s.stream.llp_action(), rdmap::LlpAction::kClose);
    EXPECT_EQ(s.post({}), PostResult::kNotConnected);
  }
}

TEST(RdmapError, OfOurOwnIsToldTheSameWay) {
  RecordProperty("proves", "RDMAP-7.1-01 RDMAP-7.1-02");
  Subject s;
  s.remote(kRegion, 0x1000, 64);
  ASSERT_EQ(s.post(work(SendOp::kSend, 1, {{0, 8, ddp::Stag{Subject::kLocal}}})), PostResult::kOk);
  ASSERT_EQ(s.post(work(SendOp::kSend, 2, {{0, 8, ddp::Stag{0x999}}})), PostResult::kOk);
  ASSERT_EQ(s.post(work(SendOp::kRdmaWrite, 3, {}, kRegion, 0)), PostResult::kOk);
  const auto sent = s.sent();
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_EQ(sent[0].opcode, 3u);
  EXPECT_EQ(sent[1].ulpdu, terminate({0, 0, 0, 0}));
  ASSERT_EQ(ids(s.completions), (std::vector<std::uint64_t>{1, 2, 3}));
  EXPECT_EQ(s.completions[0].status, WorkStatus::kSuccess);
  EXPECT_EQ(s.completions[1].status, WorkStatus::kLocalProtection);
  EXPECT_EQ(s.completions[2].status, WorkStatus::kFlushed);
  s.stream.on_llp_action_done(rdmap::LlpAction::kShutdownWrite);
  s.stream.on_rx_eof(s.now);
  s.drain();
  ASSERT_EQ(s.closed.size(), 1u);
  EXPECT_EQ(s.closed[0].terminate, (rdmap::Terminate{rdmap::Layer::kRdma, 0, 0}));

  // Every other cause: the peer's violations, its Terminate, and the loss of the LLP.
  refuse(send(1, ramp(65)));
  refuse(write(0x999, 0, ramp(1)));
  refuse(untagged(0x4f, 0, 1, ramp(1)));
  for (const int how : {0, 1, 2, 3}) {
    Subject t;
    if (how == 0) t.feed(terminate({0x12, 0x02, 0, 0}));
    if (how == 1) t.stream.on_llp_error(ECONNRESET, t.now);
    if (how == 2) t.receive(Octets{0, 18}, t.now);
    if (how == 3) {
      Octets fpdu = sim::frame_fpdu(send(1, {}));
      fpdu.back() ^= 1;
      t.receive(fpdu, t.now);
    }
    t.sent();
    t.stream.on_llp_action_done(rdmap::LlpAction::kShutdownWrite);
    t.stream.on_rx_eof(t.now);
    t.drain();
    ASSERT_EQ(t.closed.size(), 1u) << how;
    EXPECT_NE(t.closed[0].reason, rdmap::CloseReason::kGraceful);
    EXPECT_FALSE(t.closed[0].text.empty());
  }
}

}  // namespace
}  // namespace weft::conformance
