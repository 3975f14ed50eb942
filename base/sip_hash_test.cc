#include "base/sip_hash.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace weft {
namespace {

// The key and the inputs of the paper's appendix A: octets that count from 0.
constexpr SipHash::Key kKey = {0x0706050403020100, 0x0f0e0d0c0b0a0908};

std::vector<std::uint8_t> counting(std::size_t len) {
  std::vector<std::uint8_t> octets(len);
  std::iota(octets.begin(), octets.end(), std::uint8_t{0});
  return octets;
}

std::uint64_t hash_of(ConstBytes octets) {
  SipHash hash(kKey);
  hash.add(octets);
  return hash.value();
}

TEST(SipHash, HasThePublishedValues) {
  EXPECT_EQ(hash_of(counting(0)), 0x726fdb47dd0e0e31u);
  EXPECT_EQ(hash_of(counting(1)), 0x74f839c593dc67fdu);
  EXPECT_EQ(hash_of(counting(2)), 0x0d6c8009d9a94f5au);
  EXPECT_EQ(hash_of(counting(15)), 0xa129ca6149be45e5u);
}

TEST(SipHash, PiecesAreOneInput) {
  const auto octets = counting(100);
  for (std::size_t cut = 0; cut <= octets.size(); ++cut) {
    SipHash hash(kKey);
    hash.add(ConstBytes(octets).first(cut));
    EXPECT_EQ(hash.value(), hash_of(ConstBytes(octets).first(cut)));
    hash.add(ConstBytes(octets).subspan(cut));
    EXPECT_EQ(hash.value(), hash_of(octets));
  }
  SipHash words(kKey);
  words.add(0x00010203);
  words.add(0x04050607);
  EXPECT_EQ(words.value(), hash_of(counting(8)));
}

TEST(SipHash, DependsOnItsKey) {
  SipHash other({kKey[0], kKey[1] ^ 1});
  other.add(counting(8));
  EXPECT_NE(other.value(), hash_of(counting(8)));
  EXPECT_NE(SipHash::random_key(), SipHash::random_key());
}

}  // namespace
}  // namespace weft
