// FpduWriter with Markers, against a framer that knows one rule only: at every 512th octet of the stream stands a
// Marker.
#include <gtest/gtest.h>

#include <random>

#include "mpa/crc32c.h"
#include "mpa/fpdu_writer.h"
#include "mpa/testing/octets_of.h"

namespace weft::mpa {
namespace {

using Octets = std::vector<std::uint8_t>;
using testing::joined;

void put_u16(Octets& out, std::size_t value) {
  out.push_back(static_cast<std::uint8_t>(value >> 8));
  out.push_back(static_cast<std::uint8_t>(value));
}

// Appends the FPDU of a ULPDU to a stream of which the first octet is octet `origin` of Full Operation.
void plain_append(Octets& stream, const Octets& ulpdu, bool crc, std::uint64_t origin = 0) {
  const std::size_t begin = stream.size();
  std::size_t ulpdu_length_at = begin;
  const auto marker_due = [&] { return (origin + stream.size()) % 512 == 0; };
  if (marker_due()) {
    stream.insert(stream.end(), 4, 0);
    ulpdu_length_at += 4;
  }
  Octets bare;
  put_u16(bare, ulpdu.size());
  bare.insert(bare.end(), ulpdu.begin(), ulpdu.end());
  while (bare.size() % 4 != 0) bare.push_back(0);
  const auto marker = [&] {
    const std::size_t fpduptr = stream.size() - ulpdu_length_at;
    put_u16(stream, 0);
    put_u16(stream, fpduptr);
  };
  for (const std::uint8_t octet : bare) {
    if (marker_due() && stream.size() != ulpdu_length_at) marker();
    stream.push_back(octet);
  }
  if (marker_due()) marker();
  const std::uint32_t value = crc ? crc32c(ConstBytes(stream).subspan(begin)) : 0;
  for (int shift = 0; shift < 32; shift += 8) stream.push_back(static_cast<std::uint8_t>(value >> shift));
}

Octets noise(std::size_t len, std::mt19937& random) {
  Octets octets(len);
  for (auto& octet : octets) octet = static_cast<std::uint8_t>(random());
  return octets;
}

bool add(FpduWriter& writer, const Octets& ulpdu, std::mt19937& random) {
  const std::size_t head = std::min<std::size_t>(ulpdu.size(), 14);
  const ConstBytes payload = ConstBytes(ulpdu).subspan(head);
  const std::size_t cut = payload.empty() ? 0 : random() % payload.size();
  const ConstBytes pieces[2] = {payload.first(cut), payload.subspan(cut)};
  return writer.add(ConstBytes(ulpdu).first(head), pieces, random() % 2 == 0);
}

TEST(FpduWriterMarkers, EveryLengthAtEveryPlaceInTheStream) {
  RecordProperty("proves", "MPA-4.2-05 MPA-4.3-04");
  std::mt19937 random(1);
  for (const bool crc : {true, false}) {
    for (std::uint64_t position = 0; position < 512; position += 4) {
      for (const std::size_t len : {1u, 2u, 3u, 14u, 18u, 500u, 504u, 505u, 506u, 507u, 508u, 1016u, 1500u}) {
        const Octets ulpdu = noise(len, random);
        Octets want;
        plain_append(want, ulpdu, crc, position);
        FpduWriter writer(crc, true, position);
        EXPECT_EQ(writer.next_fpdu_len(len), want.size());
        ASSERT_TRUE(add(writer, ulpdu, random));
        ASSERT_EQ(joined(writer), want) << len << " octets at " << position;
      }
    }
  }
}

// The sent octets are one stream. They depend neither on how much of each batch the socket takes, nor on how often
// FPDUs are framed again.
TEST(FpduWriterMarkers, ThePositionSurvivesBatchesAndRewinds) {
  RecordProperty("proves", "MPA-4.3-04 MPA-4.3-11 MPA-A.1-01");
  for (unsigned seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    std::vector<Octets> ulpdus;
    for (int i = 0; i < 40; ++i) ulpdus.push_back(noise(1 + random() % (seed % 2 == 0 ? 40 : 1200), random));
    Octets want;
    for (const Octets& ulpdu : ulpdus) plain_append(want, ulpdu, true);

    FpduWriter writer(true, true);
    Octets sent;
    std::size_t next = 0;
    while (next < ulpdus.size() || writer.pending_octets() > 0) {
      const std::size_t num = random() % 6;
      for (std::size_t i = 0; i < num && next + i < ulpdus.size(); ++i)
        ASSERT_TRUE(add(writer, ulpdus[next + i], random));
      const Octets batch = joined(writer);
      const std::size_t n = random() % 3 == 0 ? batch.size() : random() % (batch.size() + 1);
      sent.insert(sent.end(), batch.begin(), batch.begin() + static_cast<std::ptrdiff_t>(n));
      next += writer.on_tx(n);
    }
    ASSERT_EQ(sent, want);
  }
}

TEST(FpduWriterMarkers, CountersPastFourGibioctets) {
  RecordProperty("proves", "MPA-4.3-10");
  std::mt19937 random(3);
  const std::uint64_t origin = 0xffffff00;
  FpduWriter writer(true, true, origin);
  Octets want;
  for (int i = 0; i < 10; ++i) {
    const Octets ulpdu = noise(100, random);
    plain_append(want, ulpdu, true, origin);
    ASSERT_TRUE(add(writer, ulpdu, random));
  }
  EXPECT_EQ(joined(writer), want);
  EXPECT_EQ(Octets(want.begin() + 256, want.begin() + 258), (Octets{0, 0}));
  // The worked example of the RFC, section 4.3: Markers at 11, 523 and 1035 of a stream that starts at 11.
  const MarkerLayout first = MarkerLayout::at(0);
  EXPECT_EQ(11 + first.marker_offset(0), 11u);
  EXPECT_EQ(11 + first.marker_offset(1), 523u);
  EXPECT_EQ(11 + first.marker_offset(2), 1035u);
  EXPECT_EQ(static_cast<std::uint32_t>(0xffffff00 + first.marker_offset(1)), 0x00000100u);
  EXPECT_EQ(first.fpduptr(0), 0);
}

TEST(FpduWriterMarkers, NothingOfTheCallersMemoryIsNamed) {
  std::mt19937 random(4);
  Octets ulpdu = noise(60000, random);
  Octets want;
  plain_append(want, ulpdu, true);
  FpduWriter writer(true, true);
  ASSERT_TRUE(add(writer, ulpdu, random));
  EXPECT_EQ(writer.buffers().size(), 1u);
  std::fill(ulpdu.begin(), ulpdu.end(), std::uint8_t{0});
  EXPECT_EQ(joined(writer), want);
}

TEST(FpduWriterMarkers, ABatchIsBoundedWithItsMarkers) {
  std::mt19937 random(5);
  const Octets ulpdu = noise(64000, random);
  FpduWriter writer(true, true);
  std::size_t num_added = 0;
  while (add(writer, ulpdu, random)) ++num_added;
  EXPECT_EQ(num_added, 16u);
  EXPECT_LE(writer.pending_octets(), FpduWriter::kMaxBatchLen);
}

// MPA-4.5-01 with Markers: wherever in the stream it begins.
TEST(FpduWriterMarkers, TheLargestUlpduFitsTheSegmentWhereverItStarts) {
  RecordProperty("proves", "MPA-4.5-01 MPA-4.5-02 MPA-4.5-03 MPA-5.1-01");
  for (std::size_t emss = 146; emss <= 3000; ++emss) {
    ASSERT_LE(fpdu_len(mulpdu(emss, false)), emss);
    const std::size_t len = fpdu_len(mulpdu(emss, true));
    std::size_t longest = 0;
    for (std::uint64_t position = 0; position < 512; position += 4)
      longest = std::max(longest, MarkerLayout::at(position).stream_len(len));
    ASSERT_LE(longest, emss) << emss;
  }
}

}  // namespace
}  // namespace weft::mpa
