#include "verbs-shim/api/types.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>

namespace weft::verbs {
namespace {

using Fields = std::array<std::uint64_t, sizeof(QpCounters) / sizeof(std::uint64_t)>;

// Each field as an element, without its name.
TEST(QpCounters, EveryFieldIsSummed) {
  Fields one{};
  Fields other{};
  for (std::size_t i = 0; i < one.size(); ++i) {
    one[i] = i + 1;
    other[i] = 100 * (i + 1);
  }
  auto sum = std::bit_cast<QpCounters>(one);
  sum += std::bit_cast<QpCounters>(other);
  const auto summed = std::bit_cast<Fields>(sum);
  for (std::size_t i = 0; i < summed.size(); ++i) EXPECT_EQ(summed[i], 101 * (i + 1)) << "field " << i;
}

}  // namespace
}  // namespace weft::verbs
