#include "base/peer_group.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <cstring>

namespace weft {
namespace {

std::string group_of_v4(const char* text, std::uint16_t port = 1) {
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_port = htons(port);
  EXPECT_EQ(inet_pton(AF_INET, text, &in.sin_addr), 1) << text;
  sockaddr_storage addr{};
  std::memcpy(&addr, &in, sizeof in);
  return peer_group(addr);
}

std::string group_of_v6(const char* text, std::uint32_t scope = 0) {
  sockaddr_in6 in{};
  in.sin6_family = AF_INET6;
  in.sin6_scope_id = scope;
  EXPECT_EQ(inet_pton(AF_INET6, text, &in.sin6_addr), 1) << text;
  sockaddr_storage addr{};
  std::memcpy(&addr, &in, sizeof in);
  return peer_group(addr);
}

TEST(PeerGroup, AnIpv4AddressIsOneWhateverItsPort) {
  EXPECT_EQ(group_of_v4("192.0.2.7", 1), "192.0.2.7");
  EXPECT_EQ(group_of_v4("192.0.2.7", 2), "192.0.2.7");
  EXPECT_NE(group_of_v4("192.0.2.8"), group_of_v4("192.0.2.7"));
}

TEST(PeerGroup, AMappedAddressIsTheIpv4Address) {
  EXPECT_EQ(group_of_v6("::ffff:192.0.2.7"), "192.0.2.7");
  EXPECT_EQ(group_of_v6("::ffff:192.0.2.8"), "192.0.2.8");
}

TEST(PeerGroup, Ipv6AddressesOfOnePrefixCountTogether) {
  EXPECT_EQ(group_of_v6("2001:db8:0:1::5"), "2001:db8:0:1::/64");
  EXPECT_EQ(group_of_v6("2001:db8:0:1:ffff:ffff:ffff:ffff"), "2001:db8:0:1::/64");
  EXPECT_EQ(group_of_v6("2001:db8:0:2::5"), "2001:db8:0:2::/64");
}

TEST(PeerGroup, ALinkIsAGroupAndLoopbackIsOne) {
  EXPECT_EQ(group_of_v6("fe80::1", 3), "fe80::%3/64");
  EXPECT_NE(group_of_v6("fe80::1", 3), group_of_v6("fe80::1", 4));
  EXPECT_EQ(group_of_v6("::1"), "::1");
}

TEST(PeerGroup, OtherFamiliesHaveAName) {
  EXPECT_EQ(peer_group({}), "unknown address");
}

}  // namespace
}  // namespace weft
