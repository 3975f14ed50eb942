#include "rpcrdma/credit_policy.h"

#include <gtest/gtest.h>

namespace weft::rpcrdma {
namespace {

// `num` Calls while `under_way` are.
void calls(CreditPolicy& policy, std::uint32_t num, std::uint32_t under_way, std::uint32_t requested = 1000) {
  for (std::uint32_t i = 0; i < num; ++i) policy.on_call(requested, under_way);
}

TEST(CreditPolicy, IsConstantWithoutRoomToMove) {
  CreditPolicy policy({.min = 32, .initial = 32, .max = 32});
  calls(policy, 1000, 32);
  EXPECT_EQ(policy.grant(), 32u);
  calls(policy, 1000, 1);
  policy.set_short(true);
  EXPECT_EQ(policy.grant(), 32u);
  EXPECT_EQ(policy.promised(), 32u);
}

TEST(CreditPolicy, GrowsWithUseUpToWhatIsAskedForAndWhatThereIs) {
  RecordProperty("proves", "R1-4.3.1-08");
  CreditPolicy policy({.min = 4, .initial = 4, .max = 64});
  calls(policy, 100, 3);
  EXPECT_EQ(policy.grant(), 4u);
  policy.on_call(1000, 4);
  EXPECT_EQ(policy.grant(), 8u);
  policy.on_call(1000, 8);
  EXPECT_EQ(policy.grant(), 16u);
  policy.on_call(20, 16);
  EXPECT_EQ(policy.grant(), 20u);
  policy.on_call(20, 20);
  EXPECT_EQ(policy.grant(), 20u);
  policy.on_call(1000, 20);
  policy.on_call(1000, 40);
  policy.on_call(1000, 64);
  EXPECT_EQ(policy.grant(), 64u);
  EXPECT_EQ(policy.promised(), 64u);
}

TEST(CreditPolicy, ShrinksWhileMemoryIsShortButNeverToNothing) {
  RecordProperty("proves", "R1-4.3.1-05");
  CreditPolicy policy({.min = 0, .initial = 32, .max = 32});
  policy.set_short(true);
  EXPECT_EQ(policy.grant(), 16u);
  policy.set_short(true);  // still: a round has to pass
  EXPECT_EQ(policy.grant(), 16u);
  calls(policy, 32, 16);
  EXPECT_EQ(policy.grant(), 8u);
  calls(policy, 200, 8);
  EXPECT_EQ(policy.grant(), 1u);
  policy.set_short(false);
  policy.on_call(1000, 1);
  EXPECT_EQ(policy.grant(), 2u);
}

TEST(CreditPolicy, ComesBackFromWhatIsNotUsed) {
  CreditPolicy policy({.min = 2, .initial = 8, .max = 64});
  policy.on_call(1000, 8);
  policy.on_call(1000, 16);
  policy.on_call(1000, 32);
  ASSERT_EQ(policy.grant(), 64u);
  calls(policy, 128, 16);  // a quarter is used: enough
  EXPECT_EQ(policy.grant(), 64u);
  calls(policy, 256, 3);
  EXPECT_EQ(policy.grant(), 32u);
  calls(policy, 500, 1);
  EXPECT_EQ(policy.grant(), 8u);
}

TEST(CreditPolicy, WhatWasPromisedCountsUntilTheClientMustHaveHeard) {
  CreditPolicy policy({.min = 1, .initial = 16, .max = 16});
  policy.set_short(true);
  EXPECT_EQ(policy.grant(), 8u);
  calls(policy, 15, 1);
  EXPECT_EQ(policy.promised(), 16u);
  calls(policy, 1, 1);
  EXPECT_LE(policy.promised(), 8u);
}

}  // namespace
}  // namespace weft::rpcrdma
