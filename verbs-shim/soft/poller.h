#pragma once

#include <sys/epoll.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/time.h"
#include "verbs-shim/api/result.h"
#include "verbs-shim/soft/source.h"

namespace weft::verbs::soft {

// Poller is the epoll descriptor of a loop. It contains a timerfd and an eventfd, which cost system calls only while a
// caller may sleep on the descriptor. This time begins with the first call of fd(), and excludes the times between
// set_busy(true) and set_busy(false).
class Poller {
 public:
  Status open();

  // The descriptor to sleep on. From the first call on it reflects set_deadline and set_wanted.
  int fd();
  // A new epoll descriptor over fd(), so that one caller's epoll set can hold several.
  Fd nested();
  // busy: the caller sleeps on no descriptor of the Poller until set_busy(false).
  void set_busy(bool busy);
  // Whether a caller may be asleep on the descriptor.
  bool watched() const { return asked_ && !busy_; }

  bool add(int fd, std::uint32_t events, Source& source) { return control(EPOLL_CTL_ADD, fd, events, &source); }
  bool modify(int fd, std::uint32_t events, Source& source) { return control(EPOLL_CTL_MOD, fd, events, &source); }
  void remove(int fd) { control(EPOLL_CTL_DEL, fd, 0, nullptr); }

  // The events that are ready now, without blocking; valid until the next call. The Poller handles its own descriptors
  // itself.
  std::span<epoll_event> poll();

  // Sleeps until something is ready.
  void wait();

  // at: the time until which the caller may sleep.
  void set_deadline(std::optional<TimePoint> at) {
    deadline_ = at;
    if (watched()) sync_deadline();
  }
  // wanted: the caller must not sleep at all.
  void set_wanted(bool wanted) {
    wanted_ = wanted;
    if (watched()) sync_wake();
  }

  // Channels count the events here that were not taken yet.
  void event_queued() {
    ++num_events_;
    set_wanted(true);
  }
  void events_taken(std::size_t num) { num_events_ -= num; }
  std::size_t num_events() const { return num_events_; }

  // Counts the sockets without room. Only epoll tells when they have room again.
  void expect_room(bool expected) { expected ? ++num_blocked_ : --num_blocked_; }
  bool expects_room() const { return num_blocked_ > 0; }

 private:
  bool control(int op, int fd, std::uint32_t events, Source* source);
  void sync_wake();
  void sync_deadline();

  Fd epoll_;
  Fd timer_;
  Fd wake_;
  Source timer_source_{Source::Kind::kWake};
  Source wake_source_{Source::Kind::kWake};
  bool asked_ = false;
  bool busy_ = false;
  bool wanted_ = false;
  bool signaled_ = false;
  std::optional<TimePoint> deadline_;
  std::optional<TimePoint> armed_;
  std::size_t num_events_ = 0;
  std::size_t num_blocked_ = 0;
  std::array<epoll_event, 256> events_{};
};

}  // namespace weft::verbs::soft
