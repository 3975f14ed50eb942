#pragma once

#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "apps/onc_tcp/record.h"
#include "rpcrdma/rpc_message.h"

namespace weft::onc_tcp {

// Slow: `tell` runs once in each connect and each call of a Client that has waited for so long and still does.
struct Slow {
  std::chrono::milliseconds after{0};
  std::function<void()> tell;  // null: nobody is told
};

// Client calls one program at a time over one TCP connection and waits for each Reply. Blocking, bounded by deadlines,
// and ended by `stop_fd` turning readable (negative: none). One thread.
class Client {
 public:
  using Clock = std::chrono::steady_clock;
  // Services that trust whoever may bind a port below 1024 ask for one; without the right to it, it is any port.
  enum class LocalPort : std::uint8_t { kAny, kReserved };

  // dst is of IPv4, IPv6 or a local socket. Errors: kUnavailable (refused, unreachable), kDeadlineExceeded, kCancelled
  // (stop_fd); the message says which.
  static absl::StatusOr<std::unique_ptr<Client>> connect(const sockaddr_storage& dst, socklen_t dst_len,
                                                         std::chrono::milliseconds timeout, int stop_fd = -1,
                                                         LocalPort local_port = LocalPort::kAny, Slow slow = {});
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // call sends one Call and returns the octets of its results. call.xid is chosen here. Errors as above, and
  // kFailedPrecondition where the server answered with anything but SUCCESS. After an error of the other kinds the
  // connection is of no more use.
  absl::StatusOr<std::vector<std::uint8_t>> call(rpcrdma::CallHeader call, rpcrdma::ConstBytes args,
                                                 std::chrono::milliseconds timeout);

 private:
  // Octets of one Reply beyond which the server is not believed: an exports list of a large site fits.
  static constexpr std::size_t kMaxReply = 8 << 20;

  Client(int fd, int stop_fd, Slow slow);
  void begin_wait();
  // Whether there is still time, and no wish to stop.
  absl::Status check(Clock::time_point deadline);
  absl::Status wait(short events, Clock::time_point deadline);
  absl::Status send_all(rpcrdma::ConstBytes octets, Clock::time_point deadline);
  absl::Status receive_record(Clock::time_point deadline);

  int fd_;
  int stop_fd_;
  Slow slow_;
  std::optional<Clock::time_point> slow_at_;  // until it was told
  std::uint32_t next_xid_;
  RecordReader reader_{kMaxReply};
  std::vector<std::uint8_t> received_;
  rpcrdma::ConstBytes unread_;  // in received_
};

}  // namespace weft::onc_tcp
