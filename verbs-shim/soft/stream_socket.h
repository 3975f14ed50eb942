#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/fd.h"
#include "base/time.h"
#include "mpa/staging.h"
#include "rdmap/stream.h"
#include "verbs-shim/soft/poller.h"

namespace weft::verbs::soft {

// StreamSocket moves octets between a TCP socket and a Stream, a bounded number in a turn, and keeps the Poller's
// interest in the socket up to date. It does not interpret the octets.
class StreamSocket {
 public:
  using IoVectors = std::array<iovec, 1024>;

  // adopted: another object may hold a descriptor of the socket, too. source: its name in the Poller.
  StreamSocket(Fd fd, bool adopted, Poller& poller, Source& source);
  ~StreamSocket() { close(); }
  StreamSocket(const StreamSocket&) = delete;
  StreamSocket& operator=(const StreamSocket&) = delete;

  int fd() const { return fd_.get(); }
  bool open() const { return static_cast<bool>(fd_); }
  bool adopted() const { return adopted_; }

  // ---- the Poller
  // Enters the socket for these events. False if epoll has no room; errno then says why.
  bool watch(std::uint32_t epoll_events);
  void unwatch();
  // Makes the Poller wait for octets until their end, and for room while there is none. An unwatched socket stays
  // unwatched while it has room.
  void rearm();

  // ---- turns. Each moves `most` octets at most, and a write perhaps the rest of an FPDU. It returns the number of
  // octets that it moved, and 1 more for an end or an error. The Stream has been told of the end or error.
  struct Written {
    std::size_t moved = 0;
    bool cut_short = false;  // the bound ended it, not the socket or the Stream
  };
  // TCP is connected: reads EMSS.
  void start();
  std::size_t read(rdmap::Stream& stream, mpa::Staging& staging, IoVectors& iov, std::size_t most, TimePoint now);
  Written write(rdmap::Stream& stream, IoVectors& iov, std::size_t most, TimePoint now);

  bool readable() const { return fd_ && rx_ != Rx::kEnded; }
  // Whether the last turn of reading ended, or was put off, before the socket was empty.
  bool more_to_read() const { return rx_ == Rx::kMore; }
  void put_off_reading() { rx_ = Rx::kMore; }
  void end_reading() { rx_ = Rx::kEnded; }
  // Whether the socket took less than it was given, until set_blocked(false).
  bool blocked() const { return blocked_; }
  void set_blocked(bool blocked);

  // ---- ends
  // Replaces the socket.
  void replace(Fd fd);
  // Takes the socket out of the Poller and returns it to its owner.
  Fd release();
  void close();

 private:
  enum class Rx : std::uint8_t { kOpen, kMore, kEnded };

  Poller& poller_;
  Source& source_;
  Fd fd_;
  std::optional<std::uint32_t> interest_;  // the events in the Poller, if the socket is in it
  std::size_t emss_ = 0;
  std::size_t budget_;  // octets framed for the next sendmsg
  Rx rx_ = Rx::kOpen;
  bool blocked_ = false;
  bool bulk_ = false;  // the last turn filled segments: EMSS matters
  const bool adopted_;
};

}  // namespace weft::verbs::soft
