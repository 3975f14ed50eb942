#include "verbs-shim/soft/holdings.h"

#include <gtest/gtest.h>

#include <iterator>

#include "verbs-shim/soft/testing/handles.h"

namespace weft::verbs::soft {
namespace {

using What = Holdings::What;
using Excess = Holdings::Excess;

Holdings small() {
  return Holdings({.max_silent = 2, .max_lingering = 1, .max_parked = 100});
}

TEST(HoldingsTest, TheOldestSilentOneGoesFirst) {
  Holdings holdings = small();
  EXPECT_EQ(holdings.oldest_silent(), std::nullopt);
  holdings.add_silent(kB);
  holdings.add_silent(kA);
  EXPECT_EQ(holdings.oldest_silent(), kB);
  EXPECT_EQ(holdings.excess(), std::nullopt);
  holdings.add_silent(kC);
  EXPECT_EQ(holdings.excess(), (Excess{kB, What::kSilent}));
  holdings.forget(kB);
  EXPECT_EQ(holdings.excess(), std::nullopt);
  EXPECT_EQ(holdings.oldest_silent(), kA);
}

// However long the others have been there.
TEST(HoldingsTest, AnAddressLosesItsOwn) {
  Holdings holdings({.max_silent = 4, .max_lingering = 4, .max_parked = 100});
  const auto handle = [](std::uint32_t index) { return Handle{index, 1}; };
  holdings.enter(handle(0), "one");
  holdings.add_silent(handle(0));
  holdings.add_lingering(handle(0));
  holdings.park(handle(0), 10, false);
  for (std::uint32_t i = 1; i <= 20; ++i) {
    holdings.enter(handle(i), "many");
    holdings.add_silent(handle(i));
    holdings.add_lingering(handle(i));
    holdings.park(handle(i), 60, false);
    while (const auto excess = holdings.excess()) {
      ASSERT_NE(excess->who, handle(0)) << i;
      holdings.forget(excess->who);
    }
  }
  EXPECT_FALSE(holdings.exceeds());
  // Nothing is left of connections that are gone.
  for (std::uint32_t i = 1; i <= 20; ++i) holdings.forget(handle(i));
  EXPECT_EQ(holdings.oldest_silent(), handle(0));
  holdings.forget(handle(0));
  EXPECT_EQ(holdings.oldest_silent(), std::nullopt);
}

TEST(HoldingsTest, OfAddressesThatHoldAsMuchTheOldestConnectionGoes) {
  Holdings holdings({.max_silent = 3, .max_lingering = 3, .max_parked = 100});
  const auto handle = [](std::uint32_t index) { return Handle{index, 1}; };
  const char* const names[] = {"c", "b", "d", "a", "e", "b2", "c2"};
  for (std::uint32_t i = 0; i < std::size(names); ++i) {
    holdings.enter(handle(i), names[i]);
    holdings.add_silent(handle(i));
    if (i < 3) continue;
    ASSERT_EQ(holdings.excess(), (Excess{handle(i - 3), What::kSilent}));
    holdings.forget(handle(i - 3));
    ASSERT_FALSE(holdings.exceeds());
  }
}

TEST(HoldingsTest, OneThatSpeaksIsSilentNoMore) {
  Holdings holdings = small();
  holdings.add_silent(kA);
  holdings.add_silent(kB);
  holdings.remove_silent(kA);
  holdings.remove_silent(kA);
  EXPECT_EQ(holdings.oldest_silent(), kB);
  holdings.add_silent(kC);
  EXPECT_EQ(holdings.excess(), std::nullopt);
}

TEST(HoldingsTest, TheOldestLingeringOneGoesFirst) {
  Holdings holdings = small();
  holdings.add_lingering(kC);
  EXPECT_EQ(holdings.excess(), std::nullopt);
  holdings.add_lingering(kA);
  EXPECT_EQ(holdings.excess(), (Excess{kC, What::kLingering}));
  holdings.forget(kC);
  EXPECT_EQ(holdings.excess(), std::nullopt);
}

TEST(HoldingsTest, TheOneWhoseFpduBeganFirstGoesFirst) {
  Holdings holdings = small();
  holdings.park(kA, 60, false);
  holdings.park(kB, 40, false);
  EXPECT_EQ(holdings.excess(), std::nullopt) << "as much as may be";
  holdings.park(kC, 1, false);
  EXPECT_EQ(holdings.excess(), (Excess{kA, What::kParked}));
  holdings.forget(kA);
  EXPECT_EQ(holdings.excess(), std::nullopt);
}

TEST(HoldingsTest, MoreOfTheSameFpduKeepsItsAge) {
  Holdings holdings = small();
  holdings.park(kA, 10, false);
  holdings.park(kB, 10, false);
  holdings.unpark(kA);
  holdings.park(kA, 95, true);
  EXPECT_EQ(holdings.excess(), (Excess{kA, What::kParked}));
}

TEST(HoldingsTest, AnotherFpduIsYoungerThanWhatCameMeanwhile) {
  Holdings holdings = small();
  holdings.park(kA, 10, false);
  holdings.park(kB, 10, false);
  holdings.unpark(kA);
  holdings.park(kA, 95, false);
  EXPECT_EQ(holdings.excess(), (Excess{kB, What::kParked}));
}

TEST(HoldingsTest, NothingParkedIsNothingHeld) {
  Holdings holdings({.max_silent = 1, .max_lingering = 1, .max_parked = 0});
  holdings.park(kA, 0, false);
  EXPECT_EQ(holdings.excess(), std::nullopt);
  holdings.park(kB, 1, false);
  EXPECT_EQ(holdings.excess(), (Excess{kB, What::kParked})) << "the first holds nothing";
  holdings.unpark(kB);
  EXPECT_FALSE(holdings.exceeds());
}

TEST(HoldingsTest, ASlotsNextConnectionStartsAnew) {
  Holdings holdings = small();
  holdings.park(kA, 10, false);
  holdings.park(kB, 10, false);
  holdings.forget(kA);
  const Handle next{kA.index, kA.generation + 1};
  holdings.park(next, 95, true);
  EXPECT_EQ(holdings.excess(), (Excess{kB, What::kParked}));
}

}  // namespace
}  // namespace weft::verbs::soft
