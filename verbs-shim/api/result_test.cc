#include "verbs-shim/api/result.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <string>

namespace weft::verbs {
namespace {

TEST(Result, CanBeConst) {
  const Result<std::string> held = std::string("device");
  ASSERT_TRUE(held.ok());
  EXPECT_EQ(*held, "device");
  EXPECT_EQ(held->size(), 6u);
  EXPECT_EQ(held.value(), "device");
  const Result<std::string> failed = Error{EINVAL, "no"};
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().errno_value, EINVAL);
}

TEST(Result, GivesItsValueAway) {
  Result<std::unique_ptr<int>> held = std::make_unique<int>(7);
  *held.value() = 8;
  const std::unique_ptr<int> taken = *std::move(held);
  EXPECT_EQ(*taken, 8);
}

}  // namespace
}  // namespace weft::verbs
