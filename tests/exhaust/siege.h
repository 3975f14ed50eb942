#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "tests/exhaust/crowd.h"

namespace weft::exhaust {

// Siege has the clock of a test: the server and the honest client run by it, while a Crowd attacks. The clock moves
// while there is nothing to do, so it counts waiting. Turns with work take a little of its time, too: against peers
// that never rest it would stand still otherwise. What threads of the server do takes none, since that depends on the
// machine. One thread.
class Siege {
 public:
  static constexpr auto kStep = std::chrono::milliseconds(10);
  static constexpr int kTurnsPerMillisecond = 8;

  TimePoint now() const { return now_; }
  const Done& done() const { return done_; }

  void begin(Attack attack, const sockaddr_in& server, std::vector<std::string> addresses) {
    attack_ = std::move(attack);
    crowd_ = std::make_unique<Crowd>(attack_, server, std::move(addresses), done_);
  }
  void end() { crowd_.reset(); }

  // turn lets the attackers do what they can, after the server and the honest client did: `moved` is what these have
  // done, `is_at_work` whether a thread of the server works on.
  void turn(std::size_t moved, bool is_at_work = false) {
    if (!crowd_) return;
    if (num_made_ < attack_.connections) num_made_ += crowd_->connect_one();
    moved += crowd_->turn(0);
    if (moved != 0) {
      if (++num_turns_ % kTurnsPerMillisecond == 0) now_ += std::chrono::milliseconds(1);
      return;
    }
    if (is_at_work || crowd_->turn(1) != 0) return;
    now_ += kStep;
    crowd_->connect_one();  // as many a second for each place as 2,100 are for 1,024 places
  }

 private:
  // Later than the machine's own clock, so that a device takes no time from that one.
  TimePoint now_ = std::chrono::steady_clock::now() + std::chrono::hours(1);
  Attack attack_;
  Done done_ = {};
  std::unique_ptr<Crowd> crowd_;
  std::size_t num_made_ = 0;
  int num_turns_ = 0;  // with work
};

}  // namespace weft::exhaust
