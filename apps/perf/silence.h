#pragma once

#include <algorithm>
#include <chrono>

#include "base/time.h"
#include "verbs-shim/api/verbs.h"

namespace weft::apps::perf {

// Silence finds out whether a connection has moved nothing for as long as its user has patience. Completions do not
// show that, since a large operation may move for longer; the counters of the queue pair do. A value without a clock.
class Silence {
 public:
  explicit Silence(std::chrono::milliseconds patience)
      : patience_(patience), every_(std::max(patience / 50, std::chrono::milliseconds(1))) {}

  // How often to look. So much later than `patience` it may find the silence.
  std::chrono::milliseconds every() const { return every_; }
  void begin(TimePoint now, const verbs::QpCounters& counters) {
    seen_ = counters;
    moved_at_ = now;
  }
  // Whether nothing has moved since `begin`, or since a look that found a change, for the time of patience.
  bool is_over(TimePoint now, const verbs::QpCounters& counters) {
    if (!same(counters, seen_)) begin(now, counters);
    return now - moved_at_ >= patience_;
  }

 private:
  static bool same(const verbs::QpCounters& a, const verbs::QpCounters& b) {
    return a.sends_tx == b.sends_tx && a.sends_rx == b.sends_rx && a.write_octets_tx == b.write_octets_tx &&
           a.read_octets_rx == b.read_octets_rx;
  }

  std::chrono::milliseconds patience_, every_;
  verbs::QpCounters seen_;
  TimePoint moved_at_{};
};

}  // namespace weft::apps::perf
