// Packets that the capture has in another order than they came, and rules behind lost ones.
#include "apps/dissect/waiting_segments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "apps/dissect/testing/rpc.h"

namespace weft::apps::dissect {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Octets;
using testing::pattern;
using testing::Talk;
using testing::Told;
using testing::untagged;
using testing::Wire;

// Kept: the segments of a conversation, which reach the dissector in another order.
struct Kept {
  Kept() {
    talk.wire.on_segment = [this](const TcpSegment& segment) {
      octets.emplace_back(segment.payload.begin(), segment.payload.end());
      segments.push_back(segment);
    };
    talk.wire.open();
    talk.call(1);
    talk.reply(1);
  }
  Told told() {
    Told told;
    Dissector dissector({}, told);
    for (std::size_t i = 0; i < segments.size(); ++i) {
      TcpSegment segment = segments[i];
      segment.payload = octets[i];
      if (!lost.contains(i)) dissector.on_segment(segment);
    }
    dissector.finish();
    return told;
  }
  void exchange_last() { exchange(segments.size() - 2); }
  // Exchanges the segment at this place and the next one.
  void exchange(std::size_t at) {
    std::swap(segments[at], segments[at + 1]);
    std::swap(octets[at], octets[at + 1]);
  }
  Talk talk;
  std::vector<TcpSegment> segments;
  std::vector<Octets> octets;
  std::set<std::size_t> lost;
};

TEST(WaitingSegments, AReplyThatTheCaptureHasBeforeItsCallWaits) {
  Kept kept;
  kept.talk.call(2);
  kept.talk.reply(2);
  kept.exchange_last();
  kept.talk.reply(77);  // and rules about both sides go on
  const Told told = kept.told();
  EXPECT_THAT(told.findings, ElementsAre("R1-3.1.2-01"));
  EXPECT_THAT(told.unjudged, IsEmpty());
  const auto place = [&](const char* text) {
    return std::ranges::find_if(told.lines, [&](const std::string& line) { return line.find(text) == 0; });
  };
  EXPECT_LT(place("> 1 RDMA_MSG, XID 0x00000002") - told.lines.begin(),
            place("< 1 RDMA_MSG, XID 0x00000002") - told.lines.begin());
}

// The first octets of a side, too: its SYN shows that the capture has what it sends.
TEST(WaitingSegments, AnFpduThatTheCaptureHasBeforeTheMpaReplyWaits) {
  constexpr std::size_t kReplyAt = 3;
  Kept kept;
  kept.exchange(kReplyAt);
  kept.talk.reply(77);
  EXPECT_THAT(kept.told().findings, ElementsAre("R1-3.1.2-01"));
  EXPECT_THAT(kept.told().unjudged, IsEmpty());
}

TEST(WaitingSegments, PacketsOfOneSideInAnotherOrderSilenceNothing) {
  Kept kept;
  kept.talk.call(2);
  kept.talk.call(3);
  kept.exchange_last();
  kept.talk.reply(2);
  kept.talk.reply(3);
  kept.talk.reply(77);
  EXPECT_THAT(kept.told().findings, ElementsAre("R1-3.1.2-01"));
  EXPECT_THAT(kept.told().unjudged, IsEmpty());
}

// The octets never come: no more than so many segments wait, and then for no longer than a second.
TEST(WaitingSegments, AreBounded) {
  Talk talk;
  talk.wire.open();
  talk.wire.send(Wire::kClient, talk.wire.fpdu(Wire::kClient, untagged(rdmap::Opcode::kSend, 1, pattern(8))));
  talk.wire.lose(Wire::kClient, talk.wire.fpdu(Wire::kClient, untagged(rdmap::Opcode::kSend, 2, pattern(8))));
  const auto num_told = [&] { return std::ranges::count(talk.told.lines, "< Send, MSN 1, 8 bytes"); };
  std::uint32_t num = 0;
  const auto send = [&] {
    talk.wire.send(Wire::kServer, talk.wire.fpdu(Wire::kServer, untagged(rdmap::Opcode::kSend, ++num, pattern(8))));
  };
  while (num <= WaitingSegments::kMax) send();
  EXPECT_EQ(num_told(), 0);
  send();
  EXPECT_EQ(num_told(), 1);

  Talk late;
  late.wire.open();
  late.wire.send(Wire::kClient, late.wire.fpdu(Wire::kClient, untagged(rdmap::Opcode::kSend, 1, pattern(8))));
  late.wire.lose(Wire::kClient, late.wire.fpdu(Wire::kClient, untagged(rdmap::Opcode::kSend, 2, pattern(8))));
  for (const std::uint32_t msn : {1u, 2u}) {
    late.wire.send(Wire::kServer, late.wire.fpdu(Wire::kServer, untagged(rdmap::Opcode::kSend, msn, pattern(8))));
    late.wire.now += std::chrono::seconds(2);
  }
  EXPECT_THAT(late.told.lines, Contains("< Send, MSN 1, 8 bytes"));
}

// ---- behind a lost packet

// The packet had an RDMA Write: the MSNs say that no Send is missing.
TEST(BehindALoss, RulesAboutCallsGoOnIfNoSendIsMissing) {
  Kept kept;
  kept.talk.write(0x50, 0, 64);
  kept.lost.insert(kept.segments.size() - 1);
  kept.talk.call(2);
  kept.talk.reply(2);
  kept.talk.reply(2);
  EXPECT_THAT(kept.told().findings, ElementsAre("R1-3.1.2-01"));
  EXPECT_THAT(kept.told().unjudged, ElementsAre(HasSubstr("bytes are missing")));
}

// The packet had a Call: one Reply with an unknown XID may be its answer, and no second one.
TEST(BehindALoss, OneReplyMayAnswerTheCallThatIsMissing) {
  Kept kept;
  kept.talk.call(2);
  kept.lost.insert(kept.segments.size() - 1);
  kept.talk.reply(2);
  kept.talk.call(3);
  kept.talk.reply(3);
  EXPECT_THAT(kept.told().findings, IsEmpty());
  kept.talk.reply(77);
  EXPECT_THAT(kept.told().findings, ElementsAre("R1-3.1.2-01"));
}

// The missing Reply may have granted more credits.
TEST(BehindALoss, CreditsAreNotJudgedBehindAMissingReply) {
  for (const bool loses : {false, true}) {
    Kept kept;
    kept.talk.call(2);
    kept.talk.reply(2, {}, 2);
    if (loses) kept.lost.insert(kept.segments.size() - 1);
    for (std::uint32_t xid = 3; xid < 60; ++xid) kept.talk.call(xid);
    const auto findings = kept.told().findings;
    if (loses) {
      EXPECT_THAT(findings, IsEmpty());
    } else {
      EXPECT_THAT(findings, Contains("R1-4.3.1-04"));
    }
  }
}

TEST(BehindALoss, AnMsnThatCameBeforeIsNamed) {
  Kept kept;
  kept.talk.call(2);
  kept.lost.insert(kept.segments.size() - 1);
  kept.talk.msn[Wire::kClient] = 0;
  kept.talk.call(3);
  kept.talk.wire.on_segment(kept.talk.wire.segment(Wire::kServer, {}));
  kept.talk.call(4);
  EXPECT_THAT(kept.told().findings, Contains("DDP-7.1-09"));
}

}  // namespace
}  // namespace weft::apps::dissect
