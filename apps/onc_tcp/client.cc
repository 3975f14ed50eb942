#include "apps/onc_tcp/client.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>
#include <string>
#include <utility>

namespace weft::onc_tcp {
namespace {

constexpr std::size_t kReceiveLen = 64 << 10;

absl::Status unavailable(const char* what, int error) {
  return absl::UnavailableError(std::string(what) + ": " + std::strerror(error));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Client>> Client::connect(const sockaddr_storage& dst, socklen_t dst_len,
                                                        std::chrono::milliseconds timeout, int stop_fd,
                                                        LocalPort local_port, Slow slow) {
  const int fd = socket(dst.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return unavailable("cannot make a TCP socket", errno);
  std::unique_ptr<Client> client(new Client(fd, stop_fd, std::move(slow)));
  client->begin_wait();
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  if (local_port == LocalPort::kReserved && dst.ss_family == AF_INET) bindresvport(fd, nullptr);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&dst), dst_len) != 0) {
    if (errno != EINPROGRESS) return unavailable("cannot connect", errno);
    if (absl::Status status = client->wait(POLLOUT, Clock::now() + timeout); !status.ok()) return status;
    int error = 0;
    socklen_t len = sizeof(error);
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len);
    if (error != 0) return unavailable("cannot connect", error);
  }
  return client;
}

Client::Client(int fd, int stop_fd, Slow slow)
    : fd_(fd), stop_fd_(stop_fd), slow_(std::move(slow)), next_xid_(std::random_device()()) {}

Client::~Client() {
  close(fd_);
}

absl::StatusOr<std::vector<std::uint8_t>> Client::call(rpcrdma::CallHeader call, ConstBytes args,
                                                       std::chrono::milliseconds timeout) {
  const Clock::time_point deadline = Clock::now() + timeout;
  begin_wait();
  call.xid = next_xid_++;
  std::vector<std::uint8_t> message;
  rpcrdma::xdr::XdrWriter writer(message);
  rpcrdma::emit_call(writer, call);
  writer.raw(args);
  std::vector<std::uint8_t> stream;
  emit_record(message, stream);
  if (absl::Status status = send_all(stream, deadline); !status.ok()) return status;

  while (true) {
    if (absl::Status status = receive_record(deadline); !status.ok()) return status;
    rpcrdma::xdr::XdrReader reader(reader_.record());
    rpcrdma::ReplyHeader reply;
    if (!rpcrdma::parse_reply(reader, reply)) return absl::UnavailableError("the answer is no RPC reply");
    if (reply.xid != call.xid) continue;  // of an abandoned call
    if (reply.denied || reply.accept != rpcrdma::AcceptStat::kSuccess) {
      return absl::FailedPreconditionError(rpcrdma::describe(reply));
    }
    const ConstBytes results = reader.rest();
    return std::vector<std::uint8_t>(results.begin(), results.end());
  }
}

void Client::begin_wait() {
  slow_at_.reset();
  if (slow_.tell) slow_at_ = Clock::now() + slow_.after;
}

absl::Status Client::check(Clock::time_point deadline) {
  if (Clock::now() >= deadline) return absl::DeadlineExceededError("no answer in time");
  pollfd stop{stop_fd_, POLLIN, 0};
  if (stop_fd_ >= 0 && poll(&stop, 1, 0) > 0) return absl::CancelledError("interrupted");
  return absl::OkStatus();
}

absl::Status Client::wait(short events, Clock::time_point deadline) {
  while (true) {
    const Clock::time_point now = Clock::now();
    if (slow_at_ && now >= *slow_at_ && now < deadline) {
      slow_at_.reset();
      slow_.tell();
    }
    const Clock::time_point until = slow_at_ ? std::min(*slow_at_, deadline) : deadline;
    // One more millisecond, so that a fraction of one does not cause a loop without sleep.
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - now).count() + 1;
    if (now >= deadline) return absl::DeadlineExceededError("no answer in time");
    pollfd polled[2] = {{fd_, events, 0}, {stop_fd_, POLLIN, 0}};
    const int ready = poll(polled, 2, static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000)));
    if (ready < 0 && errno != EINTR) return unavailable("poll", errno);
    if (ready > 0 && polled[1].revents != 0) return absl::CancelledError("interrupted");
    if (ready > 0 && polled[0].revents != 0) return absl::OkStatus();
  }
}

absl::Status Client::send_all(ConstBytes octets, Clock::time_point deadline) {
  while (!octets.empty()) {
    const ssize_t len = send(fd_, octets.data(), octets.size(), MSG_NOSIGNAL);
    if (len >= 0) {
      octets = octets.subspan(static_cast<std::size_t>(len));
    } else if (errno == EAGAIN || errno == EINTR) {
      if (absl::Status status = wait(POLLOUT, deadline); !status.ok()) return status;
    } else {
      return unavailable("cannot send", errno);
    }
  }
  return absl::OkStatus();
}

absl::Status Client::receive_record(Clock::time_point deadline) {
  while (true) {
    switch (reader_.next(unread_)) {
      case RecordReader::Outcome::kRecord: return absl::OkStatus();
      case RecordReader::Outcome::kTooLong:
        return absl::UnavailableError("the answer is too long; another program may listen on that port");
      case RecordReader::Outcome::kNeedMore: break;
    }
    received_.resize(kReceiveLen);
    const ssize_t len = recv(fd_, received_.data(), received_.size(), 0);
    if (len > 0) {
      unread_ = ConstBytes(received_).first(static_cast<std::size_t>(len));
      // A peer that keeps sending unrequested data must not hold us beyond the deadline.
      if (absl::Status status = check(deadline); !status.ok()) return status;
    } else if (len == 0) {
      return absl::UnavailableError("the server closed the connection without an answer");
    } else if (errno == EAGAIN || errno == EINTR) {
      if (absl::Status status = wait(POLLIN, deadline); !status.ok()) return status;
    } else {
      return unavailable("cannot receive", errno);
    }
  }
}

}  // namespace weft::onc_tcp
