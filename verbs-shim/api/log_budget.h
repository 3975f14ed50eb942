#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

#include "base/time.h"
#include "verbs-shim/api/types.h"

namespace weft::verbs {

// LogBudget bounds the log lines that peers can cause: kBurst at once, then kPerSecond.
class LogBudget {
 public:
  static constexpr std::int64_t kBurst = 50;
  static constexpr std::int64_t kPerSecond = 10;

  // Whether one more line may be written.
  bool take(TimePoint now) {
    if (!filled_at_) {
      left_ = kBurst;
      filled_at_ = now;
    }
    // Only whole seconds count; the rest of the time counts in the next call.
    const auto passed = std::chrono::duration_cast<std::chrono::seconds>(now - *filled_at_);
    if (passed.count() > 0) {
      left_ = std::min(kBurst, left_ + passed.count() * kPerSecond);
      *filled_at_ += passed;
    }
    if (left_ == 0) {
      ++num_suppressed_;
      return false;
    }
    --left_;
    return true;
  }

  // The number of lines that were withheld since the last call.
  std::uint64_t take_suppressed() {
    const std::uint64_t n = num_suppressed_;
    num_suppressed_ = 0;
    return n;
  }

 private:
  std::optional<TimePoint> filled_at_;
  std::int64_t left_ = 0;
  std::uint64_t num_suppressed_ = 0;
};

}  // namespace weft::verbs
