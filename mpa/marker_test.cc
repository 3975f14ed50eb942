#include "mpa/marker.h"

#include <gtest/gtest.h>

#include "mpa/fpdu.h"
#include "mpa/testing/naive_framer.h"

namespace weft::mpa {
namespace {

// A walk along the wire, octet by octet, agrees with the formulas, for every position at which an FPDU can begin and
// for lengths up to several Markers.
TEST(MarkerLayout, AgreesWithAWalkAlongTheWire) {
  for (std::size_t begin = 0; begin < kMarkerSpacing; begin += 4) {
    const MarkerLayout layout = MarkerLayout::at(begin);
    std::size_t bare = 0, markers = 0;
    for (std::size_t at = 0; at < 3000; ++at) {
      const std::size_t within = (begin + at) % kMarkerSpacing;
      const bool is_marker = within < kMarkerLen;
      ASSERT_EQ(layout.bare_len(at), bare);
      ASSERT_EQ(layout.num_within(at), markers);
      const auto run = layout.run_at(at);
      ASSERT_EQ(run.is_marker, is_marker);
      ASSERT_EQ(run.len, (is_marker ? kMarkerLen : kMarkerSpacing) - within);
      if (is_marker) {
        ASSERT_EQ(run.marker, markers);
        ASSERT_EQ(run.within, within);
        if (within == 0) {
          ASSERT_EQ(layout.marker_offset(markers), at);
        }
        if (within + 1 == kMarkerLen) ++markers;
      } else {
        ASSERT_EQ(layout.num_before(bare), markers);
        ASSERT_EQ(layout.stream_offset(bare), at);
        ASSERT_EQ(layout.stream_len(bare + 1), at + 1);
        ASSERT_EQ(layout.run_len(bare), run.len);
        ++bare;
      }
    }
  }
}

TEST(MarkerLayout, FpduptrLeadsBackToTheLength) {
  for (std::size_t begin = 0; begin < kMarkerSpacing; begin += 4) {
    const MarkerLayout layout = MarkerLayout::at(begin);
    const std::size_t length_at = layout.stream_offset(0);
    for (std::size_t i = 0; i < 5; ++i) {
      const std::size_t marker_at = layout.marker_offset(i);
      ASSERT_EQ((begin + marker_at) % kMarkerSpacing, 0u);
      ASSERT_EQ(layout.fpduptr(i), marker_at < length_at ? 0 : marker_at - length_at);
    }
  }
}

TEST(MarkerLayout, WithoutMarkersNothingInterrupts) {
  const MarkerLayout layout;
  EXPECT_EQ(layout.num_before(70000), 0u);
  EXPECT_EQ(layout.stream_len(70000), 70000u);
  EXPECT_EQ(layout.bare_len(70000), 70000u);
  EXPECT_EQ(layout.num_within(70000), 0u);
  EXPECT_GE(layout.run_len(1), 70000u);
  EXPECT_FALSE(layout.run_at(0).is_marker);
}

// Only the position modulo 512 counts, however long the half connection has lasted.
TEST(MarkerLayout, PositionsBeyondFourGigabytes) {
  for (const std::uint64_t base : {std::uint64_t{1} << 32, (std::uint64_t{1} << 40) + 512}) {
    EXPECT_EQ(MarkerLayout::at(base + 100).marker_offset(0), 412u);
    EXPECT_EQ(MarkerLayout::at(base).fpduptr(0), 0u);
  }
}

}  // namespace
}  // namespace weft::mpa
