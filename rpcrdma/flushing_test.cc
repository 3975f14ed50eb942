#include "rpcrdma/flushing.h"

#include <gtest/gtest.h>

#include <chrono>

namespace weft::rpcrdma {
namespace {

using std::chrono::milliseconds;

constexpr TimePoint at(int ms) {
  return TimePoint(milliseconds(ms));
}

TEST(Flushing, AGroupHasItsPart) {
  Flushing<int> flushing(10, 4);
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(flushing.has_room("one"));
    flushing.add(at(100), "one", std::make_unique<int>(i));
  }
  EXPECT_FALSE(flushing.has_room("one"));
  EXPECT_TRUE(flushing.has_room("other"));
  EXPECT_EQ(flushing.num_of("one"), 4u);
}

// A group ends all of its connections at once: they were admitted when it had room.
TEST(Flushing, WhatAGroupHasBeyondItsPartTakesNothingFromOthers) {
  Flushing<int> flushing(10, 4);
  for (int i = 0; i < 50; ++i) flushing.add(at(100), "one", nullptr);
  EXPECT_FALSE(flushing.has_room("one"));
  EXPECT_TRUE(flushing.has_room("other"));
  for (int i = 0; i < 4; ++i) flushing.add(at(110), "two", nullptr);
  for (int i = 0; i < 2; ++i) flushing.add(at(120), "three", nullptr);
  EXPECT_FALSE(flushing.has_room("other")) << "all together have their bound";
  flushing.drop(at(100));
  EXPECT_EQ(flushing.size(), 6u);
  EXPECT_TRUE(flushing.has_room("one"));
  EXPECT_FALSE(flushing.has_room("two"));
}

TEST(Flushing, TheTimeOfEachEnds) {
  Flushing<int> flushing(2, 2);
  EXPECT_EQ(flushing.next(), std::nullopt);
  flushing.add(at(100), "one", nullptr);
  flushing.add(at(150), "one", nullptr);
  EXPECT_EQ(flushing.next(), at(100));
  flushing.drop(at(99));
  EXPECT_FALSE(flushing.has_room("one"));
  flushing.drop(at(100));
  EXPECT_TRUE(flushing.has_room("one"));
  EXPECT_EQ(flushing.next(), at(150));
  flushing.drop(at(200));
  EXPECT_EQ(flushing.num_of("one"), 0u);
  EXPECT_EQ(flushing.size(), 0u);
}

}  // namespace
}  // namespace weft::rpcrdma
