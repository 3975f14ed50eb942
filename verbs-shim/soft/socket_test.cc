#include "verbs-shim/soft/socket.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/address.h"
#include "mpa/fpdu.h"

namespace weft::verbs::soft {
namespace {

int option(int fd, int name) {
  int value = -1;
  socklen_t len = sizeof(value);
  EXPECT_EQ(::getsockopt(fd, IPPROTO_TCP, name, &value, &len), 0);
  return value;
}

const sockaddr* generic(const sockaddr_storage& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

// Both ends of a connection, with the options of every connection of a device.
TEST(Socket, SegmentsLeaveAtOnceAndTheEmssIsTcpsOwn) {
  RecordProperty("proves", "MPA-5.1-02 MPA-5.1-04");
  auto listener = open_socket(AF_INET, {});
  ASSERT_TRUE(listener.ok());
  sockaddr_storage any{};
  any.ss_family = AF_INET;
  reinterpret_cast<sockaddr_in&>(any).sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(listener->get(), generic(any), address_len(any)), 0);
  ASSERT_EQ(::listen(listener->get(), 1), 0);
  auto active = open_socket(AF_INET, {});
  ASSERT_TRUE(active.ok());
  const sockaddr_storage to = local_address(listener->get());
  ::connect(active->get(), generic(to), address_len(to));  // over loopback it is done when this returns
  const Fd passive(::accept4(listener->get(), nullptr, nullptr, SOCK_NONBLOCK));
  ASSERT_TRUE(passive);
  for (const int fd : {active->get(), passive.get()}) {
    EXPECT_EQ(option(fd, TCP_NODELAY), 1);
    const int maxseg = option(fd, TCP_MAXSEG);
    EXPECT_EQ(read_emss(fd), static_cast<std::size_t>(maxseg));
    EXPECT_EQ(mpa::mulpdu(read_emss(fd), false),
              std::min<std::size_t>(static_cast<std::size_t>(maxseg) / 4 * 4 - 6, mpa::kMaxMulpdu));
  }
}

}  // namespace
}  // namespace weft::verbs::soft
