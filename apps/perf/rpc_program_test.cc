#include "apps/perf/rpc_program.h"

#include <gtest/gtest.h>

#include <vector>

#include "rpcrdma/xdr/xdr.h"

namespace weft::apps::perf {
namespace {

std::vector<std::uint8_t> word(std::uint32_t value) {
  std::vector<std::uint8_t> octets;
  rpcrdma::xdr::XdrWriter(octets).u32(value);
  return octets;
}

TEST(PerfBinding, OnlyWriteHasAnEligibleArgument) {
  const rpcrdma::Binding& binding = perf_binding();
  auto place = binding.find_argument(kProcWrite, word(1 << 20));
  ASSERT_TRUE(place);
  EXPECT_EQ(place->position, 4u);
  EXPECT_EQ(place->len, 1u << 20);
  EXPECT_FALSE(binding.find_argument(kProcRead, word(7)));
  EXPECT_FALSE(binding.find_argument(kProcNull, {}));
  EXPECT_FALSE(binding.find_argument(kProcWrite, {}));
}

TEST(PerfBinding, OnlyReadHasAnEligibleResult) {
  EXPECT_TRUE(perf_binding().has_eligible_result(kProcRead));
  EXPECT_FALSE(perf_binding().has_eligible_result(kProcWrite));
  EXPECT_FALSE(perf_binding().has_eligible_result(kProcNull));
}

TEST(PerfBinding, BoundsEveryReply) {
  EXPECT_EQ(perf_binding().max_results(kProcNull, {}), 0u);
  EXPECT_EQ(perf_binding().max_results(kProcRead, word(1)), 4u);
  EXPECT_EQ(perf_binding().max_results(kProcWrite, word(1)), 4u);
  EXPECT_FALSE(perf_binding().max_results(3, {}));
}

}  // namespace
}  // namespace weft::apps::perf
