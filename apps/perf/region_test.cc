#include "apps/perf/region.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace weft::apps::perf {
namespace {

const std::size_t kPage = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));

Region region_of(std::size_t size) {
  auto region = Region::reserve(size);
  EXPECT_TRUE(region.ok()) << region.status();
  return *std::move(region);
}

// Whether the page at this address belongs to the process.
bool is_mapped(const std::uint8_t* page) {
  unsigned char resident = 0;
  return ::mincore(const_cast<std::uint8_t*>(page), 1, &resident) == 0;
}

TEST(Region, IsWrittenInParts) {
  Region region = region_of(3 * kPage + 5);
  EXPECT_TRUE(region.octets().empty());
  EXPECT_FALSE(region.fill(kPage));
  EXPECT_EQ(region.octets().size(), kPage);
  EXPECT_FALSE(region.fill(2 * kPage));
  EXPECT_TRUE(region.fill(kPage));
  EXPECT_EQ(region.octets().size(), 3 * kPage + 5);
  EXPECT_TRUE(std::ranges::all_of(region.octets(), [](std::uint8_t octet) { return octet == 0x5a; }));
}

TEST(Region, GivesBackWholePagesFromItsEnd) {
  Region region = region_of(5 * kPage + 5);
  EXPECT_TRUE(region.fill(SIZE_MAX));
  const std::uint8_t* data = region.octets().data();
  EXPECT_EQ(region.release(kPage), kPage + 5);
  EXPECT_EQ(region.octets().size(), 4 * kPage);
  EXPECT_EQ(region.release(2 * kPage), 2 * kPage);
  EXPECT_FALSE(is_mapped(data + 2 * kPage));
  EXPECT_TRUE(is_mapped(data + kPage));
  EXPECT_EQ(region.octets()[2 * kPage - 1], 0x5a);
  EXPECT_EQ(region.release(0), kPage) << "less than a page would never end";
  EXPECT_EQ(region.release(SIZE_MAX), kPage);
  EXPECT_TRUE(region.octets().empty());
  EXPECT_FALSE(is_mapped(data));
}

TEST(Region, GivesBackWhatWasNotWrittenAtOnce) {
  Region region = region_of(8 * kPage);
  EXPECT_FALSE(region.fill(3 * kPage));
  const std::uint8_t* data = region.octets().data();
  EXPECT_EQ(region.release(kPage), kPage);
  EXPECT_EQ(region.octets().size(), 2 * kPage);
  EXPECT_FALSE(is_mapped(data + 7 * kPage));
  EXPECT_TRUE(is_mapped(data + kPage));
}

TEST(Region, HasOneOwner) {
  Region first = region_of(kPage);
  EXPECT_TRUE(first.fill(kPage));
  const std::uint8_t* data = first.octets().data();
  {
    const Region second = std::move(first);
    EXPECT_EQ(second.octets().data(), data);
    EXPECT_EQ(second.octets().size(), kPage);
    EXPECT_TRUE(first.octets().empty());  // NOLINT(bugprone-use-after-move): a moved Region is empty
    EXPECT_TRUE(first.fill(1));
  }
  EXPECT_FALSE(is_mapped(data));
}

TEST(Region, OfNothingIsReady) {
  Region region = region_of(0);
  EXPECT_TRUE(region.fill(1));
  EXPECT_TRUE(region.octets().empty());
}

TEST(Region, ThatIsTooLargeIsAnError) {
  EXPECT_FALSE(Region::reserve(SIZE_MAX / 2).ok());
}

}  // namespace
}  // namespace weft::apps::perf
