#include "verbs-shim/soft/socket.h"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

namespace weft::verbs::soft {
namespace {

// IPv4 over Ethernet with timestamps (RFC 5044 section 5.1: derive a likely size if EMSS cannot be read).
constexpr std::size_t kLikelyEmss = 1448;
// Octets that the kernel's TCP takes and cannot send yet. The system's own tuning takes MB for a peer that reads
// nothing, and what TCP took is out of sight: its Send has completed. Beyond this much the octets stay here, under the
// rules for peers that do not take them. It is one READ of 1 MiB: with less, peers that take nothing hold the memory of
// so many Replies that a neighbour's READ waits longer (tests/exhaust).
constexpr int kMaxUnsent = 1 << 20;

bool set_int(int fd, int level, int option, int value) {
  return ::setsockopt(fd, level, option, &value, sizeof(value)) == 0;
}

bool set_liveness(int fd, const SoftConfig& config) {
  bool ok = true;
  if (config.keepalive_idle.count() > 0) {
    ok = set_int(fd, SOL_SOCKET, SO_KEEPALIVE, 1) &&
         set_int(fd, IPPROTO_TCP, TCP_KEEPIDLE, static_cast<int>(config.keepalive_idle.count())) &&
         set_int(fd, IPPROTO_TCP, TCP_KEEPINTVL, static_cast<int>(config.keepalive_interval.count())) &&
         set_int(fd, IPPROTO_TCP, TCP_KEEPCNT, config.keepalive_count);
  }
  if (config.user_timeout.count() > 0) {
    ok = ok && set_int(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(config.user_timeout.count()));
  }
  return ok;
}

}  // namespace

Error socket_error(const std::string& what, int errno_value) {
  return Error{errno_value, what + ": " + std::strerror(errno_value)};
}

Status set_options(int fd, const SoftConfig& config) {
  if (!set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1)) return socket_error("TCP_NODELAY", errno);  // MPA-5.1-04
  if (!set_int(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, kMaxUnsent)) return socket_error("TCP_NOTSENT_LOWAT", errno);
  if (!set_liveness(fd, config)) return socket_error("keepalive and user timeout", errno);
  if (config.send_buffer > 0 && !set_int(fd, SOL_SOCKET, SO_SNDBUF, config.send_buffer)) {
    return socket_error("SO_SNDBUF", errno);
  }
  if (config.receive_buffer > 0 && !set_int(fd, SOL_SOCKET, SO_RCVBUF, config.receive_buffer)) {
    return socket_error("SO_RCVBUF", errno);
  }
  const std::string& name = config.congestion_control;
  if (!name.empty() &&
      ::setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(), static_cast<socklen_t>(name.size())) != 0) {
    return socket_error("congestion control " + name + " (see /proc/sys/net/ipv4/tcp_allowed_congestion_control)",
                        errno);
  }
  return {};
}

Result<Fd> open_socket(int family, const SoftConfig& config) {
  Fd fd(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return socket_error("socket", errno);
  if (Status status = set_options(fd.get(), config); !status) return status.error();
  return fd;
}

std::size_t read_emss(int fd) {
  int emss = 0;
  socklen_t len = sizeof(emss);
  if (::getsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &emss, &len) != 0 || emss <= 0) return kLikelyEmss;  // MPA-5.1-03
  return static_cast<std::size_t>(emss);
}

std::size_t num_unsent(int fd) {
  int octets = 0;
  return ::ioctl(fd, SIOCOUTQNSD, &octets) == 0 ? static_cast<std::size_t>(std::max(octets, 0)) : 0;
}

int take_error(int fd) {
  int err = 0;
  socklen_t len = sizeof(err);
  if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len) != 0) return errno;
  return err;
}

void set_reset_on_close(int fd) {
  linger reset{};
  reset.l_onoff = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
}

}  // namespace weft::verbs::soft
