#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"

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
absl::StatusOr<Fd> tcp_listen(const sockaddr_storage& addr, const std::string& congestion_control);
absl::StatusOr<Fd> tcp_connect(const sockaddr_storage& addr, const std::string& congestion_control);
absl::StatusOr<sockaddr_storage> local_address(int fd);

// What the socket really uses.
std::string congestion_control_of(int fd);
// TCP_MAXSEG, octets; it grows while a loopback connection warms up, so ask again rather than keep it.
int mss_of(int fd);

// write_size_of gives the whole multiple of the MSS nearest below 1 MiB (at least one segment), in octets: writes of
// whole segments leave no runt behind.
std::size_t write_size_of(int fd);

enum class IoResult : std::uint8_t { kDone, kEof, kError };
// Wait says how a call waits for the other end: asleep in the kernel, or by asking again and again.
enum class Wait : std::uint8_t { kBlock, kSpin };
// send_all and recv_all move all octets; an interrupted call goes on.
IoResult send_all(int fd, std::span<const std::uint8_t> octets, Wait wait = Wait::kBlock);
IoResult recv_all(int fd, std::span<std::uint8_t> octets, Wait wait = Wait::kBlock);
// receive_in_bulk makes recv_bulk on this socket wait for 256 KiB (or the end). A receiver that takes each segment as
// it comes fights with the sender over the socket's lock and has loopback run at less than its speed.
void receive_in_bulk(int fd);
ssize_t recv_bulk(int fd, std::span<std::uint8_t> octets, Wait wait);
// recv_some receives what is there, at least one octet; 0 is the end, negative an error (errno).
ssize_t recv_some(int fd, std::span<std::uint8_t> octets, Wait wait);

}  // namespace weft::apps::perf
