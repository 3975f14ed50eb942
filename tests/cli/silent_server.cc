#include "tests/cli/silent_server.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace weft::testing {

SilentServer::SilentServer() : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in addr{};
  addr.sin_family = AF_INET;
  addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t len = sizeof(addr);
  EXPECT_EQ(bind(listener_, reinterpret_cast<const sockaddr*>(&addr), len), 0);
  EXPECT_EQ(listen(listener_, 16), 0);
  EXPECT_EQ(getsockname(listener_, reinterpret_cast<sockaddr*>(&addr), &len), 0);
  port_ = ntohs(addr.sin_port);
  thread_ = std::thread([this] {
    for (int fd = -1; (fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
      const std::lock_guard lock(mutex_);
      connections_.push_back(fd);
      accepted_.notify_all();
    }
  });
}

SilentServer::~SilentServer() {
  shutdown(listener_, SHUT_RDWR);
  thread_.join();
  close(listener_);
  for (const int fd : connections_) close(fd);
}

std::size_t SilentServer::num_accepted() {
  const std::lock_guard lock(mutex_);
  return connections_.size();
}

void SilentServer::wait_for_connection(std::size_t before) {
  std::unique_lock lock(mutex_);
  accepted_.wait(lock, [&] { return connections_.size() > before; });
}

}  // namespace weft::testing
