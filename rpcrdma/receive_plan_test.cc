#include "rpcrdma/receive_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

namespace weft::rpcrdma {
namespace {

using ::testing::HasSubstr;

verbs::Caps caps_with(std::uint32_t max_srq_wr, bool keeps_reserve) {
  verbs::Caps caps;
  caps.max_cqe = std::uint32_t{1} << 22;
  caps.max_srq = 1;
  caps.max_srq_wr = max_srq_wr;
  caps.srq_reserve = keeps_reserve;
  return caps;
}

constexpr std::uint32_t kMany = std::uint32_t{1} << 20;

// So many that every connection's first share and all that may grow fit together.
TEST(ReceivePlan, EachConnectionHasItsFirstShareWhateverOthersHave) {
  for (const std::size_t num : {1u, 1024u, 16000u, 65536u}) {
    const auto plan = ReceivePlan::make({.max_connections = num}, caps_with(kMany, true));
    ASSERT_TRUE(plan.ok()) << num;
    const auto& pool = plan->pool;
    EXPECT_GE(plan->idle_credits, num <= 16000 ? 8u : 4u) << num;
    EXPECT_LE(num * plan->idle_credits + pool.max_grown + pool.shares.slack, pool.shares.max_receives) << num;
    EXPECT_LE(pool.shares.max_receives, kMany) << num;
    EXPECT_EQ(pool.max_grown, 4096u) << num;
  }
}

TEST(ReceivePlan, ADeviceWithFewReceivesPromisesLessToEach) {
  const auto plan = ReceivePlan::make({.max_connections = 1000}, caps_with(4096, false));
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->idle_credits, 2u);
  EXPECT_EQ(plan->pool.max_grown, 4096u - 2000 - plan->pool.shares.slack);
}

TEST(ReceivePlan, WhatCannotBeKeptIsRefusedWithWhatLimitsIt) {
  const verbs::Caps caps = caps_with(8192, false);
  EXPECT_TRUE(ReceivePlan::make({.max_connections = 8160}, caps).ok());
  const auto refused = ReceivePlan::make({.max_connections = 8161}, caps);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().errno_value, EINVAL);
  EXPECT_THAT(refused.error().message, HasSubstr("8161 connections need 8193 shared Receives"));
  EXPECT_THAT(refused.error().message, HasSubstr("allow at most 8160 connections"));
}

// Where credits count messages, an end with fewer could not go on.
TEST(ReceivePlan, ProtocolsThatCountMessagesHaveMore) {
  const verbs::Caps caps = caps_with(8192, false);
  const std::vector<Protocol> both = {Protocol::k2Wg07, Protocol::k1};
  const auto plan = ReceivePlan::make({.protocols = both, .max_connections = 2040}, caps);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->idle_credits, 4u);
  EXPECT_FALSE(ReceivePlan::make({.protocols = both, .max_connections = 2041}, caps).ok());
}

}  // namespace
}  // namespace weft::rpcrdma
