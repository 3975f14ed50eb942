#include "mpa/startup_frame.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace weft::mpa {
namespace {

using Octets = std::vector<std::uint8_t>;

Octets frame_octets(const std::string& key, std::uint8_t flags, std::uint8_t rev, std::size_t pd_length,
                    const Octets& private_data) {
  Octets octets(key.begin(), key.end());
  octets.insert(octets.end(),
                {flags, rev, static_cast<std::uint8_t>(pd_length >> 8), static_cast<std::uint8_t>(pd_length)});
  octets.insert(octets.end(), private_data.begin(), private_data.end());
  return octets;
}

Octets request_octets(std::uint8_t flags, std::uint8_t rev, const Octets& private_data) {
  return frame_octets("MPA ID Req Frame", flags, rev, private_data.size(), private_data);
}

TEST(StartupFrame, EveryFlagOctetGoesBothWays) {
  RecordProperty("proves", "MPA-7.1.1-01 MPA-7.1.1-14 MPA2-6-01 MPA2-6-05");
  for (unsigned flags = 0; flags < 256; ++flags) {
    for (const FrameKind kind : {FrameKind::kRequest, FrameKind::kReply}) {
      const char* key = kind == FrameKind::kRequest ? "MPA ID Req Frame" : "MPA ID Rep Frame";
      const Octets octets = frame_octets(key, static_cast<std::uint8_t>(flags), 2, 5, {1, 2, 3, 4, 5});
      const auto parsed = parse_startup_frame(octets, kind);
      ASSERT_TRUE(std::holds_alternative<ParsedFrame>(parsed)) << flags;
      const StartupFrame& frame = std::get<ParsedFrame>(parsed).frame;
      EXPECT_EQ(frame.kind, kind);
      EXPECT_EQ(frame.m, (flags & 0x80) != 0);
      EXPECT_EQ(frame.c, (flags & 0x40) != 0);
      EXPECT_EQ(frame.r, (flags & 0x20) != 0);
      EXPECT_EQ(frame.s, (flags & 0x10) != 0);
      EXPECT_EQ(frame.res, flags & 0x0f);
      Octets emitted;
      emit_startup_frame(frame, emitted);
      EXPECT_EQ(emitted, octets);
    }
  }
}

TEST(StartupFrame, OctetsBehindTheFrameAreLeftAlone) {
  Octets octets = request_octets(0x40, 1, {9, 8, 7});
  octets.insert(octets.end(), 40, 0xff);
  const auto parsed = parse_startup_frame(octets, FrameKind::kRequest);
  ASSERT_TRUE(std::holds_alternative<ParsedFrame>(parsed));
  EXPECT_EQ(std::get<ParsedFrame>(parsed).len, 23u);
  EXPECT_EQ(std::get<ParsedFrame>(parsed).frame.private_data, (Octets{9, 8, 7}));
}

TEST(StartupFrame, EveryTruncationNeedsExactlyWhatIsMissingOfItsPart) {
  const Octets octets = request_octets(0x50, 2, Octets(512, 0x11));
  for (std::size_t len = 0; len < octets.size(); ++len) {
    const auto parsed = parse_startup_frame(ConstBytes(octets).first(len), FrameKind::kRequest);
    ASSERT_TRUE(std::holds_alternative<NeedMore>(parsed)) << len;
    EXPECT_EQ(std::get<NeedMore>(parsed).len, len < 20 ? 20 - len : octets.size() - len);
  }
}

TEST(StartupFrame, AWrongKeyIsRefusedAtItsFirstWrongOctet) {
  RecordProperty("proves", "MPA-7.1.2-15 MPA-7.1.3-02 MPA-7.1.1-03 MPA-7.1.1-05");
  const Octets good = request_octets(0x40, 1, {});
  for (std::size_t i = 0; i < 16; ++i) {
    Octets bad = good;
    bad[i] ^= 0x20;
    EXPECT_TRUE(std::holds_alternative<NeedMore>(parse_startup_frame(ConstBytes(bad).first(i), FrameKind::kRequest)));
    EXPECT_TRUE(
        std::holds_alternative<BadFrame>(parse_startup_frame(ConstBytes(bad).first(i + 1), FrameKind::kRequest)));
  }
  const std::string http = "GET / HTTP/1.1\r\n";
  EXPECT_TRUE(
      std::holds_alternative<BadFrame>(parse_startup_frame(Octets(http.begin(), http.end()), FrameKind::kRequest)));
}

TEST(StartupFrame, TwoInitiatorsAreToldApartFromGarbage) {
  RecordProperty("proves", "MPA-7.1.2-18");
  const auto parsed = parse_startup_frame(request_octets(0x40, 1, {}), FrameKind::kReply);
  ASSERT_TRUE(std::holds_alternative<BadFrame>(parsed));
  EXPECT_NE(std::get<BadFrame>(parsed).reason.find("both ends are initiators"), std::string_view::npos);
}

TEST(StartupFrame, PdLengthAbove512IsRefusedOnTheHeaderAlone) {
  RecordProperty("proves", "MPA-7.1.1-22 MPA-7.1.2-20");
  for (const std::size_t pd_length : {513u, 1024u, 65535u}) {
    const auto parsed =
        parse_startup_frame(frame_octets("MPA ID Req Frame", 0x40, 1, pd_length, {}), FrameKind::kRequest);
    EXPECT_TRUE(std::holds_alternative<BadFrame>(parsed)) << pd_length;
  }
}

TEST(StartupFrame, AnEnhancedFrameNeedsItsFourOctets) {
  RecordProperty("proves", "MPA2-6-04 MPA2-6-11");
  for (std::size_t pd_length = 0; pd_length < 4; ++pd_length) {
    const Octets octets = request_octets(0x50, 2, Octets(pd_length, 0));
    EXPECT_TRUE(std::holds_alternative<BadFrame>(parse_startup_frame(octets, FrameKind::kRequest))) << pd_length;
    // At Rev 1 the bit means nothing.
    const Octets rev1 = request_octets(0x50, 1, Octets(pd_length, 0));
    EXPECT_TRUE(std::holds_alternative<ParsedFrame>(parse_startup_frame(rev1, FrameKind::kRequest))) << pd_length;
  }
}

TEST(StartupFrame, EnhancedWordsBitByBit) {
  RecordProperty("proves", "MPA2-9-01 MPA2-9-02");
  for (unsigned bit = 0; bit < 32; ++bit) {
    StartupFrame frame;
    frame.s = true;
    frame.rev = 2;
    const std::uint32_t word = 0x80000000u >> bit;
    for (int shift = 24; shift >= 0; shift -= 8) frame.private_data.push_back(static_cast<std::uint8_t>(word >> shift));
    const auto words = parse_enhanced_words(frame);
    ASSERT_TRUE(words);
    EXPECT_EQ(words->a, bit == 0);
    EXPECT_EQ(words->b, bit == 1);
    EXPECT_EQ(words->ird, bit >= 2 && bit < 16 ? 1u << (15 - bit) : 0u);
    EXPECT_EQ(words->c, bit == 16);
    EXPECT_EQ(words->d, bit == 17);
    EXPECT_EQ(words->ord, bit >= 18 ? 1u << (31 - bit) : 0u);
    Octets emitted(3, 0xa5);
    emit_enhanced_words(*words, emitted);
    emitted.erase(emitted.begin(), emitted.begin() + 3);
    EXPECT_EQ(emitted, frame.private_data);
  }
  Octets emitted;
  emit_enhanced_words({.ird = 0x0102, .ord = 0x0304}, emitted);
  EXPECT_EQ(emitted, (Octets{0x01, 0x02, 0x03, 0x04}));
}

TEST(StartupFrame, UlpPrivateDataLeavesTheWordsOut) {
  RecordProperty("proves", "MPA2-6-10 MPA2-9-03");
  StartupFrame frame;
  frame.private_data = {1, 2, 3, 4, 5, 6};
  EXPECT_EQ(ulp_private_data(frame).size(), 6u);
  frame.s = true;
  EXPECT_EQ(ulp_private_data(frame).size(), 6u);
  frame.rev = 2;
  ASSERT_EQ(ulp_private_data(frame).size(), 2u);
  EXPECT_EQ(ulp_private_data(frame)[0], 5);
}

}  // namespace
}  // namespace weft::mpa
