#include "mpa/staging.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

namespace weft::mpa {
namespace {

std::vector<std::uint8_t> ramp(std::size_t len, std::uint8_t first) {
  std::vector<std::uint8_t> octets(len);
  std::iota(octets.begin(), octets.end(), first);
  return octets;
}

void arrive(Staging& staging, const std::vector<std::uint8_t>& octets) {
  std::memcpy(staging.space(octets.size()).data(), octets.data(), octets.size());
  staging.commit(octets.size());
}

TEST(Staging, KeepsWhatIsPendingInOrder) {
  Staging staging;
  EXPECT_TRUE(staging.pending().empty());
  EXPECT_EQ(staging.space(1).size(), Staging::kDefaultCapacity);
  arrive(staging, ramp(10, 0));
  arrive(staging, ramp(10, 10));
  staging.consume(3);
  const auto want = ramp(17, 3);
  EXPECT_TRUE(std::equal(want.begin(), want.end(), staging.pending().begin(), staging.pending().end()));
}

TEST(Staging, GivesTheWholeBufferBackOnceAllIsConsumed) {
  Staging staging;
  arrive(staging, ramp(1000, 0));
  staging.consume(1000);
  EXPECT_EQ(staging.space(1).size(), staging.capacity());
}

TEST(Staging, MovesWhatIsPendingOnlyWhereSpaceIsNeeded) {
  Staging staging(2 * 66 * 1024);
  const std::size_t capacity = staging.capacity();
  staging.space(capacity);
  staging.commit(capacity - 8);
  staging.consume(capacity - 20);
  const std::uint8_t* const before = staging.pending().data();
  EXPECT_EQ(staging.space(8).size(), 8u);
  EXPECT_EQ(staging.pending().data(), before);
  EXPECT_EQ(staging.space(9).size(), capacity - 12);
  EXPECT_EQ(staging.pending().size(), 12u);
  EXPECT_NE(staging.pending().data(), before);
}

TEST(Staging, ViewsOfConsumedOctetsStayUntilSpaceIsAskedFor) {
  Staging staging;
  arrive(staging, ramp(6, 1));
  const ConstBytes view = staging.pending().first(4);
  staging.consume(6);
  EXPECT_EQ(view[0], 1);
  EXPECT_EQ(view[3], 4);
}

}  // namespace
}  // namespace weft::mpa
