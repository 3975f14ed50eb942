#include "apps/serve/listing_costs.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace weft::serve {
namespace {

nfs3::NfsFh3 directory(std::uint32_t number) {
  nfs3::NfsFh3 out;
  const std::array<std::uint8_t, 4> octets = {
      static_cast<std::uint8_t>(number >> 24), static_cast<std::uint8_t>(number >> 16),
      static_cast<std::uint8_t>(number >> 8), static_cast<std::uint8_t>(number)};
  EXPECT_TRUE(out.assign(octets));
  return out;
}

TEST(ListingCostsTest, ListingsOfOneDirectoryShareItsCost) {
  ListingCosts costs;
  const auto first = costs.of(directory(1)), second = costs.of(directory(1));
  EXPECT_EQ(second->load(), 0);
  first->store(600'000);
  EXPECT_EQ(second->load(), 600'000);
  EXPECT_EQ(costs.of(directory(2))->load(), 0);
}

TEST(ListingCostsTest, ACallThatIsRefusedAtOnceMakesNoDirectoryCheap) {
  ListingCosts costs;
  const auto cost = costs.of(directory(1));
  ListingCosts::note(*cost, std::chrono::microseconds(800'000));
  ListingCosts::note(*cost, std::chrono::microseconds(10));
  EXPECT_EQ(cost->load(), 700'000);
  ListingCosts::note(*cost, std::chrono::microseconds(900'000));
  EXPECT_EQ(cost->load(), 900'000);
}

TEST(ListingCostsTest, WhatIsBeingListedIsNotForgotten) {
  ListingCosts costs;
  const auto listed = costs.of(directory(1));
  for (std::uint32_t i = 2; i <= 3 * ListingCosts::kMost; ++i) costs.of(directory(i))->store(5'000);
  listed->store(600'000);
  EXPECT_EQ(costs.of(directory(1))->load(), 600'000);
}

TEST(ListingCostsTest, AfterManyListingsAtOnceAsFewAreRememberedAsBefore) {
  constexpr std::uint32_t kMore = 44;
  ListingCosts costs;
  {
    std::vector<std::shared_ptr<ListingCosts::Cost>> held;
    for (std::uint32_t i = 1; i <= ListingCosts::kMost + kMore; ++i) {
      held.push_back(costs.of(directory(i)));
      held.back()->store(10'000 + i);
    }
  }
  costs.of(directory(1000))->store(600'000);
  EXPECT_EQ(costs.of(directory(kMore + 1))->load(), 0) << "the cheapest are forgotten";
}

TEST(ListingCostsTest, OfTooManyTheCheapestIsForgotten) {
  ListingCosts costs;
  for (std::uint32_t i = 1; i <= ListingCosts::kMost; ++i) costs.of(directory(i))->store(10'000 + i);
  costs.of(directory(1000))->store(600'000);
  EXPECT_EQ(costs.of(directory(2))->load(), 10'002);
  EXPECT_EQ(costs.of(directory(1000))->load(), 600'000);
  EXPECT_EQ(costs.of(directory(1))->load(), 0);
}

}  // namespace
}  // namespace weft::serve
