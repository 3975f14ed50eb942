#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft::apps::dissect {

// Run: octets from `begin` up to `end`, which is not one of them.
struct Run {
  std::uint64_t begin = 0, end = 0;
};

// Runs: which octets came, in whatever order. A value; it holds at most kMax runs between holes.
class Runs {
 public:
  static constexpr std::size_t kMax = 16;

  // False: there are or were more than kMax runs. The value is empty then, and knows nothing.
  bool add(Run run) {
    if (has_overflowed_) return false;
    const auto first = std::ranges::find_if(runs_, [&run](const Run& one) { return one.end >= run.begin; });
    auto at = first;
    for (; at != runs_.end() && at->begin <= run.end; ++at) {
      run = {std::min(run.begin, at->begin), std::max(run.end, at->end)};
    }
    runs_.insert(runs_.erase(first, at), run);
    if (runs_.size() <= kMax) return true;
    has_overflowed_ = true;
    runs_ = {};
    return false;
  }
  // Every octet up to `end` came. Returns up to where they are without a hole, and forgets the runs before that.
  std::uint64_t pass(std::uint64_t end) {
    auto at = runs_.begin();
    for (; at != runs_.end() && at->begin <= end; ++at) end = std::max(end, at->end);
    runs_.erase(runs_.begin(), at);
    return end;
  }
  bool empty() const { return runs_.empty(); }
  // Whether every octet of `whole` came, as far as is known, and no other one.
  bool fill(Run whole) const {
    if (has_overflowed_ || whole.begin == whole.end) return true;
    return runs_.size() == 1 && runs_.front().begin == whole.begin && runs_.front().end == whole.end;
  }

 private:
  std::vector<Run> runs_;  // in their order; no two touch
  bool has_overflowed_ = false;
};

}  // namespace weft::apps::dissect
