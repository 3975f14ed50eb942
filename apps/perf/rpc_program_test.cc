#include "apps/perf/rpc_program.h"

#include <gtest/gtest.h>

#include <optional>
#include <span>
#include <vector>

#include "rpcrdma/xdr/xdr.h"

namespace weft::apps::perf {
namespace {

std::vector<std::uint8_t> word(std::uint32_t value) {
  std::vector<std::uint8_t> octets;
  rpcrdma::xdr::XdrWriter(octets).u32(value);
  return octets;
}

using rpcrdma::Walked;

TEST(PerfBinding, OnlyWriteHasAnEligibleArgument) {
  const rpcrdma::Binding& binding = perf_binding();
  std::vector<rpcrdma::EligibleItem> items;
  const std::size_t behind_count = 4;
  EXPECT_EQ(binding.walk_arguments(kProcWrite, word(1 << 20), std::span(&behind_count, 1), items), Walked::kWhole);
  ASSERT_EQ(items.size(), 1u);
  EXPECT_EQ(items[0].offset, 4u);
  EXPECT_EQ(items[0].len, 1u << 20);
  EXPECT_EQ(binding.walk_arguments(kProcWrite, {}, {}, items), Walked::kGarbage);
  EXPECT_EQ(binding.walk_arguments(kProcRead, word(7), {}, items), Walked::kWhole);
  EXPECT_TRUE(items.empty());
}

TEST(PerfBinding, OnlyReadHasAnEligibleResult) {
  const rpcrdma::Binding& binding = perf_binding();
  std::vector<std::optional<rpcrdma::EligibleItem>> items;
  const std::uint32_t brought = 9;
  EXPECT_EQ(binding.walk_results(kProcRead, word(9), std::span(&brought, 1), items), Walked::kWhole);
  ASSERT_EQ(items.size(), 1u);
  EXPECT_EQ(items[0]->offset, 4u);
  EXPECT_EQ(binding.walk_results(kProcWrite, word(9), {}, items), Walked::kWhole);
  EXPECT_TRUE(items.empty());
}

TEST(PerfBinding, BoundsEveryReply) {
  const std::size_t behind_count = 4;
  EXPECT_EQ(perf_binding().max_results(kProcNull, {}), 0u);
  EXPECT_EQ(perf_binding().max_results(kProcRead, word(1)), 4u);
  EXPECT_EQ(perf_binding().max_results(kProcWrite, word(1), std::span(&behind_count, 1)), 4u);
}

}  // namespace
}  // namespace weft::apps::perf
