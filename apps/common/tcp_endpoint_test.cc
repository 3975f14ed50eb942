#include "apps/common/tcp_endpoint.h"

#include <gtest/gtest.h>

#include "apps/common/address.h"

namespace weft::apps {
namespace {

TEST(TcpEndpoint, KeepsTheWholeAddressOfBothFamilies) {
  for (const char* text : {"127.0.0.1:7", "[::1]:7", "[2001:db8:1:2:3:4:5:6]:65535"}) {
    const auto endpoint = to_endpoint(resolve_address(text).value());
    EXPECT_EQ(address_str(*endpoint.data()), text);
    EXPECT_EQ(address_str(to_sockaddr(endpoint)), text);
  }
}

// An address of one link is none without its interface.
TEST(TcpEndpoint, KeepsTheInterface) {
  sockaddr_storage addr = resolve_address("[fe80::1]:7").value();
  reinterpret_cast<sockaddr_in6&>(addr).sin6_scope_id = 3;
  EXPECT_EQ(to_endpoint(addr).address().to_v6().scope_id(), 3u);
}

}  // namespace
}  // namespace weft::apps
