#include "mpa/crc32c_mixed.h"

#include <gtest/gtest.h>
#include <isa-l/crc.h>

#include <array>
#include <cstring>
#include <random>
#include <vector>

namespace weft::mpa {
namespace {

using Octets = std::vector<std::uint8_t>;

std::uint32_t isa_l(std::uint32_t state, ConstBytes octets) {
  return crc32_iscsi(const_cast<std::uint8_t*>(octets.data()), static_cast<int>(octets.size()), state);
}

// The definition, bit by bit.
std::uint32_t by_definition(std::uint32_t state, ConstBytes octets) {
  for (const std::uint8_t octet : octets) {
    state ^= octet;
    for (int bit = 0; bit < 8; ++bit) state = state >> 1 ^ ((state & 1) != 0 ? 0x82f63b78 : 0);
  }
  return state;
}

class Crc32cMixed : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!mixed_available()) GTEST_SKIP() << "this processor has no VPCLMULQDQ";
  }
};

TEST_F(Crc32cMixed, ExamplesOfRfc7143AppendixA4) {
  RecordProperty("proves", "MPA-4.4-13");
  Octets up(32);
  Octets down(32);
  for (std::size_t i = 0; i < 32; ++i) {
    up[i] = static_cast<std::uint8_t>(i);
    down[i] = static_cast<std::uint8_t>(31 - i);
  }
  const Octets read_pdu = {0x01, 0xc0, 0, 0,    0, 0, 0, 0,    0,    0, 0, 0, 0, 0, 0, 0, 0x14, 0, 0, 0, 0, 0, 0x04, 0,
                           0,    0,    0, 0x14, 0, 0, 0, 0x18, 0x28, 0, 0, 0, 0, 0, 0, 0, 0x02, 0, 0, 0, 0, 0, 0,    0};
  EXPECT_EQ(~mixed_update(~0u, Octets(32, 0x00)), 0x8a9136aau);
  EXPECT_EQ(~mixed_update(~0u, Octets(32, 0xff)), 0x62a8ab43u);
  EXPECT_EQ(~mixed_update(~0u, up), 0x46dd794eu);
  EXPECT_EQ(~mixed_update(~0u, down), 0x113fdb5cu);
  EXPECT_EQ(~mixed_update(~0u, read_pdu), 0xd9963a56u);
}

TEST_F(Crc32cMixed, GivesWhatTheDefinitionGives) {
  Octets octets(20'000);
  std::mt19937 random(7);
  for (std::uint8_t& octet : octets) octet = static_cast<std::uint8_t>(random());
  for (const std::size_t len : {0u, 1u, 7u, 8u, 223u, 224u, 448u, 1444u, 7167u, 7168u, 7169u, 14'336u, 20'000u}) {
    const ConstBytes some = ConstBytes(octets).first(len);
    EXPECT_EQ(mixed_update(0x12345678, some), by_definition(0x12345678, some)) << len;
  }
}

std::size_t any_len(std::mt19937_64& random) {
  const auto dice = random() % 100;
  return random() % (dice < 60 ? 700 : dice < 90 ? 4'000 : dice < 99 ? 20'000 : 70'000);
}

TEST_F(Crc32cMixed, GivesWhatIsaLGivesInAMillionCases) {
  const std::uint64_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  static constexpr std::size_t kGuard = 64;
  Octets from(75'000);
  for (std::uint8_t& octet : from) octet = static_cast<std::uint8_t>(random());
  Octets to(from.size() + 2 * kGuard);
  const std::array<std::uint8_t, kGuard> guard = [] {
    std::array<std::uint8_t, kGuard> octets;
    octets.fill(0xa5);
    return octets;
  }();
  for (int i = 0; i < 1'000'000; ++i) {
    const std::size_t len = any_len(random);
    const ConstBytes octets = ConstBytes(from).subspan(random() % (from.size() - len), len);
    const auto state = static_cast<std::uint32_t>(random());
    const std::uint32_t expected = isa_l(state, octets);
    if (i % 2 == 0) {
      ASSERT_EQ(mixed_update(state, octets), expected) << len << " octets from " << octets.data() - from.data();
      continue;
    }
    std::uint8_t* const begin = to.data() + kGuard + random() % (from.size() - len);
    std::memcpy(begin - kGuard, guard.data(), kGuard);
    std::memcpy(begin + len, guard.data(), kGuard);
    ASSERT_EQ(mixed_copy(state, begin, octets), expected) << len << " octets from " << octets.data() - from.data();
    ASSERT_EQ(std::memcmp(begin, octets.data(), len), 0) << len;
    ASSERT_EQ(std::memcmp(begin - kGuard, guard.data(), kGuard), 0) << len << " octets: written before the room";
    ASSERT_EQ(std::memcmp(begin + len, guard.data(), kGuard), 0) << len << " octets: written behind the room";
  }
}

// The source of an RDMA Read Response may change at any time. Here each store changes octets of the source that were
// just read, or that are read next.
TEST_F(Crc32cMixed, ACopyHasTheCrcOfItsOwnOctets) {
  std::mt19937 random(7);
  Octets octets(5'200);
  for (std::size_t distance = 1; distance <= 64; ++distance) {
    for (std::uint8_t& octet : octets) octet = static_cast<std::uint8_t>(random());
    std::uint8_t* const from = octets.data() + 64;
    for (std::uint8_t* const to : {from + distance, from - distance}) {
      const std::uint32_t state = mixed_copy(~0u, to, {from, 5'003});
      EXPECT_EQ(state, isa_l(~0u, {to, 5'003})) << distance;
    }
  }
}

}  // namespace
}  // namespace weft::mpa
