// What the sides of RPC-over-RDMA may send, and when: version 1, and one test for each rule of the drafts.
#include "apps/dissect/flow_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apps/dissect/testing/rpc2.h"

namespace weft::apps::dissect {
namespace {

namespace cel05 = rpcrdma::v2_cel05;
namespace wg07 = rpcrdma::v2_wg07;
using testing::Cel05;
using testing::cel05_message;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::Octets;
using testing::pattern;
using testing::read_chunk;
using testing::rpc_call;
using testing::rpc_reply;
using testing::Talk;
using testing::untagged;
using testing::Wg07;
using testing::wg07_message;
using testing::Wire;
using testing::write_chunk;

void send_invalidate(Talk& talk, std::uint8_t stag, const Octets& message) {
  Octets ulpdu = untagged(rdmap::Opcode::kSendInvalidate, ++talk.msn[Wire::kServer], message);
  ulpdu[5] = stag;
  talk.wire.send(Wire::kServer, talk.wire.fpdu(Wire::kServer, ulpdu));
}

// ---- version 1

TEST(FlowRules, OneCallUntilTheFirstReply) {
  Talk talk;
  talk.wire.open();
  talk.call(1);
  EXPECT_THAT(talk.told.findings, IsEmpty());
  talk.call(2);
  EXPECT_THAT(talk.told.findings, ElementsAre("R1-4.3.3-02"));
  talk.reply(1);
  talk.reply(2);
  for (std::uint32_t xid = 3; xid < 3 + Talk::kCredits; ++xid) talk.call(xid);
  EXPECT_THAT(talk.told.findings, ElementsAre("R1-4.3.3-02"));
}

TEST(FlowRules, ACallIsNotSentAgainBeforeTheFirstReply) {
  Talk talk;
  talk.wire.open();
  talk.call(1);
  talk.call(1);
  EXPECT_THAT(talk.told.findings, ElementsAre("R1-4.3.3-03"));
}

// The grant of 0 is named. The next Call has the one credit that a requester makes of it.
TEST(FlowRules, AGrantOfNothingCountsAsOne) {
  Talk talk;
  talk.wire.open();
  talk.call(1);
  talk.reply(1, {}, 0);
  talk.call(2);
  EXPECT_THAT(talk.told.findings, ElementsAre("R1-4.3.1-05"));
  talk.call(3);
  EXPECT_THAT(talk.told.findings, ElementsAre("R1-4.3.1-05", "R1-4.3.1-04"));
}

// A capture that lacks the beginning, or a packet, may lack the Reply.
TEST(FlowRules, CallsBehindAGapAreNotJudged) {
  Talk talk;
  talk.wire.open();
  talk.call(1);
  talk.lose(Wire::kServer, testing::message({}, rpc_reply(1, {})));
  talk.wire.on_segment(talk.wire.segment(Wire::kClient, {}));
  talk.call(2);
  talk.call(3);
  talk.dissector.finish();
  EXPECT_THAT(talk.told.findings, IsEmpty());
}

TEST(FlowRules, ReverseMessagesHaveCredits) {
  for (const std::uint32_t credit : {0u, 1u}) {
    Talk talk;
    talk.wire.open();
    talk.call(1);
    talk.reply(1);
    talk.send_reverse(Wire::kServer, 9, credit);
    talk.send_reverse(Wire::kClient, 9, credit);
    if (credit == 0) {
      EXPECT_THAT(talk.told.findings, ElementsAre("R1-7.2.1-03", "R1-7.2.1-03"));
    } else {
      EXPECT_THAT(talk.told.findings, IsEmpty());
    }
  }
}

// ---- both drafts

template <typename Draft>
using DraftRules = testing::DraftTest<Draft>;
TYPED_TEST_SUITE(DraftRules, testing::Drafts);

TYPED_TEST(DraftRules, OneMessageUntilTheFirstAnswer) {
  Talk talk;
  talk.wire.open();
  talk.send(Wire::kClient, TypeParam::call(1));
  EXPECT_THAT(talk.told.findings, IsEmpty());
  talk.send(Wire::kClient, TypeParam::call(2));
  EXPECT_THAT(talk.told.findings, ElementsAre(this->of("R2-8-1", "W2-4.3-1")));
}

TYPED_TEST(DraftRules, TheFirstMessageIsShort) {
  for (const std::size_t above : {0u, 4u}) {
    Talk talk;
    talk.wire.open();
    const std::size_t rest = TypeParam::call(1).size();
    talk.send(Wire::kClient, TypeParam::call(1, {}, 0, 0, pattern(FlowRules::kMaxFirst - rest + above)));
    if (above == 0) {
      EXPECT_THAT(talk.told.findings, IsEmpty());
    } else {
      EXPECT_THAT(talk.told.findings, ElementsAre(this->of("R2-8-3", "W2-4.3-4")));
    }
  }
}

// The client grants 8 credits and takes 8 messages. 2-wg07 counts messages, and cel05 counts Calls.
TYPED_TEST(DraftRules, CreditsLimitWhatIsSent) {
  Talk talk;
  talk.wire.open();
  talk.send(Wire::kClient, TypeParam::call(1));
  talk.send(Wire::kServer, TypeParam::reply(1));
  const std::uint32_t last = this->is_wg07() ? 8 : 9;
  for (std::uint32_t xid = 2; xid <= last; ++xid) talk.send(Wire::kClient, TypeParam::call(xid));
  EXPECT_THAT(talk.told.findings, IsEmpty());
  talk.send(Wire::kClient, TypeParam::call(last + 1));
  EXPECT_THAT(talk.told.findings, ElementsAre(this->of("R2-7.2.2-10", "W2-4.2.1-8")));
}

TYPED_TEST(DraftRules, ARefusedMessageMakesRoomForOne) {
  Talk talk;
  talk.wire.open();
  talk.send(Wire::kClient, TypeParam::call(1));
  talk.send(Wire::kServer, this->is_wg07() ? wg07_message(1, wg07::Error{}, {}, 2) : cel05_message(1, cel05::Error{}));
  talk.send(Wire::kClient, TypeParam::call(2));
  EXPECT_THAT(talk.told.findings, ElementsAre());
  talk.send(Wire::kClient, TypeParam::call(3));
  EXPECT_THAT(talk.told.findings, Each(::testing::AnyOf("R2-8-1", "W2-4.3-1", "W2-4.2.1-8")));
  EXPECT_FALSE(talk.told.findings.empty());
}

TYPED_TEST(DraftRules, InvalidatesWhatTheCallNames) {
  struct Case {
    std::uint32_t named;
    std::uint8_t invalidated;
    const char *cel05, *wg07;
  };
  for (const Case& one :
       {Case{5, 5, nullptr, nullptr}, Case{0, 5, "R2-7.2.3-3", "W2-6.5-2"}, Case{5, 6, "R2-7.2.3-4", "W2-6.5-2"}}) {
    Talk talk;
    talk.wire.open();
    talk.send(Wire::kClient, TypeParam::call(1, write_chunk(5, 400), one.named, 6, testing::read_args()));
    send_invalidate(talk, one.invalidated, TypeParam::reply(1, write_chunk(5, 0)));
    if (one.cel05 == nullptr) {
      EXPECT_THAT(talk.told.findings, IsEmpty());
    } else {
      EXPECT_THAT(talk.told.findings, ElementsAre(this->of(one.cel05, one.wg07)));
    }
  }
}

TYPED_TEST(DraftRules, ACallNamesAHandleOfItsOwn) {
  Talk talk;
  talk.wire.open();
  talk.send(Wire::kClient, TypeParam::call(1, write_chunk(5, 400), 6, 6, testing::read_args()));
  EXPECT_THAT(talk.told.findings, ElementsAre(this->of("R2-7.2.3-1", "W2-6.5-1")));
}

// The rules that the drafts share with version 1 have the ids and the answers of the draft.
TYPED_TEST(DraftRules, LargerRulesHaveTheIdsOfTheDraft) {
  Talk talk;
  talk.wire.open();
  talk.send(Wire::kClient, TypeParam::call(1, read_chunk(42)));
  EXPECT_THAT(talk.told.findings, ::testing::Contains(this->of("R1-4.4.5-05", "W2-4.5.1-2")));
  EXPECT_THAT(talk.told.effects, ::testing::Contains("the responder answers RDMA2_ERROR with BAD_XDR: the RPC fails"));
  talk.told.findings.clear();
  talk.send(Wire::kServer, TypeParam::reply(1, write_chunk(5, 0)));
  EXPECT_THAT(talk.told.findings, ElementsAre(this->of("R1-4.4.6-09", "W2-4.5.2.1-2")));
  talk.told.findings.clear();
  talk.send(Wire::kClient, TypeParam::call(2, read_chunk(40)));
  EXPECT_THAT(talk.told.findings, ElementsAre(this->of("R1-8.1.1-01", "W2-4.4.2-1")));
  talk.told.findings.clear();
  talk.send(Wire::kClient, TypeParam::call(3, write_chunk(5, 4096), 0, 6, testing::read_args()));
  talk.write(5, 0, 400);
  talk.send(Wire::kServer, TypeParam::reply(3, write_chunk(5, 397)));
  EXPECT_THAT(talk.told.findings, ElementsAre(this->of("R1-4.4.6.1-02", "W2-4.5.2.4-2")));
}

// ---- cel05

TEST(Cel05Rules, AGrantIsNeverZero) {
  Talk talk;
  talk.wire.open();
  talk.send(Wire::kClient, Cel05::call(1));
  talk.send(Wire::kServer, Cel05::reply(1, {}, 0));
  EXPECT_THAT(talk.told.findings, ElementsAre("R2-7.2.2-10"));
}

// ---- 2-wg07

TEST(Wg07Rules, AGrantMayPassTheLimitByOne) {
  Talk talk;
  talk.wire.open();
  talk.send(Wire::kClient, Wg07::call(1));
  talk.send(Wire::kServer, Wg07::reply(1, {}, 1));
  talk.send(Wire::kClient, wg07_message(0, wg07::Grant{}));
  EXPECT_THAT(talk.told.findings, IsEmpty());
  talk.send(Wire::kClient, wg07_message(0, wg07::Grant{}));
  EXPECT_THAT(talk.told.findings, ElementsAre("W2-4.2.1-8"));
}

// The credit word is the number of the last message that its sender takes.
TEST(Wg07Rules, CreditsAreTheMessagesThatAreLeft) {
  Talk talk;
  talk.wire.open();
  talk.send(Wire::kClient, Wg07::call(1, {}, 0, 0, {}));
  talk.send(Wire::kServer, Wg07::reply(1, {}, 9));
  talk.send(Wire::kClient, Wg07::call(2));
  talk.send(Wire::kServer, Wg07::reply(2, {}, 9));
  std::vector<std::uint32_t> credits;
  for (const Facts& facts : talk.told.facts) {
    if (facts.credit) credits.push_back(*facts.credit);
  }
  EXPECT_THAT(credits, ElementsAre(8, 8, 7, 7));
  EXPECT_THAT(talk.told.lines,
              ::testing::Contains(::testing::HasSubstr("2-wg07 RDMA2_REPLY_INLINE, XID 0x00000002, up to message 9")));
  EXPECT_THAT(talk.told.findings, IsEmpty());
}

// How many messages came before is not known.
TEST(Wg07Rules, CreditsBehindAGapAreNotCounted) {
  Talk talk;
  talk.wire.open();
  talk.send(Wire::kClient, Wg07::call(1));
  talk.lose(Wire::kServer, Wg07::reply(1));
  talk.wire.on_segment(talk.wire.segment(Wire::kClient, {}));
  const std::size_t before = talk.told.facts.size();
  talk.send(Wire::kClient, Wg07::call(2));
  talk.dissector.finish();
  ASSERT_GT(talk.told.facts.size(), before);
  EXPECT_FALSE(talk.told.facts.back().credit);
}

TEST(Wg07Rules, TheLimitWraps) {
  Talk talk;
  talk.wire.open();
  talk.send(Wire::kClient, Wg07::call(1));
  talk.send(Wire::kServer, Wg07::reply(1, {}, 2));
  talk.send(Wire::kClient, Wg07::call(2));
  talk.send(Wire::kServer, Wg07::reply(2, {}, 0xffffffff));  // lower than 2 by 3
  talk.send(Wire::kClient, Wg07::call(3));
  EXPECT_THAT(talk.told.findings, ElementsAre("W2-4.2.1-8"));
}

TEST(Wg07Rules, PropertiesComeInOrder) {
  Talk talk;
  talk.wire.open();
  talk.send(Wire::kClient, wg07_message(1, wg07::ConnpropMiddle{}));
  talk.send(Wire::kServer, wg07_message(0, wg07::Grant{}));
  talk.send(Wire::kClient, wg07_message(0, wg07::Grant{}));
  talk.send(Wire::kClient, wg07_message(2, wg07::ConnpropFinal{}));
  talk.send(Wire::kClient, Wg07::call(3));
  EXPECT_THAT(talk.told.findings, IsEmpty());
  talk.send(Wire::kClient, wg07_message(4, wg07::ConnpropFinal{}));
  EXPECT_THAT(talk.told.findings, ElementsAre("W2-6.3.4-2"));
}

TEST(Wg07Rules, PropertiesAreNotInterrupted) {
  Talk talk;
  talk.wire.open();
  talk.send(Wire::kClient, wg07_message(1, wg07::ConnpropMiddle{}));
  talk.send(Wire::kServer, wg07_message(0, wg07::Grant{}));
  talk.send(Wire::kClient, Wg07::call(2));
  EXPECT_THAT(talk.told.findings, ElementsAre("W2-6.3.3-3"));
}

TEST(Wg07Rules, TheVersionStays) {
  Talk talk;
  talk.wire.open();
  talk.send(Wire::kClient, Wg07::call(1));
  talk.send(Wire::kServer, Wg07::reply(1));
  talk.call(2);  // of version 1
  EXPECT_THAT(talk.told.findings, ElementsAre("W2-4.3.3-2"));
}

}  // namespace
}  // namespace weft::apps::dissect
