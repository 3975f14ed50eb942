#pragma once

#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "apps/common/progress.h"
#include "base/fd.h"

// Plain TCP sockets for the baselines: only system calls, so that the comparison shows the kernel itself.
namespace weft::apps::perf {

// errno_status says what failed and gives the meaning of errno.
absl::Status errno_status(const std::string& what);

// tcp_listen and tcp_connect set the congestion control (demanded: an unknown one is an error) and TCP_NODELAY.
// tcp_connect waits for `patience` at most.
absl::StatusOr<Fd> tcp_listen(const sockaddr_storage& addr, const std::string& congestion_control);
absl::StatusOr<Fd> tcp_connect(const sockaddr_storage& addr, const std::string& congestion_control,
                               std::chrono::milliseconds patience);

// The congestion control that the socket really uses.
std::string congestion_control_of(int fd);
// TCP_MAXSEG, octets. It grows while a loopback connection warms up, so callers ask again and do not keep it.
int mss_of(int fd);
// How long no data has come or gone.
std::chrono::milliseconds silent_for(int fd);

// write_size_of gives the whole multiple of the MSS nearest below 1 MiB (at least one segment), in octets. Writes of
// whole segments leave no short segment behind.
std::size_t write_size_of(int fd);

// Waiter is the way in which one thread waits for one socket: asleep in the kernel, by asking again and again, or as
// its SpinBudget allows. No wait is longer than `patience`, and a stop signal ends it (stop may be null).
class Waiter {
 public:
  Waiter(ProgressMode mode, PeerPlace peer, std::chrono::milliseconds patience, const StopSignals* stop);

  // prepare sets the socket's own timeouts if system calls block.
  void prepare(int fd) const;
  // MSG_DONTWAIT, except for kBlock.
  int flags() const;
  // again is for a call that failed with errno. If errno means that the call must wait, again waits and returns true.
  // Otherwise errno is the reason: ETIMEDOUT for the end of patience, ECANCELED for a stop signal.
  bool again(int fd, short events);
  // The call moved data.
  void moved() { waiting_ = false; }

  ProgressMode mode() const { return mode_; }
  const Waits& waits() const { return waits_; }

 private:
  using Clock = std::chrono::steady_clock;

  ProgressMode mode_;
  SpinBudget budget_;
  std::chrono::milliseconds patience_;
  const StopSignals* stop_;
  bool waiting_ = false;
  bool slept_ = false;  // in this wait
  Clock::time_point began_;
  Waits waits_;
};

enum class IoResult : std::uint8_t { kDone, kEof, kError };
// send_all and recv_all move all octets.
IoResult send_all(int fd, std::span<const std::uint8_t> octets, Waiter& waiter);
IoResult recv_all(int fd, std::span<std::uint8_t> octets, Waiter& waiter);
// receive_in_bulk makes recv_bulk on this socket wait for 256 KiB (or the end). A receiver that takes each segment as
// it comes fights with the sender over the socket's lock and slows loopback down.
void receive_in_bulk(int fd);
ssize_t recv_bulk(int fd, std::span<std::uint8_t> octets, Waiter& waiter);
// recv_some receives the octets that are there, at least one. 0 is the end, a negative value an error (errno).
ssize_t recv_some(int fd, std::span<std::uint8_t> octets, Waiter& waiter);

}  // namespace weft::apps::perf
