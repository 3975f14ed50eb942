#pragma once

#include <chrono>
#include <cstddef>
#include <initializer_list>
#include <optional>

#include "apps/common/global_options.h"
#include "apps/common/signals.h"
#include "verbs-shim/api/types.h"

namespace weft::apps {

// wait_readable sleeps until one of fds (negative ones are passed over; at most 16) is readable, until `until`, or for
// a signal.
void wait_readable(std::initializer_list<int> fds, std::optional<verbs::TimePoint> until);

// Progress drives something that has process(now), next_timeout() and fd(): a verbs::Device, an rpcrdma::Client or
// Server. One turn processes once and, where there was nothing to do and the mode is kBlock, sleeps until there may be.
// kBlock spins for spin_before_block first, because waking a core that went idle costs ten times a short wait.
class Progress {
 public:
  // stop may be null; it outlives this.
  Progress(ProgressMode mode, const StopSignals* stop, std::chrono::microseconds spin_before_block = kSpinBeforeBlock)
      : mode_(mode), stop_(stop), spin_before_block_(spin_before_block) {}

  static constexpr std::chrono::microseconds kSpinBeforeBlock{20};

  // turn returns what process returned. It sleeps no longer than `until`, and is woken by extra_fd and by the stop
  // signals.
  template <typename Engine>
  std::size_t turn(Engine& engine, std::optional<verbs::TimePoint> until = std::nullopt, int extra_fd = -1) {
    verbs::TimePoint now = std::chrono::steady_clock::now();
    std::size_t moved = engine.process(now);
    if (moved != 0) {
      idle_ = false;
      return moved;
    }
    if (mode_ == ProgressMode::kSpin || stop_requested()) return 0;
    if (!idle_) idle_since_ = now;
    idle_ = true;
    if (now - idle_since_ < spin_before_block_) return 0;
    std::optional<verbs::TimePoint> wake = engine.next_timeout();
    if (until && (!wake || *until < *wake)) wake = until;
    wait_readable({engine.fd(), stop_ != nullptr ? stop_->fd() : -1, extra_fd}, wake);
    return 0;
  }

  bool stop_requested() const { return stop_ != nullptr && stop_->requested(); }
  void set_mode(ProgressMode mode) { mode_ = mode; }

 private:
  ProgressMode mode_;
  const StopSignals* stop_;
  std::chrono::microseconds spin_before_block_;
  bool idle_ = false;
  verbs::TimePoint idle_since_{};  // of the first turn without anything to do, where idle_
};

}  // namespace weft::apps
