#include "verbs-shim/soft/timer_heap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

namespace weft::verbs::soft {
namespace {

using Timer = TimerHeap::Timer;

TimePoint at(int n) {
  return TimePoint{} + std::chrono::milliseconds(n);
}

TEST(TimerHeap, EarliestFirst) {
  TimerHeap heap;
  Timer a, b, c;
  heap.set(a, at(3));
  heap.set(b, at(1));
  heap.set(c, at(2));
  EXPECT_EQ(heap.next(), at(1));
  EXPECT_EQ(heap.pop_due(at(0)), nullptr);
  EXPECT_EQ(heap.pop_due(at(2)), &b);
  EXPECT_FALSE(b.pending());
  heap.set(a, at(0));
  EXPECT_EQ(heap.pop_due(at(9)), &a);
  heap.set(c, std::nullopt);
  heap.set(c, std::nullopt);
  EXPECT_EQ(heap.pop_due(at(9)), nullptr);
  EXPECT_EQ(heap.next(), std::nullopt);
}

TEST(TimerHeap, RandomChangesKeepTheOrder) {
  constexpr unsigned kSeed = 20240607;
  SCOPED_TRACE(kSeed);
  std::mt19937 random(kSeed);
  TimerHeap heap;
  std::vector<std::unique_ptr<Timer>> timers;
  for (int i = 0; i < 500; ++i) timers.push_back(std::make_unique<Timer>());
  for (int round = 0; round < 20000; ++round) {
    Timer& timer = *timers[random() % timers.size()];
    if (random() % 4 == 0) {
      heap.set(timer, std::nullopt);
    } else {
      heap.set(timer, at(static_cast<int>(random() % 1000)));
    }
  }
  TimePoint last{};
  const auto pending = std::count_if(timers.begin(), timers.end(), [](const auto& t) { return t->pending(); });
  std::ptrdiff_t popped = 0;
  while (Timer* timer = heap.pop_due(at(1000))) {
    ASSERT_GE(timer->at(), last);
    last = timer->at();
    ++popped;
  }
  EXPECT_EQ(popped, pending);
}

}  // namespace
}  // namespace weft::verbs::soft
