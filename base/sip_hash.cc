#include "base/sip_hash.h"

#include <bit>
#include <random>

namespace weft {

SipHash::Key SipHash::random_key() {
  std::random_device random;
  const auto word = [&random] { return std::uint64_t{random()} << 32 | random(); };
  return {word(), word()};
}

SipHash::SipHash(const Key& key)
    : v0_(key[0] ^ 0x736f6d6570736575),
      v1_(key[1] ^ 0x646f72616e646f6d),
      v2_(key[0] ^ 0x6c7967656e657261),
      v3_(key[1] ^ 0x7465646279746573) {}

void SipHash::round() {
  v0_ += v1_;
  v1_ = std::rotl(v1_, 13) ^ v0_;
  v0_ = std::rotl(v0_, 32);
  v2_ += v3_;
  v3_ = std::rotl(v3_, 16) ^ v2_;
  v0_ += v3_;
  v3_ = std::rotl(v3_, 21) ^ v0_;
  v2_ += v1_;
  v1_ = std::rotl(v1_, 17) ^ v2_;
  v2_ = std::rotl(v2_, 32);
}

void SipHash::take(std::uint64_t word) {
  v3_ ^= word;
  round();
  round();
  v0_ ^= word;
}

void SipHash::add(ConstBytes octets) {
  for (const std::uint8_t octet : octets) {
    last_ |= std::uint64_t{octet} << (length_ % 8 * 8);
    if (++length_ % 8 != 0) continue;
    take(last_);
    last_ = 0;
  }
}

void SipHash::add(std::uint32_t word) {
  const std::array<std::uint8_t, 4> octets = {static_cast<std::uint8_t>(word >> 24),
                                              static_cast<std::uint8_t>(word >> 16),
                                              static_cast<std::uint8_t>(word >> 8), static_cast<std::uint8_t>(word)};
  add(octets);
}

std::uint64_t SipHash::value() const {
  SipHash end = *this;
  end.take(last_ | length_ << 56);
  end.v2_ ^= 0xff;
  for (int i = 0; i < 4; ++i) end.round();
  return end.v0_ ^ end.v1_ ^ end.v2_ ^ end.v3_;
}

}  // namespace weft
