#include "apps/perf/socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/address.h"

namespace weft::apps::perf {
namespace {

absl::Status set_options(int fd, const std::string& congestion_control) {
  int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  if (!congestion_control.empty() && setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, congestion_control.data(),
                                                socklen_t(congestion_control.size())) != 0) {
    return errno_status("cannot set congestion control '" + congestion_control + "'");
  }
  return absl::OkStatus();
}

absl::StatusOr<Fd> make_socket(const sockaddr_storage& addr, const std::string& congestion_control) {
  Fd fd(socket(addr.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return errno_status("cannot make a socket");
  if (absl::Status status = set_options(fd.get(), congestion_control); !status.ok()) return status;
  return fd;
}

// Blocking calls return after this time to check for a stop signal and for the end of patience.
constexpr std::chrono::milliseconds kSlice{200};

void set_timeout(int fd, int option, std::chrono::milliseconds time) {
  const auto us = std::chrono::microseconds(time).count();
  const timeval value{us / 1'000'000, us % 1'000'000};
  setsockopt(fd, SOL_SOCKET, option, &value, sizeof(value));
}

}  // namespace

absl::Status errno_status(const std::string& what) {
  int saved = errno;
  return absl::Status(absl::ErrnoToStatusCode(saved), what + ": " + std::strerror(saved));
}

absl::StatusOr<Fd> tcp_listen(const sockaddr_storage& addr, const std::string& congestion_control) {
  auto fd = make_socket(addr, congestion_control);
  if (!fd.ok()) return fd.status();
  int one = 1;
  setsockopt(fd->get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
  constexpr int kBacklog = 16;
  if (bind(fd->get(), as_sockaddr(addr), address_len(addr)) != 0 || listen(fd->get(), kBacklog) != 0) {
    return errno_status("cannot listen on " + address_str(addr));
  }
  return fd;
}

absl::StatusOr<Fd> tcp_connect(const sockaddr_storage& addr, const std::string& congestion_control,
                               std::chrono::milliseconds patience) {
  auto fd = make_socket(addr, congestion_control);
  if (!fd.ok()) return fd.status();
  set_timeout(fd->get(), SO_SNDTIMEO, patience);
  if (connect(fd->get(), as_sockaddr(addr), address_len(addr)) != 0) {
    if (errno == EINPROGRESS) errno = ETIMEDOUT;  // the time of SO_SNDTIMEO is over
    return errno_status("cannot connect to " + address_str(addr) +
                        " (the 'tcp=' address of a listener's 'ready' line is wanted)");
  }
  return fd;
}

std::string congestion_control_of(int fd) {
  char name[16] = {};
  socklen_t len = sizeof(name);
  if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &len) != 0) return "?";
  return std::string(name, strnlen(name, sizeof(name)));
}

int mss_of(int fd) {
  int mss = 0;
  socklen_t len = sizeof(mss);
  return getsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &mss, &len) == 0 ? mss : 0;
}

std::chrono::milliseconds silent_for(int fd) {
  tcp_info info{};
  socklen_t len = sizeof info;
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0) return {};
  return std::chrono::milliseconds(std::min(info.tcpi_last_data_recv, info.tcpi_last_data_sent));
}

std::size_t write_size_of(int fd) {
  constexpr std::size_t kTarget = 1 << 20;
  auto mss = std::size_t(mss_of(fd));
  if (mss == 0) return kTarget;
  return mss > kTarget ? mss : kTarget / mss * mss;
}

Waiter::Waiter(ProgressMode mode, PeerPlace peer, std::chrono::milliseconds patience, const StopSignals* stop)
    : mode_(mode), budget_(peer, cores_of_this_process()), patience_(patience), stop_(stop) {}

void Waiter::prepare(int fd) const {
  for (const int option : {SO_RCVTIMEO, SO_SNDTIMEO}) set_timeout(fd, option, std::min(kSlice, patience_));
}

int Waiter::flags() const {
  return mode_ == ProgressMode::kBlock ? 0 : MSG_DONTWAIT;
}

bool Waiter::again(int fd, short events) {
  if (errno != EAGAIN && errno != EINTR) return false;
  const Clock::time_point now = Clock::now();
  if (!waiting_) {
    waiting_ = true;
    slept_ = false;
    began_ = now;
    ++waits_.waits;
  }
  if (stop_ != nullptr && stop_->requested()) {
    errno = ECANCELED;
    return false;
  }
  // A blocking call may have waited for one of its slices before this.
  if (now - began_ >= patience_) {
    errno = ETIMEDOUT;
    return false;
  }
  const bool spins =
      mode_ == ProgressMode::kSpin || (mode_ == ProgressMode::kAdapt && !slept_ && budget_.may_spin(began_, now));
  if (spins) return true;
  if (!slept_) ++waits_.sleeps;
  slept_ = true;
  if (mode_ == ProgressMode::kBlock) return true;
  pollfd polled[2] = {{fd, events, 0}, {stop_ != nullptr ? stop_->fd() : -1, POLLIN, 0}};
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(began_ + patience_ - now).count() + 1;
  poll(polled, 2, static_cast<int>(std::min<std::int64_t>(left, 60'000)));
  return true;
}

IoResult send_all(int fd, std::span<const std::uint8_t> octets, Waiter& waiter) {
  while (!octets.empty()) {
    const ssize_t n = send(fd, octets.data(), octets.size(), MSG_NOSIGNAL | waiter.flags());
    if (n >= 0) {
      octets = octets.subspan(std::size_t(n));
      if (n > 0) waiter.moved();
      continue;
    }
    // The kernel calls a socket writable once a good part of its buffer is free. Sending earlier would move tiny
    // pieces.
    pollfd writable{fd, POLLOUT, 0};
    do {
      if (!waiter.again(fd, POLLOUT)) return IoResult::kError;
      errno = EAGAIN;
    } while (waiter.flags() != 0 && poll(&writable, 1, 0) == 0);
  }
  return IoResult::kDone;
}

IoResult recv_all(int fd, std::span<std::uint8_t> octets, Waiter& waiter) {
  while (!octets.empty()) {
    ssize_t n = recv_some(fd, octets, waiter);
    if (n <= 0) return n == 0 ? IoResult::kEof : IoResult::kError;
    octets = octets.subspan(std::size_t(n));
  }
  return IoResult::kDone;
}

void receive_in_bulk(int fd) {
  const int octets = 256 << 10;
  setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &octets, sizeof(octets));
}

ssize_t recv_bulk(int fd, std::span<std::uint8_t> octets, Waiter& waiter) {
  // poll heeds SO_RCVLOWAT and leaves the socket's lock alone; recv does neither.
  pollfd readable{fd, POLLIN, 0};
  while (waiter.flags() != 0 && poll(&readable, 1, 0) == 0) {
    errno = EAGAIN;
    if (!waiter.again(fd, POLLIN)) return -1;
  }
  return recv_some(fd, octets, waiter);
}

ssize_t recv_some(int fd, std::span<std::uint8_t> octets, Waiter& waiter) {
  while (true) {
    const ssize_t n = recv(fd, octets.data(), octets.size(), waiter.flags());
    if (n >= 0) {
      waiter.moved();
      return n;
    }
    if (!waiter.again(fd, POLLIN)) return n;
  }
}

}  // namespace weft::apps::perf
