#include "apps/dissect/capture.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <fstream>
#include <string>

namespace weft::apps::dissect {
namespace {

struct CaptureTest : ::testing::Test {
  // A pcap file with nanoseconds, in the order of this machine, and one packet.
  std::string file(std::uint32_t seconds, std::uint32_t part) {
    constexpr std::uint32_t kNanoMagic = 0xa1b23c4d, kVersion = 2 | 4 << 16, kSnapshotLen = 65535, kEthernet = 1;
    const std::array<std::uint32_t, 11> words = {kNanoMagic, kVersion, 0, 0, kSnapshotLen, kEthernet, seconds,
                                                 part,       4,        4, 0};
    std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(words.data()), sizeof(words));
    return path;
  }
  Timestamp time_of(std::uint32_t seconds, std::uint32_t part) {
    auto capture = Capture::open(file(seconds, part));
    EXPECT_TRUE(capture.ok());
    Packet packet;
    EXPECT_EQ(capture->next(packet), Capture::Next::kPacket);
    return packet.time;
  }
  ~CaptureTest() override { ::unlink(path.c_str()); }

  const std::string path = ::testing::TempDir() + "weft_capture_test_" + std::to_string(::getpid());
};

TEST_F(CaptureTest, TimesAreSecondsAndNanoseconds) {
  EXPECT_EQ(time_of(1700000000, 999999999), Timestamp(1700000000999999999));
}

// A file may hold anything.
TEST_F(CaptureTest, TheFractionOfATimeIsBelowASecond) {
  const Timestamp time = time_of(1700000000, 0xffffffff);
  EXPECT_GE(time, std::chrono::seconds(1700000000));
  EXPECT_LT(time, std::chrono::seconds(1700000001));
}

// Seconds of pcap have no sign: they reach the year 2106.
TEST_F(CaptureTest, TimesBeyond2038AreNotBefore1970) {
  EXPECT_EQ(time_of(4102444800, 5), std::chrono::seconds(4102444800) + Timestamp(5));
}

}  // namespace
}  // namespace weft::apps::dissect
