#include "apps/common/descriptor_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "base/fd.h"

namespace weft::apps {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr DescriptorWish kServer{.limit = 0, .own = 40, .per_client = 1, .least_others = 32, .preferred_clients = 1024};

DescriptorWish with_limit(std::uint64_t limit, DescriptorWish wish = kServer) {
  wish.limit = limit;
  return wish;
}

TEST(DescriptorPlan, ClientsGetHalfOfThoseThatTheProgramDoesNotNeed) {
  const auto plan = plan_descriptors(with_limit(1040));
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->clients, 500u);
  EXPECT_EQ(plan->others, 500u);
  const auto large = plan_descriptors(with_limit(1 << 20));
  ASSERT_TRUE(large.ok());
  EXPECT_EQ(large->clients, 1024u);
  EXPECT_EQ(large->others, (1u << 20) - 40 - 1024);
  // RLIM_INFINITY.
  EXPECT_EQ(plan_descriptors(with_limit(UINT64_MAX))->clients, 1024u);
}

TEST(DescriptorPlan, AProgramWithoutPlacesForClientsDoesNotStart) {
  const auto few = plan_descriptors(with_limit(24));
  ASSERT_FALSE(few.ok());
  EXPECT_THAT(std::string(few.status().message()),
              AllOf(HasSubstr("the limit of open files is 24"), HasSubstr("at least 88 are needed")));
  EXPECT_FALSE(plan_descriptors(with_limit(87)).ok());
  const auto least = plan_descriptors(with_limit(88));
  ASSERT_TRUE(least.ok());
  EXPECT_EQ(least->clients, kLeastClients);
  EXPECT_EQ(least->others, 32u);
}

TEST(DescriptorPlan, AClientOfAGatewayHasTwo) {
  DescriptorWish gateway = with_limit(104);
  gateway.per_client = 2;
  const auto plan = plan_descriptors(gateway);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->clients, 16u);
  EXPECT_EQ(plan->others, 32u);
  gateway.limit = 103;
  EXPECT_FALSE(plan_descriptors(gateway).ok());
}

TEST(DescriptorPlan, ANumberThatCannotBeKeptIsRefused) {
  DescriptorWish wish = with_limit(1024);
  wish.clients = 16000;
  const auto many = plan_descriptors(wish);
  ASSERT_FALSE(many.ok());
  EXPECT_THAT(std::string(many.status().message()),
              AllOf(HasSubstr("--max-connections 16000 needs a limit of 16072 open files, and the limit is 1024"),
                    HasSubstr("allow at most 952 connections")));
  wish.clients = 952;
  const auto all = plan_descriptors(wish);
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(all->clients, 952u);
  EXPECT_EQ(all->others, 32u);
  // Fewer than the default start where the default would not.
  wish = with_limit(80);
  wish.clients = 1;
  ASSERT_TRUE(plan_descriptors(wish).ok());
  EXPECT_EQ(plan_descriptors(wish)->others, 39u);
}

TEST(DescriptorPlan, InheritedDescriptorsCount) {
  const std::size_t before = num_open_descriptors();
  EXPECT_GE(before, 3u);
  const Fd one(::dup(0)), other(::dup(0));
  EXPECT_EQ(num_open_descriptors(), before + 2);
}

}  // namespace
}  // namespace weft::apps
