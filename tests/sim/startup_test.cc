// MPA startup through a stream: the effect of each of the peer's frames.
#include <gtest/gtest.h>

#include "tests/sim/startup_side.h"

namespace weft::sim {
namespace {

TEST(Startup, InitiatorAsksEnhancedUnlessToldNotTo) {
  RecordProperty("proves", "MPA2-6-07 MPA2-6-08 MPA2-6-10 MPA2-9.2-12 MPA2-10-03");
  rdmap::StreamConfig config;
  config.ird = 8;
  config.ord = 4;
  EXPECT_EQ(Initiator(config).request, record_octets("M01"));
  config.mpa_revision = 1;
  EXPECT_EQ(Initiator(config).request.size(), 20u);
  EXPECT_EQ(Initiator(config).request[17], 1);
}

TEST(Startup, ResponderAnswersInKind) {
  RecordProperty("proves", "MPA2-6-09 MPA2-10-01 MPA2-10-02 MPA2-9.1-09 MPA2-9.1-06 MPA2-9.2-04");
  for (const char* name : {"M01", "M02", "M05", "M07", "M09", "M13"}) {
    for (const std::size_t chunk : {SIZE_MAX, std::size_t{1}}) {
      SCOPED_TRACE(name);
      Responder r;
      const Octets request = record_octets(name);
      r.receive(request, kNow, chunk);
      r.drain();
      ASSERT_TRUE(r.request);
      EXPECT_FALSE(r.stream.wants_tx());
      r.stream.accept(Octets{1, 2, 3}, r.recvs, 16, 16, 0, kNow);
      const Octets reply = r.transmit(kNow);
      const bool peer_to_peer = reply.size() > 20 && (reply[16] & 0x10) != 0 && (reply[20] & 0x80) != 0;
      if (peer_to_peer) r.receive(frame_fpdu(record_octets("F01")), kNow);
      r.drain();
      ASSERT_TRUE(r.established);
      ASSERT_GE(reply.size(), 23u);
      EXPECT_EQ(reply[17], request[17]);
      EXPECT_EQ(reply[16] & 0x10, request[16] & 0x10);
      EXPECT_EQ(reply[16] & 0x20, 0);
      const bool enhanced = (request[16] & 0x10) != 0;
      EXPECT_EQ(reply.size(), enhanced ? 27u : 23u);
      EXPECT_EQ(r.request->peer_ird.has_value(), enhanced && std::string(name) != "M05");
      if (std::string(name) == "M01") {
        EXPECT_EQ(*r.request->peer_ird, 8);
        EXPECT_EQ(r.established->ord, 8) << "no more than the initiator serves";
      }
      if (std::string(name) == "M09") {
        EXPECT_GE(r.established->ird, 1) << "room for an RTR by Read";
      }
    }
  }
}

TEST(Startup, RtrByZeroLengthWriteOrReadReleasesTheResponder) {
  RecordProperty("proves", "MPA2-4.4.3-01 MPA2-5-04 MPA2-9.2-09");
  for (const char* rtr : {"F01", "F02"}) {
    Responder r;
    r.receive(record_octets("M02"), kNow);
    r.drain();
    r.stream.accept({}, r.recvs, 16, 16, 0, kNow);
    r.transmit(kNow);
    ASSERT_EQ(r.stream.post_send({}), rdmap::PostResult::kOk);
    EXPECT_FALSE(r.stream.wants_tx());
    r.drain();
    EXPECT_FALSE(r.established) << "the peer-to-peer model stands with the RTR indication only";
    r.receive(frame_fpdu(record_octets(rtr)), kNow);
    EXPECT_TRUE(r.stream.wants_tx());
    const auto sent = deframe(r.transmit(kNow));
    EXPECT_EQ(sent.size(), std::string(rtr) == "F02" ? 2u : 1u);
    r.drain();
    EXPECT_TRUE(r.established);
    ASSERT_EQ(r.completions.size(), 1u);
    EXPECT_EQ(r.completions[0].op, rdmap::WorkOp::kSend);
  }
}

TEST(Startup, BadRequestsAreClosedWithoutAReply) {
  RecordProperty("proves", "MPA-7.1.2-04 MPA2-6-11 MPA2-12-01");
  for (const char* name : {"H56", "H57", "H60", "M03"}) {
    SCOPED_TRACE(name);
    Responder r;
    r.receive(record_octets(name), kNow, 1);
    r.expect_closed_without_reply();
  }
  Octets surplus = record_octets("M01");
  surplus.push_back(0);
  Responder r;
  r.receive(surplus, kNow);
  r.expect_closed_without_reply();
  Responder late;
  late.receive(record_octets("M01"), kNow);
  late.receive(Octets{0}, kNow);
  late.expect_closed_without_reply();
  Responder eof;
  eof.receive(ConstBytes(surplus).first(10), kNow);
  eof.stream.on_rx_eof(kNow);
  eof.expect_closed_without_reply();
  EXPECT_EQ(eof.stream.post_send({}), rdmap::PostResult::kNotConnected);
}

TEST(Startup, OddRequestsAreTaken) {
  RecordProperty("proves", "MPA2-6-05 MPA2-9.2-13");
  for (const char* name : {"H58", "H59", "H61"}) {
    SCOPED_TRACE(name);
    Responder r;
    r.receive(record_octets(name), kNow);
    r.drain();
    ASSERT_TRUE(r.request);
    r.stream.accept({}, r.recvs, 16, 16, 0, kNow);
    const Octets reply = r.transmit(kNow);
    r.drain();
    ASSERT_TRUE(r.established);
    EXPECT_LE(r.established->ord, 16);
    EXPECT_LE(r.established->ird, 16);
    if (std::string(name) == "H58") {
      EXPECT_EQ(reply[20] & 0xc0, 0);
      EXPECT_EQ(reply[22] & 0xc0, 0);
    }
    if (std::string(name) == "H61") {
      EXPECT_EQ(r.request->private_data.size(), 4u);
    }
  }
}

TEST(Startup, RejectReachesTheInitiator) {
  RecordProperty("proves", "MPA2-9.1-14");
  rdmap::testing::Pair pair;
  pair.a.stream.start_initiator(Octets{1}, pair.a.recvs, kNow);
  pair.b.stream.start_responder(kNow);
  pair.run();
  ASSERT_TRUE(pair.b.request);
  pair.b.stream.reject(Octets{9, 8}, kNow);
  pair.run();
  ASSERT_TRUE(pair.a.rejected);
  EXPECT_EQ(pair.a.rejected->private_data, (Octets{9, 8}));
  EXPECT_TRUE(pair.a.rejected->peer_ird);
  EXPECT_FALSE(pair.a.established);
  ASSERT_EQ(pair.a.closed.size(), 1u);
  ASSERT_EQ(pair.b.closed.size(), 1u);
  EXPECT_EQ(pair.b.closed[0].reason, CloseReason::kLocal);
}

void expect_failed(Initiator& i, CloseReason reason) {
  i.drain();
  EXPECT_FALSE(i.established);
  ASSERT_EQ(i.completions.size(), 1u);
  EXPECT_EQ(i.completions[0].status, rdmap::WorkStatus::kFlushed);
  if (i.stream.llp_action() == LlpAction::kShutdownWrite) i.stream.on_llp_action_done(LlpAction::kShutdownWrite);
  i.stream.on_rx_eof(kNow);
  i.drain();
  ASSERT_EQ(i.closed.size(), 1u);
  EXPECT_EQ(i.closed[0].reason, reason);
  EXPECT_EQ(i.stream.llp_action(), LlpAction::kClose);
}

TEST(Startup, RepliesThatCannotBe) {
  RecordProperty("proves", "MPA-7.1.2-04 MPA2-9.1-13");
  for (const char* name : {"M01", "H64"}) {  // a Request; an unenhanced answer to an enhanced question
    SCOPED_TRACE(name);
    Initiator i;
    i.receive(record_octets(name), kNow, 1);
    EXPECT_TRUE(i.transmit(kNow).empty());
    expect_failed(i, CloseReason::kStartup);
  }
  for (const bool then_speak : {false, true}) {
    Initiator i;
    Octets reply = record_octets("H63");
    reply[20] = 0;  // we asked for the client-server model
    reply[22] = 0;
    reply[23] = 100;
    reply.resize(24);
    i.receive(reply, kNow);
    if (then_speak) i.receive(frame_fpdu(record_octets("R05")), kNow);
    const auto sent = deframe(i.transmit(kNow));
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(sent[0], record_octets("F04"));
    expect_failed(i, CloseReason::kStartup);
    EXPECT_EQ(i.closed[0].terminate, (rdmap::Terminate{rdmap::Layer::kLlp, 0, 6}));
  }
}

TEST(Startup, FpdusRightBehindTheReplyAreTaken) {  // PEER-H-07
  Initiator i;
  i.recvs.post(3);
  Octets octets = startup_frame(mpa::FrameKind::kReply, 2);
  octets[16] |= 0x10;
  octets[19] = 4;
  octets.insert(octets.end(), {0, 4, 0, 4});
  const Octets fpdu = frame_fpdu(record_octets("R05"));
  octets.insert(octets.end(), fpdu.begin(), fpdu.end());
  octets.insert(octets.end(), fpdu.begin(), fpdu.begin() + 5);
  i.receive(octets, kNow);
  i.drain();
  ASSERT_TRUE(i.established);
  ASSERT_EQ(i.completions.size(), 1u);
  EXPECT_EQ(i.completions[0].wr_id, 3u);
}

TEST(Startup, PrivateDataThatDoesNotFit) {
  Side side({});
  side.stream.start_initiator(Octets(509), side.recvs, kNow);
  side.drain();
  ASSERT_EQ(side.closed.size(), 1u);
  Responder r;
  r.receive(record_octets("M01"), kNow);
  r.drain();
  r.stream.accept(Octets(509), r.recvs, 1, 1, 0, kNow);
  r.expect_closed_without_reply();
}

}  // namespace
}  // namespace weft::sim
