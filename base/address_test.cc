#include "base/address.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>

#include <cstring>

#include "gtest/gtest.h"

namespace weft {
namespace {

sockaddr_storage v4(const char* text, std::uint16_t port) {
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_port = htons(port);
  EXPECT_EQ(inet_pton(AF_INET, text, &in.sin_addr), 1);
  sockaddr_storage addr{};
  std::memcpy(&addr, &in, sizeof in);
  return addr;
}

sockaddr_storage v6(const char* text, std::uint16_t port, std::uint32_t scope = 0) {
  sockaddr_in6 in{};
  in.sin6_family = AF_INET6;
  in.sin6_port = htons(port);
  in.sin6_scope_id = scope;
  EXPECT_EQ(inet_pton(AF_INET6, text, &in.sin6_addr), 1);
  sockaddr_storage addr{};
  std::memcpy(&addr, &in, sizeof in);
  return addr;
}

TEST(Address, LengthAndPortOfEachFamily) {
  sockaddr_storage in = v4("192.0.2.1", 20049), in6 = v6("2001:db8::1", 1), none{};
  EXPECT_EQ(address_len(in), sizeof(sockaddr_in));
  EXPECT_EQ(address_len(in6), sizeof(sockaddr_in6));
  EXPECT_EQ(address_len(none), 0u);
  EXPECT_EQ(port_of(in), 20049);
  EXPECT_EQ(port_of(in6), 1);
  for (sockaddr_storage* addr : {&in, &in6, &none}) set_port(*addr, 0x1234);
  EXPECT_EQ(address_str(in), "192.0.2.1:4660");
  EXPECT_EQ(address_str(in6), "[2001:db8::1]:4660");
  EXPECT_EQ(port_of(none), 0);
  EXPECT_EQ(none.ss_family, AF_UNSPEC);
}

TEST(Address, OfADescriptorThatIsNoSocket) {
  EXPECT_EQ(address_len(local_address(-1)), 0u);
  EXPECT_EQ(address_len(peer_address(-1)), 0u);
}

TEST(Address, OfEachFamily) {
  EXPECT_EQ(address_str(v4("192.0.2.1", 20049)), "192.0.2.1:20049");
  EXPECT_EQ(host_str(v4("192.0.2.1", 20049)), "192.0.2.1");
  EXPECT_EQ(address_str(v6("2001:db8::1", 1)), "[2001:db8::1]:1");
  EXPECT_EQ(host_str(v6("2001:db8::1", 1)), "2001:db8::1");
  EXPECT_EQ(address_str(sockaddr_storage{}), "unknown address");
  EXPECT_EQ(host_str(sockaddr_storage{}), "unknown address");
}

// Two links may have the same link-local address.
TEST(Address, OfALinkNamesTheLink) {
  const std::uint32_t loopback = if_nametoindex("lo");
  ASSERT_NE(loopback, 0u);
  EXPECT_EQ(address_str(v6("fe80::1", 7, loopback)), "[fe80::1%lo]:7");
}

}  // namespace
}  // namespace weft
