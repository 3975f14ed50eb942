#include "apps/perf/options.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace weft::apps::perf {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Row is one op as docs/man/weft-perf.1 and --help describe it.
struct Row {
  std::string_view name;
  std::uint16_t number;  // in Hello
  std::uint64_t size;
  std::uint32_t depth;
  bool latency;
};
constexpr std::uint64_t kMiB = 1 << 20;
constexpr Row kRows[] = {
    {"send", 1, 64, 64, true},
    {"write", 2, kMiB, 16, false},
    {"read", 3, kMiB, 16, true},
    {"rpc-null", 10, 0, 16, true},
    {"rpc-read", 11, kMiB, 8, true},
    {"rpc-write", 12, kMiB, 8, true},
    {"tcp", 20, 0, 1, false},
    {"tcp-lat", 21, 64, 1, true},
    {"tcp-batch", 22, 64, 64, false},
    {"tcp-file-read", 23, kMiB, 1, false},
    {"tcp-file-write", 24, kMiB, 1, false},
};

TEST(PerfOptions, EveryOpHasItsNumberAndItsDefaults) {
  std::vector<std::string> names;
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.name);
    names.emplace_back(row.name);
    const auto op = op_from_name(row.name);
    ASSERT_TRUE(op);
    EXPECT_EQ(std::uint16_t(*op), row.number);
    EXPECT_EQ(op_from_number(row.number), op);
    EXPECT_EQ(has_latency(*op), row.latency);
    PerfOptions options;
    options.op = *op;
    EXPECT_EQ(effective_size(options), row.size);
    EXPECT_EQ(effective_depth(options), row.depth);
    options.size = 3;
    options.depth = 5;
    EXPECT_EQ(effective_size(options), 3u);
    EXPECT_EQ(effective_depth(options), 5u);
    options.lat = true;
    EXPECT_EQ(effective_depth(options), 1u);
    EXPECT_EQ(is_rdma(*op), row.number < 10);
    EXPECT_EQ(is_rpc(*op), row.number >= 10 && row.number < 20);
    EXPECT_EQ(is_tcp(*op), row.number >= 20);
  }
  EXPECT_EQ(op_names(), names);
  for (std::uint16_t number = 0; number < 100; ++number) {
    const bool is_known = std::ranges::find(kRows, number, &Row::number) != std::end(kRows);
    EXPECT_EQ(op_from_number(number).has_value(), is_known) << number;
  }
}

TEST(PerfOptions, WithoutOptionsItWritesForThreeSeconds) {
  const PerfOptions options;
  EXPECT_EQ(op_name(options.op), "write");
  EXPECT_EQ(options.seconds, 3.0);
  EXPECT_EQ(options.tcp_port, 0);
  EXPECT_FALSE(options.lat || options.json);
}

TEST(PerfOptions, AListenerIsMorePatientThanItsClients) {
  PerfOptions options;
  EXPECT_EQ(patience(options), seconds(10));
  options.listen = "127.0.0.1:0";
  EXPECT_EQ(patience(options), seconds(30));
  options.timeout = milliseconds(1);
  EXPECT_EQ(patience(options), milliseconds(1));
  options.listen.clear();
  EXPECT_EQ(patience(options), milliseconds(1));
}

}  // namespace
}  // namespace weft::apps::perf
