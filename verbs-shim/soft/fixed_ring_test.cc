#include "verbs-shim/soft/fixed_ring.h"

#include <gtest/gtest.h>

#include <deque>

namespace weft::verbs::soft {
namespace {

// It grows at every position of its first element.
TEST(FixedRing, KeepsTheOrderWhileItGrows) {
  for (std::size_t ahead = 0; ahead < 16; ++ahead) {
    FixedRing<int> ring(100);
    std::deque<int> model;
    int next = 0;
    const auto push = [&] {
      ring.extend() = next;
      model.push_back(next++);
    };
    for (std::size_t i = 0; i < 16; ++i) push();
    for (std::size_t i = 0; i < ahead; ++i) {
      ring.pop_front();
      model.pop_front();
      push();
    }
    while (!ring.full()) push();
    ASSERT_EQ(ring.size(), 100u);
    for (std::size_t i = 0; i < model.size(); ++i) ASSERT_EQ(ring[i], model[i]) << ahead;
    ASSERT_EQ(ring.back(), model.back()) << ahead;
    for (; !ring.empty(); ring.pop_front(), model.pop_front()) ASSERT_EQ(ring.front(), model.front()) << ahead;
  }
}

TEST(FixedRing, HasNoMoreThanItsCapacity) {
  FixedRing<int> ring(3);
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(ring.full());
    ring.extend() = i;
  }
  EXPECT_TRUE(ring.full());
  EXPECT_EQ(ring.capacity(), 3u);
  EXPECT_TRUE(FixedRing<int>(0).full());
}

}  // namespace
}  // namespace weft::verbs::soft
