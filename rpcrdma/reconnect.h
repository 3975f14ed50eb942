#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

#include "base/time.h"
#include "rpcrdma/policies.h"
#include "verbs-shim/api/types.h"

namespace weft::rpcrdma {

// ReconnectSchedule says when to connect again: after a delay that doubles until a connection was of use. A plain
// value.
class ReconnectSchedule {
 public:
  explicit ReconnectSchedule(const ReconnectPolicy& policy) : policy_(policy), delay_(policy.first_delay) {}

  void on_ready(TimePoint now) { ready_at_ = now; }
  // on_refused: the connection is in a version that the server refuses, so it never was of use.
  void on_refused() { ready_at_.reset(); }
  // on_answer: something came over the connection.
  void on_answer() { was_good_ = true; }

  // on_ended: the connection or the attempt ended. violated: it ended because a rule of the protocol was broken.
  // Returns when to try again; empty if there is no hope.
  std::optional<TimePoint> on_ended(TimePoint now, bool violated) {
    // A peer that accepts and ends each connection is no better than one that accepts none (R1-5.5.3-03 covers this
    // case).
    const bool lasted = ready_at_ && now - *ready_at_ >= policy_.max_delay;
    count_violation(violated, lasted);
    if (!trouble_since_ || was_good_ || lasted) {
      trouble_since_ = now;
      delay_ = policy_.first_delay;
      num_attempts_ = 0;
    }
    ready_at_.reset();
    was_good_ = false;
    if (is_hopeless()) return {};
    const TimePoint next = now + delay_;
    if (next > *trouble_since_ + policy_.max_time) return {};
    if (policy_.max_attempts != 0 && num_attempts_ == policy_.max_attempts) return {};
    ++num_attempts_;
    delay_ = std::min(2 * delay_, policy_.max_delay);
    return next;
  }
  // Whether connections end with violations one after the other.
  bool is_hopeless() const {
    return policy_.max_violations != 0 && violations_ >= kWholeViolation * policy_.max_violations;
  }

 private:
  // A server that answers some Calls and breaks the rules at others also has its limit, but a later one.
  static constexpr std::uint32_t kWholeViolation = 4;

  void count_violation(bool violated, bool lasted) {
    if (lasted) violations_ = 0;
    if (violated) violations_ += was_good_ ? 1 : kWholeViolation;
  }

  ReconnectPolicy policy_;
  std::chrono::milliseconds delay_;
  std::uint32_t num_attempts_ = 0;
  std::uint32_t violations_ = 0;  // in quarters
  bool was_good_ = false;
  std::optional<TimePoint> ready_at_;
  std::optional<TimePoint> trouble_since_;
};

}  // namespace weft::rpcrdma
