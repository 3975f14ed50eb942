#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

#include "rpcrdma/policies.h"
#include "verbs-shim/api/types.h"

namespace weft::rpcrdma {

// ReconnectSchedule says when to connect again: after a delay that doubles until a connection was good for something.
// A plain value.
class ReconnectSchedule {
 public:
  explicit ReconnectSchedule(const ReconnectPolicy& policy) : policy_(policy), delay_(policy.first_delay) {}

  void on_ready(verbs::TimePoint now) { ready_at_ = now; }
  // on_answer: something came over the connection.
  void on_answer() { was_good_ = true; }

  // on_ended: the connection, or the attempt at one, ended. When to try again; nothing where that has no hope.
  std::optional<verbs::TimePoint> on_ended(verbs::TimePoint now) {
    // A peer that accepts and ends each connection is no better than one that accepts none (R1-5.5.3-03 is for it).
    const bool lasted = ready_at_ && now - *ready_at_ >= policy_.max_delay;
    if (!trouble_since_ || was_good_ || lasted) {
      trouble_since_ = now;
      delay_ = policy_.first_delay;
      num_attempts_ = 0;
    }
    ready_at_.reset();
    was_good_ = false;
    const verbs::TimePoint next = now + delay_;
    if (next > *trouble_since_ + policy_.max_time) return {};
    if (policy_.max_attempts != 0 && num_attempts_ == policy_.max_attempts) return {};
    ++num_attempts_;
    delay_ = std::min(2 * delay_, policy_.max_delay);
    return next;
  }

 private:
  ReconnectPolicy policy_;
  std::chrono::milliseconds delay_;
  std::uint32_t num_attempts_ = 0;
  bool was_good_ = false;
  std::optional<verbs::TimePoint> ready_at_;
  std::optional<verbs::TimePoint> trouble_since_;
};

}  // namespace weft::rpcrdma
