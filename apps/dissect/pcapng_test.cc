// Blocks of pcapng files that no program writes. tests/dissect/encapsulations.py has those that programs write.
#include "apps/dissect/pcapng.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pcap/dlt.h>

namespace weft::apps::dissect {
namespace {

using ::testing::HasSubstr;
using Octets = std::vector<std::uint8_t>;

Octets words(std::initializer_list<std::uint32_t> values) {
  Octets octets;
  for (const std::uint32_t value : values) {
    for (int i = 0; i < 4; ++i) octets.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
  }
  return octets;
}

Octets block(std::uint32_t type, const Octets& body) {
  const auto len = static_cast<std::uint32_t>(body.size() + 12);
  Octets octets = words({type, len});
  octets.insert(octets.end(), body.begin(), body.end());
  const Octets trailer = words({len});
  octets.insert(octets.end(), trailer.begin(), trailer.end());
  return octets;
}

constexpr std::uint32_t kSection = 0x0a0d0d0a, kInterface = 1, kOldPacket = 2, kSimplePacket = 3, kPacket = 6;
constexpr std::uint32_t kEthernet = 1, kSnapshotLen = 6;

struct PcapngTest : ::testing::Test {
  PcapngTest() {
    take(block(kSection, words({0x1a2b3c4d, 1, 0xffffffff, 0xffffffff})));
    take(block(kInterface, words({kEthernet, kSnapshotLen})));
  }
  // Hands over a block; error: the reason why it is refused, or empty.
  std::optional<Packet> take(Octets octets) {
    error = "";
    taken = std::move(octets);
    const auto len = file.block_len(std::span(taken).first<Pcapng::kMinBlock>());
    if (!len.ok()) return refused(len.error());
    EXPECT_EQ(*len, taken.size());
    const auto packet = file.on_block(taken);
    return packet.ok() ? *packet : refused(packet.error());
  }
  std::optional<Packet> refused(const std::string& why) {
    error = why;
    return std::nullopt;
  }
  // An interface whose time has the resolution and, if not 0, the offset; and the time of a packet on it.
  Timestamp time_of(std::uint8_t resolution, std::uint64_t units, std::uint64_t offset = 0) {
    const auto half = [](std::uint64_t value, int shift) { return static_cast<std::uint32_t>(value >> shift); };
    take(block(kInterface,
               words({kEthernet, 0, 9 | 1 << 16, resolution, 14 | 8 << 16, half(offset, 0), half(offset, 32), 0})));
    EXPECT_EQ(error, "");
    const auto packet = take(block(kPacket, words({++interface, half(units, 32), half(units, 0), 0, 60})));
    EXPECT_TRUE(packet) << error;
    return packet ? packet->time : Timestamp();
  }

  Pcapng file;
  Octets taken;
  std::string error;
  std::uint32_t interface = 0;
};

TEST_F(PcapngTest, EachKindOfPacketIsRead) {
  auto packet = take(block(kPacket, words({0, 0, 1500000, 4, 60, 0xddccbbaa})));
  ASSERT_TRUE(packet) << error;
  EXPECT_EQ(packet->time, std::chrono::milliseconds(1500));
  EXPECT_EQ(Octets(packet->octets.begin(), packet->octets.end()), (Octets{0xaa, 0xbb, 0xcc, 0xdd}));
  EXPECT_EQ(packet->wire_len, 60u);
  EXPECT_EQ(packet->link_type, DLT_EN10MB);
  packet = take(block(kOldPacket, words({7u << 16, 0, 1, 4, 60, 0xddccbbaa})));
  ASSERT_TRUE(packet) << error;
  EXPECT_EQ(packet->time, std::chrono::microseconds(1));
  EXPECT_EQ(packet->octets.size(), 4u);
  // It has no time of its own, and the interface cuts it.
  packet = take(block(kSimplePacket, words({60, 0xddccbbaa, 0x0000ffee})));
  ASSERT_TRUE(packet) << error;
  EXPECT_EQ(packet->time, std::chrono::microseconds(1));
  EXPECT_EQ(packet->octets.size(), kSnapshotLen);
  EXPECT_EQ(packet->wire_len, 60u);
}

TEST_F(PcapngTest, OtherBlocksHaveNoPacket) {
  EXPECT_FALSE(take(block(5, words({1, 2, 3}))));
  EXPECT_FALSE(take(block(0x0bad, {})));
  EXPECT_EQ(error, "");
}

TEST_F(PcapngTest, EveryTimeFitsIntoATimestamp) {
  constexpr std::uint64_t kMost = UINT64_MAX, kMinusOne = UINT64_MAX;
  EXPECT_EQ(time_of(0, 77), std::chrono::seconds(77));
  EXPECT_EQ(time_of(0, 77, kMinusOne), std::chrono::seconds(76));
  EXPECT_EQ(time_of(12, 1234567890123), std::chrono::nanoseconds(1234567890));
  EXPECT_EQ(time_of(0x80 | 32, (std::uint64_t{3} << 32) + (std::uint64_t{1} << 31)), std::chrono::milliseconds(3500));
  EXPECT_EQ(time_of(0x80 | 63, kMost), std::chrono::nanoseconds(1999999999));
  EXPECT_EQ(time_of(19, kMost), std::chrono::nanoseconds(1844674407));
  EXPECT_EQ(time_of(0, kMost), std::chrono::seconds(9000000000));
  EXPECT_EQ(time_of(0, kMost, kMost >> 1), std::chrono::seconds(9000000000));
  EXPECT_EQ(time_of(0, 0, std::uint64_t{1} << 63), std::chrono::seconds(0));
}

TEST_F(PcapngTest, BrokenBlocksAreRefused) {
  take(block(kInterface, words({kEthernet, 0, 9 | 1 << 16, 20, 0})));
  EXPECT_THAT(error, HasSubstr("time resolution"));
  take(block(kInterface, words({kEthernet, 0, 9 | 1 << 16, 0x80 | 64, 0})));
  EXPECT_THAT(error, HasSubstr("time resolution"));
  take(block(kInterface, words({kEthernet})));
  EXPECT_THAT(error, HasSubstr("without a link type"));
  take(block(kPacket, words({0, 0, 0, 4})));
  EXPECT_THAT(error, HasSubstr("whole header"));
  take(block(kPacket, words({1, 0, 0, 0, 0})));
  EXPECT_THAT(error, HasSubstr("interface 1"));
  take(block(kPacket, words({0, 0, 0, 5, 60, 0})));
  EXPECT_THAT(error, HasSubstr("5 bytes in a block of 4"));
  Octets other_trailer = block(kPacket, words({0, 0, 0, 0, 60}));
  other_trailer.back() = 1;
  take(other_trailer);
  EXPECT_THAT(error, HasSubstr("ends with another length"));
  take(words({kPacket, 8, 8}));
  EXPECT_THAT(error, HasSubstr("a pcapng block of 8 bytes"));
  take(words({kPacket, 14, 14}));
  EXPECT_THAT(error, HasSubstr("a pcapng block of 14 bytes"));
  take(words({kPacket, Pcapng::kMaxBlock + 4, 0}));
  EXPECT_THAT(error, HasSubstr("more than"));
  take(words({kSection, 28, 0x12345678}));
  EXPECT_THAT(error, HasSubstr("byte order"));
  take(block(kSection, words({0x1a2b3c4d})));
  EXPECT_THAT(error, HasSubstr("without a version"));
  take(block(kSection, words({0x1a2b3c4d, 9, 0xffffffff, 0xffffffff})));
  EXPECT_THAT(error, HasSubstr("a pcapng section of version 9"));
}

// A section forgets the interfaces of the one before it.
TEST_F(PcapngTest, InterfacesAreBounded) {
  for (std::size_t i = 1; i < Pcapng::kMaxInterfaces; ++i) take(block(kInterface, words({kEthernet, 0})));
  EXPECT_EQ(error, "");
  take(block(kInterface, words({kEthernet, 0})));
  EXPECT_THAT(error, HasSubstr("more than 65536 pcapng interfaces"));
  take(block(kSection, words({0x1a2b3c4d, 1, 0, 0})));
  take(block(kPacket, words({0, 0, 0, 0, 60})));
  EXPECT_THAT(error, HasSubstr("interface 0"));
}

constexpr std::uint32_t kStatistics = 5;

// An option with a text of up to four octets.
Octets option(std::uint16_t code, std::string_view text) {
  Octets octets = words({code | static_cast<std::uint32_t>(text.size()) << 16});
  octets.insert(octets.end(), text.begin(), text.end());
  octets.resize((octets.size() + 3) / 4 * 4);
  return octets;
}

Octets joined(std::initializer_list<Octets> parts) {
  Octets all;
  for (const Octets& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

TEST_F(PcapngTest, CommentsOfAPacketAreTaken) {
  // One octet of the packet, and three of padding.
  const Octets packet = words({0, 0, 0, 1, 60, 0xaa});
  auto taken_packet = take(block(kPacket, joined({packet, option(1, "one"), option(2, "flag"), option(1, "2")})));
  ASSERT_TRUE(taken_packet) << error;
  EXPECT_THAT(taken_packet->comments, ::testing::ElementsAre("one", "2"));
  EXPECT_EQ(taken_packet->octets.size(), 1u);
  // No comments of the packet before; an option that the block cuts is none.
  taken_packet = take(block(kPacket, packet));
  ASSERT_TRUE(taken_packet) << error;
  EXPECT_THAT(taken_packet->comments, ::testing::IsEmpty());
  taken_packet = take(block(kPacket, joined({packet, words({1 | 100 << 16, 0x41414141})})));
  ASSERT_TRUE(taken_packet) << error;
  EXPECT_THAT(taken_packet->comments, ::testing::IsEmpty());
}

TEST_F(PcapngTest, CommentsOfAPacketAreBounded) {
  Octets body = words({0, 0, 0, 0, 60});
  for (std::size_t i = 0; i < 2 * Pcapng::kMaxComments; ++i) body = joined({body, option(1, "c")});
  const auto packet = take(block(kPacket, body));
  ASSERT_TRUE(packet) << error;
  EXPECT_EQ(packet->comments.size(), Pcapng::kMaxComments);
}

// The last block of an interface counts, and each interface and section for itself.
TEST_F(PcapngTest, DroppedPacketsAreCounted) {
  const auto statistics = [](std::uint32_t interface, std::uint32_t by_interface, std::uint32_t by_system) {
    return block(kStatistics, joined({words({interface, 0, 0}), words({5 | 8 << 16, by_interface, 0}),
                                      words({7 | 8 << 16, by_system, 0})}));
  };
  EXPECT_EQ(file.num_dropped(), 0u);
  take(statistics(0, 3, 0));
  take(statistics(0, 5, 1));
  take(statistics(9, 100, 0));  // the section has no interface 9
  EXPECT_EQ(file.num_dropped(), 6u);
  take(block(kInterface, words({kEthernet, 0})));
  take(statistics(1, 2, 0));
  EXPECT_EQ(file.num_dropped(), 8u);
  take(block(kSection, words({0x1a2b3c4d, 1, 0xffffffff, 0xffffffff})));
  take(block(kInterface, words({kEthernet, 0})));
  take(statistics(0, 1, 0));
  EXPECT_EQ(file.num_dropped(), 9u);
}

}  // namespace
}  // namespace weft::apps::dissect
