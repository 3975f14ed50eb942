#include "apps/onc_tcp/rpcbind.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/un.h>

namespace weft::onc_tcp {
namespace {

using Octets = std::vector<std::uint8_t>;

template <typename Addr>
sockaddr_storage storage(const Addr& addr) {
  sockaddr_storage out{};
  reinterpret_cast<Addr&>(out) = addr;
  return out;
}

sockaddr_storage ipv4(const char* text, std::uint16_t port) {
  sockaddr_in addr{};
  addr.sin_family = AF_INET;
  addr.sin_port = htons(port);
  EXPECT_EQ(inet_pton(AF_INET, text, &addr.sin_addr), 1);
  return storage(addr);
}

sockaddr_storage ipv6(const char* text, std::uint16_t port) {
  sockaddr_in6 addr{};
  addr.sin6_family = AF_INET6;
  addr.sin6_port = htons(port);
  EXPECT_EQ(inet_pton(AF_INET6, text, &addr.sin6_addr), 1);
  return storage(addr);
}

TEST(Rpcbind, UniversalAddresses) {
  EXPECT_EQ(universal_address(ipv4("192.0.2.7", 20049)), "192.0.2.7.78.81");
  EXPECT_EQ(universal_address(ipv4("0.0.0.0", 1)), "0.0.0.0.0.1");
  EXPECT_EQ(universal_address(ipv6("2001:db8::7", 20049)), "2001:db8::7.78.81");
  EXPECT_EQ(universal_address(ipv6("::", 65535)), "::.255.255");
}

TEST(Rpcbind, TheArgumentsOfSet) {
  const Rpcb rpcb{100003, 3, "rdma", "1.2.3.4.78.81", ""};
  Octets octets;
  rpcrdma::xdr::XdrWriter out(octets);
  emit(out, rpcb);
  EXPECT_EQ(octets, (Octets{0,   1, 0x86, 0xa3, 0,   0,   0,   3,                                            //
                            0,   0, 0,    4,    'r', 'd', 'm', 'a',                                          //
                            0,   0, 0,    13,   '1', '.', '2', '.', '3', '.', '4', '.', '7', '8', '.', '8',  //
                            '1', 0, 0,    0,    0,   0,   0,   0}));
  Rpcb back;
  rpcrdma::xdr::XdrReader in(octets);
  ASSERT_TRUE(parse(in, back));
  EXPECT_TRUE(in.at_end());
  EXPECT_EQ(back, rpcb);
  for (std::size_t len = 0; len < octets.size(); ++len) {
    rpcrdma::xdr::XdrReader cut{ConstBytes(octets).first(len)};
    EXPECT_FALSE(parse(cut, back)) << len;
  }
}

TEST(Rpcbind, ItsSocketIsTriedBeforeLoopback) {
  const auto places = local_rpcbind_places();
  ASSERT_EQ(places.size(), 2u);
  EXPECT_STREQ(reinterpret_cast<const sockaddr_un&>(places[0].addr).sun_path, "/run/rpcbind.sock");
  EXPECT_EQ(universal_address(places[1].addr), "127.0.0.1.0.111");
}

}  // namespace
}  // namespace weft::onc_tcp
