#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/time.h"

namespace weft::rpcrdma {

// RoundTrip: the shortest round trip that the Calls of one connection have shown. It times one Call at a time, and
// after the first sample one of kEvery, so that it costs the others nothing. It counts by the turns of the engine: a
// sample begins with the turn behind the Send, so it never has the caller's own time. A value without I/O or clock.
class RoundTrip {
 public:
  static constexpr std::uint32_t kEvery = 16;

  // on_sent: a Call was sent. num: how often something has to cross the network and come back before its Reply is here,
  // as far as its form says.
  void on_sent(std::uint64_t call, int num) {
    if (timed_ || (shortest_ != Duration::zero() && ++num_since_ % kEvery != 0)) return;
    timed_ = Timed{call, num, {}};
  }
  // on_time: a turn of the engine.
  void on_time(TimePoint now) {
    if (timed_ && !timed_->sent_at) timed_->sent_at = now;
  }
  // on_reply: the Reply came in the turn of this time.
  void on_reply(std::uint64_t call, TimePoint now) {
    if (!timed_ || timed_->call != call) return;
    if (timed_->sent_at && now > *timed_->sent_at) {
      const Duration one = std::max((now - *timed_->sent_at) / timed_->num, Duration(1));
      shortest_ = shortest_ != Duration::zero() ? std::min(shortest_, one) : one;
    }
    timed_.reset();
  }
  // forget: the Call ended without a Reply, or in a way that says nothing.
  void forget(std::uint64_t call) {
    if (timed_ && timed_->call == call) timed_.reset();
  }

  // Zero until a Call has shown one.
  Duration shortest() const { return shortest_; }

 private:
  struct Timed {
    std::uint64_t call = 0;
    int num = 1;
    std::optional<TimePoint> sent_at;
  };
  std::optional<Timed> timed_;
  Duration shortest_{0};
  std::uint32_t num_since_ = 0;  // Calls since the first sample
};

}  // namespace weft::rpcrdma
