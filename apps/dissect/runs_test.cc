#include "apps/dissect/runs.h"

#include <gtest/gtest.h>

#include <bitset>
#include <random>

namespace weft::apps::dissect {
namespace {

TEST(Runs, SayWhatIsMissing) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 2000; ++round) {
    constexpr std::size_t kLen = 24;  // at most 12 runs
    std::bitset<kLen> came;
    Runs runs;
    for (int i = 0; i < 8; ++i) {
      const std::size_t begin = random() % kLen, end = begin + 1 + random() % (kLen - begin);
      if (end - begin > 8) continue;
      ASSERT_TRUE(runs.add({begin, end}));
      for (std::size_t at = begin; at < end; ++at) came.set(at);
      const auto whole = (std::bitset<kLen>().set() >> (kLen - (end - begin))) << begin;
      EXPECT_EQ(runs.fill({begin, end}), came == whole);
      EXPECT_FALSE(runs.empty());
    }
    std::size_t end = random() % kLen;
    for (std::size_t at = 0; at < end; ++at) came.set(at);
    while (end < kLen && came[end]) ++end;
    EXPECT_EQ(runs.pass(end), end);
    EXPECT_EQ(runs.empty(), (came >> end).none());
  }
}

TEST(Runs, TooManyOfThemKnowNothing) {
  Runs runs;
  for (std::uint64_t i = 0; i < Runs::kMax; ++i) EXPECT_TRUE(runs.add({2 * i, 2 * i + 1}));
  EXPECT_FALSE(runs.fill({0, 2 * Runs::kMax - 1}));
  EXPECT_FALSE(runs.add({1000, 1001}));
  EXPECT_FALSE(runs.add({2000, 2001}));
  EXPECT_FALSE(runs.add({3000, 3001}));
  EXPECT_TRUE(runs.fill({0, 3001})) << "nothing is known of a hole";
  EXPECT_TRUE(runs.empty());
}

}  // namespace
}  // namespace weft::apps::dissect
