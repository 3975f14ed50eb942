#include "verbs-shim/soft/round_shares.h"

#include <gtest/gtest.h>

#include <vector>

namespace weft::verbs::soft {
namespace {

constexpr std::size_t kRound = RoundShares::kRound, kMost = RoundShares::kMost, kLeast = RoundShares::kLeast;

// Begins a round. `connections`: how many of each address have a turn in it.
void begin(RoundShares& shares, const std::vector<std::size_t>& connections) {
  std::size_t num = 0;
  for (const std::size_t of : connections) num += of;
  shares.begin(num);
  if (!shares.is_divided()) return;
  for (const std::size_t& of : connections) {
    for (std::size_t i = 0; i < of; ++i) shares.enter(&of);
  }
}

// The octets that each address moves in one round if its connections always have more.
std::vector<std::size_t> moved_in_a_round(const std::vector<std::size_t>& connections, bool go_on = false) {
  RoundShares shares;
  begin(shares, connections);
  std::vector<std::size_t> moved;
  for (const std::size_t& of : connections) {
    std::size_t sum = 0;
    for (std::size_t i = 0; i < of; ++i) {
      const std::size_t octets = shares.octets_for(&of, go_on);
      shares.moved(&of, octets, 0);
      sum += octets;
    }
    moved.push_back(sum);
  }
  return moved;
}

std::size_t sum(const std::vector<std::size_t>& of) {
  std::size_t out = 0;
  for (const std::size_t one : of) out += one;
  return out;
}

TEST(RoundSharesTest, FewConnectionsHaveWholeTurns) {
  EXPECT_EQ(moved_in_a_round({1}), std::vector<std::size_t>{kMost});
  EXPECT_EQ(moved_in_a_round({RoundShares::kFew}), std::vector<std::size_t>{RoundShares::kFew * kMost});
  EXPECT_EQ(moved_in_a_round({2, 2}), (std::vector<std::size_t>{2 * kMost, 2 * kMost}));
}

TEST(RoundSharesTest, ARoundOfOneAddressHasABound) {
  for (const std::size_t num : {5u, 64u, 200u, 1000u, 16000u}) {
    const std::size_t moved = moved_in_a_round({num})[0];
    EXPECT_GT(moved, kRound - num) << num;
    EXPECT_LT(moved, kRound + kLeast) << num;
  }
}

TEST(RoundSharesTest, AnAddressWithManyConnectionsMovesAsMuchAsOneWithOne) {
  const auto moved = moved_in_a_round({1000, 1});
  EXPECT_EQ(moved[0], kRound / 2);
  EXPECT_EQ(moved[1], kRound / 2);
}

TEST(RoundSharesTest, OfManyAddressesEachWithNewsHasATurn) {
  for (const std::size_t moved : moved_in_a_round(std::vector<std::size_t>(250, 2))) EXPECT_EQ(moved, kLeast);
}

TEST(RoundSharesTest, AConnectionThatGoesOnWaitsWhenTheRoundHasMovedItsOctets) {
  EXPECT_EQ(sum(moved_in_a_round(std::vector<std::size_t>(250, 1), true)), kRound);
  RoundShares shares;
  const std::vector<std::size_t> connections(250, 1);
  begin(shares, connections);
  shares.moved(&connections[0], kRound, 0);
  EXPECT_EQ(shares.octets_for(&connections[1], true), 0u);
  EXPECT_EQ(shares.octets_for(&connections[1], false), kLeast) << "it has something new";
  EXPECT_EQ(shares.octets_for(&connections[0], false), 0u) << "its address has had its part";
}

TEST(RoundSharesTest, AnAddressThatMovesLittleHasATurnForEachConnection) {
  RoundShares shares;
  const std::vector<std::size_t> connections{1000};
  begin(shares, connections);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(shares.octets_for(&connections[0], false), kLeast);
    shares.moved(&connections[0], 200, 0);
  }
}

TEST(RoundSharesTest, TheNextRoundBeginsAnew) {
  RoundShares shares;
  const std::vector<std::size_t> connections{10};
  for (int round = 0; round < 2; ++round) {
    begin(shares, connections);
    EXPECT_GT(shares.octets_for(&connections[0], true), 0u);
    shares.moved(&connections[0], kRound, 0);
    EXPECT_EQ(shares.octets_for(&connections[0], true), 0u);
  }
}

TEST(RoundSharesTest, ShortFpdusTakeMoreOfARoundThanTheirOctets) {
  RoundShares shares;
  const std::vector<std::size_t> connections = {50};
  begin(shares, connections);
  shares.moved(&connections[0], 4096, kRound / RoundShares::kFpdu);
  EXPECT_EQ(shares.octets_for(&connections[0], true), 0u);
}

// A turn of 64 KiB has room for 3,276 Writes without data, of 20 octets each.
TEST(RoundSharesTest, ATurnOfShortFpdusReadsFewOctets) {
  EXPECT_LE(RoundShares::octets_to_read(2 * kLeast, 20) / 20, 128u);
  EXPECT_GE(RoundShares::octets_to_read(2 * kLeast, 65000), 2 * kLeast * 98 / 100);
  EXPECT_EQ(RoundShares::octets_to_read(2 * kLeast, 1), RoundShares::kLeastRead);
}

}  // namespace
}  // namespace weft::verbs::soft
