#include "mpa/fpdu_writer.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "mpa/crc32c.h"
#include "mpa/testing/octets_of.h"

namespace weft::mpa {
namespace {

using Octets = std::vector<std::uint8_t>;
using testing::joined;

Octets noise(std::size_t len, unsigned seed) {
  std::mt19937 random(seed);
  Octets octets(len);
  for (auto& octet : octets) octet = static_cast<std::uint8_t>(random());
  return octets;
}

// The FPDU of a ULPDU, put together the plain way.
Octets plain_fpdu(const Octets& ulpdu, bool crc) {
  Octets out = {static_cast<std::uint8_t>(ulpdu.size() >> 8), static_cast<std::uint8_t>(ulpdu.size())};
  out.insert(out.end(), ulpdu.begin(), ulpdu.end());
  while (out.size() % 4 != 0) out.push_back(0);
  const std::uint32_t value = crc ? crc32c(out) : 0;
  for (int shift = 0; shift < 32; shift += 8) out.push_back(static_cast<std::uint8_t>(value >> shift));
  return out;
}

// A message to send, and how.
struct Item {
  Octets header;
  Octets payload;
  std::vector<std::size_t> cuts;  // where the payload is split into pieces
  bool copy = false;

  std::vector<ConstBytes> pieces() const {
    std::vector<ConstBytes> views;
    std::size_t at = 0;
    for (const std::size_t cut : cuts) {
      views.push_back(ConstBytes(payload).subspan(at, cut - at));
      at = cut;
    }
    views.push_back(ConstBytes(payload).subspan(at));
    return views;
  }
  Octets fpdu(bool crc) const {
    Octets ulpdu = header;
    ulpdu.insert(ulpdu.end(), payload.begin(), payload.end());
    return plain_fpdu(ulpdu, crc);
  }
};

Item item(std::size_t payload_len, std::vector<std::size_t> cuts = {}, bool copy = false) {
  return {noise(14, 1), noise(payload_len, static_cast<unsigned>(payload_len)), std::move(cuts), copy};
}

bool add(FpduWriter& writer, const Item& what) {
  return writer.add(what.header, what.pieces(), what.copy);
}

TEST(FpduWriter, EveryWayOfSendingGivesTheSameOctets) {
  RecordProperty("proves", "MPA-3-01 MPA-4.1-01 MPA-4.1-03 MPA-4.1-05 MPA-4.4-12 MPA-4.4-18");
  for (const bool crc : {true, false}) {
    for (const std::size_t len : {0u, 1u, 2u, 3u, 4u, 64u, 250u, 508u, 8191u, 8192u, 8193u, 8194u, 8195u, 64754u}) {
      for (const bool copy : {false, true}) {
        const Item whole = item(len, {}, copy);
        const Item cut = item(len, {len / 3, len / 3, len / 2}, copy);
        FpduWriter writer(crc);
        ASSERT_TRUE(add(writer, whole));
        EXPECT_EQ(joined(writer), whole.fpdu(crc)) << len;
        writer.on_tx(writer.pending_octets());
        ASSERT_TRUE(add(writer, cut));
        EXPECT_EQ(joined(writer), cut.fpdu(crc)) << len;
      }
    }
  }
}

TEST(FpduWriter, LargeFpdusCostTwoBuffersAndARunOfSmallOnesOne) {
  FpduWriter writer(true);
  const Item small = item(64);
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(add(writer, small));
  EXPECT_EQ(writer.buffers().size(), 1u);
  writer.on_tx(writer.pending_octets());

  const Item large = item(60000);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(add(writer, large));
  EXPECT_EQ(writer.buffers().size(), 21u);  // head | payload | tail and head | ... | tail
  EXPECT_EQ(writer.buffers()[1].data(), large.payload.data());
}

TEST(FpduWriter, CopiedPayloadMayChangeAfterwards) {
  Item what = item(20000, {}, true);
  const Octets want = what.fpdu(true);
  FpduWriter writer(true);
  ASSERT_TRUE(add(writer, what));
  std::fill(what.payload.begin(), what.payload.end(), std::uint8_t{0});
  EXPECT_EQ(joined(writer), want);
}

TEST(FpduWriter, ABatchIsBoundedInOctetsAndInBuffers) {
  FpduWriter writer(true);
  const Item large = item(64000);
  std::size_t num_added = 0;
  while (add(writer, large)) ++num_added;
  EXPECT_EQ(num_added, 16u);
  EXPECT_LE(writer.pending_octets(), FpduWriter::kMaxBatchLen);
  EXPECT_EQ(writer.on_tx(writer.pending_octets()), num_added);

  std::vector<std::size_t> cuts;
  for (std::size_t at = 20; at < 9000; at += 20) cuts.push_back(at);
  const Item many_pieces = item(9000, cuts);
  Octets want;
  for (num_added = 0; add(writer, many_pieces); ++num_added) {
    const Octets fpdu = many_pieces.fpdu(true);
    want.insert(want.end(), fpdu.begin(), fpdu.end());
  }
  EXPECT_EQ(num_added, 2u);
  EXPECT_LE(writer.buffers().size(), FpduWriter::kMaxBuffers);
  EXPECT_EQ(joined(writer), want);
  writer.on_tx(writer.pending_octets());

  // One that no sendmsg takes as it is gets copied: an empty batch never refuses.
  std::vector<std::size_t> too_many;
  for (std::size_t at = 5; at < 9000; at += 5) too_many.push_back(at);
  const Item finest = item(9000, too_many);
  ASSERT_TRUE(add(writer, finest));
  EXPECT_EQ(writer.buffers().size(), 1u);
  EXPECT_EQ(joined(writer), finest.fpdu(true));
}

// The batch of the partial-send tests: small and large, copied and gathered, every pad.
std::vector<Item> mixed_batch() {
  return {item(1), item(50), item(8193, {100, 8000}), item(0), item(300, {}, true), item(8194)};
}

TEST(FpduWriter, APartialSendAtEveryOctet) {
  RecordProperty("proves", "MPA-A.1-01");
  const std::vector<Item> items = mixed_batch();
  Octets want;
  std::vector<std::size_t> begins;
  for (const Item& what : items) {
    begins.push_back(want.size());
    const Octets fpdu = what.fpdu(true);
    want.insert(want.end(), fpdu.begin(), fpdu.end());
  }
  FpduWriter writer(true);
  for (std::size_t n = 0; n <= want.size(); ++n) {
    for (const Item& what : items) ASSERT_TRUE(add(writer, what));
    const Octets first = joined(writer);
    ASSERT_EQ(first, want);
    Octets sent(first.begin(), first.begin() + static_cast<std::ptrdiff_t>(n));
    const std::size_t num_begun = writer.on_tx(n);
    std::size_t num_want = 0;
    while (num_want < begins.size() && begins[num_want] < n) ++num_want;
    ASSERT_EQ(num_begun, num_want) << n;
    const std::size_t end = num_begun < begins.size() ? begins[num_begun] : want.size();
    ASSERT_EQ(writer.pending_octets(), end - n) << n;
    // The caller goes back to the first FPDU not begun; the rest of the cut one comes before it.
    for (std::size_t i = num_begun; i < items.size(); ++i) ASSERT_TRUE(add(writer, items[i]));
    const Octets second = joined(writer);
    sent.insert(sent.end(), second.begin(), second.end());
    ASSERT_EQ(sent, want) << n;
    ASSERT_EQ(writer.on_tx(writer.pending_octets()), items.size() - num_begun);
    ASSERT_EQ(writer.pending_octets(), 0u);
  }
}

TEST(FpduWriter, AfterAPartialSendNoViewOfCallerMemoryIsKept) {
  Item what = item(30000);
  const Octets want = what.fpdu(true);
  FpduWriter writer(true);
  ASSERT_TRUE(add(writer, what));
  writer.buffers();
  EXPECT_EQ(writer.on_tx(100), 1u);
  what.payload.assign(what.payload.size(), 0);
  EXPECT_EQ(joined(writer), Octets(want.begin() + 100, want.end()));
}

TEST(FpduWriter, TheRestOfACutFpduGoesOutInAnyNumberOfPieces) {
  const Item what = item(9001);
  const Item next = item(77);
  Octets want = what.fpdu(true);
  FpduWriter writer(true);
  ASSERT_TRUE(add(writer, what));
  Octets sent;
  bool added = true;
  std::size_t num_begun = 0;
  const Octets next_fpdu = next.fpdu(true);
  want.insert(want.end(), next_fpdu.begin(), next_fpdu.end());
  for (std::size_t turn = 0; writer.pending_octets() != 0; ++turn) {
    ASSERT_LT(turn, want.size());
    const Octets all = joined(writer);
    const std::size_t n = std::min<std::size_t>(all.size(), 97);
    sent.insert(sent.end(), all.begin(), all.begin() + static_cast<std::ptrdiff_t>(n));
    num_begun += writer.on_tx(n);
    added = num_begun < 2 && add(writer, next);  // offered again until an octet of it went out
  }
  EXPECT_FALSE(added);
  EXPECT_EQ(num_begun, 2u);
  EXPECT_EQ(sent, want);
}

TEST(FpduWriter, TrimKeepsWhatIsPending) {
  FpduWriter writer(true);
  const Item what = item(5000);
  ASSERT_TRUE(add(writer, what));
  writer.trim();
  EXPECT_EQ(joined(writer), what.fpdu(true));
  writer.on_tx(10);
  writer.trim();
  EXPECT_EQ(writer.pending_octets(), what.fpdu(true).size() - 10);
  writer.on_tx(writer.pending_octets());
  writer.trim();
  EXPECT_EQ(writer.buffers().size(), 0u);
  ASSERT_TRUE(add(writer, what));
  EXPECT_EQ(joined(writer), what.fpdu(true));
}

// As the connections of a worker do: one batch after another, each cut somewhere, in the memory of one room.
TEST(FpduWriter, WritersTakeTurnsInOneRoom) {
  FramingRoom room;
  FpduWriter one(true, false, 0, &room), two(true, false, 0, &room);
  struct End {
    FpduWriter& writer;
    Octets sent, want;
    Item next;
  };
  End ends[] = {{one, {}, {}, item(100)}, {two, {}, {}, item(20000)}};
  for (std::size_t turn = 0; turn < 200; ++turn) {
    End& end = ends[turn % 2];
    const bool is_added = add(end.writer, end.next);
    ASSERT_TRUE(is_added);
    const Octets all = joined(end.writer);
    const std::size_t n = all.size() * (turn % 7) / 6;
    end.sent.insert(end.sent.end(), all.begin(), all.begin() + static_cast<std::ptrdiff_t>(n));
    if (end.writer.on_tx(n) == 0) continue;  // offered again
    const Octets fpdu = end.next.fpdu(true);
    end.want.insert(end.want.end(), fpdu.begin(), fpdu.end());
    end.next = item(100 + turn * 97);
    if (turn % 10 == 0) room.release();
  }
  for (End& end : ends) {
    const Octets rest = joined(end.writer);
    end.sent.insert(end.sent.end(), rest.begin(), rest.end());
    EXPECT_EQ(end.sent, end.want);
    EXPECT_GT(end.want.size(), 100000u);
  }
}

}  // namespace
}  // namespace weft::mpa
