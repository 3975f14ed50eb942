#include "apps/onc_tcp/room.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace weft::onc_tcp {
namespace {

constexpr std::size_t kTotal = 100000, kPerAddress = 40000, kReserve = 2000, kSmall = 100;

struct RoomTest : ::testing::Test {
  Room::Claim claim(const std::string& address) { return Room::Claim(room.enter(address)); }
  // Takes all the room that it may have, and waits for no more.
  static void fill(Room::Claim& claim) {
    while (claim.resize(claim.size() + 1)) {
    }
    claim.resize(claim.size());
  }

  Room room{{.total = kTotal, .per_address = kPerAddress, .reserve = kReserve, .small = kSmall}};
};

TEST_F(RoomTest, AClaimGivesBackWhatItHas) {
  {
    Room::Claim one = claim("a");
    ASSERT_TRUE(one.resize(100));
    Room::Claim other = std::move(one);
    EXPECT_EQ(room.used(), 100u);
    EXPECT_TRUE(other.resize(40));
    EXPECT_EQ(room.used(), 40u);
    other = claim("b");
    EXPECT_EQ(room.used(), 0u);
    EXPECT_GE(room.num_changes(), 2u);
  }
  Room::Claim free;
  EXPECT_TRUE(free.resize(10 * kTotal));
  EXPECT_EQ(room.used(), 0u);
}

TEST_F(RoomTest, ARefusedClaimIsUnchanged) {
  Room::Claim one = claim("a");
  ASSERT_TRUE(one.resize(100));
  EXPECT_FALSE(one.resize(kTotal));
  EXPECT_FALSE(one.resize(~std::size_t{0}));
  EXPECT_EQ(one.size(), 100u);
  EXPECT_EQ(room.used(), 100u);
}

TEST_F(RoomTest, AnAddressHoldsNoMoreThanItsShare) {
  Room::Claim one = claim("a");
  EXPECT_FALSE(one.resize(kPerAddress + kSmall + 1));
  EXPECT_TRUE(one.resize(kPerAddress / 2));
}

TEST_F(RoomTest, ClientsThatHoldLittleTakeNoMoreThanThereIs) {
  std::vector<Room::Claim> clients;
  std::size_t num = 0;
  for (std::size_t i = 0; i < 2 * kTotal / kSmall; ++i) {
    num += clients.emplace_back(claim(std::to_string(i))).resize(kSmall) ? 1 : 0;
  }
  EXPECT_EQ(num, kTotal / kSmall);
  EXPECT_EQ(room.used(), kTotal);
}

TEST_F(RoomTest, AGreedyClientLeavesHalfToTheNextOfItsAddress) {
  std::vector<Room::Claim> greedy;
  for (std::size_t n = 0; n < 5; ++n) {
    // Each client has `small` bytes from the reserve.
    const std::size_t left = kPerAddress - (room.used() - n * kSmall);
    Room::Claim next = claim("a");
    EXPECT_TRUE(next.resize(left / 2 + kSmall)) << n;
    EXPECT_FALSE(next.resize(left / 2 + 1 + kSmall)) << n;
    next.resize(0);
    fill(greedy.emplace_back(claim("a")));
  }
}

TEST_F(RoomTest, GreedyAddressesLeaveHalfToTheNextOne) {
  std::vector<Room::Claim> greedy;
  // Beyond the `small` bytes that each client has from the reserve.
  const auto free = [&] { return kTotal - kReserve - (room.used() - greedy.size() * kSmall); };
  for (std::size_t n = 0; n < 4; ++n) {
    const std::size_t before = free();
    ASSERT_GT(before, 0u) << n;
    Room::Claim next = claim("next");
    EXPECT_TRUE(next.resize(std::min(before, kPerAddress) / 4)) << n;
    next.resize(0);
    const std::string address(1, static_cast<char>('a' + n));
    for (int i = 0; i < 4; ++i) fill(greedy.emplace_back(claim(address)));
    EXPECT_GE(free(), before / 2) << n;
  }
}

TEST_F(RoomTest, ClientsThatGiveBackComeToHoldEqualParts) {
  Room::Claim first = claim("a"), second = claim("a");
  fill(first);
  fill(second);
  for (int i = 0; i < 50; ++i) {
    for (Room::Claim* one : {&first, &second}) {
      one->resize(one->size() / 2);
      fill(*one);
    }
  }
  EXPECT_NEAR(static_cast<double>(first.size()), static_cast<double>(second.size()), kPerAddress / 10.0);
}

TEST_F(RoomTest, TheReserveIsForClientsThatHoldLittleAndLastsForAllOfThem) {
  std::mt19937 random(std::random_device{}());
  const auto seed = random();
  random.seed(seed);
  std::vector<Room::Claim> clients;
  for (std::size_t i = 0; i < kReserve / kSmall; ++i) clients.push_back(claim(std::string(1, char('a' + i % 4))));
  // However they grow and shrink, each of them can have `small` in the end.
  for (int step = 0; step < 2000; ++step) {
    Room::Claim& one = clients[random() % clients.size()];
    one.resize(random() % 3 == 0 ? 0 : one.size() + random() % 6000);
    ASSERT_LE(room.used(), kTotal) << "seed " << seed;
    for (Room::Claim& other : clients) {
      if (other.size() < kSmall) {
        const std::size_t before = other.size();
        ASSERT_TRUE(other.resize(kSmall)) << "seed " << seed;
        other.resize(before);
      }
    }
  }
}

// Each of many addresses asks for a little again as soon as it gave that back. What they give back at a time is never
// enough for one that needs more.
TEST_F(RoomTest, AClaimThatNeedsMuchIsServedBesideManyThatNeedLittle) {
  constexpr std::size_t kMuch = 20000, kLittle = 2000, kNumOthers = 60;
  std::vector<Room::Claim> others;
  for (std::size_t i = 0; i < kNumOthers; ++i) others.push_back(claim("other " + std::to_string(i)));
  const auto ask_all = [&] {
    for (Room::Claim& one : others) {
      if (one.size() == 0) one.resize(kLittle);
    }
  };
  // They are no newcomers.
  for (int round = 0; round < 3; ++round) {
    ask_all();
    for (Room::Claim& one : others) {
      one.resize(0);
      room.serve_line();
    }
  }
  ask_all();
  Room::Claim much = claim("a");
  ASSERT_FALSE(much.resize(kMuch));
  EXPECT_TRUE(much.waits());
  EXPECT_EQ(much.size(), 0u);
  // Until each of them has received as much as it needs.
  constexpr std::size_t kMostTurns = kNumOthers * (kMuch / kLittle + 1);
  std::size_t num_returned = 0;
  for (std::size_t i = 0; much.waits() && num_returned <= kMostTurns; i = (i + 1) % kNumOthers) {
    if (others[i].size() == 0) continue;
    others[i].resize(0);
    ++num_returned;
    room.serve_line();
    ask_all();
  }
  EXPECT_EQ(much.size(), kMuch) << num_returned << " Claims were given back";
}

// Another client of its address holds a little of the shared bytes.
TEST_F(RoomTest, AClaimThatNeedsMuchIsServedBesideANeighbourToo) {
  std::vector<Room::Claim> others;
  const auto ask = [&](std::size_t i) { others[i].resize(2000); };
  for (std::size_t i = 0; i < 60; ++i) others.push_back(claim("other " + std::to_string(i)));
  Room::Claim neighbour = claim("a"), much = claim("a");
  ASSERT_TRUE(neighbour.resize(500));
  for (std::size_t i = 0; i < others.size(); ++i) ask(i);
  ASSERT_FALSE(much.resize(10000));
  for (std::size_t num = 0; much.waits() && num < 1000; ++num) {
    const std::size_t i = num % others.size();
    others[i].resize(0);
    room.serve_line();
    ask(i);
  }
  EXPECT_EQ(much.size(), 10000u);
}

TEST_F(RoomTest, WhoReceivedLeastIsNext) {
  constexpr std::size_t kHalf = kPerAddress / 2;
  std::vector<Room::Claim> holders;
  for (const char* address : {"c", "d", "e", "f", "g"}) fill(holders.emplace_back(claim(address)));
  const auto client = room.enter("a");
  Room::Claim before(client);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(before.resize(1000));
    before.resize(0);
  }
  Room::Claim first(client), second = claim("b");
  ASSERT_FALSE(first.resize(kHalf));
  ASSERT_FALSE(second.resize(kHalf));
  holders.front().resize(holders.front().size() - kHalf);
  room.serve_line();
  EXPECT_TRUE(first.waits()) << "its address has received more";
  EXPECT_EQ(second.size(), kHalf);
}

TEST_F(RoomTest, WhoNeedsLittleDoesNotWait) {
  Room::Claim all = claim("a"), more = claim("b"), waiting = claim("b"), little = claim("b");
  fill(all);
  fill(more);
  ASSERT_FALSE(waiting.resize(kPerAddress));
  EXPECT_TRUE(little.resize(kSmall));
  EXPECT_FALSE(little.resize(kSmall + 1)) << "it passes the one that waits";
}

TEST_F(RoomTest, AClaimThatWaitsMayMove) {
  Room::Claim first = claim("a"), waiting = claim("a");
  fill(first);
  ASSERT_FALSE(waiting.resize(kPerAddress));
  Room::Claim moved = std::move(waiting);
  EXPECT_TRUE(moved.waits());
  first.resize(0);
  room.serve_line();
  EXPECT_EQ(moved.size(), kPerAddress);
}

TEST_F(RoomTest, AClaimThatEndsLeavesTheLine) {
  Room::Claim all = claim("a"), more = claim("b"), next = claim("a");
  fill(all);
  fill(more);
  const auto client = room.enter("a");
  {
    Room::Claim waiting(client);
    ASSERT_FALSE(waiting.resize(kPerAddress));
    ASSERT_FALSE(next.resize(2 * kSmall)) << "it passes the one that waits";
  }
  room.serve_line();
  EXPECT_EQ(next.size(), 2 * kSmall);
}

TEST_F(RoomTest, AClaimThatAsksForLessWaitsNoMore) {
  Room::Claim first = claim("a"), second = claim("a");
  fill(first);
  ASSERT_FALSE(second.resize(kPerAddress));
  EXPECT_TRUE(second.resize(kSmall));
  EXPECT_FALSE(second.waits());
  first.resize(0);
  room.serve_line();
  EXPECT_EQ(second.size(), kSmall);
}

TEST_F(RoomTest, OneClaimOfAClientWaits) {
  Room::Claim first = claim("a");
  fill(first);
  const auto client = room.enter("a");
  Room::Claim one(client), other(client);
  ASSERT_FALSE(one.resize(kPerAddress / 2));
  ASSERT_FALSE(other.resize(kPerAddress / 2));
  EXPECT_TRUE(one.waits());
  EXPECT_FALSE(other.waits());
}

// A record grows while it arrives.
TEST_F(RoomTest, InItsTurnTheOnlyClaimOfAnAddressMayGrowBesideManyAddresses) {
  std::vector<Room::Claim> others;
  for (std::size_t i = 0; i < 20; ++i) ASSERT_TRUE(others.emplace_back(claim(std::to_string(i))).resize(3000));
  Room::Claim record = claim("a"), second = claim("a");
  ASSERT_TRUE(record.resize(10000));
  EXPECT_FALSE(record.resize(30000));
  room.serve_line();
  EXPECT_EQ(record.size(), 30000u);
  EXPECT_FALSE(second.resize(8000));
  room.serve_line();
  EXPECT_TRUE(second.waits()) << "its address holds more than it would leave";
}

TEST_F(RoomTest, TheMoreWaitTheLessOfARoundHasEach) {
  const auto client = room.enter("a");
  Room::Claim mine(client);
  ASSERT_TRUE(mine.resize(kPerAddress / 4));
  EXPECT_EQ(client->share_of_round(), 1.0) << "no client waits";
  std::vector<Room::Claim> neighbours;
  for (int i = 0; i < 16; ++i) {
    neighbours.push_back(claim("a"));
    neighbours.back().resize(kPerAddress);
  }
  EXPECT_EQ(client->share_of_round(), 4.0 / 16) << "four of them have room for as much at a time";
  const auto little = room.enter("a"), other = room.enter("b");
  Room::Claim least(little), elsewhere(other);
  ASSERT_TRUE(least.resize(kSmall));
  ASSERT_TRUE(elsewhere.resize(kPerAddress / 4));
  EXPECT_EQ(little->share_of_round(), 1.0) << "what it holds is its own";
  EXPECT_EQ(other->share_of_round(), 1.0) << "no client waits for what it holds";
}

TEST_F(RoomTest, AnAddressIsForgottenWithItsLastClient) {
  auto one = room.enter("a");
  auto two = room.enter("a");
  one.reset();
  Room::Claim claim{std::move(two)};
  EXPECT_TRUE(claim.resize(50));
}

}  // namespace
}  // namespace weft::onc_tcp
