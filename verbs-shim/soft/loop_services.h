#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <vector>

#include "base/rest_watch.h"
#include "base/time.h"
#include "verbs-shim/api/log_budget.h"
#include "verbs-shim/soft/core.h"
#include "verbs-shim/soft/handle.h"
#include "verbs-shim/soft/holdings.h"
#include "verbs-shim/soft/round_shares.h"
#include "verbs-shim/soft/source.h"
#include "verbs-shim/soft/staging_loan.h"
#include "verbs-shim/soft/stream_socket.h"
#include "verbs-shim/soft/timer_heap.h"
#include "verbs-shim/soft/turns.h"

namespace weft::verbs::soft {

// LoopServices is the part of a Loop that its connections and listeners use: their messages to the loop, and the things
// that they share. Which connection gets a turn, and when, only the Loop decides.
class LoopServices {
 public:
  LoopServices(const LoopServices&) = delete;
  LoopServices& operator=(const LoopServices&) = delete;

  // ---- for any thread
  Core& core() const { return core_; }
  const SoftConfig& config() const { return core_.config(); }
  const Log& log() const { return config().log; }
  std::size_t index() const { return index_; }

  // ---- in the loop's thread
  // The time for a command: no earlier than the time of the last process.
  TimePoint now() const { return std::max(last_now_, std::chrono::steady_clock::now()); }
  Poller& poller() const { return poller_; }
  Holdings& holdings() { return holdings_; }
  StagingLoan& staging() { return staging_; }
  rdmap::Stream::TxRoom& tx_room() { return tx_room_; }
  StreamSocket::IoVectors& iov() { return iov_; }
  LogBudget& log_budget() { return log_budget_; }
  // How many octets the connection whose turn it is may write. It may read twice as many.
  std::size_t turn_octets() const { return turn_octets_; }
  // Adds to the FPDUs that this turn has received.
  void count_fpdus(std::size_t num) { turn_fpdus_ += num; }

  // Calls source.on_timer at this time; without a time, no more.
  void set_timer(Source& source, std::optional<TimePoint> at) { timers_.set(source, at); }
  // Calls source.on_timer after the next death of a connection: descriptors may be available again.
  void await_descriptors(Source& source) { starving_.push_back(&source); }
  void forget_descriptors(Source& source) { std::erase(starving_, &source); }

  // Gives the connection a turn in the next process.
  void ready(Handle who) {
    turns_.ready(who);
    if (!core_.threaded()) poller_.set_wanted(true);  // a worker looks before it sleeps
  }
  // The connection was established.
  void opened(Handle who) { turns_.opened(who); }
  // The connection moves something. It is trimmed when it has come to rest.
  using RestWatch = weft::RestWatch<Handle>;
  void moves(Handle who, RestWatch::Mark& mark) { resting_.use(who, mark, last_now_); }
  // The connection is to be freed at the end of process. was_open: it was established.
  void died(Handle who, bool was_open) {
    staging_.forget(who);
    holdings_.forget(who);
    if (was_open) turns_.closed();
    dead_.push_back(who);
  }

 protected:
  LoopServices(Core& core, std::size_t index, const Holdings::Limits& limits)
      : core_(core), index_(index), poller_(core.poller(index)), holdings_(limits), staging_(holdings_) {}
  ~LoopServices() = default;

  Core& core_;
  const std::size_t index_;
  Poller& poller_;
  TimerHeap timers_;  // of Sources
  Turns turns_;
  RoundShares shares_;
  std::size_t turn_octets_ = RoundShares::kMost;
  std::size_t turn_fpdus_ = 0;
  RestWatch resting_;
  Holdings holdings_;
  StagingLoan staging_;
  rdmap::Stream::TxRoom tx_room_;
  StreamSocket::IoVectors iov_{};
  LogBudget log_budget_;
  TimePoint last_now_{};  // of the last process
  std::vector<Handle> dead_;
  std::vector<Source*> starving_;
};

}  // namespace weft::verbs::soft
