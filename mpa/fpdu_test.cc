#include "mpa/fpdu.h"

#include <gtest/gtest.h>

namespace weft::mpa {
namespace {

TEST(Fpdu, PadAndLength) {
  const std::size_t pad_of[4] = {2, 1, 0, 3};  // by the ULPDU's length modulo 4
  for (std::size_t len = 1; len <= kMaxUlpduLength; ++len) {
    ASSERT_EQ(pad_len(len), pad_of[len % 4]);
    ASSERT_EQ(fpdu_len(len), 2 + len + pad_of[len % 4] + 4);
    ASSERT_EQ(fpdu_len(len) % 4, 0u);
  }
  EXPECT_EQ(fpdu_len(1), 8u);
  EXPECT_EQ(fpdu_len(kMaxUlpduLength), 65544u);
}

// The table at the head of mpa-vectors.txt.
TEST(Fpdu, MulpduTable) {
  RecordProperty("proves", "MPA-4.5-01 MPA-4.5-02 MPA-4.5-03 MPA-4.5-08");
  struct Row {
    std::size_t emss;
    std::size_t with_markers;
    std::size_t without;
  };
  constexpr Row kRows[] = {{100, 128, 128},       {128, 128, 128},       {146, 134, 138},      {512, 502, 506},
                           {513, 498, 506},       {514, 498, 506},       {515, 498, 506},      {536, 522, 530},
                           {1220, 1202, 1214},    {1428, 1410, 1422},    {1440, 1422, 1434},   {1448, 1430, 1442},
                           {1460, 1442, 1454},    {4312, 4270, 4306},    {8948, 8870, 8942},   {8960, 8882, 8954},
                           {16332, 16198, 16326}, {65483, 64768, 64768}, {65495, 64768, 64768}};
  for (const Row& row : kRows) {
    EXPECT_EQ(mulpdu(row.emss, true), row.with_markers) << row.emss;
    EXPECT_EQ(mulpdu(row.emss, false), row.without) << row.emss;
  }
  EXPECT_EQ(mulpdu(0, true), 128u);
  EXPECT_EQ(mulpdu(0, false), 128u);
  EXPECT_EQ(mulpdu(88, false), 128u);
}

TEST(Fpdu, TheLargestUlpduFillsTheSegmentAndNoMore) {
  for (std::size_t emss = 140; emss < 9100; ++emss) {
    const std::size_t len = mulpdu(emss, false);
    ASSERT_LE(fpdu_len(len), emss);
    ASSERT_GT(fpdu_len(len + 1), emss);
  }
}

}  // namespace
}  // namespace weft::mpa
