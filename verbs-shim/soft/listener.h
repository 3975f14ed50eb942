#pragma once

#include <atomic>
#include <cstddef>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/time.h"
#include "verbs-shim/soft/backlog.h"
#include "verbs-shim/soft/loop.h"
#include "verbs-shim/soft/source.h"

namespace weft::verbs::soft {

// Listener takes connections for a listening id in one loop. The id has a Listener in every loop. The Listener in the
// id's own loop accepts, and hands the connections to all Listeners in turn. A Listener that has not taken the last
// kMaxComing gets no more, so few connections are under way that no bound of a loop covers. When no descriptors are
// left, the oldest silent connection gives way, or accepting pauses.
class Listener final : public Source {
 public:
  static constexpr std::size_t kMaxComing = 16;

  // backlog: the number of connect requests that may wait for their answer. deliver: turns a request into an event.
  Listener(Loop& loop, std::size_t backlog, absl::AnyInvocable<void(Handle)> deliver);
  ~Listener() override;
  // fd: the listening socket. all: the id's Listeners, including this one, which is destroyed first. False if epoll has
  // no room; fd then stays with the caller.
  bool accept_on(Fd& fd, std::vector<Listener*> all);

  // Accepts the connections that wait in the kernel.
  std::size_t on_ready(std::uint32_t epoll_events, TimePoint now) override;
  // Descriptors may be available again.
  std::size_t on_timer(TimePoint now) override;
  // The Listener accepts no more.
  void unplug() override;
  // Makes a connection for this loop. adopted: as in Connection.
  Connection& take(Fd fd, const sockaddr_storage& peer, bool adopted);
  Loop& loop() { return loop_; }

 private:
  void hand_out(Fd fd, const sockaddr_storage& peer);
  void ask_others();
  void pause(TimePoint now);

  Loop& loop_;
  Backlog backlog_;
  Fd fd_;
  bool paused_ = false;
  std::atomic<std::size_t> coming_ = 0;  // connections on their way to this Listener
  std::vector<Listener*> all_;
  std::size_t next_ = 0;  // the Listener of all_ whose turn it is
};

}  // namespace weft::verbs::soft
