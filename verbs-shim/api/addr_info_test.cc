#include "verbs-shim/api/addr_info.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <cerrno>
#include <cstring>

namespace weft::verbs {
namespace {

std::string host_of(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = "?";
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  std::memcpy(&v4, &address, sizeof(v4));
  std::memcpy(&v6, &address, sizeof(v6));
  const void* octets = address.ss_family == AF_INET ? static_cast<const void*>(&v4.sin_addr) : &v6.sin6_addr;
  inet_ntop(address.ss_family, octets, text, sizeof(text));
  return text;
}

// The port stands at the same place in both families.
std::uint16_t port_of(const sockaddr_storage& address) {
  sockaddr_in v4{};
  std::memcpy(&v4, &address, sizeof(v4));
  return ntohs(v4.sin_port);
}

TEST(GetAddrInfo, NumericAddressesOfBothFamilies) {
  const auto v4 = getaddrinfo("192.0.2.7", "20049", false);
  ASSERT_TRUE(v4.ok()) << v4.error().message;
  ASSERT_EQ(v4.value().size(), 1u);
  EXPECT_EQ(v4.value()[0].ss_family, AF_INET);
  EXPECT_EQ(host_of(v4.value()[0]), "192.0.2.7");
  EXPECT_EQ(port_of(v4.value()[0]), 20049);
  for (const char* node : {"2001:db8::1", "[2001:db8::1]"}) {
    const auto v6 = getaddrinfo(node, "1", false);
    ASSERT_TRUE(v6.ok()) << v6.error().message;
    ASSERT_EQ(v6.value().size(), 1u);
    EXPECT_EQ(host_of(v6.value()[0]), "2001:db8::1");
    EXPECT_EQ(port_of(v6.value()[0]), 1);
  }
}

TEST(GetAddrInfo, WithoutAHostItDependsOnTheSide) {
  const auto active = getaddrinfo("", "7", false);
  ASSERT_TRUE(active.ok());
  for (const auto& address : active.value()) EXPECT_TRUE(host_of(address) == "127.0.0.1" || host_of(address) == "::1");
  const auto passive = getaddrinfo("", "7", true);
  ASSERT_TRUE(passive.ok());
  for (const auto& address : passive.value()) EXPECT_TRUE(host_of(address) == "0.0.0.0" || host_of(address) == "::");
}

TEST(GetAddrInfo, NamesAndNoService) {
  const auto found = getaddrinfo("localhost", "", false);
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_FALSE(found.value().empty());
  EXPECT_EQ(port_of(found.value()[0]), 0);
}

TEST(GetAddrInfo, WhatDoesNotExistIsNamed) {
  const auto host = getaddrinfo("no-such-host.invalid", "7", false);
  ASSERT_FALSE(host.ok());
  EXPECT_NE(host.error().message.find("no-such-host.invalid"), std::string::npos) << host.error().message;
  const auto service = getaddrinfo("127.0.0.1", "no-such-service", false);
  ASSERT_FALSE(service.ok());
  EXPECT_EQ(service.error().errno_value, ENOENT);
}

}  // namespace
}  // namespace weft::verbs
