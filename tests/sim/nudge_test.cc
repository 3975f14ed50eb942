// The Write of no octets that wakes a responder which slept through our first FPDU (rdmap/nudge.h).
#include <gtest/gtest.h>

#include <chrono>

#include "rdmap/nudge.h"
#include "tests/sim/startup_side.h"

namespace weft::sim {
namespace {

using std::chrono::milliseconds;

rdmap::StreamConfig nudging(milliseconds interval) {
  rdmap::StreamConfig config;
  config.nudge = interval;
  return config;
}

Octets accepting_reply() {
  Octets reply = startup_frame(mpa::FrameKind::kReply, 2, {0, 16, 0, 16});
  reply[16] |= 0x10;
  return reply;
}

// An initiator whose Request was answered; its first Send has not left yet.
struct Accepted : Initiator {
  explicit Accepted(const rdmap::StreamConfig& config) : Initiator(config) {
    receive(accepting_reply(), kNow);
    drain();
    EXPECT_TRUE(established);
  }
  // The octets that leave when the clock shows `at`.
  std::vector<Octets> sent_at(milliseconds at) {
    stream.on_timeout(kNow + at);
    drain();
    return deframe(transmit(kNow + at));
  }
};

const Octets kWriteOfNothing = {0xc1, 0x40, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0};

TEST(Nudge, IsAWriteOfNoOctetsAfterTheIntervalAndThenAfterTwiceAsLong) {
  Accepted i(nudging(milliseconds(50)));
  EXPECT_FALSE(i.stream.next_timeout()) << "nothing was said yet";
  ASSERT_EQ(deframe(i.transmit(kNow)).size(), 1u);
  EXPECT_EQ(i.stream.next_timeout(), kNow + milliseconds(50));
  EXPECT_TRUE(i.sent_at(milliseconds(49)).empty());
  EXPECT_EQ(i.sent_at(milliseconds(50)), std::vector<Octets>{kWriteOfNothing});
  EXPECT_EQ(i.stream.next_timeout(), kNow + milliseconds(150));
  EXPECT_EQ(i.sent_at(milliseconds(150)), std::vector<Octets>{kWriteOfNothing});
  EXPECT_EQ(i.stream.counters().nudges_tx, 2u);
  EXPECT_EQ(i.nudges, 2u) << "the driver hears of each";
  EXPECT_EQ(i.stream.counters().writes_tx, 0u) << "it is nobody's Write";
  i.drain();
  EXPECT_EQ(i.completions.size(), 1u) << "the Send alone completes";
}

TEST(Nudge, EndsWithTheFirstWordOfThePeer) {
  Accepted i(nudging(milliseconds(50)));
  ASSERT_EQ(deframe(i.transmit(kNow)).size(), 1u);
  i.receive(frame_fpdu(kWriteOfNothing), kNow);
  EXPECT_FALSE(i.stream.next_timeout());
  EXPECT_TRUE(i.sent_at(milliseconds(50)).empty());
}

TEST(Nudge, ComesAFewTimesAtMost) {
  Accepted i(nudging(milliseconds(1)));
  ASSERT_EQ(deframe(i.transmit(kNow)).size(), 1u);
  int num = 0;
  while (const auto at = i.stream.next_timeout()) {
    i.stream.on_timeout(*at);
    num += int(deframe(i.transmit(*at)).size());
    ASSERT_LE(num, rdmap::Nudge::kMost);
  }
  EXPECT_EQ(num, rdmap::Nudge::kMost);
}

TEST(Nudge, LeavesBeforeAReadThatMayNotLeaveYet) {
  rdmap::StreamConfig config = nudging(milliseconds(50));
  config.ord = 1;
  Accepted i(config);
  for (int n = 0; n < 2; ++n) {
    rdmap::SendWr read;
    read.op = rdmap::SendOp::kRdmaRead;
    ASSERT_EQ(i.stream.post_send(read), rdmap::PostResult::kOk);
  }
  ASSERT_EQ(deframe(i.transmit(kNow)).size(), 2u) << "the Send and one Read";
  EXPECT_EQ(i.sent_at(milliseconds(50)), std::vector<Octets>{kWriteOfNothing});
}

TEST(Nudge, IsFramedAgainWhereTheSocketDidNotTakeIt) {
  Accepted i(nudging(milliseconds(50)));
  ASSERT_EQ(deframe(i.transmit(kNow)).size(), 1u);
  i.stream.on_timeout(kNow + milliseconds(50));
  EXPECT_FALSE(i.stream.tx_buffers(1460, 1 << 20, kNow).empty());
  i.stream.on_tx(0, kNow);
  EXPECT_EQ(i.stream.counters().nudges_tx, 0u);
  EXPECT_EQ(deframe(i.transmit(kNow)), std::vector<Octets>{kWriteOfNothing});
  EXPECT_EQ(i.stream.counters().nudges_tx, 1u);
}

TEST(Nudge, IsOffWhereItIsNotAskedForAndForResponders) {
  Accepted off(nudging(milliseconds(0)));
  ASSERT_EQ(deframe(off.transmit(kNow)).size(), 1u);
  EXPECT_FALSE(off.stream.next_timeout());

  Responder responder(nudging(milliseconds(50)));
  responder.answer(Initiator().request);
  EXPECT_EQ(responder.stream.post_send({}), rdmap::PostResult::kOk);
  responder.receive(frame_fpdu(kWriteOfNothing), kNow);
  ASSERT_EQ(deframe(responder.transmit(kNow)).size(), 1u);
  EXPECT_FALSE(responder.stream.next_timeout());
}

}  // namespace
}  // namespace weft::sim
