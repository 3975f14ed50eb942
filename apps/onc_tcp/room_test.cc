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
  // Takes all the room that it may have.
  static void fill(Room::Claim& claim) {
    while (claim.resize(claim.size() + 1)) {
    }
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
    EXPECT_GE(room.num_returns(), 2u);
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

TEST_F(RoomTest, AnAddressIsForgottenWithItsLastClient) {
  auto one = room.enter("a");
  auto two = room.enter("a");
  one.reset();
  Room::Claim claim{std::move(two)};
  EXPECT_TRUE(claim.resize(50));
}

}  // namespace
}  // namespace weft::onc_tcp
