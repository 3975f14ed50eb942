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
#include "base/time.h"
#include "verbs-shim/api/types.h"
#include "verbs-shim/api/verbs.h"

namespace weft::apps {

// wait_readable sleeps until one of fds is readable, until `until`, or until a signal. It skips negative fds; there are
// at most 16.
void wait_readable(std::initializer_list<int> fds, std::optional<TimePoint> until);

// Waits counts how often a command had to wait, and how often it slept in a wait.
struct Waits {
  std::uint64_t waits = 0;
  std::uint64_t sleeps = 0;
  // The share of the waits that ended in sleep, 0 to 1.
  double sleep_share() const { return waits == 0 ? 0.0 : double(sleeps) / double(waits); }
};

// HowItWaited is the part of the results about waiting: a measurement has another meaning if its thread slept.
struct HowItWaited {
  std::string progress = "spin";  // spin, block, threads=N, or adapt if no --progress was given
  double sleep_share = 0;         // of its waits, 0 to 1

  // "spun", "slept in 12% of its waits"; with workers, "threads=N, " comes first.
  std::string str() const;
};
HowItWaited how_it_waited(const GlobalOptions& options, ProgressMode mode, const Waits& waits);

// Progress drives an engine with process(now), next_timeout() and fd(): a verbs::Device, an rpcrdma::Client or Server.
// One turn processes once. If there was nothing to do, the turn goes on polling, or sleeps until there may be work.
// kSpin never sleeps. kBlock polls for spin_before_block first, because waking an idle core costs ten times a short
// wait. kAdapt polls as long as its SpinBudget allows.
class Progress {
 public:
  // stop may be null. It outlives this object.
  Progress(ProgressMode mode, const StopSignals* stop, std::chrono::microseconds spin_before_block = kSpinBeforeBlock)
      : mode_(mode), stop_(stop), spin_before_block_(spin_before_block) {}

  static constexpr std::chrono::microseconds kSpinBeforeBlock{20};

  // From this call on, Progress tells the device about polling and sleep: Device::set_busy_polling. The device outlives
  // this object.
  void drive(verbs::Device& device);
  // expect sets the place of the peer (kAdapt). Before this call, the peer counts as on this machine.
  void expect(PeerPlace peer) { budget_ = SpinBudget(peer, cores_of_this_process()); }

  // silent_for tells whether nothing moved for this time, up to the last turn. Call it only if the peer owes an answer.
  // begin_silence starts to count. A sleep has to end at silent_since plus this time at the latest.
  void begin_silence() { moved_at_ = last_turn_ = std::chrono::steady_clock::now(); }
  bool silent_for(std::chrono::milliseconds time) const { return last_turn_ - moved_at_ >= time; }
  TimePoint silent_since() const { return moved_at_; }

  // turn returns the result of process. It sleeps until `until` at most. extra_fd and the stop signals wake it.
  template <typename Engine>
  std::size_t turn(Engine& engine, std::optional<TimePoint> until = std::nullopt, int extra_fd = -1) {
    const TimePoint now = std::chrono::steady_clock::now();
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
    // Octets may have arrived where a busy device does not look.
    if (device_ != nullptr && mode_ == ProgressMode::kAdapt) device_->set_busy_polling(false);
    const std::optional<TimePoint> wake = earliest(engine.next_timeout(), until);
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
  void begin_wait(TimePoint now) {
    idle_ = true;
    slept_ = false;
    idle_since_ = now;
    ++waits_.waits;
  }
  bool keeps_polling(TimePoint now) {
    switch (mode_) {
      case ProgressMode::kSpin: return true;
      case ProgressMode::kBlock: return now - idle_since_ < spin_before_block_;
      // After a sleep, the same wait sleeps again: the sleep must not count as a gap between two looks.
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
  bool slept_ = false;      // in this wait
  TimePoint idle_since_{};  // with idle_: the first turn without work
  TimePoint last_turn_{};
  TimePoint moved_at_{};
  Waits waits_;
};

}  // namespace weft::apps
