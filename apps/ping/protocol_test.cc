#include "apps/ping/protocol.h"

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

namespace weft::apps::ping {
namespace {

TEST(PingInfo, IsAddressStagLengthBigEndian) {
  BufferInfo info{0x0102030405060708, 0x090a0b0c, 0x0d0e0f10};
  InfoOctets octets = emit_info(info);
  for (std::size_t i = 0; i < octets.size(); ++i) EXPECT_EQ(octets[i], i + 1);
  EXPECT_EQ(parse_info(octets), info);
}

TEST(PingPattern, IsRpingsText) {
  std::vector<std::uint8_t> out(32, 0xa5);
  fill_pattern(out, 0);
  EXPECT_EQ(std::string(out.begin(), out.end() - 1), "rdma-ping-0: ABCDEFGHIJKLMNOPQR");
  EXPECT_EQ(out.back(), 0);
  fill_pattern(out, 57);
  EXPECT_EQ(std::string(out.begin(), out.end() - 1), "rdma-ping-57: zABCDEFGHIJKLMNOP");
  fill_pattern(out, 58);
  EXPECT_EQ(std::string(out.begin(), out.end() - 1), "rdma-ping-58: ABCDEFGHIJKLMNOPQ");
}

TEST(PingPattern, OfNoOctetsWritesNothing) {
  std::vector<std::uint8_t> around(3, 0xa5);
  fill_pattern(std::span(around).subspan(1, 0), 0);
  EXPECT_EQ(around, std::vector<std::uint8_t>(3, 0xa5));
}

TEST(PingPattern, FitsTheSmallestSizeWithTheLargestCounterOfRping) {
  std::vector<std::uint8_t> out(kMinSize);
  fill_pattern(out, 2147483647);
  EXPECT_EQ(out.back(), 0);
  EXPECT_EQ(std::string(out.begin(), out.begin() + 22), "rdma-ping-2147483647: ");
}

TEST(PingText, EndsWithItsFirstNul) {
  std::vector<std::uint8_t> octets = {'a', 'b', 0, 'c', 0};
  EXPECT_EQ(text_len(octets), 3u);
  octets = {'a', 'b'};
  EXPECT_EQ(text_len(octets), 2u);
  EXPECT_EQ(text_len({}), 0u);
}

}  // namespace
}  // namespace weft::apps::ping
