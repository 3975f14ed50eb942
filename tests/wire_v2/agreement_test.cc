// The codec of the engines and the decoder find the same in every message: the vectors, cut and spoiled ones.
#include "tests/wire_v2/agreement.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/vectors/vector_file.h"

namespace weft::wire_v2 {
namespace {

constexpr Profile kProfiles[] = {Profile::kCel05, Profile::kWg07};

std::vector<std::pair<std::string, Bytes>> all_vectors() {
  std::vector<std::pair<std::string, Bytes>> all;
  for (const auto& vector : vectors::read_vector_file("tests/vectors/rpcrdma2-vectors.txt")) {
    all.emplace_back(vector.name, vectors::from_hex(vector.find("hex").value()));
  }
  return all;
}

void expect_agreement(const std::string& id, Octets octets) {
  for (const Profile profile : kProfiles) {
    EXPECT_EQ(disagreement(octets, profile), "")
        << id << " " << ::testing::PrintToString(Bytes(octets.begin(), octets.end()));
  }
}

TEST(WireV2Agreement, OverEveryVector) {
  const auto all = all_vectors();
  EXPECT_EQ(all.size(), 98u);
  for (const auto& [id, octets] : all) expect_agreement(id, octets);
}

TEST(WireV2Agreement, OverEveryCutOfAVector) {
  for (const auto& [id, octets] : all_vectors()) {
    const std::size_t most = std::min<std::size_t>(octets.size(), 400);
    for (std::size_t len = 0; len < most; ++len) {
      expect_agreement(id + " cut at " + std::to_string(len), Octets(octets).first(len));
    }
  }
}

// One or two words have another value: one that lies at an edge, or any.
TEST(WireV2Agreement, OverSpoiledVectors) {
  constexpr std::uint32_t kEdges[] = {0, 1, 2, 3, 4, 5, 9, 13, 100, 0x7fffffff, 0x80000000, 0xffffffff};
  std::mt19937 random(std::mt19937::default_seed);
  for (const auto& [id, whole] : all_vectors()) {
    const std::size_t num_words = std::min<std::size_t>(whole.size(), 400) / 4;
    if (num_words == 0) continue;
    for (int i = 0; i < 100; ++i) {
      Bytes octets = whole;
      for (int num = i % 2; num >= 0; --num) {
        const std::uint32_t word =
            random() % 4 == 0 ? static_cast<std::uint32_t>(random()) : kEdges[random() % std::size(kEdges)];
        const std::size_t at = random() % num_words * 4;
        for (std::size_t j = 0; j < 4; ++j) octets[at + j] = static_cast<std::uint8_t>(word >> (24 - 8 * j));
      }
      expect_agreement(id + " spoiled " + std::to_string(i), octets);
    }
  }
}

}  // namespace
}  // namespace weft::wire_v2
