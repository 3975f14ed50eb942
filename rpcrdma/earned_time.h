#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/time.h"

namespace weft::rpcrdma {

// EarnedTime is the time for which a peer may keep memory that others wait for. A little of it is given. The peer earns
// the rest by its progress: it moves octets, and the more octets it holds the more it has to move. A value without a
// clock: the time is handed in.
class EarnedTime {
 public:
  struct Terms {
    Duration grace = std::chrono::milliseconds(400);  // given at first, and the most that is ever left
    Duration whole = std::chrono::seconds(10);        // earned by as many octets as the peer holds
  };

  EarnedTime(const Terms& terms, TimePoint now) : terms_(terms), end_(now + terms.grace) {}

  // A peer that holds `held` octets has moved so many.
  void earn(std::uint64_t moved, std::uint64_t held, TimePoint now) {
    if (moved == 0) return;
    end_ = std::min(end_ + share_of_whole(moved, held), now + terms_.grace);
  }

  TimePoint end() const { return end_; }
  bool is_over(TimePoint now) const { return now >= end_; }

 private:
  Duration share_of_whole(std::uint64_t moved, std::uint64_t held) const {
    if (moved >= held) return terms_.whole;
    const double share = static_cast<double>(moved) / static_cast<double>(held);
    return std::chrono::duration_cast<Duration>(share * terms_.whole);
  }

  Terms terms_;
  TimePoint end_;
};

}  // namespace weft::rpcrdma
