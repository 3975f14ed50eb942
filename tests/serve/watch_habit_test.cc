#include "apps/serve/watch_habit.h"

#include <gtest/gtest.h>

namespace weft::serve {
namespace {

// Chances that pass before the next watch.
std::uint32_t skipped(WatchHabit& habit) {
  std::uint32_t num = 0;
  while (!habit.begin()) ++num;
  return num;
}

TEST(WatchHabit, WatchesThatFindWorkGoOn) {
  WatchHabit habit;
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(skipped(habit), 0u);
    habit.ended(true);
  }
}

TEST(WatchHabit, WatchesInVainBecomeRarerToABound) {
  WatchHabit habit;
  for (const std::uint32_t want : {0u, 1u, 3u, 7u, 15u, 31u, 63u, 63u, 63u}) {
    EXPECT_EQ(skipped(habit), want);
    habit.ended(false);
  }
}

TEST(WatchHabit, OneThatFindsWorkEndsTheSkipping) {
  WatchHabit habit;
  for (int i = 0; i < 5; ++i) {
    skipped(habit);
    habit.ended(false);
  }
  skipped(habit);
  habit.ended(true);
  EXPECT_EQ(skipped(habit), 0u);
}

}  // namespace
}  // namespace weft::serve
