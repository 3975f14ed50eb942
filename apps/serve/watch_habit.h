#pragma once

#include <algorithm>
#include <cstdint>

namespace weft::serve {

// WatchHabit says whether an idle worker watches for more work before it sleeps. A watch that found work was worth its
// time. After watches in vain, more and more chances pass unused, so that the processor is left to the threads that
// have work. A value: no lock, no clock.
class WatchHabit {
 public:
  // At most so many chances pass between two watches.
  static constexpr std::uint32_t kMostSkipped = 63;

  // begin: whether to watch now. The caller calls ended() after a watch.
  bool begin() {
    if (num_to_skip_ == 0) return true;
    --num_to_skip_;
    return false;
  }
  void ended(bool has_found) {
    skip_after_vain_ = has_found ? 0 : std::min(2 * skip_after_vain_ + 1, kMostSkipped);
    num_to_skip_ = skip_after_vain_;
  }

 private:
  std::uint32_t skip_after_vain_ = 0;
  std::uint32_t num_to_skip_ = 0;
};

}  // namespace weft::serve
