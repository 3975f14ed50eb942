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
using ::testing::Not;
using testing::Octets;
using testing::pattern;
using testing::Talk;
using testing::Told;
using testing::untagged;
using testing::Wire;

// Kept: the segments of a conversation, which reach the dissector in another order.
struct Kept {
  explicit Kept(bool crc = true) {
    if (!crc) talk.wire.framers[0] = talk.wire.framers[1] = mpa::testing::NaiveFramer(false, false);
    talk.wire.on_segment = [this](const TcpSegment& segment) {
      octets.emplace_back(segment.payload.begin(), segment.payload.end());
      segments.push_back(segment);
    };
    talk.wire.open(false, crc);
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
  // Moves the segments from `first` to before `middle` behind those to before `last`.
  void rotate(std::size_t first, std::size_t middle, std::size_t last) {
    const auto move = [&](auto& all) {
      const auto at = [&](std::size_t i) { return all.begin() + static_cast<std::ptrdiff_t>(i); };
      std::rotate(at(first), at(middle), at(last));
    };
    move(segments);
    move(octets);
  }
  void delay(std::size_t first, std::chrono::seconds by) {
    for (std::size_t i = first; i < segments.size(); ++i) segments[i].time += by;
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

// The first segment of a side that waits is the one whose octets come first. Both sides can wait at once.
TEST(WaitingSegments, APacketCanComeTwoPlacesTooEarly) {
  Kept kept;
  const std::size_t first = kept.segments.size() + 2;
  for (const std::uint32_t xid : {2u, 3u}) {
    kept.talk.call(xid);
    kept.talk.reply(xid);
  }
  for (const std::uint32_t xid : {4u, 5u}) kept.talk.call(xid);
  for (const std::uint32_t xid : {4u, 5u}) kept.talk.reply(xid);
  const std::size_t num = kept.segments.size();
  kept.talk.reply(77);
  for (std::size_t at = first; at < num; ++at) {
    kept.rotate(at - 2, at, at + 1);
    EXPECT_THAT(kept.told().findings, ElementsAre("R1-3.1.2-01")) << at;
    EXPECT_THAT(kept.told().unjudged, IsEmpty()) << at;
    kept.rotate(at - 2, at - 1, at + 1);
  }
}

TEST(WaitingSegments, FourPacketsCanComeInReverse) {
  Kept kept;
  const std::size_t first = kept.segments.size();
  for (const std::uint32_t xid : {2u, 3u}) {
    kept.talk.call(xid);
    kept.talk.reply(xid);
  }
  for (std::size_t i = 1; i < 4; ++i) kept.rotate(first, first + i, first + i + 1);
  kept.talk.reply(77);
  EXPECT_THAT(kept.told().findings, ElementsAre("R1-3.1.2-01"));
  EXPECT_THAT(kept.told().unjudged, IsEmpty());
}

// Call 3 acknowledges Reply 2, which comes again together with Reply 3. Only the octets of Reply 2 are older than
// Call 3. The capture lacks `lost` octets at the front of Reply 2.
TEST(WaitingSegments, OctetsThatComeAgainTogetherWithNewOnesKeepTheirPlace) {
  for (const std::size_t lost : {0u, 20u}) {
    Kept kept;
    kept.talk.call(2);
    const std::size_t reply = kept.segments.size();
    kept.talk.reply(2);
    kept.talk.call(3);
    kept.talk.reply(3);
    const Octets older(kept.octets[reply].begin() + static_cast<std::ptrdiff_t>(lost), kept.octets[reply].end());
    TcpSegment& joined = kept.segments.back();
    joined.seq -= static_cast<std::uint32_t>(older.size());
    joined.payload_len += older.size();
    kept.octets.back().insert(kept.octets.back().begin(), older.begin(), older.end());
    kept.lost.insert(reply);
    const Told told = kept.told();
    EXPECT_THAT(told.findings, IsEmpty()) << lost;
    EXPECT_THAT(told.lines, Contains(HasSubstr("REPLY NFSv3 NULL, "))) << lost;
    EXPECT_THAT(told.lines, Not(Contains(HasSubstr("REPLY to a Call that is not")))) << lost;
  }
}

// Replies 1 and 2 come again in a later segment, and Reply 2 still waits: it answers no more than Call 2.
TEST(WaitingSegments, ALaterSegmentDoesNotKeepTheEarlierOne) {
  Kept kept;
  const std::size_t reply1 = kept.segments.size() - 1, reply2 = reply1 + 2;
  for (const std::uint32_t xid : {2u, 3u, 4u}) {
    kept.talk.call(xid);
    kept.talk.reply(xid);
  }
  TcpSegment again = kept.segments[reply1];
  again.ack = kept.segments.back().ack;
  Octets both = kept.octets[reply1];
  both.insert(both.end(), kept.octets[reply2].begin(), kept.octets[reply2].end());
  again.payload_len = both.size();
  kept.exchange(reply1 + 1);
  kept.segments.insert(kept.segments.begin() + static_cast<std::ptrdiff_t>(reply2), again);
  kept.octets.insert(kept.octets.begin() + static_cast<std::ptrdiff_t>(reply2), both);
  kept.talk.reply(77);
  EXPECT_THAT(kept.told().findings, ElementsAre("R1-3.1.2-01"));
  EXPECT_THAT(kept.told().unjudged, IsEmpty());
}

// The Call is lost. The RDMA Read Request and its Response wait for octets of the other side.
TEST(WaitingSegments, AnRdmaReadThatAnswersALostCallKeepsItsOrder) {
  Kept kept;
  const std::size_t call = kept.segments.size();
  kept.talk.call(2);
  kept.talk.read(0x50, 0, 80);
  const auto respond = [&](std::uint64_t to, bool last) {
    kept.talk.wire.send(
        Wire::kClient,
        kept.talk.wire.fpdu(Wire::kClient, testing::tagged(rdmap::Opcode::kReadResponse, 0x99, to, pattern(40), last)));
  };
  respond(0, false);
  respond(40, true);
  kept.exchange(call + 1);
  kept.lost.insert(call);
  EXPECT_THAT(kept.told().findings, IsEmpty());
}

// The Calls come a second later than their Replies.
TEST(WaitingSegments, CallsWhoseRepliesWentBeforeAreNotOpen) {
  constexpr std::uint32_t kNum = 8;
  Kept kept;
  const std::size_t first = kept.segments.size();
  for (std::uint32_t i = 0; i < kNum; ++i) kept.talk.call(10 + i);
  for (std::uint32_t i = 0; i < kNum; ++i) kept.talk.reply(10 + i);
  kept.rotate(first, first + kNum, first + 2 * kNum);
  kept.delay(first + kNum, std::chrono::seconds(2));
  for (std::uint32_t i = 0; i < Talk::kCredits; ++i) kept.talk.call(100 + i);
  kept.delay(first + 2 * kNum, std::chrono::seconds(2));
  EXPECT_THAT(kept.told().findings, IsEmpty());
  kept.talk.call(200);
  kept.delay(kept.segments.size() - 1, std::chrono::seconds(2));
  EXPECT_THAT(kept.told().findings, ElementsAre("R1-4.3.1-04"));
}

// The Call that offers the memory comes a second later than the RDMA Write, and before the Reply.
TEST(WaitingSegments, RdmaWritesThatWentBeforeTheirCallAreNotMissed) {
  Kept kept;
  rpcrdma::ChunkListsView lists;
  lists.write_list = {{{.handle = 0x50, .length = 64}}};
  const std::size_t first = kept.segments.size();
  kept.talk.call(2, 6, lists, testing::read_args());
  kept.talk.write(0x50, 0, 64);
  kept.exchange(first);
  kept.delay(first + 1, std::chrono::seconds(2));
  kept.talk.reply(2, lists);
  kept.delay(first + 2, std::chrono::seconds(2));
  EXPECT_THAT(kept.told().findings, IsEmpty());
  EXPECT_THAT(kept.told().unjudged, ElementsAre(HasSubstr("acknowledges bytes")));
}

// A capture that has all of one side first. Without CRCs, FPDUs can be read once both startup frames are there.
TEST(WaitingSegments, FpdusThatWaitedForAStartupFrameAreInNoOrder) {
  for (const auto late : {Wire::kClient, Wire::kServer}) {
    Kept kept(false);
    kept.talk.call(2);
    kept.talk.reply(2);
    std::size_t num = 0;
    for (std::size_t i = 0; i < kept.segments.size(); ++i) {
      const bool is_late = (kept.segments[i].src.port == 40000) == (late == Wire::kClient);
      if (!is_late) kept.rotate(num++, i, i + 1);
    }
    EXPECT_THAT(kept.told().findings, IsEmpty()) << static_cast<int>(late);
    EXPECT_THAT(kept.told().unjudged, Contains(HasSubstr("before the MPA startup frames"))) << static_cast<int>(late);
  }
}

// As long as the capture has nothing of a side, nothing waits for it.
TEST(WaitingSegments, ASideWhoseFirstPacketComesLateSilencesTheRules) {
  Kept kept;
  kept.talk.call(2);
  const std::size_t num = kept.segments.size();
  kept.rotate(1, 2, num);            // the SYN of the server goes to the end,
  kept.rotate(2, num - 2, num - 1);  // Call 2 goes behind the MPA Request,
  kept.exchange(num - 3);            // and Reply 1 before Call 1
  const Told told = kept.told();
  EXPECT_THAT(told.findings, IsEmpty());
  EXPECT_THAT(told.unjudged, ElementsAre(HasSubstr("acknowledges bytes")));
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
