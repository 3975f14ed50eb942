#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "base/time.h"

namespace weft::apps {

// IdleTrim decides when a server gives memory back to the system that its work has left unused: malloc keeps freed
// memory, and long-lived objects between freed ones keep whole pages. A trim takes milliseconds, and the next work has
// to fault the pages in again. So it waits for the end of the work, and for a period with few turns. More trims follow
// at growing distances, because closing connections and kept Replies go later than the work.
//
// A value: no clock, no memory. One thread.
class IdleTrim {
 public:
  static constexpr std::chrono::seconds kPeriod{3};
  // Turns with work in one period: the server rests if there are no more.
  static constexpr std::uint32_t kFewTurns = 256;
  // Turns with work after which there is something to trim, even if the server rested all the time.
  static constexpr std::uint64_t kWorthATrim = 16384;
  // The periods of rest after which memory is trimmed: 1, 4, 16, 64.
  static constexpr std::uint32_t kFactor = 4, kLastTrim = 64;

  // on_turn counts one turn of the loop. True: trim now.
  bool on_turn(TimePoint now, bool has_worked) {
    if (has_worked) ++num_turns_;
    if (now < period_end_) return false;
    period_end_ = now + kPeriod;
    return on_period_end();
  }

  // The time at which on_turn has to be called although there is no work; none if there is nothing to trim.
  std::optional<TimePoint> due() const {
    if (next_trim_ == 0 && num_turns_ <= kFewTurns) return std::nullopt;
    return period_end_;
  }

 private:
  bool on_period_end() {
    const bool rests = num_turns_ <= kFewTurns;
    work_ += num_turns_;
    num_turns_ = 0;
    if (!rests || (next_trim_ == 0 && work_ > kWorthATrim)) {
      next_trim_ = 1;
      num_rests_ = 0;
    }
    if (!rests || next_trim_ == 0 || ++num_rests_ < next_trim_) return false;
    work_ = 0;
    next_trim_ = next_trim_ < kLastTrim ? next_trim_ * kFactor : 0;
    return true;
  }

  TimePoint period_end_{};
  std::uint32_t num_turns_ = 0;  // with work, in this period
  std::uint64_t work_ = 0;       // turns with work since the last trim
  std::uint32_t num_rests_ = 0;  // periods of rest since the last work
  std::uint32_t next_trim_ = 0;  // the period of rest that ends with a trim; 0: there is nothing to trim
};

// bound_unused_heap bounds the memory that malloc keeps unused where trim_heap cannot reach it: at the end of each
// arena. glibc raises that bound to twice the largest block that was ever freed, up to 64 MiB for each of its arenas.
// Call it once, before the first work.
void bound_unused_heap();

// trim_heap gives the memory that malloc keeps unused back to the system. Any thread; other threads that allocate wait
// meanwhile.
void trim_heap();

}  // namespace weft::apps
