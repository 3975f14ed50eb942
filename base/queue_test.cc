#include "base/queue.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <random>

namespace weft {
namespace {

using Item = std::shared_ptr<int>;

TEST(Queue, IsADequeForItsUsers) {
  std::mt19937 random(1);
  Queue<Item> queue;
  std::deque<Item> same;
  for (int step = 0; step < 20000; ++step) {
    const auto what = random() % 8;
    if (what < (step / 1000 % 2 == 0 ? 4u : 3u)) {
      same.push_back(std::make_shared<int>(step));
      queue.push_back(same.back());
    } else if (what < 7 && !same.empty()) {
      const Item popped = same.front();
      same.pop_front();
      queue.pop_front();
      EXPECT_EQ(popped.use_count(), 1) << "a popped element holds nothing";
    } else if (!same.empty()) {
      const std::size_t at = random() % same.size();
      same.erase(same.begin() + static_cast<std::ptrdiff_t>(at));
      queue.erase(at);
    }
    if (random() % 64 == 0) queue.trim();
    ASSERT_EQ(queue.size(), same.size());
    ASSERT_EQ(queue.empty(), same.empty());
    if (same.empty()) continue;
    ASSERT_EQ(queue.front(), same.front());
    ASSERT_EQ(queue[same.size() - 1], same.back());
    ASSERT_TRUE(std::equal(queue.items().begin(), queue.items().end(), same.begin(), same.end()));
  }
}

// A queue that never runs empty does not grow by what went through it.
TEST(Queue, ReusesTheRoomOfPoppedElements) {
  Queue<int> queue;
  queue.push_back(0);
  const int* lowest = &queue.front();
  std::size_t span = 0;
  for (int i = 1; i < 100000; ++i) {
    queue.push_back(i);
    queue.pop_front();
    ASSERT_EQ(queue.front(), i);
    if (&queue.front() < lowest || &queue.front() > lowest + 64) {
      lowest = &queue.front();
      ++span;
    }
  }
  EXPECT_LT(span, 10u);
}

TEST(Queue, GivesAllAwayInOrder) {
  Queue<int> queue;
  for (int i = 0; i < 5; ++i) queue.push_back(i);
  queue.pop_front();
  queue.pop_front();
  EXPECT_EQ(queue.take_all(), (std::vector<int>{2, 3, 4}));
  EXPECT_TRUE(queue.empty());
  queue.push_back(7);
  EXPECT_EQ(queue.front(), 7);
}

}  // namespace
}  // namespace weft
