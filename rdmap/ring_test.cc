#include "rdmap/ring.h"

#include <gtest/gtest.h>

#include <memory>

namespace weft::rdmap {
namespace {

TEST(Ring, KeepsOrderAndNamesWhileItGrowsAndTurns) {
  Ring<std::unique_ptr<int>> ring;
  int pushed = 0, popped = 0;
  for (int round = 0; round < 200; ++round) {
    for (int i = 0; i < round % 23; ++i) ring.push_back(std::make_unique<int>(pushed++));
    for (std::uint64_t seq = ring.begin_seq(); seq != ring.end_seq(); ++seq)
      ASSERT_EQ(*ring[seq], static_cast<int>(seq));
    for (int i = 0; i < round % 19 && !ring.empty(); ++i) {
      ASSERT_EQ(*ring.front(), popped++);
      ring.pop_front();
    }
    ASSERT_EQ(ring.size(), static_cast<std::size_t>(pushed - popped));
  }
  EXPECT_FALSE(ring.holds(ring.end_seq()));
  EXPECT_FALSE(ring.holds(ring.begin_seq() - 1));
  ring.clear();
  EXPECT_TRUE(ring.empty());
  EXPECT_EQ(ring.begin_seq(), static_cast<std::uint64_t>(pushed));
}

TEST(Ring, TrimmedItGoesOnWhereItWas) {
  Ring<int> ring;
  for (int i = 0; i < 100; ++i) ring.push_back(i);
  ring.trim();  // not while anything is queued
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(ring.front(), i);
    ring.pop_front();
  }
  ring.trim();
  EXPECT_TRUE(ring.empty());
  EXPECT_EQ(ring.end_seq(), 100u);
  for (int i = 100; i < 150; ++i) ring.push_back(i);
  EXPECT_EQ(ring[100], 100);
  EXPECT_EQ(ring[149], 149);
}

}  // namespace
}  // namespace weft::rdmap
