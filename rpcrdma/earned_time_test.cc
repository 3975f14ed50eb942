#include "rpcrdma/earned_time.h"

#include <gtest/gtest.h>

namespace weft::rpcrdma {
namespace {

using std::chrono::milliseconds;

constexpr TimePoint kStart{std::chrono::hours(1)};
constexpr EarnedTime::Terms kTerms{.grace = milliseconds(400), .whole = milliseconds(10000)};

TEST(EarnedTime, APeerThatMovesNothingHasTheGraceAlone) {
  EarnedTime time(kTerms, kStart);
  time.earn(0, 1000, kStart + milliseconds(300));
  EXPECT_EQ(time.end(), kStart + milliseconds(400));
  EXPECT_FALSE(time.is_over(kStart + milliseconds(399)));
  EXPECT_TRUE(time.is_over(kStart + milliseconds(400)));
}

TEST(EarnedTime, EachOctetEarnsInProportionToWhatIsHeld) {
  for (const std::uint64_t held : {1000u, 2000u}) {
    EarnedTime time(kTerms, kStart);
    time.earn(10, held, kStart + milliseconds(350));
    EXPECT_EQ(time.end(), kStart + milliseconds(400) + milliseconds(100'000 / held));
  }
}

// It cannot work ahead, and then hold what it has for long.
TEST(EarnedTime, NoMoreThanTheGraceIsEverLeft) {
  for (const std::uint64_t moved : {500u, 1000u, 5000u}) {
    EarnedTime time(kTerms, kStart);
    time.earn(moved, 1000, kStart + milliseconds(10));
    EXPECT_EQ(time.end(), kStart + milliseconds(410));
  }
  EarnedTime of_nothing(kTerms, kStart);
  of_nothing.earn(1, 0, kStart + milliseconds(10));
  EXPECT_EQ(of_nothing.end(), kStart + milliseconds(410));
}

// A peer that reads nothing moves as many octets as its receive buffer takes.
TEST(EarnedTime, InACrowdLittleThatMovesLeavesLittleTime) {
  EarnedTime time(kTerms, milliseconds(50), kStart);
  time.earn(100, 1000, kStart);
  EXPECT_EQ(time.end(), kStart + milliseconds(85)) << "a tenth of the rest of the grace";
  time.earn(900, 1000, kStart + milliseconds(80));
  EXPECT_EQ(time.end(), kStart + milliseconds(480)) << "it has moved all that it holds";
}

TEST(EarnedTime, ASteadyPeerIsKeptAndOneAtHalfTheRateIsNot) {
  for (const auto& [per_step, is_kept] : {std::pair(10u, true), std::pair(5u, false)}) {
    EarnedTime time(kTerms, kStart);
    TimePoint now = kStart;
    bool is_over = false;
    for (int i = 0; i < 100 && !is_over; ++i) {
      now += milliseconds(100);
      is_over = time.is_over(now);
      time.earn(per_step, 1000, now);
    }
    EXPECT_EQ(!is_over, is_kept) << per_step;
  }
}

}  // namespace
}  // namespace weft::rpcrdma
