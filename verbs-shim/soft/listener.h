#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "verbs-shim/soft/backlog.h"
#include "verbs-shim/soft/loop.h"
#include "verbs-shim/soft/source.h"
#include "verbs-shim/soft/unique_fd.h"

namespace weft::verbs::soft {

// Listener accepts connections for a listening id, in one loop. The id has one in every loop; that in its own
// accepts, and they take turns. Out of descriptors, the oldest silent connection gives way, or accepting pauses.
class Listener final : public Source {
 public:
  // backlog: how many connect requests may wait for their answer; deliver: makes an event of one.
  Listener(Loop& loop, std::size_t backlog, absl::AnyInvocable<void(Handle)> deliver);
  ~Listener() override;
  // fd: the listening socket; all: the id's Listeners, this one among them and the first of them to go. False where
  // epoll has no room; then fd stays with the caller.
  bool accept_on(UniqueFd& fd, std::vector<Listener*> all);

  // Accepts the connections that wait in the kernel.
  std::size_t on_ready(std::uint32_t epoll_events, TimePoint now) override;
  // Descriptors may be had again.
  std::size_t on_timer(TimePoint now) override;
  // It accepts no more.
  void unplug() override;
  // A connection for this loop. adopted: as Connection says.
  Connection& take(UniqueFd fd, const sockaddr_storage& peer, bool adopted);
  Loop& loop() { return loop_; }

 private:
  void hand_out(UniqueFd fd, const sockaddr_storage& peer);
  void ask_others();
  void pause(TimePoint now);

  Loop& loop_;
  Backlog backlog_;
  UniqueFd fd_;
  bool paused_ = false;
  std::vector<Listener*> all_;
  std::size_t next_ = 0;  // whose turn it is among all_
};

}  // namespace weft::verbs::soft
