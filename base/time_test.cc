#include "base/time.h"

#include "gtest/gtest.h"

namespace weft {
namespace {

TEST(Earliest, OfTwoDeadlinesThatMayBeMissing) {
  const TimePoint early{std::chrono::seconds(1)}, late{std::chrono::seconds(2)};
  EXPECT_EQ(earliest(early, late), early);
  EXPECT_EQ(earliest(late, early), early);
  EXPECT_EQ(earliest(std::nullopt, late), late);
  EXPECT_EQ(earliest(late, std::nullopt), late);
  EXPECT_EQ(earliest(std::nullopt, std::nullopt), std::nullopt);
}

}  // namespace
}  // namespace weft
