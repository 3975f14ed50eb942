#pragma once

#include <sys/socket.h>

#include <chrono>
#include <cstdint>

#include "verbs-shim/api/types.h"

namespace weft::apps {

// PeerPlace says whether the peer's threads need cores of this machine, too.
enum class PeerPlace : std::uint8_t { kThisMachine, kElsewhere };

// place_of is kThisMachine for the addresses of the loopback and of this machine's interfaces.
PeerPlace place_of(const sockaddr_storage& peer);

// cores_of_this_process counts those that the process may run on (sched_getaffinity(2)).
unsigned cores_of_this_process();

// SpinBudget says for how long a thread that waits polls before it sleeps. Polling saves the wake-up, which is most of
// a short round trip, as long as nothing else has use for the core. So the budget is bounded: the wait for a peer that
// does not get a core ends in sleep, which leaves it this one. And it shrinks where the thread itself lost its core: a
// gap between two looks of a polling thread means that something else ran. A plain value, with time as a parameter.
class SpinBudget {
 public:
  using Duration = std::chrono::steady_clock::duration;

  // A peer on this machine answers within microseconds if it has a core; longer waits are its wait for one.
  static constexpr Duration kForLocalPeer = std::chrono::microseconds(100);
  // Of a network's round trip a wake-up is a small part beyond this.
  static constexpr Duration kForRemotePeer = std::chrono::microseconds(1000);
  // The least time of polling: to wake a core that went idle costs ten times a short wait.
  static constexpr Duration kLeast = std::chrono::microseconds(20);
  // Interrupts and the kernel's own threads take less than this, another program's turn takes more.
  static constexpr Duration kGap = std::chrono::microseconds(500);
  // After such a gap the budget stays small for this time. Another gap soon after doubles the time.
  static constexpr Duration kFirstPause = std::chrono::milliseconds(100);
  static constexpr Duration kLongestPause = std::chrono::milliseconds(3200);

  SpinBudget(PeerPlace peer, unsigned num_cores);

  // may_spin: whether a wait that began at `began` goes on polling at `now`. To be asked at every look.
  bool may_spin(verbs::TimePoint began, verbs::TimePoint now);
  // How often the thread lost its core while it polled.
  std::uint64_t num_lost() const { return num_lost_; }

 private:
  void on_lost(verbs::TimePoint now);

  Duration full_;
  Duration pause_ = kFirstPause;
  verbs::TimePoint last_look_{};
  verbs::TimePoint small_until_{};
  std::uint64_t num_lost_ = 0;
};

}  // namespace weft::apps
