#include "rpcrdma/message_credits.h"

#include <gtest/gtest.h>

#include <optional>

#include "rpcrdma/testing/message_credits.h"

namespace weft::rpcrdma {
namespace {

using testing::kind_of;
using testing::message_of;
using testing::parsed;
using Kind = MessageCredits::Kind;
using Verdict = MessageCredits::Verdict;

// A message with this word; without one it is none of this version.
Verdict receive(MessageCredits& credits, Kind kind, std::optional<std::uint32_t> word) {
  if (!word) return credits.on_received(kind, {});
  const v2_wg07::Header header = parsed(message_of(kind, *word));
  return credits.on_received(kind_of(header), header.credit);
}

MessageCredits client(std::uint32_t max_peer_window = 1000, std::uint32_t start = 0) {
  return MessageCredits(
      {.window = 32, .max_peer_window = max_peer_window, .is_client = true, .sent = start, .received = start});
}

// A client with an answer to its first message that lets it send messages up to this number.
MessageCredits settled_client(std::uint32_t limit) {
  MessageCredits credits = client();
  credits.on_ready(33);
  credits.on_sent();
  EXPECT_EQ(receive(credits, Kind::kOther, limit), Verdict::kGood);
  credits.on_ready(1);
  return credits;
}

// How many messages may be sent, one after the other.
std::uint32_t num_sendable(MessageCredits credits, Kind kind = Kind::kOther) {
  std::uint32_t num = 0;
  for (; num < 10000 && credits.may_send(kind); ++num) credits.on_sent();
  return num;
}

TEST(MessageCredits, ClientWaitsForTheAnswerToItsFirstMessage) {
  RecordProperty("proves", "W2-4.2.1-6 W2-4.3-1");
  MessageCredits credits = client();
  ASSERT_TRUE(credits.may_send(Kind::kOther));
  credits.on_sent();
  EXPECT_FALSE(credits.may_send(Kind::kOther));
  EXPECT_FALSE(credits.may_send(Kind::kGrant));
  // A message that cannot be read is no answer.
  EXPECT_EQ(receive(credits, Kind::kOther, std::nullopt), Verdict::kGood);
  EXPECT_FALSE(credits.may_send(Kind::kGrant));
  EXPECT_EQ(receive(credits, Kind::kGrant, 33), Verdict::kGood);
  EXPECT_EQ(num_sendable(credits), 32u);
}

TEST(MessageCredits, OneErrorAnswersOneMessage) {
  RecordProperty("proves", "W2-4.3-1");
  MessageCredits credits = client();
  credits.on_ready(33);
  credits.on_sent();
  EXPECT_EQ(receive(credits, Kind::kError, 33), Verdict::kGood);
  EXPECT_EQ(num_sendable(credits), 1u);
  credits.on_sent();
  EXPECT_EQ(receive(credits, Kind::kOther, 33), Verdict::kGood);
  EXPECT_EQ(num_sendable(credits), 31u);
}

TEST(MessageCredits, ServerNeverSpeaksFirst) {
  MessageCredits credits({.window = 32});
  credits.on_ready(33);
  EXPECT_FALSE(credits.may_send(Kind::kOther));
  EXPECT_FALSE(credits.may_send(Kind::kGrant));
  EXPECT_FALSE(credits.grant_is_due());
  EXPECT_EQ(receive(credits, Kind::kOther, 32), Verdict::kGood);
  EXPECT_EQ(num_sendable(credits), 32u);
}

// It may still refuse a first message that has no credit word of version 2.
TEST(MessageCredits, ServerAnswersAMessageWithoutCredits) {
  MessageCredits credits({.window = 32});
  credits.on_ready(33);
  EXPECT_EQ(receive(credits, Kind::kOther, std::nullopt), Verdict::kGood);
  EXPECT_EQ(num_sendable(credits, Kind::kError), 1u);
}

// A client tries one version after the other, each behind the refusal of the one before.
TEST(MessageCredits, ServerRefusesEachMessageWithoutCredits) {
  RecordProperty("proves", "W2-4.3-2");
  MessageCredits credits({.window = 32});
  credits.on_ready(33);
  EXPECT_EQ(receive(credits, Kind::kOther, std::nullopt), Verdict::kGood);
  credits.on_sent();
  EXPECT_FALSE(credits.may_send(Kind::kError));
  EXPECT_EQ(receive(credits, Kind::kOther, std::nullopt), Verdict::kGood);
  EXPECT_EQ(num_sendable(credits, Kind::kError), 1u);
  credits.on_sent();
  EXPECT_EQ(receive(credits, Kind::kOther, 5), Verdict::kGood);
  EXPECT_EQ(num_sendable(credits), 3u);
  EXPECT_EQ(receive(credits, Kind::kOther, std::nullopt), Verdict::kGood);
  EXPECT_EQ(num_sendable(credits), 3u) << "the peer has said what it has room for";
}

TEST(MessageCredits, EarlierMessagesOfTheConnectionCount) {
  RecordProperty("proves", "W2-4.2.1-3 W2-4.2.1-4");
  MessageCredits asker({.window = 32, .is_client = true, .sent = 2, .received = 2});
  asker.on_ready(33);
  EXPECT_EQ(asker.word(), 34u);
  EXPECT_EQ(num_sendable(asker), 1u);
  MessageCredits server({.window = 32, .sent = 2, .received = 2});
  server.on_ready(33);
  EXPECT_EQ(receive(server, Kind::kOther, asker.word()), Verdict::kGood);
  EXPECT_EQ(server.word(), 34u) << "a Receive holds the Call";
  EXPECT_EQ(num_sendable(server), 32u);
}

TEST(MessageCredits, MessageNNeedsALimitOfN) {
  RecordProperty("proves", "W2-4.2.1-8");
  EXPECT_EQ(num_sendable(settled_client(5)), 4u);  // after the first
  EXPECT_EQ(num_sendable(settled_client(1)), 0u);  // W2-4.2.1.1-2
}

TEST(MessageCredits, OnlyAGrantGoesBeyondTheLimitAndOnlyOne) {
  RecordProperty("proves", "W2-4.2.1.1-1 W2-4.2.1.1-2");
  MessageCredits credits = settled_client(1);
  EXPECT_FALSE(credits.may_send(Kind::kOther));
  EXPECT_FALSE(credits.may_send(Kind::kError));
  ASSERT_TRUE(credits.may_send(Kind::kGrant));
  credits.on_sent();
  EXPECT_FALSE(credits.may_send(Kind::kGrant));
  // The peer has received it, and gives no credit.
  EXPECT_EQ(receive(credits, Kind::kOther, 2), Verdict::kGood);
  EXPECT_FALSE(credits.may_send(Kind::kOther));
  EXPECT_TRUE(credits.may_send(Kind::kGrant));
  EXPECT_EQ(receive(credits, Kind::kGrant, 3), Verdict::kGood);
  EXPECT_EQ(num_sendable(credits), 1u);
}

TEST(MessageCredits, WordIsReceivedAndReadyWithoutTheReserve) {
  RecordProperty("proves", "W2-4.2.1-3 W2-4.2.1-4 W2-4.2.1-5 W2-4.2.1-7");
  MessageCredits asker = client();
  EXPECT_EQ(asker.word(), 1u);
  asker.on_ready(33);
  EXPECT_EQ(asker.word(), 32u);  // W01
  MessageCredits server({.window = 32});
  server.on_ready(33);
  EXPECT_EQ(receive(server, Kind::kOther, asker.word()), Verdict::kGood);
  EXPECT_EQ(server.word(), 32u);
  server.on_ready(1);
  EXPECT_EQ(server.word(), 33u);  // W02
  server.on_ready(100);
  EXPECT_EQ(server.word(), 33u);
}

TEST(MessageCredits, LiteralWordIsSentAndReady) {
  RecordProperty("proves", "W2-4.2.1-7");
  MessageCredits server({.window = 32, .literal = true});
  server.on_ready(33);
  EXPECT_EQ(receive(server, Kind::kOther, 32), Verdict::kGood);
  server.on_ready(1);
  EXPECT_EQ(server.word(), 32u);
  server.on_sent();
  EXPECT_EQ(server.word(), 33u);
}

TEST(MessageCredits, WhatWasPromisedIsNotTakenBack) {
  RecordProperty("proves", "W2-4.2.1-11");
  MessageCredits credits = settled_client(100);
  credits.on_sent();
  EXPECT_EQ(credits.word(), 33u);
  credits.set_window(4);
  for (std::uint32_t i = 0; i < 28; ++i) {
    EXPECT_EQ(credits.word(), 33u);
    EXPECT_EQ(credits.num_wanted(), 32 - i + 1);
    EXPECT_EQ(receive(credits, Kind::kOther, 100), Verdict::kGood);
  }
  EXPECT_EQ(credits.num_wanted(), 5u);
  EXPECT_EQ(receive(credits, Kind::kOther, 100), Verdict::kGood);
  EXPECT_EQ(credits.word(), 33u);
  credits.on_ready(1);
  EXPECT_EQ(credits.word(), 34u);
}

TEST(MessageCredits, WindowStaysBelowHalfOfTheNumbers) {
  EXPECT_EQ(MessageCredits({.window = 0x80000000}).num_wanted(), MessageCredits::kMostCredits + 1);
  EXPECT_EQ(MessageCredits({.window = 0}).num_wanted(), MessageCredits::kLeastWindow + 1);
}

// A peer may write any credit word. Each pair here is one more word of it and the number of messages that can be sent
// then, by a client that has sent one and has a limit of 10.
TEST(MessageCredits, BelievesNoMoreOfAWordThanTheLargestWindow) {
  struct Case {
    std::uint32_t word;
    Verdict verdict;
    std::uint32_t num;
  };
  for (const Case& now :
       {Case{10, Verdict::kGood, 9}, Case{11, Verdict::kGood, 10}, Case{9, Verdict::kGood, 8},
        Case{2, Verdict::kGood, 1}, Case{1, Verdict::kGood, 0}, Case{0, Verdict::kGood, 0},
        Case{0xffffffff, Verdict::kGood, 0}, Case{0x80000001, Verdict::kGood, 0}, Case{1001, Verdict::kGood, 1000},
        Case{1002, Verdict::kLeapt, 1000}, Case{0x80000000, Verdict::kLeapt, 1000}}) {
    MessageCredits credits = settled_client(10);
    EXPECT_EQ(receive(credits, Kind::kOther, now.word), now.verdict) << now.word;
    EXPECT_EQ(num_sendable(credits), now.num) << now.word;
  }
}

// W2-A-01
TEST(MessageCredits, TheLimitThatCameLastCountsAlsoWhereItFell) {
  RecordProperty("proves", "W2-4.2.1-6");
  MessageCredits credits = settled_client(10);
  for (int i = 0; i < 4; ++i) credits.on_sent();
  EXPECT_EQ(receive(credits, Kind::kOther, 7), Verdict::kGood);
  EXPECT_EQ(credits.num_left(), 2u);
  // Below what was sent when the peer lowered it: nothing is left, however far it fell.
  for (const std::uint32_t word : {4u, 0u, 0x80000006u}) {
    EXPECT_EQ(receive(credits, Kind::kGrant, word), Verdict::kGood) << word;
    EXPECT_EQ(credits.num_left(), 0u) << word;
    EXPECT_FALSE(credits.may_send(Kind::kOther)) << word;
    EXPECT_FALSE(credits.may_send(Kind::kError)) << word;
  }
  EXPECT_EQ(receive(credits, Kind::kGrant, 8), Verdict::kGood);
  EXPECT_EQ(num_sendable(credits), 3u);
}

// The peer has its reserve for a GRANT at any limit (W2-4.2.1.1-5), and for one GRANT alone.
TEST(MessageCredits, OneGrantGoesBeyondALimitThatFell) {
  RecordProperty("proves", "W2-4.2.1.1-1");
  MessageCredits credits = settled_client(10);
  for (int i = 0; i < 4; ++i) credits.on_sent();  // five in all
  ASSERT_EQ(receive(credits, Kind::kOther, 2), Verdict::kGood);
  ASSERT_TRUE(credits.may_send(Kind::kGrant));
  credits.on_sent();
  EXPECT_FALSE(credits.may_send(Kind::kGrant));
  // Neither of these counts the GRANT, which is message 6.
  for (const std::uint32_t word : {0u, 5u}) {
    EXPECT_EQ(receive(credits, Kind::kOther, word), Verdict::kGood);
    EXPECT_FALSE(credits.may_send(Kind::kGrant)) << word;
  }
  EXPECT_EQ(receive(credits, Kind::kOther, 6), Verdict::kGood);
  EXPECT_TRUE(credits.may_send(Kind::kGrant));
  EXPECT_FALSE(credits.may_send(Kind::kOther));
}

// Messages that left before the lower limit arrived are no overrun at the end that lowered it.
TEST(MessageCredits, AnEndTakesWhatItsHighestWordAllowed) {
  RecordProperty("proves", "W2-4.2.1-11");
  MessageCredits credits = settled_client(100);
  credits.on_sent();  // tells 33
  credits.set_window(4);
  for (int i = 0; i < 32; ++i) EXPECT_EQ(receive(credits, Kind::kOther, 100), Verdict::kGood);
  EXPECT_EQ(receive(credits, Kind::kOther, 100), Verdict::kOverrun);
}

TEST(MessageCredits, ManyLeapsAreNoMoreThanOne) {
  MessageCredits credits = settled_client(10);
  std::uint32_t word = 10;
  for (int i = 0; i < 30; ++i) {
    word += 0x7fffffff;
    receive(credits, Kind::kOther, word);
    EXPECT_LE(num_sendable(credits), 1000u);
  }
}

TEST(MessageCredits, NoticesAMessageWithoutACredit) {
  RecordProperty("proves", "W2-4.2.1.1-3");
  MessageCredits credits = settled_client(100);
  credits.on_sent();  // tells 33
  for (std::uint32_t i = 0; i < 32; ++i) ASSERT_EQ(receive(credits, Kind::kOther, 100), Verdict::kGood);
  MessageCredits with_other = credits;
  EXPECT_EQ(receive(with_other, Kind::kError, 100), Verdict::kOverrun);
  EXPECT_EQ(receive(credits, Kind::kGrant, 100), Verdict::kGood);
  EXPECT_EQ(receive(credits, Kind::kGrant, 100), Verdict::kOverrun);
}

TEST(MessageCredits, GrantIsDueBelowHalfOfTheWindow) {
  RecordProperty("proves", "W2-4.2.1.1-4");
  MessageCredits credits = settled_client(100);
  credits.on_sent();  // tells 33
  for (std::uint32_t i = 0; i < 16; ++i) {
    EXPECT_FALSE(credits.grant_is_due());
    receive(credits, Kind::kOther, 100);
    credits.on_ready(1);
  }
  EXPECT_FALSE(credits.grant_is_due());  // half is left
  receive(credits, Kind::kOther, 100);
  EXPECT_TRUE(credits.grant_is_due());
  credits.on_sent();
  EXPECT_FALSE(credits.grant_is_due());
}

TEST(MessageCredits, GrantIsNotDueWhileItWouldGiveNothing) {
  MessageCredits credits = settled_client(100);
  credits.on_sent();  // tells 33
  for (std::uint32_t i = 0; i < 32; ++i) receive(credits, Kind::kOther, 100);
  EXPECT_FALSE(credits.grant_is_due());
  credits.on_ready(1);
  EXPECT_TRUE(credits.grant_is_due());
}

// Two ends that answer GRANTs would never stop.
TEST(MessageCredits, GrantIsNoAnswerToGrants) {
  MessageCredits credits({.window = 3});
  credits.on_ready(4);
  receive(credits, Kind::kOther, 100);
  credits.on_ready(1);
  credits.on_sent();  // tells 4
  for (int i = 0; i < 3; ++i) receive(credits, Kind::kGrant, 100);
  credits.on_ready(3);
  EXPECT_EQ(credits.promised(), 0u);
  EXPECT_FALSE(credits.grant_is_due());
  credits.on_ready(1);
  EXPECT_FALSE(credits.grant_is_due());
  credits.set_window(4);
  EXPECT_TRUE(credits.grant_is_due());
}

TEST(MessageCredits, GrantIsDueWithFewCreditsAfterAnotherMessage) {
  MessageCredits credits({.window = 4});
  credits.on_ready(5);
  receive(credits, Kind::kOther, 100);
  credits.on_sent();  // tells 4
  receive(credits, Kind::kGrant, 100);
  receive(credits, Kind::kGrant, 100);
  credits.on_ready(2);
  EXPECT_FALSE(credits.grant_is_due());
  receive(credits, Kind::kOther, 100);
  EXPECT_TRUE(credits.grant_is_due());
}

// The peer might be silent from then on.
TEST(MessageCredits, GrantToAPeerWithCreditsLeavesOne) {
  for (const std::uint32_t limit : {3u, 4u}) {
    MessageCredits credits = settled_client(limit);
    credits.on_sent();  // tells 33
    for (std::uint32_t i = 0; i < 31; ++i) receive(credits, Kind::kOther, limit);
    credits.on_ready(31);
    EXPECT_EQ(credits.grant_is_due(), limit == 4);
    receive(credits, Kind::kOther, limit);
    EXPECT_TRUE(credits.grant_is_due());  // the peer has none
  }
}

TEST(MessageCredits, TheReserveIsReadyBeforeItIsCounted) {
  RecordProperty("proves", "W2-4.2.1-5");
  MessageCredits credits = settled_client(100);
  credits.on_sent();  // tells 33
  for (std::uint32_t i = 0; i < 32; ++i) receive(credits, Kind::kOther, 100);
  receive(credits, Kind::kGrant, 100);
  EXPECT_EQ(credits.word(), 33u);
  credits.on_ready(1);
  EXPECT_EQ(credits.word(), 34u);
}

}  // namespace
}  // namespace weft::rpcrdma
