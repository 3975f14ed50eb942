#include "tests/cli/meddling_proxy.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>

#include "mpa/crc32c.h"

namespace weft::testing {
namespace {

using Octets = std::vector<std::uint8_t>;

// Queue 2, MSN 1: "remote operation: catastrophic error, global", without headers.
Octets terminate_fpdu() {
  Octets out = {0, 22, 0x41, 0x47, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0x02, 0x08, 0, 0};
  std::array<std::uint8_t, 4> crc;
  mpa::emit_crc(crc, mpa::crc32c(out));
  out.insert(out.end(), crc.begin(), crc.end());
  return out;
}

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

const sockaddr* generic(const sockaddr_in& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

}  // namespace

MeddlingProxy::MeddlingProxy(const std::string& server, To to)
    : server_port_(static_cast<std::uint16_t>(std::stoi(server.substr(server.rfind(':') + 1)))), to_(to) {
  thread_ = std::thread([this] { run(); });
}

MeddlingProxy::~MeddlingProxy() {
  stopping_ = true;
  thread_.join();
  for (std::thread& connection : connections_) connection.join();
}

std::string MeddlingProxy::address() const {
  return "127.0.0.1:" + std::to_string(listener_.port());
}

// Whether octets or the end can be read before the proxy ends.
bool MeddlingProxy::wait_for(int fd) const {
  pollfd wanted{fd, POLLIN, 0};
  while (!stopping_) {
    if (::poll(&wanted, 1, 20) > 0) return true;
  }
  return false;
}

void MeddlingProxy::run() {
  while (wait_for(listener_.fd())) {
    const int client = ::accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) continue;
    const std::scoped_lock lock(mutex_);
    connections_.emplace_back([this, client] { serve(client); });
  }
}

// A startup frame: 20 octets, of which the last two say how much private data follows.
bool MeddlingProxy::pass_frame(int from, int to, bool meddle) const {
  constexpr std::size_t kHeaderLen = 20;
  Octets frame;
  std::size_t need = kHeaderLen;
  while (frame.size() < need) {
    if (!wait_for(from)) return false;
    Octets more(need - frame.size());
    const ssize_t n = ::recv(from, more.data(), more.size(), 0);
    if (n <= 0) return false;
    frame.insert(frame.end(), more.begin(), more.begin() + n);
    if (frame.size() == kHeaderLen) need += static_cast<std::size_t>(frame[18]) << 8 | frame[19];
  }
  if (meddle && frame.size() >= kHeaderLen + 4) {
    frame[20] = static_cast<std::uint8_t>((frame[20] & 0x3f) | 0x80);  // A, not B
    frame[22] = static_cast<std::uint8_t>((frame[22] & 0x3f) | 0x80);  // C, not D
  }
  return ::send(to, frame.data(), frame.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(frame.size());
}

void MeddlingProxy::serve(int client) {
  const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const Octets terminate = terminate_fpdu();
  const sockaddr_in to = loopback(server_port_);
  bool client_open = true;
  if (::connect(server, generic(to), sizeof(to)) == 0 && pass_frame(client, server, false) &&
      pass_frame(server, client, to_ == To::kReply)) {
    if (to_ == To::kClient && wait_for(client)) {
      ::send(client, terminate.data(), terminate.size(), MSG_NOSIGNAL);
    } else if (to_ == To::kServer) {
      ::send(server, terminate.data(), terminate.size(), MSG_NOSIGNAL);
      ::close(client);
      client_open = false;
    }
    // The end that was spoken to sees no end of the connection.
    const int heard = to_ == To::kServer ? server : client;
    std::array<std::uint8_t, 4096> sink;
    while (wait_for(heard)) {
      if (::recv(heard, sink.data(), sink.size(), 0) > 0) continue;
      while (!stopping_) ::usleep(1000);
    }
  }
  if (client_open) ::close(client);
  ::close(server);
}

}  // namespace weft::testing
