#include "apps/common/output.h"

#include <gtest/gtest.h>

namespace weft::apps {
namespace {

TEST(Output, OctetsRatesAndTimesReadAsPeopleWriteThem) {
  EXPECT_EQ(format_octets(512), "512 B");
  EXPECT_EQ(format_octets(1536), "1.50 KiB");
  EXPECT_EQ(format_octets(256.0 * 1024 * 1024), "256.00 MiB");
  EXPECT_EQ(format_rate(9.876e9), "9.88 GB/s");
  EXPECT_EQ(format_rate(1.5e6), "1.50 MB/s");
  EXPECT_EQ(format_duration_ns(3200), "3.20 us");
  EXPECT_EQ(format_duration_ns(999), "999 ns");
  EXPECT_EQ(format_duration_ns(2.5e9), "2.50 s");
}

TEST(Output, OnlyOneIsSingular) {
  EXPECT_EQ(counted(0, "ping"), "0 pings");
  EXPECT_EQ(counted(1, "ping"), "1 ping");
  EXPECT_EQ(counted(2, "ping"), "2 pings");
}

}  // namespace
}  // namespace weft::apps
