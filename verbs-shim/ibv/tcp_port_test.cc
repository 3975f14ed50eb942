#include "verbs-shim/ibv/tcp_port.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <cerrno>

#include "base/address.h"

namespace weft::verbs::ibv {
namespace {

sockaddr_storage loopback() {
  sockaddr_storage out{};
  auto& addr = reinterpret_cast<sockaddr_in&>(out);
  addr.sin_family = AF_INET;
  addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return out;
}

// 0, or the errno value of bind.
int bind_error(const Fd& fd, const sockaddr_storage& addr, bool reuse) {
  const int on = reuse ? 1 : 0;
  if (::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0) return errno;
  return ::bind(fd.get(), as_sockaddr(addr), address_len(addr)) == 0 ? 0 : errno;
}

Fd tcp_socket() {
  return Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

TEST(TcpPort, IsKeptFromOthersAndLetInADevice) {
  sockaddr_storage addr = loopback();
  Result<Fd> held = reserve_tcp_port(addr);
  ASSERT_TRUE(held.ok()) << held.error().message;
  ASSERT_NE(port_of(addr), 0);
  EXPECT_EQ(bind_error(tcp_socket(), addr, false), EADDRINUSE);
  const Fd device = tcp_socket();
  EXPECT_EQ(bind_error(device, addr, true), 0);
  EXPECT_EQ(::listen(device.get(), 1), 0) << "the port of a listener, too";
}

TEST(TcpPort, IsFreeAgainWithItsSocket) {
  sockaddr_storage addr = loopback();
  {
    const Result<Fd> held = reserve_tcp_port(addr);
    ASSERT_TRUE(held.ok()) << held.error().message;
  }
  EXPECT_EQ(bind_error(tcp_socket(), addr, false), 0);
}

TEST(TcpPort, AForeignAddressHasNone) {
  sockaddr_storage addr = loopback();
  ASSERT_EQ(::inet_pton(AF_INET, "192.0.2.1", &reinterpret_cast<sockaddr_in&>(addr).sin_addr), 1);
  const Result<Fd> held = reserve_tcp_port(addr);
  ASSERT_FALSE(held.ok());
  EXPECT_EQ(held.error().errno_value, EADDRNOTAVAIL);
  EXPECT_EQ(port_of(addr), 0);
}

}  // namespace
}  // namespace weft::verbs::ibv
