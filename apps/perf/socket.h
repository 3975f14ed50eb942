#pragma once

#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "apps/common/progress.h"

// Plain TCP sockets for the baselines: nothing but system calls, so that what is compared with is what the kernel does.
namespace weft::apps::perf {

// Fd owns a descriptor.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.release()) {}
  Fd& operator=(Fd&& other) noexcept;
  ~Fd();
  int get() const { return fd_; }
  int release();
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// errno_status says what failed and what errno means.
absl::Status errno_status(const std::string& what);

// tcp_listen and tcp_connect set the congestion control (demanded: an unknown one is an error) and TCP_NODELAY.
// tcp_connect waits for `patience` at most.
absl::StatusOr<Fd> tcp_listen(const sockaddr_storage& addr, const std::string& congestion_control);
absl::StatusOr<Fd> tcp_connect(const sockaddr_storage& addr, const std::string& congestion_control,
                               std::chrono::milliseconds patience);
absl::StatusOr<sockaddr_storage> local_address(int fd);

// What the socket really uses.
std::string congestion_control_of(int fd);
// TCP_MAXSEG, octets; it grows while a loopback connection warms up, so ask again rather than keep it.
int mss_of(int fd);
// How long no data have come or gone.
std::chrono::milliseconds silent_for(int fd);

// write_size_of gives the whole multiple of the MSS nearest below 1 MiB (at least one segment), in octets: writes of
// whole segments leave no runt behind.
std::size_t write_size_of(int fd);

// Waiter is how one thread waits for one socket: asleep in the kernel, by asking again and again, or by what its
// SpinBudget allows. No wait is longer than `patience`, and a stop signal ends it (stop may be null).
class Waiter {
 public:
  Waiter(ProgressMode mode, PeerPlace peer, std::chrono::milliseconds patience, const StopSignals* stop);

  // prepare sets the socket's own timeouts, where system calls block.
  void prepare(int fd) const;
  // MSG_DONTWAIT, but for kBlock.
  int flags() const;
  // again: a call failed with errno. Where that means that it has to wait, waits and returns true. Else errno says why
  // not; ETIMEDOUT is for the end of patience and ECANCELED for a stop signal.
  bool again(int fd, short events);
  // The call moved something.
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
// it comes fights with the sender over the socket's lock and has loopback run at less than its speed.
void receive_in_bulk(int fd);
ssize_t recv_bulk(int fd, std::span<std::uint8_t> octets, Waiter& waiter);
// recv_some receives what is there, at least one octet; 0 is the end, negative an error (errno).
ssize_t recv_some(int fd, std::span<std::uint8_t> octets, Waiter& waiter);

}  // namespace weft::apps::perf
