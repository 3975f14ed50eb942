// Two ends that give each other credits for messages.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <deque>
#include <random>
#include <vector>

#include "rpcrdma/message_credits.h"
#include "rpcrdma/testing/message_credits.h"

namespace weft::rpcrdma {
namespace {

using testing::kind_of;
using testing::message_of;
using testing::parsed;
using Kind = MessageCredits::Kind;
using Verdict = MessageCredits::Verdict;

constexpr std::uint32_t kAlmostWrapped = 0xfffffffe;

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
