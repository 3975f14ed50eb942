// RFC 5041 where DDP meets the transport below it: sections 3 and 6, start, end and failure of a stream.
#include <cerrno>

#include "mpa/crc32c.h"
#include "tests/conformance/ddp_peer.h"

namespace weft::conformance {
namespace {

using rdmap::CloseReason;
using rdmap::Completion;
using rdmap::LlpAction;
using rdmap::PostResult;
using rdmap::WorkOp;
using rdmap::WorkStatus;
using rdmap::testing::Pair;
using sim::Victim;

Octets a_send(std::uint32_t msn, std::size_t len = 4, std::uint32_t mo = 0, bool last = true) {
  return untagged({.last = last, .rsvd_ulp = kSendControl, .msn = {msn}, .mo = mo}, ramp(len));
}
Octets a_write(std::size_t len = 4, bool last = true) {
  return tagged({.last = last, .rsvd_ulp = kWriteControl, .stag = {kStag}}, ramp(len));
}
void post_recv(rdmap::testing::Side& side, std::uint64_t wr_id, std::uint32_t pd = 7) {
  if (!side.memory.regions.contains(0x11)) side.memory.add_simple(0x11, pd, 0, 64);
  side.recvs.post(wr_id, {{0, 64, ddp::Stag{0x11}}});
}
SendWr small_send(std::uint64_t wr_id) {
  SendWr wr;
  wr.wr_id = wr_id;
  wr.inline_data = {1, 2, 3};
  return wr;
}

TEST(DdpLlp, OctetsBeforeTheExchangeAreNoSegments) {
  RecordProperty("proves", "DDP-6.1-01");
  const Octets fpdu = sim::frame_fpdu(a_write());
  for (const int where : {0, 1, 2}) {  // before the Request, behind it, and in place of the Reply
    SCOPED_TRACE(where);
    rdmap::testing::Side s(Victim::config());
    const TimePoint now{};
    s.memory.add_simple(kStag, 7, 0, 64);
    if (where < 2) {
      s.stream.start_responder(now);
      Octets octets = sim::startup_frame(mpa::FrameKind::kRequest, 1);
      octets.insert(where == 0 ? octets.begin() : octets.end(), fpdu.begin(), fpdu.end());
      s.receive(octets, now);
    } else {
      s.stream.start_initiator({}, s.recvs, now);
      s.transmit(now);
      Octets octets = fpdu;
      octets.resize(64);
      s.receive(octets, now);
    }
    s.drain();
    EXPECT_EQ(s.memory.regions[kStag].octets, Octets(64, 0xa5));
    EXPECT_EQ(s.stream.counters().fpdus_rx, 0u);
    ASSERT_EQ(s.closed.size(), 1u);
    EXPECT_EQ(s.closed[0].reason, CloseReason::kStartup);
  }
}

TEST(DdpLlp, TheFirstOctetBehindTheReplyBeginsTheFirstFpdu) {
  RecordProperty("proves", "DDP-6.1-02");
  // Towards the initiator, Reply and FPDU in one read: nothing is lost.
  rdmap::StreamConfig config = Victim::config();
  config.mpa_revision = 1;
  rdmap::testing::Side a(config);
  const TimePoint now{};
  post_recv(a, 5);
  a.stream.start_initiator({}, a.recvs, now);
  const Octets request = a.transmit(now);
  Octets octets = sim::startup_frame(mpa::FrameKind::kReply, 1);
  const Octets fpdu = sim::frame_fpdu(a_send(1));
  octets.insert(octets.end(), fpdu.begin(), fpdu.end());
  a.receive(octets, now);
  a.drain();
  ASSERT_TRUE(a.established);
  ASSERT_EQ(a.completions.size(), 1u);
  EXPECT_EQ(a.completions[0].wr_id, 5u);
  // From the initiator: behind the Request's 20 octets comes an FPDU.
  EXPECT_EQ(request.size(), 20u);
  ASSERT_EQ(a.stream.post_send(small_send(1)), PostResult::kOk);
  const auto sent = capture(a.transmit(now));
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].u().msn.value, 1u);
  // From the responder: behind the Reply's 20 octets, once the initiator has spoken.
  rdmap::testing::Side b(config);
  b.stream.start_responder(now);
  b.receive(sim::startup_frame(mpa::FrameKind::kRequest, 1), now);
  b.drain();
  b.stream.accept({}, b.recvs, 2, 2, 7, now);
  ASSERT_EQ(b.stream.post_send(small_send(2)), PostResult::kOk);
  EXPECT_EQ(b.transmit(now), sim::startup_frame(mpa::FrameKind::kReply, 1));
  b.memory.add_simple(kStag, 7, 0, 64);
  b.receive(sim::frame_fpdu(a_write()), now);
  EXPECT_EQ(b.memory.regions[kStag].octets[3], 3);
  EXPECT_EQ(capture(b.transmit(now)).size(), 1u);
}

TEST(DdpLlp, AnErrorLeavesTheConnectionOpenUntilTheTerminateIsOut) {
  RecordProperty("proves", "DDP-6.2-01 DDP-6.2.2-06 DDP-6.2-02");
  Victim v;
  v.feed(tagged({.rsvd_ulp = kWriteControl, .stag = {0xdeadbeef}}, ramp(4)));
  // The error is known, and the socket takes nothing yet.
  for (int i = 0; i < 3; ++i) {
    ASSERT_FALSE(v.stream.tx_buffers(1460, 4096, v.now).empty());
    v.stream.on_tx(0, v.now);
    v.drain();
    EXPECT_EQ(v.stream.llp_action(), LlpAction::kNone);
    EXPECT_TRUE(v.closed.empty());
  }
  EXPECT_EQ(v.ulpdus().size(), 1u);
  EXPECT_EQ(v.stream.llp_action(), LlpAction::kShutdownWrite) << "the layer above asks for the end";
  v.stream.on_llp_action_done(LlpAction::kShutdownWrite);
  v.stream.on_rx_eof(v.now);
  v.drain();
  EXPECT_EQ(v.closed.size(), 1u);
  EXPECT_EQ(v.stream.llp_action(), LlpAction::kClose);
}

TEST(DdpLlp, ATerminateExchangeEndsBothConnectionsInBoundedTime) {
  RecordProperty("proves", "DDP-6.2-02");
  Pair pair;
  pair.connect();
  ASSERT_EQ(pair.a.stream.post_send(small_send(1)), PostResult::kOk);  // no receive is there for it
  LlpAction last[2] = {};
  for (int turn = 0; turn < 10; ++turn) {
    pair.b.receive(pair.a.transmit(pair.now), pair.now);
    pair.a.receive(pair.b.transmit(pair.now), pair.now);
    int i = 0;
    for (auto* side : {&pair.a, &pair.b}) {
      auto& other = side == &pair.a ? pair.b : pair.a;
      const LlpAction action = side->stream.llp_action();
      if (action != LlpAction::kNone) {
        last[i] = action;
        side->stream.on_llp_action_done(action);
        other.stream.on_rx_eof(pair.now);
      }
      side->drain();
      ++i;
    }
  }
  EXPECT_EQ(last[0], LlpAction::kClose);
  EXPECT_EQ(last[1], LlpAction::kClose);
  ASSERT_EQ(pair.a.closed.size(), 1u);
  EXPECT_EQ(pair.a.closed[0].reason, CloseReason::kTerminateReceived);
  // A peer that never ends its half: the timeout does.
  Victim v;
  v.feed(tagged({.rsvd_ulp = kWriteControl, .stag = {0xdeadbeef}}, ramp(4)));
  EXPECT_EQ(v.ulpdus().size(), 1u);
  v.stream.on_llp_action_done(v.stream.llp_action());
  ASSERT_TRUE(v.stream.next_timeout());
  v.stream.on_timeout(*v.stream.next_timeout());
  EXPECT_EQ(v.stream.llp_action(), LlpAction::kClose);
}

TEST(DdpLlp, NothingIsPlacedAfterTheEnd) {
  RecordProperty("proves", "DDP-6.2-03");
  enum { kError, kAbort, kPeerTerminate };
  for (const int how : {kError, kAbort, kPeerTerminate}) {
    SCOPED_TRACE(how);
    Victim v;
    v.memory.add_simple(kStag, 7, 0, 64);
    post_recv(v, 1);
    if (how == kError) v.feed(tagged({.rsvd_ulp = kWriteControl, .stag = {0xdeadbeef}}, ramp(4)));
    if (how == kAbort) v.stream.abort(v.now);
    if (how == kPeerTerminate) v.feed(untagged({.rsvd_ulp = kTerminateControl, .qn = 2}, Octets{0x02, 0x07, 0, 0}));
    const std::uint64_t num_fpdus = v.stream.counters().fpdus_rx;
    v.feed(a_write());
    v.feed(a_send(1));
    v.transmit(v.now);
    v.stream.on_llp_action_done(v.stream.llp_action());
    v.feed(a_write());
    v.drain();
    EXPECT_EQ(v.stream.counters().fpdus_rx, num_fpdus) << "not even looked at";
    EXPECT_EQ(v.memory.regions[kStag].octets, Octets(64, 0xa5));
    EXPECT_EQ(v.memory.regions[0x11].octets, Octets(64, 0xa5));
    for (const Completion& c : v.completions) EXPECT_NE(c.status, WorkStatus::kSuccess);
  }
}

TEST(DdpLlp, AFinBetweenMessagesIsAGracefulEnd) {
  RecordProperty("proves", "DDP-3-09 DDP-6.2.1-06");
  Victim v;
  post_recv(v, 1);
  v.feed(a_send(1));
  v.stream.on_rx_eof(v.now);
  v.transmit(v.now);
  v.drain();
  ASSERT_EQ(v.completions.size(), 1u);
  EXPECT_EQ(v.completions[0].status, WorkStatus::kSuccess);
  ASSERT_EQ(v.closed.size(), 1u);
  EXPECT_EQ(v.closed[0].reason, CloseReason::kGraceful);
  EXPECT_FALSE(v.closed[0].terminate);
  EXPECT_EQ(v.stream.llp_action(), LlpAction::kClose) << "a FIN of our own, not a reset";
}

TEST(DdpLlp, AFinInsideAnFpduOrMessageIsAnError) {
  RecordProperty("proves", "DDP-6.2.1-04");
  enum { kInFpdu, kInTagged, kInUntagged };
  for (const int where : {kInFpdu, kInTagged, kInUntagged}) {
    SCOPED_TRACE(where);
    Victim v;
    v.memory.add_simple(kStag, 7, 0, 64);
    post_recv(v, 1);
    if (where == kInFpdu) {
      Octets fpdu = sim::frame_fpdu(a_write());
      fpdu.pop_back();
      v.receive(fpdu, v.now);
    }
    if (where == kInTagged) v.feed(a_write(4, false));
    if (where == kInUntagged) v.feed(a_send(1, 4, 0, false));
    v.stream.on_rx_eof(v.now);
    v.transmit(v.now);
    v.drain();
    ASSERT_EQ(v.closed.size(), 1u);
    EXPECT_EQ(v.closed[0].reason, CloseReason::kLlp);
    EXPECT_EQ(v.closed[0].terminate, (rdmap::Terminate{rdmap::Layer::kLlp, 0, 1}));
    for (const Completion& c : v.completions) EXPECT_NE(c.status, WorkStatus::kSuccess);
  }
}

TEST(DdpLlp, AGracefulCloseSendsWhatWasSubmittedAndTakesNothingMore) {
  RecordProperty("proves", "DDP-6.2.1-02 DDP-6.2.1-03");
  Sender s;
  Victim v;
  for (std::uint64_t i = 1; i <= 100; ++i) {
    post_recv(v, i);
    ASSERT_EQ(s.stream.post_send(small_send(i)), PostResult::kOk);
  }
  s.stream.disconnect(s.now);
  EXPECT_EQ(s.stream.llp_action(), LlpAction::kNone) << "no FIN before the data";
  EXPECT_EQ(s.stream.post_send(small_send(101)), PostResult::kNotConnected);
  v.receive(s.transmit(s.now, 200, 700), v.now);
  v.drain();
  ASSERT_EQ(v.completions.size(), 100u);
  for (std::size_t i = 0; i < 100; ++i) {
    EXPECT_EQ(v.completions[i].wr_id, i + 1);
    EXPECT_EQ(v.completions[i].status, WorkStatus::kSuccess);
  }
  EXPECT_EQ(s.stream.llp_action(), LlpAction::kShutdownWrite);
  EXPECT_EQ(s.stream.post_send(small_send(102)), PostResult::kNotConnected);
  EXPECT_FALSE(s.stream.wants_tx());
  s.drain();
  EXPECT_EQ(s.completions.size(), 100u);
}

TEST(DdpLlp, ReceptionGoesOnBehindOurOwnFin) {
  RecordProperty("proves", "DDP-6.2.1-07");
  Victim v;
  v.memory.add_simple(kStag, 7, 0, 64);
  for (std::uint64_t i = 1; i <= 2; ++i) post_recv(v, i);
  v.stream.disconnect(v.now);
  EXPECT_EQ(v.stream.llp_action(), LlpAction::kShutdownWrite);
  v.stream.on_llp_action_done(LlpAction::kShutdownWrite);
  v.feed(a_send(1));
  v.feed(a_write());
  v.feed(a_send(2));
  v.drain();
  ASSERT_EQ(v.completions.size(), 2u);
  for (const Completion& c : v.completions) EXPECT_EQ(c.status, WorkStatus::kSuccess);
  EXPECT_EQ(v.memory.regions[kStag].octets[1], 1);
  v.stream.on_rx_eof(v.now);
  v.drain();
  EXPECT_EQ(v.stream.llp_action(), LlpAction::kClose);
}

TEST(DdpLlp, TheLossOfTheConnectionIsFatalAndEndsEverything) {
  RecordProperty("proves", "DDP-6.2.2-01");
  Victim v;
  post_recv(v, 1);
  v.memory.add_simple(0x77, 7, 0, 16);
  ASSERT_EQ(v.stream.post_send(small_send(10)), PostResult::kOk);
  SendWr read;
  read.wr_id = 11;
  read.op = SendOp::kRdmaRead;
  read.sg_list = {{0, 16, ddp::Stag{0x77}}};
  read.remote_stag = ddp::Stag{9};
  ASSERT_EQ(v.stream.post_send(read), PostResult::kOk);
  v.feed(a_send(1, 4, 0, false));  // a receive is under way
  ASSERT_FALSE(v.stream.tx_buffers(1460, 4096, v.now).empty());
  v.stream.on_tx(10, v.now);  // the Send is cut
  v.stream.on_llp_error(ECONNRESET, v.now);
  v.drain();
  ASSERT_EQ(v.completions.size(), 3u);
  for (const Completion& c : v.completions) EXPECT_NE(c.status, WorkStatus::kSuccess);
  ASSERT_EQ(v.closed.size(), 1u);
  EXPECT_EQ(v.closed[0].reason, CloseReason::kLlp);
  EXPECT_EQ(v.closed[0].terminate, (rdmap::Terminate{rdmap::Layer::kLlp, 0, 1}));
  EXPECT_FALSE(v.stream.wants_tx());
}

// Ends an initiator's connection and returns the event for the layers above.
rdmap::Closed end_of(rdmap::testing::Side& s, TimePoint now) {
  s.transmit(now);
  s.stream.on_llp_action_done(s.stream.llp_action());
  s.stream.on_rx_eof(now);
  s.drain();
  EXPECT_EQ(s.closed.size(), 1u);
  return s.closed.empty() ? rdmap::Closed{} : s.closed[0];
}

TEST(DdpLlp, EveryErrorOfMpaIsPassedUp) {
  RecordProperty("proves", "DDP-7-01");
  for (std::uint8_t code = 1; code <= 4; ++code) {
    SCOPED_TRACE(int{code});
    rdmap::StreamConfig config = Victim::config();
    config.mpa_revision = 1;
    config.markers = code == 3;
    rdmap::testing::Side s(config);
    const TimePoint now{};
    s.stream.start_initiator({}, s.recvs, now);
    s.transmit(now);
    Octets octets = sim::startup_frame(mpa::FrameKind::kReply, 1);
    if (code == 4) octets[0] ^= 1;
    mpa::FpduWriter writer(true, code == 3);
    ASSERT_TRUE(writer.add(a_write(), {}, true));
    const std::size_t frame_len = octets.size();
    for (ConstBytes view : writer.buffers()) octets.insert(octets.end(), view.begin(), view.end());
    const MutBytes fpdu = MutBytes(octets).subspan(frame_len);
    if (code == 1) octets.pop_back();
    if (code == 2) fpdu.back() ^= 1;
    if (code == 3) {  // a Marker between FPDUs that points back, under a CRC that is right
      fpdu[3] = 8;
      mpa::emit_crc(fpdu.last<4>(), mpa::crc32c(fpdu.first(fpdu.size() - 4)));
    }
    s.receive(octets, now);
    const auto closed = end_of(s, now);
    EXPECT_EQ(closed.terminate, (rdmap::Terminate{rdmap::Layer::kLlp, 0, code})) << closed.text;
  }
}

TEST(DdpLlp, ACompletedSendIsWithTheTransportAndNoMore) {
  RecordProperty("proves", "DDP-5.4-01");
  Pair pair;
  pair.connect();
  pair.b.recvs.post(1);
  ASSERT_EQ(pair.a.stream.post_send(small_send(1)), PostResult::kOk);
  pair.a.transmit(pair.now);  // into the socket, and the peer does not read
  pair.a.drain();
  pair.b.drain();
  ASSERT_EQ(pair.a.completions.size(), 1u);
  EXPECT_EQ(pair.a.completions[0].status, WorkStatus::kSuccess);
  EXPECT_TRUE(pair.b.completions.empty());
  EXPECT_EQ(pair.b.recvs.num_taken, 0u);
}

}  // namespace
}  // namespace weft::conformance
