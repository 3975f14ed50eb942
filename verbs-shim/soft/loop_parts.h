#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

#include "base/time.h"
#include "verbs-shim/api/log_budget.h"
#include "verbs-shim/soft/core.h"
#include "verbs-shim/soft/handle.h"
#include "verbs-shim/soft/holdings.h"
#include "verbs-shim/soft/staging_loan.h"
#include "verbs-shim/soft/stream_socket.h"
#include "verbs-shim/soft/timer_heap.h"
#include "verbs-shim/soft/turns.h"

namespace weft::verbs::soft {

// LoopParts holds the things that the connections and listeners of one loop share, and their messages to the loop. In
// the loop's thread.
struct LoopParts {
  LoopParts(Core& device, std::size_t number, const Holdings::Limits& limits)
      : core(device), index(number), poller(device.poller(number)), holdings(limits), staging(holdings) {}

  const SoftConfig& config() const { return core.config(); }
  const Log& log() const { return core.config().log; }
  // The time for a command: no earlier than the time of the last process.
  TimePoint now() const { return std::max(last_now, std::chrono::steady_clock::now()); }
  // Gives the connection a turn in the next process.
  void ready(Handle who) {
    turns.ready(who);
    if (!core.threaded()) poller.set_wanted(true);  // a worker looks before it sleeps
  }

  Core& core;
  const std::size_t index;
  Poller& poller;
  TimerHeap timers;
  Turns turns;
  Holdings holdings;
  StagingLoan staging;
  StreamSocket::IoVectors iov{};
  LogBudget log_budget;
  TimePoint last_now{};           // of the last process
  std::vector<Handle> dead;       // to be freed at the end of process
  std::vector<Source*> starving;  // to be called when descriptors may be available again
};

}  // namespace weft::verbs::soft
