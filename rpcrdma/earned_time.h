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
  EarnedTime(const Terms& terms, Duration given, TimePoint now) : terms_(terms), given_(given), end_(now + given) {}

  // A peer that holds `held` octets has moved so many. A peer that was given less than `grace` has at most this time
  // left at first, and `grace` once it has moved as many octets as it holds: the first octets may only fill its receive
  // buffer.
  void earn(std::uint64_t moved, std::uint64_t held, TimePoint now) {
    if (moved == 0) return;
    moved_ += moved;
    const Duration most = given_ + share_of(terms_.grace - given_, moved_, held);
    end_ = std::min(end_ + share_of(terms_.whole, moved, held), std::max(end_, now + most));
  }

  TimePoint end() const { return end_; }
  bool is_over(TimePoint now) const { return now >= end_; }

 private:
  static Duration share_of(Duration whole, std::uint64_t moved, std::uint64_t held) {
    if (moved >= held) return whole;
    const double share = static_cast<double>(moved) / static_cast<double>(held);
    return std::chrono::duration_cast<Duration>(share * whole);
  }

  Terms terms_;
  Duration given_;
  std::uint64_t moved_ = 0;  // since this time began
  TimePoint end_;
};

}  // namespace weft::rpcrdma
