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
    // In a crowd a peer that has not yet proven to move octets is given less (Budget): all that wait are to have had a
    // turn within `round`. But each such peer is given `least`.
    Duration round = std::chrono::milliseconds(500);
    Duration least = std::chrono::milliseconds(50);
  };

  EarnedTime(const Terms& terms, TimePoint now) : EarnedTime(terms, terms.grace, now) {}
  EarnedTime(const Terms& terms, Duration given, TimePoint now) : terms_(terms), end_(now + given) {}

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
