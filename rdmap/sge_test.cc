#include "rdmap/sge.h"

#include <gtest/gtest.h>

#include <numeric>

#include "rdmap/testing/pair.h"

namespace weft::rdmap {
namespace {

TEST(Sge, EveryRangeOfAListResolvesToItsOctets) {
  testing::FakeMemory memory;
  auto& region = memory.add_simple(1, 0, 100, 40);
  std::iota(region.octets.begin(), region.octets.end(), std::uint8_t{0});
  const SgeList list = {{100, 3, ddp::Stag{1}}, {0, 0, ddp::Stag{99}}, {110, 5, ddp::Stag{1}}, {100, 2, ddp::Stag{1}}};
  const std::vector<std::uint8_t> flat = {0, 1, 2, 10, 11, 12, 13, 14, 0, 1};
  ASSERT_EQ(total_len(list), flat.size());
  for (std::size_t offset = 0; offset <= flat.size(); ++offset) {
    for (std::size_t len = 0; len <= flat.size() - offset; ++len) {
      ViewList views;
      ASSERT_FALSE(resolve_range(memory, {}, list, offset, len, ddp::Right::kLocalRead, views));
      std::vector<std::uint8_t> got;
      for (MutBytes view : views) got.insert(got.end(), view.begin(), view.end());
      EXPECT_TRUE(std::equal(got.begin(), got.end(), flat.begin() + static_cast<std::ptrdiff_t>(offset),
                             flat.begin() + static_cast<std::ptrdiff_t>(offset + len)));
      EXPECT_EQ(got.size(), len);
    }
  }
}

TEST(Sge, AnEntryThatIsNobodysIsRefusedWhole) {
  testing::FakeMemory memory;
  memory.add_simple(1, 0, 100, 40);
  ViewList views;
  EXPECT_EQ(resolve_range(memory, {}, {{130, 11, ddp::Stag{1}}}, 0, 5, ddp::Right::kLocalWrite, views),
            ddp::AccessError::kBaseBounds);
  EXPECT_EQ(
      resolve_range(memory, {}, {{100, 1, ddp::Stag{1}}, {0, 1, ddp::Stag{2}}}, 0, 2, ddp::Right::kLocalWrite, views),
      ddp::AccessError::kInvalidStag);
}

}  // namespace
}  // namespace weft::rdmap
