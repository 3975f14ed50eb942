#include "rpcrdma/private_data.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "rpcrdma/testing/vectors.h"

namespace weft::rpcrdma {
namespace {

using Octets = std::vector<std::uint8_t>;

TEST(PrivateData, EveryVector) {
  RecordProperty("proves", "R1-4.3.2-04 R1-4.3.2-05 R1-4.3.2-06 R1-4.3.2-07 R1-4.3.2-10 R1-4.3.2-11 R1-4.3.2-12");
  const std::map<std::string, PrivateData> expected{{"P01", {true, 4096, 4096}},
                                                    {"P02", {false, 4096, 4096}},
                                                    {"P03", {}},
                                                    {"P04", {true, 262144, 262144}},
                                                    {"P05", {true, 8192, 65536}},
                                                    {"P06", {true, 4096, 4096}},
                                                    {"P07", {false, 2048, 4096}},
                                                    {"P08", {}},
                                                    {"P09", {}},
                                                    {"P10", {false, 4096, 4096}}};
  const auto vectors = testing::load_vectors('P');
  ASSERT_EQ(vectors.size(), 10u);
  for (const auto& vector : vectors) {
    EXPECT_EQ(parse_private_data(vector.octets), expected.at(vector.id)) << vector.id;
    if (vector.id <= "P05") {
      const auto octets = emit_private_data(expected.at(vector.id));
      EXPECT_EQ(Octets(octets.begin(), octets.end()), vector.octets) << vector.id;
    }
  }
}

TEST(PrivateData, NothingAndEveryTruncationMeanTheDefaults) {
  const Octets octets = testing::load_vector("P01").octets;
  for (std::size_t len = 0; len < octets.size(); ++len) {
    const Octets cut(octets.begin(), octets.begin() + static_cast<std::ptrdiff_t>(len));
    EXPECT_EQ(parse_private_data(cut), PrivateData{}) << len;
  }
}

TEST(PrivateData, SizesAreRoundedDown) {
  EXPECT_EQ(emit_private_data({false, 4095, 5000})[6], 2);
  EXPECT_EQ(emit_private_data({false, 4095, 5000})[7], 3);
}

}  // namespace
}  // namespace weft::rpcrdma
