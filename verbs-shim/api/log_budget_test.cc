#include "verbs-shim/api/log_budget.h"

#include <gtest/gtest.h>

#include <chrono>

namespace weft::verbs {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// How many lines of `tries` may be written.
std::int64_t taken(LogBudget& budget, TimePoint now, int tries = 1000) {
  std::int64_t num = 0;
  for (int i = 0; i < tries; ++i) num += budget.take(now) ? 1 : 0;
  return num;
}

constexpr TimePoint kBegin = TimePoint{} + std::chrono::hours(5);

TEST(LogBudget, AllowsABurstAndThenSoManyASecond) {
  LogBudget budget;
  EXPECT_EQ(taken(budget, kBegin), LogBudget::kBurst);
  EXPECT_EQ(taken(budget, kBegin + milliseconds(999)), 0);
  EXPECT_EQ(taken(budget, kBegin + milliseconds(1000)), LogBudget::kPerSecond);
  EXPECT_EQ(taken(budget, kBegin + milliseconds(1001)), 0);
  EXPECT_EQ(taken(budget, kBegin + milliseconds(3000)), 2 * LogBudget::kPerSecond);
}

TEST(LogBudget, SavesNoMoreThanABurst) {
  LogBudget budget;
  EXPECT_EQ(taken(budget, kBegin, 1), 1);
  EXPECT_EQ(taken(budget, kBegin + std::chrono::hours(1)), LogBudget::kBurst);
  EXPECT_EQ(taken(budget, kBegin + std::chrono::hours(1)), 0);
}

// Tries between whole seconds lose none of the time that has passed.
TEST(LogBudget, TheRateHoldsHoweverOftenItIsAsked) {
  for (const milliseconds step : {milliseconds(1), milliseconds(300), milliseconds(1900)}) {
    LogBudget budget;
    EXPECT_EQ(taken(budget, kBegin), LogBudget::kBurst);
    std::int64_t num = 0;
    for (TimePoint at = kBegin; at <= kBegin + seconds(57); at += step) num += taken(budget, at, 30);
    EXPECT_LE(num, 57 * LogBudget::kPerSecond) << step.count() << " ms";
    EXPECT_GE(num, 55 * LogBudget::kPerSecond) << step.count() << " ms";
  }
}

TEST(LogBudget, CountsWhatItWithholdsUntilThatIsTaken) {
  LogBudget budget;
  EXPECT_EQ(taken(budget, kBegin, 53), 50);
  EXPECT_EQ(budget.take_suppressed(), 3u);
  EXPECT_EQ(budget.take_suppressed(), 0u);
  EXPECT_EQ(taken(budget, kBegin, 2), 0);
  EXPECT_EQ(budget.take_suppressed(), 2u);
}

}  // namespace
}  // namespace weft::verbs
