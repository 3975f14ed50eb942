#include "verbs-shim/soft/iwpm/message.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace weft::verbs::soft::iwpm {
namespace {

using Octets = std::vector<std::uint8_t>;

constexpr Endpoint kServer4{{192, 0, 2, 7}, 20049};
constexpr Endpoint kClient4{{198, 51, 100, 9}, 40001};
constexpr Endpoint kMapped4{{198, 51, 100, 9}, 50002};
constexpr Endpoint kServer6{{0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7}, 20049};
constexpr Endpoint kClient6{{0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9}, 40001};

struct Golden {
  Message message;
  Octets octets;
};

// Laid out by hand: 20049 is 4e 51, 40001 is 9c 41, 50002 is c3 52.
std::vector<Golden> goldens() {
  const std::uint64_t handle = 0x0102030405060708;
  return {
      {{MessageType::kRequest, IpVersion::k4, 0, handle, kServer4, kClient4, kMapped4},
       {0x04, 0,  0xc3, 0x52, 0x4e, 0x51, 0x9c, 0x41, 1, 2, 3, 4, 5, 6, 7, 8,  //
        198,  51, 100,  9,    0,    0,    0,    0,    0, 0, 0, 0, 0, 0, 0, 0,  //
        192,  0,  2,    7,    0,    0,    0,    0,    0, 0, 0, 0, 0, 0, 0, 0,  //
        198,  51, 100,  9,    0,    0,    0,    0,    0, 0, 0, 0, 0, 0, 0, 0}},
      {{MessageType::kAccept, IpVersion::k4, 0, handle, kServer4, kClient4, {}},
       {0x14, 0,  0,   0, 0x4e, 0x51, 0x9c, 0x41, 1, 2, 3, 4, 5, 6, 7, 8,  //
        198,  51, 100, 9, 0,    0,    0,    0,    0, 0, 0, 0, 0, 0, 0, 0,  //
        192,  0,  2,   7, 0,    0,    0,    0,    0, 0, 0, 0, 0, 0, 0, 0}},
      {{MessageType::kAck, IpVersion::k6, 0, handle, kServer6, kClient6, {}},
       {0x26, 0, 0,    0,    0x4e, 0x51, 0x9c, 0x41, 1, 2, 3, 4, 5, 6, 7, 8,  //
        0x20, 1, 0x0d, 0xb8, 0,    0,    0,    0,    0, 0, 0, 0, 0, 0, 0, 9,  //
        0x20, 1, 0x0d, 0xb8, 0,    0,    0,    0,    0, 0, 0, 0, 0, 0, 0, 7}},
      {{MessageType::kReject, IpVersion::k6, 3, handle, kServer6, kClient6, {}},
       {0x36, 3, 0,    0,    0x4e, 0x51, 0x9c, 0x41, 1, 2, 3, 4, 5, 6, 7, 8,  //
        0x20, 1, 0x0d, 0xb8, 0,    0,    0,    0,    0, 0, 0, 0, 0, 0, 0, 9,  //
        0x20, 1, 0x0d, 0xb8, 0,    0,    0,    0,    0, 0, 0, 0, 0, 0, 0, 7}},
  };
}

Octets emitted(const Message& message) {
  Octets out(kMaxMessageLen, 0xa5);
  out.resize(emit_message(message, out));
  return out;
}

void expect_bad(const Octets& octets, BadMessage why) {
  const auto parsed = parse_message(octets);
  ASSERT_TRUE(std::holds_alternative<BadMessage>(parsed));
  EXPECT_EQ(std::get<BadMessage>(parsed), why);
}

TEST(IwpmMessage, GoldenOctetsInBothDirections) {
  for (const Golden& golden : goldens()) {
    EXPECT_EQ(emitted(golden.message), golden.octets);
    const auto parsed = parse_message(golden.octets);
    ASSERT_TRUE(std::holds_alternative<Message>(parsed));
    EXPECT_EQ(std::get<Message>(parsed), golden.message);
  }
}

TEST(IwpmMessage, EveryOtherLengthIsRefused) {
  for (const Golden& golden : goldens()) {
    for (std::size_t len = 0; len < 100; ++len) {
      if (len == golden.octets.size()) continue;
      Octets octets = golden.octets;
      octets.resize(len);
      expect_bad(octets, BadMessage::kLength);
    }
  }
}

TEST(IwpmMessage, OtherVersionsAreRefused) {
  for (const Golden& golden : goldens()) {
    for (unsigned version = 1; version < 4; ++version) {
      Octets octets = golden.octets;
      octets[0] = static_cast<std::uint8_t>(octets[0] | version << 6);
      expect_bad(octets, BadMessage::kVersion);
    }
    for (unsigned ip = 0; ip < 16; ++ip) {
      if (ip == 4 || ip == 6) continue;
      Octets octets = golden.octets;
      octets[0] = static_cast<std::uint8_t>((octets[0] & 0xf0) | ip);
      expect_bad(octets, BadMessage::kIpVersion);
    }
  }
}

// iwpmd sends leftovers of its stack behind an IPv4 address.
TEST(IwpmMessage, WhatIsUnusedIsIgnoredAndSentAsZero) {
  Golden accept = goldens()[1];
  Octets octets = accept.octets;
  octets[2] = octets[3] = 0xff;
  std::fill(octets.begin() + 20, octets.begin() + 32, 0xff);
  std::fill(octets.begin() + 36, octets.begin() + 48, 0xff);
  const auto parsed = parse_message(octets);
  ASSERT_TRUE(std::holds_alternative<Message>(parsed));
  EXPECT_EQ(std::get<Message>(parsed), accept.message);
  accept.message.mapped_connecting = kMapped4;
  accept.message.accepting.address[4] = 0xff;
  EXPECT_EQ(emitted(accept.message), accept.octets);
}

TEST(IwpmMessage, IsNotCutWhereThereIsNoRoom) {
  for (const Golden& golden : goldens()) {
    for (std::size_t len = 0; len < golden.octets.size(); ++len) {
      Octets out(len, 0xa5);
      EXPECT_EQ(emit_message(golden.message, out), 0u);
      EXPECT_EQ(out, Octets(len, 0xa5));
    }
  }
}

}  // namespace
}  // namespace weft::verbs::soft::iwpm
