#pragma once

#include <sys/socket.h>

#include <chrono>
#include <cstdint>

#include "base/time.h"
#include "verbs-shim/api/types.h"

namespace weft::apps {

// PeerPlace says whether the peer's threads need cores of this machine too.
enum class PeerPlace : std::uint8_t { kThisMachine, kElsewhere };

// place_of is kThisMachine for the addresses of the loopback and of this machine's interfaces.
PeerPlace place_of(const sockaddr_storage& peer);

// cores_of_this_process counts the cores that the process may run on (sched_getaffinity(2)).
unsigned cores_of_this_process();

// SpinBudget says how long a waiting thread polls before it sleeps. Polling saves the wake-up, which is most of a short
// round trip, as long as no other thread needs the core. So the budget is bounded: the wait for a peer that has no core
// ends in sleep, which leaves this core to the peer. The budget also shrinks when the thread itself lost its core: a
// gap between two looks of a polling thread means that another thread ran. SpinBudget is a plain value, with time as a
// parameter.
class SpinBudget {
 public:
  using Duration = std::chrono::steady_clock::duration;

  // A peer on this machine answers within microseconds if it has a core. In a longer wait, the peer waits for a core.
  static constexpr Duration kForLocalPeer = std::chrono::microseconds(100);
  // Beyond this time, a wake-up is a small part of a network's round trip.
  static constexpr Duration kForRemotePeer = std::chrono::microseconds(1000);
  // The least time of polling: waking an idle core costs ten times a short wait.
  static constexpr Duration kLeast = std::chrono::microseconds(20);
  // Interrupts and the kernel's own threads take less than this, another program's turn takes more.
  static constexpr Duration kGap = std::chrono::microseconds(500);
  // A gap keeps the budget small for this time. Another gap soon after doubles the time.
  static constexpr Duration kFirstPause = std::chrono::milliseconds(100);
  static constexpr Duration kLongestPause = std::chrono::milliseconds(3200);

  SpinBudget(PeerPlace peer, unsigned num_cores);

  // may_spin tells whether a wait that began at `began` goes on polling at `now`. Call it at every look.
  bool may_spin(TimePoint began, TimePoint now);
  // How often the thread lost its core while it polled.
  std::uint64_t num_lost() const { return num_lost_; }

 private:
  void on_lost(TimePoint now);

  Duration full_;
  Duration pause_ = kFirstPause;
  TimePoint last_look_{};
  TimePoint small_until_{};
  std::uint64_t num_lost_ = 0;
};

}  // namespace weft::apps
