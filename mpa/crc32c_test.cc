#include "mpa/crc32c.h"

#include <gtest/gtest.h>

#include <array>
#include <string_view>
#include <vector>

namespace weft::mpa {
namespace {

using Octets = std::vector<std::uint8_t>;

Octets crc_field(ConstBytes octets) {
  std::array<std::uint8_t, 4> out;
  out.fill(0xa5);
  emit_crc(out, crc32c(octets));
  EXPECT_EQ(parse_crc(out), crc32c(octets));
  return {out.begin(), out.end()};
}

TEST(Crc32c, ExamplesOfRfc7143AppendixA4) {
  RecordProperty("proves", "MPA-4.4-13");
  Octets up(32);
  Octets down(32);
  for (std::size_t i = 0; i < 32; ++i) {
    up[i] = static_cast<std::uint8_t>(i);
    down[i] = static_cast<std::uint8_t>(31 - i);
  }
  constexpr std::string_view kCheck = "123456789";
  EXPECT_EQ(crc32c(Octets(kCheck.begin(), kCheck.end())), 0xe3069283u);
  EXPECT_EQ(crc_field(Octets(32, 0x00)), (Octets{0xaa, 0x36, 0x91, 0x8a}));
  EXPECT_EQ(crc_field(Octets(32, 0xff)), (Octets{0x43, 0xab, 0xa8, 0x62}));
  EXPECT_EQ(crc_field(up), (Octets{0x4e, 0x79, 0xdd, 0x46}));
  EXPECT_EQ(crc_field(down), (Octets{0x5c, 0xdb, 0x3f, 0x11}));
}

TEST(Crc32c, EmptyInput) {
  EXPECT_EQ(crc32c({}), 0u);
}

TEST(Crc32c, PiecesGiveWhatTheWholeGives) {
  Octets octets(1500);
  for (std::size_t i = 0; i < octets.size(); ++i) octets[i] = static_cast<std::uint8_t>(i * 7);
  const std::uint32_t whole = crc32c(octets);
  for (std::size_t cut = 0; cut <= octets.size(); cut += 13) {
    Crc32c crc;
    crc.update(ConstBytes(octets).first(cut));
    crc.update({});
    crc.update(ConstBytes(octets).subspan(cut));
    EXPECT_EQ(crc.value(), whole) << cut;
  }
}

// By the definition, bit by bit. Few octets go another way than many.
TEST(Crc32c, EachShortLengthGivesWhatTheDefinitionGives) {
  Octets octets(300);
  for (std::size_t i = 0; i < octets.size(); ++i) octets[i] = static_cast<std::uint8_t>(i * 7 + 3);
  std::uint32_t state = 0xffffffff;
  for (std::size_t len = 0; len < octets.size(); ++len) {
    EXPECT_EQ(crc32c(ConstBytes(octets).first(len)), ~state) << len;
    state ^= octets[len];
    for (int bit = 0; bit < 8; ++bit) state = state >> 1 ^ ((state & 1) != 0 ? 0x82f63b78 : 0);
  }
}

TEST(Crc32c, ACopyHasTheCrcOfItsPieces) {
  Octets octets(3000);
  for (std::size_t i = 0; i < octets.size(); ++i) octets[i] = static_cast<std::uint8_t>(i * 7);
  for (const std::size_t cut : {0u, 1u, 447u, 448u, 1500u, 2552u, 2553u, 3000u}) {
    Octets to(octets.size(), 0xa5);
    Crc32c crc;
    crc.copy(to.data(), ConstBytes(octets).first(cut));
    crc.copy(to.data() + cut, ConstBytes(octets).subspan(cut));
    EXPECT_EQ(crc.value(), crc32c(octets)) << cut;
    EXPECT_EQ(to, octets) << cut;
  }
}

}  // namespace
}  // namespace weft::mpa
