#include "rdmap/atomic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

namespace weft::rdmap {
namespace {

using Octets = std::vector<std::uint8_t>;

AtomicOperands fetch_add(std::uint64_t add, std::uint64_t mask) {
  return {AtomicOp::kFetchAdd, add, mask, 0, ~std::uint64_t{0}};
}

TEST(AtomicHeader, EveryFieldHasItsOctets) {
  Octets octets(kAtomicRequestHeaderLen);
  for (std::size_t i = 0; i < octets.size(); ++i) octets[i] = static_cast<std::uint8_t>(0x10 + i);
  octets[3] = 0xf2;
  const auto header = parse_atomic_request_header(octets);
  ASSERT_TRUE(header);
  EXPECT_EQ(*header, (AtomicRequestHeader{2,
                                          0x14151617,
                                          ddp::Stag{0x18191a1b},
                                          0x1c1d1e1f20212223,
                                          {AtomicOp::kCmpSwap, 0x2425262728292a2b, 0x2c2d2e2f30313233,
                                           0x3435363738393a3b, 0x3c3d3e3f40414243}}));
  const auto emitted = emit_atomic_request_header(*header);
  octets[0] = octets[1] = octets[2] = 0;  // reserved fields are sent as zero
  octets[3] = 2;
  EXPECT_TRUE(std::equal(octets.begin(), octets.end(), emitted.begin(), emitted.end()));
}

TEST(AtomicHeader, EachTakesItsOwnLengthOnly) {
  for (std::size_t len = 0; len <= 64; ++len) {
    EXPECT_EQ(parse_atomic_request_header(Octets(len)).has_value(), len == 52) << len;
    EXPECT_EQ(parse_atomic_response_header(Octets(len)).has_value(), len == 12) << len;
  }
}

TEST(AtomicHeader, TheResponseIsTheIdentifierAndTheValue) {
  RecordProperty("proves", "EXT-5.2.2-01");
  const Octets octets = {0x0a, 0x0b, 0x0c, 0x0d, 0, 0, 0, 0, 0, 0, 0, 0x29};  // E04
  const auto header = parse_atomic_response_header(octets);
  ASSERT_TRUE(header);
  EXPECT_EQ(*header, (AtomicResponseHeader{0x0a0b0c0d, 0x29}));
  const auto emitted = emit_atomic_response_header(*header);
  EXPECT_TRUE(std::equal(octets.begin(), octets.end(), emitted.begin(), emitted.end()));
}

// Field by field, as RFC 7306 section 5.1.1 describes it: the second opinion on the arithmetic without a loop.
std::uint64_t add_bit_by_bit(std::uint64_t original, std::uint64_t add, std::uint64_t mask) {
  std::uint64_t sum = 0;
  unsigned carry = 0;
  for (unsigned bit = 0; bit < 64; ++bit) {
    const unsigned total = static_cast<unsigned>(original >> bit & 1) + static_cast<unsigned>(add >> bit & 1) + carry;
    sum |= std::uint64_t{total & 1} << bit;
    carry = (mask >> bit & 1) != 0 ? 0 : total >> 1;
  }
  return sum;
}

TEST(Atomic, MaskedFetchAddIsTheOneOfTheRfc) {
  constexpr std::uint64_t kSeed = 20;
  std::mt19937_64 random(kSeed);
  for (int i = 0; i < 20000; ++i) {
    const std::uint64_t original = random(), add = random();
    const std::uint64_t mask = random() & random() & random();
    ASSERT_EQ(apply_atomic(fetch_add(add, mask), original), add_bit_by_bit(original, add, mask))
        << "seed " << kSeed << ", round " << i;
  }
}

TEST(Atomic, WorksOnTheMachinesOwnNumber) {
  alignas(8) std::uint8_t octets[8] = {1, 0, 0, 0, 0, 0, 0, 0};
  const std::uint64_t one = std::endian::native == std::endian::little ? 1 : std::uint64_t{1} << 56;
  EXPECT_EQ(execute_atomic(fetch_add(one, 0), octets), one);
  std::uint64_t word = 0;
  std::memcpy(&word, octets, sizeof(word));
  EXPECT_EQ(word, 2 * one);
  EXPECT_EQ(execute_atomic({AtomicOp::kCmpSwap, 9, ~std::uint64_t{0}, 2 * one, ~std::uint64_t{0}}, octets), 2 * one);
  EXPECT_EQ(execute_atomic({AtomicOp::kCmpSwap, 7, ~std::uint64_t{0}, 1, ~std::uint64_t{0}}, octets), 9u);
  std::memcpy(&word, octets, sizeof(word));
  EXPECT_EQ(word, 9u) << "a comparison that fails leaves the word alone";
}

TEST(Atomic, AlignmentIsThatOfTheAddress) {
  alignas(8) std::uint8_t octets[16] = {};
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(is_atomic_target(MutBytes(octets).subspan(i, 8)), i == 0);
}

TEST(Atomic, NoAdditionIsLostToTheProcesssOwnThreads) {
  constexpr std::uint64_t kTimes = 20000;
  alignas(8) std::uint64_t counter = 0;
  const MutBytes target(reinterpret_cast<std::uint8_t*>(&counter), sizeof(counter));
  std::thread own([&] {
    std::atomic_ref<std::uint64_t> ref(counter);
    for (std::uint64_t i = 0; i < kTimes; ++i) ref.fetch_add(1);
  });
  for (std::uint64_t i = 0; i < kTimes; ++i) execute_atomic(fetch_add(1, 0), target);
  own.join();
  EXPECT_EQ(counter, 2 * kTimes);
}

}  // namespace
}  // namespace weft::rdmap
