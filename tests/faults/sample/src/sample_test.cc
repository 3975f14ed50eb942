#include "src/sample.h"

#include <gtest/gtest.h>

namespace {

TEST(Sample, Larger) {
  EXPECT_EQ(sample::larger(1, 2), 2);
  EXPECT_EQ(sample::larger(5, 2), 5);
}

TEST(Sample, Half) {
  EXPECT_EQ(sample::half(2), 1);
  EXPECT_EQ(sample::half(8), 4);
}

TEST(Sample, CountUp) {
  EXPECT_EQ(sample::count_up(3), 3);
}

TEST(Sample, ValueOf) {
  const int seven = 7;
  EXPECT_EQ(sample::value_of(&seven), 7);
  EXPECT_EQ(sample::value_of(nullptr), -1);
}

TEST(Sample, Mark) {
  sample::set_mark();
  EXPECT_TRUE(sample::is_small(9));
  EXPECT_FALSE(sample::is_small(10));
}

TEST(Sample, FailsOfItself) {
  FAIL() << "and counts for nothing: " << sample::larger(1, 2);
}

}  // namespace
