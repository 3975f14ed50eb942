#include "apps/common/samples.h"

#include <gtest/gtest.h>

namespace weft::apps {
namespace {

TEST(Samples, AQuantileIsTheNearestRank) {
  Samples samples;
  EXPECT_EQ(samples.quantile(0.5), 0u);
  EXPECT_EQ(samples.min(), 0u);
  for (const std::uint64_t ns : {50u, 10u, 40u, 20u, 30u}) samples.add(ns);
  EXPECT_EQ(samples.quantile(0.5), 30u);
  EXPECT_EQ(samples.quantile(0.99), 50u);
  EXPECT_EQ(samples.quantile(0.0), 10u);
  EXPECT_EQ(samples.quantile(1.0), 50u);
  EXPECT_EQ(samples.min(), 10u);
}

// The order of the times does not matter. Times that grow all the while, as with a peer that slows down, are known as
// well.
TEST(Samples, AreKeptUpToANumberAndStandForAll) {
  constexpr std::size_t kMost = 10000;
  constexpr std::uint64_t kNum = 1'000'000;
  Samples samples(kMost);
  for (std::uint64_t i = 1; i <= kNum; ++i) samples.add(i);
  EXPECT_EQ(samples.num(), kNum);
  EXPECT_EQ(samples.num_kept(), kMost);
  EXPECT_EQ(samples.min(), 1u);
  // Five standard deviations of a rank among 10,000.
  EXPECT_NEAR(static_cast<double>(samples.quantile(0.5)), 0.5 * kNum, 0.025 * kNum);
  EXPECT_NEAR(static_cast<double>(samples.quantile(0.99)), 0.99 * kNum, 0.005 * kNum);
}

TEST(Samples, TakeMemoryAsTheyAreKept) {
  Samples few(10000, Samples::Room::kAsNeeded);
  few.add(1);
  EXPECT_LT(few.room(), 100u);
  EXPECT_LT(sizeof(few), 100u);
  EXPECT_EQ(Samples(10000).room(), 10000u);
}

}  // namespace
}  // namespace weft::apps
