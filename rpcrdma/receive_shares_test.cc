#include "rpcrdma/receive_shares.h"

#include <gtest/gtest.h>

namespace weft::rpcrdma {
namespace {

TEST(ReceiveShares, ReservesUpToTheSlackAndNoFurther) {
  ReceiveShares shares({.max_receives = 100, .slack = 4});
  EXPECT_EQ(shares.wanted(0), 4u);
  ASSERT_TRUE(shares.reserve(96));
  EXPECT_EQ(shares.wanted(0), 100u);
  EXPECT_FALSE(shares.reserve(1));
  shares.release(6);
  EXPECT_EQ(shares.reserved(), 90u);
  EXPECT_EQ(shares.wanted(0), 94u);
}

TEST(ReceiveShares, AreLowBeforeTheyAreGone) {
  ReceiveShares shares({.max_receives = 100, .slack = 4});
  ASSERT_TRUE(shares.reserve(84));
  EXPECT_FALSE(shares.is_low());
  ASSERT_TRUE(shares.reserve(1));
  EXPECT_TRUE(shares.is_low());
  shares.release(1);
  EXPECT_FALSE(shares.is_low());
}

// Ten connections with 8 Receives each, of which 20 are posted.
TEST(ReceiveShares, PostsFewOfWhatIdleConnectionsReserve) {
  ReceiveShares shares({.max_receives = 100, .slack = 4, .max_posted = 20});
  for (int i = 0; i < 10; ++i) {
    shares.enter();
    ASSERT_TRUE(shares.reserve(8));
  }
  EXPECT_EQ(shares.wanted(0), 20u + 4);
  EXPECT_EQ(shares.wanted(3), 23u + 4) << "a message that has begun to arrive takes none from others";
  // Filled Receives have to be replaced, up to the reserved number, and then up to the slack.
  for (int i = 0; i < 50; ++i) shares.on_filled();
  EXPECT_EQ(shares.wanted(0), 70u + 4);
  EXPECT_EQ(shares.wanted(10), 80u + 4);
  for (int i = 0; i < 30; ++i) shares.on_filled();
  EXPECT_EQ(shares.wanted(0), 80u + 4);
  EXPECT_EQ(shares.wanted(10), 90u + 4);
}

TEST(ReceiveShares, ManyConnectionsHaveSomeMorePosted) {
  ReceiveShares shares({.max_receives = 100000, .slack = 4, .max_posted = 20});
  for (int i = 0; i < 1600; ++i) {
    shares.enter();
    ASSERT_TRUE(shares.reserve(8));
  }
  EXPECT_EQ(shares.wanted(0), 1600 / ReceiveShares::kConnectionsPerPosted + 20 + 4);
}

TEST(ReceiveShares, WhatIsLeftBehindIsNobodysShare) {
  ReceiveShares shares({.max_receives = 100, .slack = 4, .max_posted = 20});
  shares.enter();
  ASSERT_TRUE(shares.reserve(8));
  for (int i = 0; i < 8; ++i) shares.on_filled();
  EXPECT_EQ(shares.wanted(0), 8u + 4);
  shares.release(8);
  shares.leave();
  shares.leave_behind(8);
  EXPECT_EQ(shares.wanted(0), 8u + 4);
  shares.forget(8);
  for (int i = 0; i < 8; ++i) shares.on_done();
  EXPECT_EQ(shares.wanted(0), 4u);
}

}  // namespace
}  // namespace weft::rpcrdma
