#include "tests/cli/noisy_server.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <utility>

namespace weft::testing {

NoisyServer::NoisyServer(std::string noise) : noise_(std::move(noise)) {
  thread_ = std::thread([this] { answer_all(); });
}

NoisyServer::~NoisyServer() {
  shutdown(listener_.fd(), SHUT_RDWR);
  thread_.join();
  for (const int fd : connections_) close(fd);
}

void NoisyServer::answer_all() {
  // CRCs wanted, no Markers, revision 1, no private data (RFC 5044 section 7.1).
  const std::string reply = "MPA ID Rep Frame" + std::string("\x40\x01\0\0", 4) + noise_;
  std::array<char, 20> request{};
  for (int fd = -1; (fd = accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
    connections_.push_back(fd);
    // A client that says or reads nothing holds the thread for ten seconds at most.
    const timeval limit{.tv_sec = 10, .tv_usec = 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (recv(fd, request.data(), request.size(), MSG_WAITALL) != ssize_t(request.size())) continue;
    send(fd, reply.data(), reply.size(), MSG_NOSIGNAL);
  }
}

}  // namespace weft::testing
