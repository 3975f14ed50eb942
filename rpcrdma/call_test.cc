#include "rpcrdma/call.h"

#include <gtest/gtest.h>

#include <array>
#include <span>
#include <type_traits>
#include <vector>

namespace weft::rpcrdma {
namespace {

TEST(OneOrMore, RefusesAContainerThatIsAboutToDie) {
  static_assert(!std::is_constructible_v<GatheredBytes, std::vector<ConstBytes>>);
  static_assert(!std::is_constructible_v<OneOrMore<ArgumentItem>, std::vector<ArgumentItem>>);
  static_assert(std::is_constructible_v<GatheredBytes, std::vector<ConstBytes>&>);
  static_assert(std::is_constructible_v<GatheredBytes, const std::array<ConstBytes, 2>&>);
  static_assert(std::is_constructible_v<GatheredBytes, std::span<const ConstBytes>>);
}

TEST(OneOrMore, KeepsOneAndViewsSeveral) {
  const std::array<std::uint8_t, 4> octets = {1, 2, 3, 4};
  const GatheredBytes one = ConstBytes(octets);
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].data(), octets.data());
  const std::vector<ConstBytes> halves = {ConstBytes(octets).first(2), ConstBytes(octets).last(2)};
  const GatheredBytes several = halves;
  ASSERT_EQ(several.size(), 2u);
  EXPECT_EQ(several.begin(), halves.data());
  EXPECT_TRUE(GatheredBytes().empty());
}

}  // namespace
}  // namespace weft::rpcrdma
