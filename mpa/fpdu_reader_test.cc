#include "mpa/fpdu_reader.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "mpa/crc32c.h"
#include "mpa/fpdu_writer.h"
#include "mpa/testing/naive_framer.h"
#include "mpa/testing/octets_of.h"

namespace weft::mpa {
namespace {

using Octets = std::vector<std::uint8_t>;

void arrive(Staging& staging, ConstBytes octets) {
  std::memcpy(staging.space(octets.size()).data(), octets.data(), octets.size());
  staging.commit(octets.size());
}

Octets fpdu_of(ConstBytes ulpdu, bool crc = true) {
  FpduWriter writer(crc);
  EXPECT_TRUE(writer.add(ulpdu, {}, false));
  Octets out;
  for (const ConstBytes& piece : writer.buffers()) out.insert(out.end(), piece.begin(), piece.end());
  return out;
}

// An FPDU of any ULPDU_Length, also of one that no writer sends.
Octets fpdu_of_len(std::size_t ulpdu_len) {
  Octets octets(fpdu_len(ulpdu_len), 0x5a);
  octets[0] = static_cast<std::uint8_t>(ulpdu_len >> 8);
  octets[1] = static_cast<std::uint8_t>(ulpdu_len);
  const std::size_t covered_len = octets.size() - kCrcLen;
  emit_crc(std::span(octets).subspan(covered_len).first<kCrcLen>(), crc32c(ConstBytes(octets).first(covered_len)));
  return octets;
}

TEST(FpduReader, SaysWhatIsMissing) {
  const Octets octets = fpdu_of(Octets(21, 0x11));
  Staging staging;
  FpduReader reader(true);
  for (std::size_t i = 0; i < octets.size(); ++i) {
    const auto next = reader.next(staging);
    ASSERT_TRUE(std::holds_alternative<NeedMore>(next));
    EXPECT_EQ(std::get<NeedMore>(next).len, i < 2 ? 2 - i : octets.size() - i);
    arrive(staging, ConstBytes(octets).subspan(i, 1));
  }
  const auto next = reader.next(staging);
  ASSERT_TRUE(std::holds_alternative<Ulpdu>(next));
  EXPECT_EQ(std::get<Ulpdu>(next).size(), 21u);
  EXPECT_TRUE(staging.pending().empty());
}

TEST(FpduReader, EveryFlippedBitIsFound) {
  RecordProperty("proves", "MPA-8-04 MPA-8-11");
  const Octets good = fpdu_of(Octets(13, 0x42));
  for (std::size_t bit = 16; bit < 8 * good.size(); ++bit) {
    Octets bad = good;
    bad[bit / 8] ^= static_cast<std::uint8_t>(0x80 >> bit % 8);
    Staging staging;
    FpduReader reader(true);
    arrive(staging, bad);
    arrive(staging, good);
    const auto next = reader.next(staging);
    ASSERT_TRUE(std::holds_alternative<Error>(next)) << bit;
    EXPECT_EQ(std::get<Error>(next), Error::kCrc);
    // The good FPDU behind it is never delivered.
    EXPECT_TRUE(std::holds_alternative<Error>(reader.next(staging)));
    EXPECT_EQ(reader.error(), Error::kCrc);
    EXPECT_EQ(staging.pending().size(), bad.size() + good.size());
  }
}

TEST(FpduReader, WithoutCrcTheFieldIsNotLookedAt) {
  RecordProperty("proves", "MPA-4.1-06 MPA-7.1.1-09");
  Octets octets = fpdu_of(Octets(13, 0x42), false);
  for (std::size_t i = octets.size() - 4; i < octets.size(); ++i) octets[i] = 0xee;
  Staging staging;
  arrive(staging, octets);
  FpduReader reader(false);
  EXPECT_TRUE(std::holds_alternative<Ulpdu>(reader.next(staging)));
}

TEST(FpduReader, LengthsThatCannotBeAreReportedAsSoonAsTheyAreSeen) {
  RecordProperty("proves", "MPA-3-09");
  const auto judge = [](std::uint8_t high, std::uint8_t low, std::size_t max_ulpdu_len) {
    Staging staging;
    FpduReader reader(true, false, max_ulpdu_len);
    arrive(staging, Octets{high, low});
    return reader.next(staging);
  };
  EXPECT_EQ(std::get<Error>(judge(0, 0, kMaxUlpduLength)), Error::kMarker);
  EXPECT_EQ(std::get<Error>(judge(0xfd, 0x01, kMaxMulpdu)), Error::kMarker);
  EXPECT_TRUE(std::holds_alternative<NeedMore>(judge(0xfd, 0x00, kMaxMulpdu)));
  EXPECT_EQ(std::get<NeedMore>(judge(0xff, 0xff, kMaxUlpduLength)).len, fpdu_len(kMaxUlpduLength) - 2);
}

TEST(FpduReader, TheLongestUlpduThatTheFieldCanSayIsTaken) {
  RecordProperty("proves", "MPA-A.5-01");
  for (const std::size_t len : {kMaxMulpdu, kMaxUlpduLength}) {
    Staging staging;
    FpduReader reader(true);
    arrive(staging, fpdu_of_len(len));
    const auto next = reader.next(staging);
    ASSERT_TRUE(std::holds_alternative<Ulpdu>(next));
    EXPECT_EQ(std::get<Ulpdu>(next).size(), len);
  }
}

TEST(FpduReader, RandomSizesInRandomPieces) {
  RecordProperty("proves", "MPA-4.3-15 MPA-5.1-07 MPA-A.4-01");
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  std::vector<Octets> sent;
  Octets stream;
  for (int i = 0; i < 200; ++i) {
    sent.emplace_back(1 + random() % 3000);
    for (auto& octet : sent.back()) octet = static_cast<std::uint8_t>(random());
    const Octets fpdu = fpdu_of(sent.back());
    stream.insert(stream.end(), fpdu.begin(), fpdu.end());
  }
  Staging staging(2 * 66 * 1024);
  FpduReader reader(true);
  std::size_t num_got = 0;
  for (std::size_t at = 0; at < stream.size();) {
    const std::size_t len = std::min<std::size_t>(stream.size() - at, 1 + random() % 5000);
    arrive(staging, ConstBytes(stream).subspan(at, len));
    at += len;
    while (true) {
      const auto next = reader.next(staging);
      if (!std::holds_alternative<Ulpdu>(next)) break;
      const Octets got = testing::octets_of(std::get<Ulpdu>(next));
      ASSERT_LT(num_got, sent.size());
      ASSERT_TRUE(std::equal(got.begin(), got.end(), sent[num_got].begin(), sent[num_got].end()));
      ++num_got;
    }
  }
  EXPECT_EQ(num_got, sent.size());
  EXPECT_FALSE(reader.error());
}

// Each octet of each ULPDU comes out, and no Marker, wherever the FPDUs begin.
TEST(FpduReader, TakesMarkersOut) {
  RecordProperty("proves", "MPA-4.3-15");
  std::mt19937_64 random(512);
  for (int round = 0; round < 60; ++round) {
    const bool crc = round % 4 != 0;
    testing::NaiveFramer framer(crc, true);
    std::vector<Octets> sent;
    Octets wire;
    for (int i = 0; i < 40; ++i) {
      Octets ulpdu(1 + random() % (round % 8 == 0 ? 20000 : 700));
      for (auto& octet : ulpdu) octet = static_cast<std::uint8_t>(random());
      const Octets fpdu = framer.frame(ulpdu);
      wire.insert(wire.end(), fpdu.begin(), fpdu.end());
      sent.push_back(std::move(ulpdu));
    }
    FpduReader reader(crc, true);
    Staging staging(2 * 66 * 1024);
    std::vector<Octets> got;
    for (std::size_t at = 0; at < wire.size();) {
      const std::size_t n = std::min<std::size_t>(1 + random() % 3000, wire.size() - at);
      arrive(staging, ConstBytes(wire).subspan(at, n));
      at += n;
      while (true) {
        const auto next = reader.next(staging);
        const auto* ulpdu = std::get_if<Ulpdu>(&next);
        if (ulpdu == nullptr) {
          ASSERT_TRUE(std::holds_alternative<NeedMore>(next)) << "round " << round;
          break;
        }
        got.push_back(testing::octets_of(*ulpdu));
        // A view across a Marker is the same octets.
        Octets scratch(ulpdu->size());
        const std::size_t from = random() % ulpdu->size();
        const ConstBytes view = ulpdu->view(from, ulpdu->size() - from, scratch);
        ASSERT_TRUE(std::equal(view.begin(), view.end(), got.back().begin() + static_cast<std::ptrdiff_t>(from)));
      }
    }
    ASSERT_TRUE(got == sent) << "round " << round;
    EXPECT_EQ(reader.position(), wire.size());
  }
}

TEST(FpduReader, MarkersAreCheckedBehindTheCrc) {
  const Octets ulpdu(1000, 0x77);
  for (const bool crc : {true, false}) {
    testing::NaiveFramer framer(crc, true);
    Octets wire = framer.frame(ulpdu);
    wire[512 + 3] ^= 0x40;  // the second Marker's FPDUPTR
    FpduReader reader(crc, true);
    Staging staging(2 * 66 * 1024);
    arrive(staging, wire);
    const auto next = reader.next(staging);
    ASSERT_TRUE(std::holds_alternative<Error>(next));
    EXPECT_EQ(std::get<Error>(next), crc ? Error::kCrc : Error::kMarker);
  }
}

TEST(FpduReader, TheLowBitsOfFpduptrAndItsReservedHalfDoNotCount) {
  const Octets ulpdu(1000, 0x77);
  testing::NaiveFramer framer(false, true);
  Octets wire = framer.frame(ulpdu);
  wire[512] = 0xbe;
  wire[513] = 0xef;
  wire[515] |= 3;
  FpduReader reader(false, true);
  Staging staging(2 * 66 * 1024);
  arrive(staging, wire);
  const auto next = reader.next(staging);
  ASSERT_TRUE(std::holds_alternative<Ulpdu>(next));
  EXPECT_EQ(testing::octets_of(std::get<Ulpdu>(next)), ulpdu);
}

// Counters go on past 2^32 octets of one half connection.
TEST(FpduReader, MarkersBeyondFourGigabytes) {
  RecordProperty("proves", "MPA-4.3-06");
  const std::uint64_t position = (std::uint64_t{1} << 32) - 512 + 100;
  testing::NaiveFramer framer(true, true, position);
  FpduReader reader(true, true);
  reader.skip(position);
  Staging staging(2 * 66 * 1024);
  for (int i = 0; i < 4; ++i) {
    const Octets ulpdu(700, static_cast<std::uint8_t>(i));
    arrive(staging, framer.frame(ulpdu));
    const auto next = reader.next(staging);
    ASSERT_TRUE(std::holds_alternative<Ulpdu>(next));
    EXPECT_EQ(testing::octets_of(std::get<Ulpdu>(next)), ulpdu);
  }
  EXPECT_GT(reader.position(), std::uint64_t{1} << 32);
}

}  // namespace
}  // namespace weft::mpa
