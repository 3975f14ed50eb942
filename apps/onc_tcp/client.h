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

// Slow reports a slow server: `tell` runs once in each connect and each call of a Client that has waited for `after`
// and still waits.
struct Slow {
  std::chrono::milliseconds after{0};
  std::function<void()> tell;  // null: no report
};

// Client calls one program at a time over one TCP connection and waits for each Reply. It blocks until the Reply, the
// deadline, or until `stop_fd` becomes readable (negative: none). One thread uses it.
class Client {
 public:
  using Clock = std::chrono::steady_clock;
  // Some services trust clients on ports below 1024 and ask for one. Without the right to bind one, kReserved takes any
  // port.
  enum class LocalPort : std::uint8_t { kAny, kReserved };

  // dst is an IPv4, IPv6 or local socket address. Errors: kUnavailable (refused, unreachable), kDeadlineExceeded,
  // kCancelled (stop_fd); the message gives the exact reason.
  static absl::StatusOr<std::unique_ptr<Client>> connect(const sockaddr_storage& dst, socklen_t dst_len,
                                                         std::chrono::milliseconds timeout, int stop_fd = -1,
                                                         LocalPort local_port = LocalPort::kAny, Slow slow = {});
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // call sends one Call and returns the octets of its results. It chooses call.xid itself. Errors are as above, and
  // kFailedPrecondition if the server did not answer with SUCCESS. After any other error the connection is unusable.
  absl::StatusOr<std::vector<std::uint8_t>> call(rpcrdma::CallHeader call, ConstBytes args,
                                                 std::chrono::milliseconds timeout);

 private:
  // The most octets of one Reply that are accepted. An exports list of a large site fits.
  static constexpr std::size_t kMaxReply = 8 << 20;

  Client(int fd, int stop_fd, Slow slow);
  void begin_wait();
  // Returns OK while there is time left and no stop is requested.
  absl::Status check(Clock::time_point deadline);
  absl::Status wait(short events, Clock::time_point deadline);
  absl::Status send_all(ConstBytes octets, Clock::time_point deadline);
  absl::Status receive_record(Clock::time_point deadline);

  int fd_;
  int stop_fd_;
  Slow slow_;
  std::optional<Clock::time_point> slow_at_;  // until `tell` has run
  std::uint32_t next_xid_;
  RecordReader reader_{kMaxReply};
  std::vector<std::uint8_t> received_;
  ConstBytes unread_;  // in received_
};

}  // namespace weft::onc_tcp
