#include "base/address.h"
#include "apps/common/address.h"

#include <gtest/gtest.h>

namespace weft::apps {
namespace {

TEST(ParseHostPort, TakesTheThreeForms) {
  EXPECT_EQ(*parse_host_port("127.0.0.1:20049"), (HostPort{"127.0.0.1", 20049}));
  EXPECT_EQ(*parse_host_port("host.example:0"), (HostPort{"host.example", 0}));
  EXPECT_EQ(*parse_host_port("[::1]:65535"), (HostPort{"::1", 65535}));
}

TEST(ParseHostPort, DefaultPortCountsOnlyWhereNoneIsWritten) {
  EXPECT_EQ(*parse_host_port("host", 7174), (HostPort{"host", 7174}));
  EXPECT_EQ(*parse_host_port("[::1]", 7174), (HostPort{"::1", 7174}));
  EXPECT_EQ(*parse_host_port("host:1", 7174), (HostPort{"host", 1}));
  EXPECT_FALSE(parse_host_port("host").ok());
}

TEST(ParseHostPort, RefusesEverythingElse) {
  for (const char* text : {"", ":1", "host:", "host:x", "host:65536", "host:-1", "host:1x", "::1", "::1:80", "[::1",
                           "[]:1", "[::1]x", "[::1]80"}) {
    EXPECT_FALSE(parse_host_port(text).ok()) << text;
  }
}

TEST(ResolveAddress, NumericAddressesComeBackAsWritten) {
  EXPECT_EQ(address_str(*resolve_address("127.0.0.1:20049")), "127.0.0.1:20049");
  EXPECT_EQ(address_str(*resolve_address("[::1]:7")), "[::1]:7");
}

TEST(ResolveAddress, SetPortKeepsTheAddress) {
  for (const char* text : {"127.0.0.1:1", "[::1]:1"}) {
    auto addr = *resolve_address(text);
    set_port(addr, 4000);
    EXPECT_EQ(port_of(addr), 4000);
    EXPECT_TRUE(address_str(addr).ends_with(":4000"));
  }
}

}  // namespace
}  // namespace weft::apps
