#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>

#include "apps/common/global_options.h"
#include "apps/common/signals.h"
#include "apps/common/spin_budget.h"
#include "verbs-shim/api/types.h"
#include "verbs-shim/api/verbs.h"

namespace weft::apps {

// wait_readable sleeps until one of fds (negative ones are passed over; at most 16) is readable, until `until`, or for
// a signal.
void wait_readable(std::initializer_list<int> fds, std::optional<verbs::TimePoint> until);

// Waits counts how often a command had to wait, and how often it slept for that.
struct Waits {
  std::uint64_t waits = 0;
  std::uint64_t sleeps = 0;
  // The part of the waits that ended in sleep, 0 to 1.
  double sleep_share() const { return waits == 0 ? 0.0 : double(sleeps) / double(waits); }
};

// HowItWaited is what results say about it: a measurement means another thing where its thread slept.
struct HowItWaited {
  std::string progress = "spin";  // spin, block, threads=N, or adapt where no --progress was given
  double sleep_share = 0;         // of its waits, 0 to 1

  // "spun", "slept in 12% of its waits"; with "threads=N, " in front where there are workers.
  std::string str() const;
};
HowItWaited how_it_waited(const GlobalOptions& options, ProgressMode mode, const Waits& waits);

// Progress drives something that has process(now), next_timeout() and fd(): a verbs::Device, an rpcrdma::Client or
// Server. One turn processes once and, where there was nothing to do, goes on polling or sleeps until there may be
// something: kSpin never sleeps; kBlock polls for spin_before_block first, because waking a core that went idle costs
// ten times a short wait; kAdapt polls as long as its SpinBudget allows.
class Progress {
 public:
  // stop may be null; it outlives this.
  Progress(ProgressMode mode, const StopSignals* stop, std::chrono::microseconds spin_before_block = kSpinBeforeBlock)
      : mode_(mode), stop_(stop), spin_before_block_(spin_before_block) {}

  static constexpr std::chrono::microseconds kSpinBeforeBlock{20};

  // drive tells the device (which outlives this) about polling and sleep, from now on: Device::set_busy_polling.
  void drive(verbs::Device& device);
  // expect: where the peer is (kAdapt). Until then it is taken to be on this machine.
  void expect(PeerPlace peer) { budget_ = SpinBudget(peer, cores_of_this_process()); }

  // silent_for: whether nothing was moved for so long, up to the last turn; to be asked only with something owed by the
  // peer. begin_silence starts to count. silent_since is where a sleep is to end at the latest, less that time.
  void begin_silence() { moved_at_ = last_turn_ = std::chrono::steady_clock::now(); }
  bool silent_for(std::chrono::milliseconds time) const { return last_turn_ - moved_at_ >= time; }
  verbs::TimePoint silent_since() const { return moved_at_; }

  // turn returns what process returned. It sleeps no longer than `until`, and is woken by extra_fd and by the stop
  // signals.
  template <typename Engine>
  std::size_t turn(Engine& engine, std::optional<verbs::TimePoint> until = std::nullopt, int extra_fd = -1) {
    const verbs::TimePoint now = std::chrono::steady_clock::now();
    const std::size_t moved = engine.process(now);
    last_turn_ = now;
    if (moved != 0) {
      moved_at_ = now;
      idle_ = false;
      return moved;
    }
    if (stop_requested()) return 0;
    if (!idle_) begin_wait(now);
    if (keeps_polling(now)) return 0;
    // Something may have come that a busy device does not look at.
    if (device_ != nullptr && mode_ == ProgressMode::kAdapt) device_->set_busy_polling(false);
    std::optional<verbs::TimePoint> wake = engine.next_timeout();
    if (until && (!wake || *until < *wake)) wake = until;
    count_sleep();
    wait_readable({engine.fd(), stop_ != nullptr ? stop_->fd() : -1, extra_fd}, wake);
    if (device_ != nullptr && mode_ == ProgressMode::kAdapt) device_->set_busy_polling(true);
    return 0;
  }

  bool stop_requested() const { return stop_ != nullptr && stop_->requested(); }
  ProgressMode mode() const { return mode_; }
  void set_mode(ProgressMode mode);
  const Waits& waits() const { return waits_; }

 private:
  void begin_wait(verbs::TimePoint now) {
    idle_ = true;
    slept_ = false;
    idle_since_ = now;
    ++waits_.waits;
  }
  bool keeps_polling(verbs::TimePoint now) {
    switch (mode_) {
      case ProgressMode::kSpin: return true;
      case ProgressMode::kBlock: return now - idle_since_ < spin_before_block_;
      // After a sleep it sleeps on: its end is no gap between two looks.
      case ProgressMode::kAdapt: return !slept_ && budget_.may_spin(idle_since_, now);
    }
    return false;
  }
  void count_sleep() {
    if (!slept_) ++waits_.sleeps;
    slept_ = true;
  }

  ProgressMode mode_;
  const StopSignals* stop_;
  std::chrono::microseconds spin_before_block_;
  verbs::Device* device_ = nullptr;
  SpinBudget budget_{PeerPlace::kThisMachine, cores_of_this_process()};
  bool idle_ = false;
  bool slept_ = false;             // in this wait
  verbs::TimePoint idle_since_{};  // of the first turn without anything to do, where idle_
  verbs::TimePoint last_turn_{};
  verbs::TimePoint moved_at_{};
  Waits waits_;
};

}  // namespace weft::apps
