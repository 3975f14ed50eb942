#include "tests/cli/silent_server.h"

#include <sys/socket.h>
#include <unistd.h>

namespace weft::testing {

SilentServer::SilentServer() {
  thread_ = std::thread([this] {
    for (int fd = -1; (fd = accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
      const std::lock_guard lock(mutex_);
      connections_.push_back(fd);
      accepted_.notify_all();
    }
  });
}

SilentServer::~SilentServer() {
  shutdown(listener_.fd(), SHUT_RDWR);
  thread_.join();
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
