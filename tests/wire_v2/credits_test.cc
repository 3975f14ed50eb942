#include "tests/wire_v2/credits.h"

#include <gtest/gtest.h>

namespace weft::wire_v2 {
namespace {

using Announced = MessageCredits::Announced;

TEST(WireV2MessageCredits, CountersWrap) {
  MessageCredits credits(0xfffffffe);
  EXPECT_TRUE(credits.send(false));
  EXPECT_FALSE(credits.send(false));
  EXPECT_EQ(credits.announce(2, 1), Announced::kGood);
  EXPECT_TRUE(credits.send(false));
  EXPECT_TRUE(credits.send(false));
  EXPECT_FALSE(credits.send(false));
  EXPECT_EQ(credits.announce(0xffffffff, 2), Announced::kGoesBack);
  EXPECT_EQ(credits.announce(4, 3), Announced::kGood);
  EXPECT_TRUE(credits.send(false));
}

TEST(WireV2MessageCredits, ALimitOfNothingIsGood) {
  MessageCredits credits;
  EXPECT_TRUE(credits.send(false));
  EXPECT_EQ(credits.announce(0, 1), Announced::kGood);
  EXPECT_EQ(credits.announce(1, 2), Announced::kGood);
}

TEST(WireV2MessageCredits, SayWhatMustHaveBeenReceived) {
  MessageCredits credits;
  EXPECT_TRUE(credits.send(false));
  EXPECT_EQ(credits.announce(3, 10), Announced::kGood);
  EXPECT_EQ(credits.announce(5, 20), Announced::kGood);
  EXPECT_EQ(credits.proved(), 0u);
  EXPECT_TRUE(credits.send(false));
  EXPECT_EQ(credits.proved(), 10u);
  EXPECT_TRUE(credits.send(false));
  EXPECT_TRUE(credits.send(false));
  EXPECT_EQ(credits.proved(), 20u);
}

TEST(WireV2RpcCredits, AnAnswerNobodyHasHeardOfIsNoLimit) {
  RpcCredits credits;
  EXPECT_TRUE(credits.call(32));
  credits.answer(2, 10);
  EXPECT_TRUE(credits.call(32));
  EXPECT_EQ(credits.proved(), 10u);
  credits.answer(1, 20);
  // One unanswered Call, as far as its sender knows, and a grant of two.
  EXPECT_TRUE(credits.call(32));
  EXPECT_EQ(credits.proved(), 10u);
  EXPECT_FALSE(credits.call(32));
}

}  // namespace
}  // namespace weft::wire_v2
