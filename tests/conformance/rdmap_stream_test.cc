// RFC 5040 sections 5.4 and 6.2: the end of a stream, and the outstanding work at that time.
#include <gtest/gtest.h>

#include <cerrno>
#include <set>

#include "tests/conformance/rdmap_peer.h"

namespace weft::conformance {
namespace {

using rdmap::CloseReason;
using rdmap::LlpAction;

TEST(RdmapEnd, ThreeWaysThreeReports) {
  RecordProperty("proves", "RDMAP-6.2-01");
  Subject graceful, abortive, lost;
  graceful.stream.on_rx_eof(graceful.now);
  abortive.feed(write(0x999, 0, ramp(1)));
  EXPECT_EQ(abortive.sent().size(), 1u);
  abortive.stream.on_llp_action_done(LlpAction::kShutdownWrite);
  abortive.stream.on_rx_eof(abortive.now);
  lost.stream.on_llp_error(ECONNRESET, lost.now);
  for (Subject* s : {&graceful, &abortive, &lost}) {
    s->drain();
    ASSERT_EQ(s->closed.size(), 1u);
  }
  EXPECT_EQ(graceful.closed[0].reason, CloseReason::kGraceful);
  EXPECT_FALSE(graceful.closed[0].terminate);
  EXPECT_EQ(abortive.closed[0].reason, CloseReason::kTerminateSent);
  EXPECT_EQ(lost.closed[0].reason, CloseReason::kLlp);
}

TEST(RdmapEnd, GracefulCloseIsAFinEachWay) {
  RecordProperty("proves", "RDMAP-6.2-02");
  for (const bool other_end_first : {false, true}) {
    rdmap::testing::Pair pair;
    pair.connect();
    pair.a.memory.add_simple(1, 0, 0, 100);
    pair.b.memory.add_simple(2, 0, 0, 100);
    pair.b.recvs.post(9, {{0, 100, ddp::Stag{2}}});
    for (const SendOp op : {SendOp::kSend, SendOp::kRdmaWrite, SendOp::kRdmaRead})
      ASSERT_EQ(pair.a.stream.post_send(work(op, 1, {{0, 50, ddp::Stag{1}}}, 2, 0)), PostResult::kOk);
    pair.run();
    rdmap::testing::Side& first = other_end_first ? pair.b : pair.a;
    rdmap::testing::Side& second = other_end_first ? pair.a : pair.b;
    first.stream.disconnect(pair.now);
    EXPECT_TRUE(first.transmit(pair.now).empty()) << "nothing but the FIN";
    EXPECT_EQ(first.stream.llp_action(), LlpAction::kShutdownWrite);
    first.stream.on_llp_action_done(LlpAction::kShutdownWrite);
    second.stream.on_rx_eof(pair.now);
    EXPECT_TRUE(second.transmit(pair.now).empty());
    EXPECT_EQ(second.stream.llp_action(), LlpAction::kClose);
    second.stream.on_llp_action_done(LlpAction::kClose);
    first.stream.on_rx_eof(pair.now);
    EXPECT_EQ(first.stream.llp_action(), LlpAction::kClose);
    for (rdmap::testing::Side* side : {&first, &second}) {
      side->drain();
      ASSERT_EQ(side->closed.size(), 1u);
      EXPECT_FALSE(side->closed[0].terminate);
      for (const Completion& c : side->completions) EXPECT_EQ(c.status, WorkStatus::kSuccess);
    }
    EXPECT_EQ(pair.a.completions.size(), 3u);
    EXPECT_EQ(pair.b.completions.size(), 1u);
  }
}

// Ten Sends and two Reads: the first Read is answered. Requests behind the second are not complete.
TEST(RdmapEnd, ATerminateEndsAllThatIsNotComplete) {
  RecordProperty("proves", "RDMAP-6.2.1-03");
  Subject s;
  const auto read = [&](std::uint64_t id) {
    ASSERT_EQ(s.post(work(SendOp::kRdmaRead, id, {{0, 8, kKey}}, 0x77, 0)), PostResult::kOk);
  };
  read(1);
  for (std::uint64_t id = 2; id <= 6; ++id) ASSERT_EQ(s.post(work(SendOp::kSend, id, {{0, 8, kKey}})), PostResult::kOk);
  read(7);
  for (std::uint64_t id = 8; id <= 12; ++id)
    ASSERT_EQ(s.post(work(SendOp::kSend, id, {{0, 8, kKey}})), PostResult::kOk);
  EXPECT_EQ(s.sent().size(), 12u);
  s.feed(read_response(Subject::kLocal, 0, ramp(8)));
  s.drain();
  EXPECT_EQ(s.completions.size(), 6u);
  s.feed(terminate({0x12, 0x02, 0, 0}));
  EXPECT_TRUE(s.sent().empty());
  ASSERT_EQ(s.completions.size(), 12u);
  for (std::uint64_t i = 0; i < 12; ++i) {
    EXPECT_EQ(s.completions[i].wr_id, i + 1);
    EXPECT_EQ(s.completions[i].status == WorkStatus::kSuccess, i < 6) << i;
  }
}

TEST(RdmapEnd, WorkBehindABlockedSocketIsFlushedOnce) {
  RecordProperty("proves", "RDMAP-5.4-08");
  // The causes of the end: a Terminate of the peer's, one of ours, a reset, an abort.
  for (const int how : {0, 1, 2, 3}) {
    for (const std::size_t taken : {std::size_t{0}, std::size_t{50}, std::size_t{124 * 3 + 7}}) {
      Subject s;
      for (std::uint64_t i = 0; i < 100; ++i)
        ASSERT_EQ(s.post(work(i % 10 == 9 ? SendOp::kRdmaRead : SendOp::kSend, i, {{0, 100, kKey}}, 0x77, 0)),
                  PostResult::kOk);
      ASSERT_FALSE(s.stream.tx_buffers(1460, 1 << 20, s.now).empty());
      s.stream.on_tx(taken, s.now);
      const std::uint64_t good = taken / 124;  // FPDUs of 18 + 100 octets
      if (how == 0) s.feed(terminate({0x12, 0x02, 0, 0}));
      if (how == 1) s.feed(write(0x999, 0, ramp(4)));
      if (how == 2) s.stream.on_llp_error(ECONNRESET, s.now);
      if (how == 3) s.stream.abort(s.now);
      const Octets rest = s.transmit(s.now);
      s.stream.on_llp_action_done(s.stream.llp_action());
      s.stream.on_rx_eof(s.now);
      s.drain();
      ASSERT_EQ(s.completions.size(), 100u);
      for (std::uint64_t i = 0; i < 100; ++i) {
        EXPECT_EQ(s.completions[i].wr_id, i);
        EXPECT_EQ(s.completions[i].status, i < good ? WorkStatus::kSuccess : WorkStatus::kFlushed) << i;
      }
      EXPECT_EQ(s.closed.size(), 1u);
      // At most the FPDU under way is finished, and the Terminate put behind it.
      const std::size_t cut = taken % 124 == 0 ? 0 : 124 - taken % 124;
      EXPECT_EQ(rest.size(), how >= 2 ? 0 : how == 0 ? cut : cut + sim::frame_fpdu(Octets(38)).size());
    }
  }
}

TEST(RdmapEnd, AfterATerminateTheLlpIsTornDownInOrderAndInTime) {
  RecordProperty("proves", "RDMAP-6.2.1-04");
  for (const bool sent_it : {true, false}) {
    for (const bool peer_closes : {true, false}) {
      Subject s;
      s.feed(sent_it ? write(0x999, 0, ramp(4)) : terminate({0x12, 0x02, 0, 0}));
      EXPECT_EQ(s.sent().size(), sent_it ? 1u : 0u);
      // First our FIN, behind the Terminate. The peer's later octets are read and forgotten.
      ASSERT_EQ(s.stream.llp_action(), LlpAction::kShutdownWrite);
      s.stream.on_llp_action_done(LlpAction::kShutdownWrite);
      for (int i = 0; i < 100; ++i) s.feed(send(1, ramp(1000)));
      EXPECT_EQ(s.stream.llp_action(), LlpAction::kNone);
      ASSERT_TRUE(s.stream.next_timeout());
      EXPECT_EQ(*s.stream.next_timeout() - s.now, Subject::config().close_timeout);
      if (peer_closes) {
        s.stream.on_rx_eof(s.now);
      } else {
        s.stream.on_timeout(*s.stream.next_timeout() - std::chrono::nanoseconds(1));
        EXPECT_EQ(s.stream.llp_action(), LlpAction::kNone);
        s.stream.on_timeout(*s.stream.next_timeout());
      }
      EXPECT_EQ(s.stream.llp_action(), LlpAction::kClose);
      EXPECT_FALSE(s.stream.next_timeout());
    }
  }
}

TEST(RdmapEnd, DisconnectLetsWhatIsQueuedGoAndWaitsForItsReads) {
  Subject s;
  ASSERT_EQ(s.post(work(SendOp::kSend, 1, {{0, 8, kKey}})), PostResult::kOk);
  ASSERT_EQ(s.post(work(SendOp::kRdmaRead, 2, {{0, 8, kKey}}, 0x77, 0)), PostResult::kOk);
  s.stream.disconnect(s.now);
  EXPECT_EQ(s.post({}), PostResult::kNotConnected);
  EXPECT_EQ(s.sent().size(), 2u);
  EXPECT_EQ(s.stream.llp_action(), LlpAction::kNone) << "the Read is open";
  s.feed(read_response(Subject::kLocal, 0, ramp(8)));
  s.drain();
  EXPECT_EQ(s.completions.size(), 2u);
  EXPECT_EQ(s.stream.llp_action(), LlpAction::kShutdownWrite);
  s.stream.on_llp_action_done(LlpAction::kShutdownWrite);
  s.stream.on_rx_eof(s.now);
  s.drain();
  ASSERT_EQ(s.closed.size(), 1u);
  EXPECT_EQ(s.closed[0].reason, CloseReason::kLocal);
}

}  // namespace
}  // namespace weft::conformance
