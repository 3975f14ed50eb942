#include "tests/cli/loopback_listener.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace weft::testing {

LoopbackListener::LoopbackListener(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in addr{};
  addr.sin_family = AF_INET;
  addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  addr.sin_port = htons(port);
  socklen_t len = sizeof(addr);
  const int on = 1;
  EXPECT_EQ(::setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
  const bool has_port = ::bind(fd_, reinterpret_cast<const sockaddr*>(&addr), len) == 0 && ::listen(fd_, 16) == 0;
  EXPECT_TRUE(has_port || port != 0) << "no free port";
  if (!has_port) {
    ::close(fd_);
    fd_ = -1;
    return;
  }
  EXPECT_EQ(::getsockname(fd_, reinterpret_cast<sockaddr*>(&addr), &len), 0);
  port_ = ntohs(addr.sin_port);
}

LoopbackListener::~LoopbackListener() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace weft::testing
