#include "ddp/tagged.h"

#include <gtest/gtest.h>

#include <vector>

#include "ddp/range.h"

namespace weft::ddp {
namespace {

// Answers every question with one error or with its only region, and remembers the questions.
class OneRegion : public MemoryTable {
 public:
  std::variant<MutBytes, AccessError> resolve(StreamScope scope, Stag, std::uint64_t to, std::size_t len,
                                              Right right) override {
    ++num_asked;
    asked_scope = scope;
    asked_right = right;
    if (error) return *error;
    if (const auto out = check_range(base, octets.size(), to, len)) return *out;
    return MutBytes(octets).subspan(to - base, len);
  }
  std::variant<std::monostate, AccessError> invalidate(StreamScope, Stag) override { return std::monostate{}; }

  std::vector<std::uint8_t> octets = std::vector<std::uint8_t>(64, 0xa5);
  std::uint64_t base = 0x1000;
  std::optional<AccessError> error;
  int num_asked = 0;
  StreamScope asked_scope;
  Right asked_right = Right::kLocalRead;
};

TEST(Tagged, ResolvesInsideTheRegion) {
  OneRegion table;
  const auto place = resolve_tagged(table, {.pd = 3, .stream = 4}, Stag{}, 0x1010, 48);
  ASSERT_TRUE(std::holds_alternative<MutBytes>(place));
  EXPECT_EQ(std::get<MutBytes>(place).data(), table.octets.data() + 16);
  EXPECT_EQ(std::get<MutBytes>(place).size(), 48u);
  EXPECT_EQ(table.asked_scope, (StreamScope{.pd = 3, .stream = 4}));
  EXPECT_EQ(table.asked_right, Right::kRemoteWrite);
  EXPECT_EQ(std::get<Error>(resolve_tagged(table, {}, Stag{}, 0x1010, 49)), Error::kBaseBounds);
  resolve_tagged(table, {}, Stag{}, 0x1010, 1, Right::kLocalWrite);
  EXPECT_EQ(table.asked_right, Right::kLocalWrite);
}

TEST(Tagged, AnEmptyPayloadIsNotLookedUp) {
  OneRegion table;
  table.error = AccessError::kInvalidStag;
  const auto place = resolve_tagged(table, {}, Stag{0xdeadbeef}, UINT64_MAX, 0);
  ASSERT_TRUE(std::holds_alternative<MutBytes>(place));
  EXPECT_TRUE(std::get<MutBytes>(place).empty());
  EXPECT_EQ(table.num_asked, 0);
}

TEST(Tagged, EveryRefusalHasItsCode) {
  OneRegion table;
  for (const auto error : {AccessError::kInvalidStag, AccessError::kNotAssociated, AccessError::kAccessRights,
                           AccessError::kToWrap, AccessError::kBaseBounds}) {
    table.error = error;
    EXPECT_EQ(std::get<Error>(resolve_tagged(table, {}, Stag{}, 0, 1)), to_error(error));
  }
}

static_assert(check_range(100, 50, 100, 50) == std::nullopt);
static_assert(check_range(100, 50, 100, 51) == AccessError::kBaseBounds);

TEST(Range, BoundsToTheSingleOctet) {
  EXPECT_EQ(check_range(100, 50, 100, 50), std::nullopt);
  EXPECT_EQ(check_range(100, 50, 149, 1), std::nullopt);
  EXPECT_EQ(check_range(100, 50, 150, 0), std::nullopt);
  EXPECT_EQ(check_range(100, 50, 151, 0), AccessError::kBaseBounds);
  EXPECT_EQ(check_range(100, 50, 99, 1), AccessError::kBaseBounds);
  EXPECT_EQ(check_range(100, 50, 150, 1), AccessError::kBaseBounds);
  EXPECT_EQ(check_range(100, 50, 100, 51), AccessError::kBaseBounds);
  EXPECT_EQ(check_range(0, 50, UINT64_MAX, 1), AccessError::kToWrap);  // 2^64 exactly counts as wrapped
  EXPECT_EQ(check_range(0, 50, UINT64_MAX - 7, 16), AccessError::kToWrap);
  EXPECT_EQ(check_range(0, 50, UINT64_MAX - 1, 1), AccessError::kBaseBounds);
  EXPECT_EQ(check_range(0, 50, 1, UINT64_MAX), AccessError::kToWrap);
  EXPECT_EQ(check_range(0, 50, 0, UINT64_MAX), AccessError::kBaseBounds);
}

}  // namespace
}  // namespace weft::ddp
