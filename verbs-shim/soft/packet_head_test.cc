#include "verbs-shim/soft/packet_head.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "verbs-shim/soft/testing/trace.h"

namespace weft::verbs::soft {
namespace {

using testing::address;
using testing::Octets;

std::uint32_t sum_of(const Octets& octets) {
  std::uint32_t sum = 0;
  for (std::size_t at = 0; at < octets.size(); at += 2) {
    sum += static_cast<std::uint32_t>(octets[at] << 8 | (at + 1 < octets.size() ? octets[at + 1] : 0));
  }
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return sum;
}

// RFC 1071: what was summed up, and its checksum, make 0xffff.
TEST(PacketHead, TheChecksumOfTcpHolds) {
  for (const int family : {AF_INET, AF_INET6}) {
    for (const std::size_t len : {0u, 1u, 2u, 7u, 8u, 9u, 1001u, 65000u}) {
      Octets payload(len);
      for (std::size_t i = 0; i < len; ++i) payload[i] = static_cast<std::uint8_t>(i * 37 + 11);
      const PacketHead head(address(family, 1, 40000), address(family, 2, 20049),
                            {.seq = 1, .ack = 0xfffffff0, .flags = kAck}, payload, len);
      const std::size_t ip = family == AF_INET ? 20 : 40;
      const Octets octets(head.octets().begin(), head.octets().end());
      // The pseudo header: addresses, protocol, length.
      Octets all(octets.begin() + static_cast<std::ptrdiff_t>(family == AF_INET ? 12 : 8),
                 octets.begin() + static_cast<std::ptrdiff_t>(ip));
      const std::size_t tcp_len = 20 + len;
      for (const std::size_t word : {std::size_t{6}, tcp_len}) {
        all.push_back(static_cast<std::uint8_t>(word >> 8));
        all.push_back(static_cast<std::uint8_t>(word));
      }
      all.insert(all.end(), octets.begin() + static_cast<std::ptrdiff_t>(ip), octets.end());
      all.insert(all.end(), payload.begin(), payload.end());
      EXPECT_EQ(sum_of(all), 0xffffu) << family << " " << len;
    }
  }
}

}  // namespace
}  // namespace weft::verbs::soft
