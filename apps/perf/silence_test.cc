#include "apps/perf/silence.h"

#include <gtest/gtest.h>

namespace weft::apps::perf {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr TimePoint kStart{std::chrono::hours(1)};

// A run has moved a lot when the peer falls silent: the first time of patience is the last one.
TEST(Silence, LastsAsLongAsThePatienceAndNoLonger) {
  Silence silence(seconds(10));
  EXPECT_EQ(silence.every(), milliseconds(200));
  verbs::QpCounters counters;
  silence.begin(kStart, counters);
  counters.sends_tx = 5;
  counters.write_octets_tx = 1 << 20;
  TimePoint now = kStart;
  int looks = 0;
  while (!silence.is_over(now, counters)) {
    ASSERT_LT(++looks, 1000);
    now += silence.every();
  }
  EXPECT_EQ(now, kStart + seconds(10));
}

TEST(Silence, WhateverMovesBeginsItAnew) {
  Silence silence(seconds(10));
  verbs::QpCounters counters;
  silence.begin(kStart, counters);
  TimePoint now = kStart;
  for (std::uint64_t verbs::QpCounters::*counter :
       {&verbs::QpCounters::sends_tx, &verbs::QpCounters::sends_rx, &verbs::QpCounters::write_octets_tx,
        &verbs::QpCounters::read_octets_rx}) {
    now += seconds(10) - milliseconds(1);
    EXPECT_FALSE(silence.is_over(now, counters));
    ++(counters.*counter);
    EXPECT_FALSE(silence.is_over(now, counters));
  }
  EXPECT_TRUE(silence.is_over(now + seconds(10), counters));
}

}  // namespace
}  // namespace weft::apps::perf
