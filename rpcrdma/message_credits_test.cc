#include "rpcrdma/message_credits.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <deque>
#include <random>
#include <vector>

#include "rpcrdma/testing/v2_vectors.h"
#include "rpcrdma/v2_wg07/header.h"

namespace weft::rpcrdma {
namespace {

using Kind = MessageCredits::Kind;
using Verdict = MessageCredits::Verdict;

constexpr std::uint32_t kAlmostWrapped = 0xfffffffe;

// The octets of a message with this word.
testing::Octets message_of(Kind kind, std::uint32_t word) {
  v2_wg07::Header header{.credit = word, .body = v2_wg07::CallMiddle{}};
  if (kind == Kind::kGrant) header.body = v2_wg07::Grant{};
  if (kind == Kind::kError) header.body = v2_wg07::Error{};
  return testing::emit(header, testing::Octets(kind == Kind::kOther ? 4 : 0));
}
v2_wg07::Header parsed(const testing::Octets& message) {
  v2_wg07::Header header;
  EXPECT_EQ(testing::parse(message, header), v2::HeaderError::kNone);
  return header;
}
Kind kind_of(const v2_wg07::Header& header) {
  if (std::holds_alternative<v2_wg07::Grant>(header.body)) return Kind::kGrant;
  return std::holds_alternative<v2_wg07::Error>(header.body) ? Kind::kError : Kind::kOther;
}

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

// Two ends and the messages under way between them.
class Pair {
 public:
  struct End {
    MessageCredits credits;
    std::deque<testing::Octets> inbox = {};
    std::uint32_t num_posted = 0, num_held = 0;  // Receives
    std::uint32_t left = 0;                      // messages that it wants to send
    std::uint32_t num_heard = 0, num_grants = 0;
  };

  Pair(MessageCredits::Config client, MessageCredits::Config server)
      : ends{End{MessageCredits((client.is_client = true, client))}, End{MessageCredits(server)}} {
    for (End& end : ends) post(end);
  }

  std::array<End, 2> ends;
  std::uint32_t num_overruns = 0;

  End& other(const End& end) { return &end == &ends[0] ? ends[1] : ends[0]; }

  bool send(End& end, Kind kind = Kind::kOther) {
    if (!end.credits.may_send(kind)) return false;
    other(end).inbox.push_back(message_of(kind, end.credits.word()));
    end.credits.on_sent();
    if (kind == Kind::kGrant) ++end.num_grants;
    return true;
  }
  void deliver(End& end, bool hold = false) {
    const v2_wg07::Header message = parsed(end.inbox.front());
    end.inbox.pop_front();
    const Verdict verdict = end.credits.on_received(kind_of(message), message.credit);
    if (end.num_posted == 0) {
      ++num_overruns;
    } else {
      --end.num_posted;
      EXPECT_NE(verdict, Verdict::kOverrun);
      if (hold) ++end.num_held;
    }
    if (kind_of(message) != Kind::kGrant) ++end.num_heard;
    post(end);
  }
  void release(End& end) {
    --end.num_held;
    post(end);
  }
  void post(End& end) {
    const std::uint32_t wanted = end.credits.num_wanted(), has = end.num_posted + end.num_held;
    if (wanted <= has) return;
    end.credits.on_ready(wanted - has);
    end.num_posted += wanted - has;
  }
  // Each end sends what it wants to, and GRANTs, until nothing is left to do.
  void run() {
    for (bool goes_on = true; goes_on;) {
      goes_on = false;
      for (End& end : ends) {
        while (!end.inbox.empty()) {
          deliver(end);
          goes_on = true;
          if (end.credits.grant_is_due()) send(end, Kind::kGrant);
        }
        for (; end.left > 0 && send(end); --end.left) goes_on = true;
      }
    }
  }
};

TEST(MessageCredits, OneWayStreamLivesOnFewGrants) {
  RecordProperty("proves", "W2-4.2.1.1-4");
  Pair pair({.window = 32}, {.window = 32});
  pair.ends[0].left = 1000;
  pair.run();
  EXPECT_EQ(pair.ends[1].num_heard, 1000u);
  EXPECT_EQ(pair.num_overruns, 0u);
  EXPECT_LE(pair.ends[1].num_grants, 1000u / 16 + 1);
  EXPECT_EQ(pair.ends[0].num_grants, 0u);
}

// Its sender never waits: half of the window is there when the GRANT leaves.
TEST(MessageCredits, OneWayStreamNeverStalls) {
  RecordProperty("proves", "W2-4.2.1.1-4");
  Pair pair({.window = 32}, {.window = 32});
  auto& [client, server] = pair.ends;
  ASSERT_TRUE(pair.send(client));
  pair.deliver(server);
  ASSERT_TRUE(pair.send(server));
  pair.deliver(client);
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(pair.send(client)) << i;
    pair.deliver(server);
    if (server.credits.grant_is_due()) pair.send(server, Kind::kGrant);
    // The GRANT is under way as long as seven messages take.
    if (i % 7 == 6 && !client.inbox.empty()) pair.deliver(client);
  }
}

TEST(MessageCredits, NumbersWrap) {
  RecordProperty("proves", "W2-4.2.1-9");
  Pair pair({.window = 4, .sent = kAlmostWrapped, .received = kAlmostWrapped},
            {.window = 4, .sent = kAlmostWrapped, .received = kAlmostWrapped});
  pair.ends[0].left = 50;
  pair.ends[1].left = 20;
  pair.run();
  EXPECT_EQ(pair.ends[0].num_heard, 20u);
  EXPECT_EQ(pair.ends[1].num_heard, 50u);
  EXPECT_EQ(pair.num_overruns, 0u);
}

// Both have used all credits, and the GRANTs cross.
TEST(MessageCredits, CrossingGrantsEndATieOfTwoEndsWithoutCredits) {
  RecordProperty("proves", "W2-4.2.1.1-5");
  Pair pair({.window = 3}, {.window = 3});
  auto& [client, server] = pair.ends;
  ASSERT_TRUE(pair.send(client));
  pair.deliver(server);
  while (pair.send(server)) continue;
  while (!client.inbox.empty()) pair.deliver(client, true);
  while (pair.send(client)) continue;
  while (!server.inbox.empty()) pair.deliver(server, true);
  while (pair.send(server)) continue;
  while (!client.inbox.empty()) pair.deliver(client, true);
  for (auto& end : pair.ends) {
    ASSERT_FALSE(end.credits.may_send(Kind::kOther));
    while (end.num_held > 0) pair.release(end);
  }
  ASSERT_TRUE(client.credits.grant_is_due() && server.credits.grant_is_due());
  ASSERT_TRUE(pair.send(client, Kind::kGrant) && pair.send(server, Kind::kGrant));
  pair.deliver(client);
  pair.deliver(server);
  EXPECT_TRUE(client.credits.may_send(Kind::kOther));
  EXPECT_TRUE(server.credits.may_send(Kind::kOther));
}

// After a Reply in eight messages the printed sum counts what the server sent, and lets the client send too many.
TEST(MessageCredits, LiteralWordOverrunsTheEndThatSendsMore) {
  RecordProperty("proves", "W2-4.2.1-7");
  for (const bool literal : {false, true}) {
    Pair pair({.window = 32, .literal = literal}, {.window = 32, .literal = literal});
    auto& [client, server] = pair.ends;
    ASSERT_TRUE(pair.send(client));
    pair.deliver(server);
    for (int i = 0; i < 8; ++i) ASSERT_TRUE(pair.send(server));
    while (!client.inbox.empty()) pair.deliver(client);
    while (pair.send(client)) continue;
    // No Receive is posted while these arrive.
    const auto num_sent = static_cast<std::uint32_t>(server.inbox.size());
    EXPECT_EQ(num_sent > server.num_posted, literal) << num_sent;
  }
}

// The printed sum does not count what a silent end received: each of its GRANTs gives one credit.
TEST(MessageCredits, LiteralWordNeedsAGrantForEachMessage) {
  RecordProperty("proves", "W2-4.2.1-7");
  Pair pair({.window = 32}, {.window = 32, .literal = true});
  pair.ends[0].left = 1000;
  pair.run();
  EXPECT_EQ(pair.ends[1].num_heard, 1000u);
  EXPECT_GT(pair.ends[1].num_grants, 900u);
}

// Runs of two ends over a network that delivers when it likes.
class RandomRun {
 public:
  RandomRun(std::uint64_t seed, bool literal)
      : random_(seed), start_(below(2) == 0 ? 0 : kAlmostWrapped - below(50)), pair_(config(literal), config(literal)) {
    pair_.ends[0].left = 1 + below(100);
    pair_.ends[1].left = below(3) == 0 ? 0 : below(100);
    hold_ = below(3);
    to_hear_ = {pair_.ends[1].left, pair_.ends[0].left};
  }

  // False: it did not come to rest.
  bool run() {
    for (int i = 0; i < 20000; ++i) {
      if (!step()) return true;
    }
    return false;
  }
  bool everything_arrived() const {
    return pair_.ends[0].num_heard == to_hear_[0] && pair_.ends[1].num_heard == to_hear_[1];
  }
  std::uint32_t num_overruns() const { return pair_.num_overruns; }

 private:
  using End = Pair::End;
  enum class Step : std::uint8_t { kDeliver, kSend, kGrant, kRelease };

  std::uint32_t below(std::uint32_t bound) { return static_cast<std::uint32_t>(random_() % bound); }
  MessageCredits::Config config(bool literal) {
    return {.window = MessageCredits::kLeastWindow + below(8), .literal = literal, .sent = start_, .received = start_};
  }

  // One of the things that can happen now. False: nothing can.
  bool step() {
    std::vector<std::pair<End*, Step>> steps;
    for (End& end : pair_.ends) {
      if (!end.inbox.empty()) steps.emplace_back(&end, Step::kDeliver);
      if (end.left > 0 && end.credits.may_send(Kind::kOther)) steps.emplace_back(&end, Step::kSend);
      if (end.credits.grant_is_due()) steps.emplace_back(&end, Step::kGrant);
      if (end.num_held > 0) steps.emplace_back(&end, Step::kRelease);
    }
    if (steps.empty()) return false;
    const auto [end, step] = steps[below(static_cast<std::uint32_t>(steps.size()))];
    if (below(40) == 0) change_window(*end);
    switch (step) {
      case Step::kDeliver: pair_.deliver(*end, below(3) < hold_); break;
      case Step::kSend: end->left -= pair_.send(*end) ? 1 : 0; break;
      case Step::kGrant: pair_.send(*end, Kind::kGrant); break;
      case Step::kRelease: pair_.release(*end); break;
    }
    return true;
  }
  void change_window(End& end) {
    end.credits.set_window(MessageCredits::kLeastWindow + below(8));
    pair_.post(end);
  }

  std::mt19937_64 random_;
  std::uint32_t start_;
  Pair pair_;
  std::uint32_t hold_ = 0;
  std::array<std::uint32_t, 2> to_hear_ = {};
};

std::uint64_t first_seed() {
  const char* given = std::getenv("WEFT_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : 20260101;
}

constexpr std::uint64_t kRuns = 3000;

TEST(MessageCredits, NoReceiveIsOverrunAndNoEndWaitsForever) {
  RecordProperty("proves", "W2-4.2.1-2 W2-4.2.1-7 W2-4.2.1-8 W2-4.2.1-9 W2-4.2.1.1-5");
  for (std::uint64_t seed = first_seed(); seed < first_seed() + kRuns; ++seed) {
    SCOPED_TRACE(::testing::Message() << "WEFT_SEED=" << seed);
    RandomRun run(seed, false);
    ASSERT_TRUE(run.run()) << "GRANTs go on and on";
    ASSERT_TRUE(run.everything_arrived()) << "a deadlock";
    ASSERT_EQ(run.num_overruns(), 0u);
  }
}

// The same ends with the printed sum: many wait forever, and some overrun the other's Receives.
TEST(MessageCredits, LiteralWordNeitherGivesCreditsInTimeNorKeepsReceivesFree) {
  RecordProperty("proves", "W2-4.2.1-7");
  std::uint64_t num_stuck = 0, num_overrun = 0;
  for (std::uint64_t seed = first_seed(); seed < first_seed() + kRuns; ++seed) {
    RandomRun run(seed, true);
    EXPECT_TRUE(run.run());
    if (!run.everything_arrived()) ++num_stuck;
    if (run.num_overruns() > 0) ++num_overrun;
  }
  EXPECT_GT(num_stuck, kRuns / 4);
  EXPECT_GT(num_overrun, 0u);
}

}  // namespace
}  // namespace weft::rpcrdma
