#include "ddp/segmenter.h"

#include <gtest/gtest.h>

#include <vector>

namespace weft::ddp {
namespace {

TEST(Segmenter, ExamplesOfRfc5041Section52) {
  RecordProperty("proves", "DDP-5.2-07 DDP-5.2-10 MPA-3-03 MPA-4.5-06");
  UntaggedSegmenter untagged({.rsvd_ulp = 0x43, .msn = {9}}, 2048);
  const auto first = untagged.next(1500);
  EXPECT_EQ(first.header, (UntaggedHeader{.last = false, .rsvd_ulp = 0x43, .msn = {9}, .mo = 0}));
  EXPECT_EQ(first.cut.len, 1482u);
  EXPECT_FALSE(untagged.done());
  const auto second = untagged.next(1500);
  EXPECT_EQ(second.header, (UntaggedHeader{.last = true, .rsvd_ulp = 0x43, .msn = {9}, .mo = 1482}));
  EXPECT_EQ(second.cut.offset, 1482u);
  EXPECT_EQ(second.cut.len, 566u);
  EXPECT_TRUE(untagged.done());

  TaggedSegmenter tagged({.rsvd_ulp = 0x40, .stag = {5}, .to = 16384}, 2048);
  EXPECT_EQ(tagged.next(1500).header, (TaggedHeader{.last = false, .rsvd_ulp = 0x40, .stag = {5}, .to = 16384}));
  const auto tail = tagged.next(1500);
  EXPECT_EQ(tail.header, (TaggedHeader{.last = true, .rsvd_ulp = 0x40, .stag = {5}, .to = 17870}));
  EXPECT_EQ(tail.cut.len, 562u);
  EXPECT_TRUE(tail.cut.last);
  EXPECT_TRUE(tagged.done());
}

TEST(Segmenter, AMessageOfNoOctetsIsOneSegment) {
  TaggedSegmenter segmenter({}, 0);
  EXPECT_FALSE(segmenter.done());
  const auto piece = segmenter.next(128);
  EXPECT_TRUE(piece.header.last);
  EXPECT_EQ(piece.cut.len, 0u);
  EXPECT_TRUE(segmenter.done());
  EXPECT_TRUE(TaggedSegmenter().done());
}

TEST(Segmenter, TheMulpduMayChangeBetweenSegments) {
  RecordProperty("proves", "MPA-4.5-04 MPA-4.5-07");
  for (std::uint32_t len = 0; len < 1200; ++len) {
    UntaggedSegmenter segmenter({}, len);
    std::uint32_t at = 0;
    std::size_t mulpdu = 128;
    while (!segmenter.done()) {
      const auto piece = segmenter.next(mulpdu);
      ASSERT_EQ(piece.cut.offset, at);
      ASSERT_EQ(piece.header.mo, at);
      ASSERT_LE(piece.cut.len + kUntaggedHeaderLen, mulpdu);
      ASSERT_EQ(piece.header.last, piece.cut.last);
      at += piece.cut.len;
      mulpdu += 41;
    }
    ASSERT_EQ(at, len);
  }
}

TEST(Segmenter, ACopyIsABookmark) {
  TaggedSegmenter segmenter({.to = 1000}, 300);
  segmenter.next(128);
  const TaggedSegmenter bookmark = segmenter;
  const auto once = segmenter.next(128);
  while (!segmenter.done()) segmenter.next(128);
  segmenter = bookmark;
  const auto again = segmenter.next(128);
  EXPECT_EQ(again.header, once.header);
  EXPECT_EQ(again.cut.offset, once.cut.offset);
}

TEST(Segmenter, TheLongestMessage) {
  TaggedSegmenter segmenter({.to = 1}, UINT32_MAX);
  std::uint64_t sum = 0;
  TaggedHeader last;
  while (!segmenter.done()) {
    const auto piece = segmenter.next(64768);
    sum += piece.cut.len;
    last = piece.header;
  }
  EXPECT_EQ(sum, UINT32_MAX);
  EXPECT_EQ(segmenter.offset(), UINT32_MAX);
  EXPECT_TRUE(last.last);
}

}  // namespace
}  // namespace weft::ddp
