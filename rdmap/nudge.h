#pragma once

#include <optional>

#include "base/bytes.h"
#include "base/time.h"
#include "rdmap/work.h"

namespace weft::rdmap {

// Nudge decides when an initiator sends an RDMA Write of no octets. The initiator has sent FPDUs then and has received
// none. Linux siw as responder loses the wake-up for octets that arrive while it is about to accept. It then holds them
// until more octets arrive. A Write of no octets touches no memory, and no ULP sees it (RFC 5040 section 5.1). The
// Writes begin one interval after our first FPDU and stop at the peer's first FPDU, after a few at most. The interval
// doubles each time.
class Nudge {
 public:
  static constexpr int kMost = 6;

  // interval: 0 for never.
  explicit Nudge(Duration interval) : interval_(interval) {}

  // The socket took FPDUs of ours.
  void on_sent(TimePoint now) {
    if (waiting_ && !at_ && interval_ > Duration::zero()) at_ = now + interval_;
  }
  // The peer's first FPDU arrived, or the stream ends.
  void stop() {
    waiting_ = false;
    at_.reset();
  }
  // Whether a Write is due. If so, the next one waits twice as long.
  bool take(TimePoint now) {
    if (!at_ || now < *at_) return false;
    interval_ *= 2;
    at_ = now + interval_;
    if (++num_ == kMost) stop();
    return true;
  }
  std::optional<TimePoint> at() const { return at_; }

 private:
  Duration interval_;
  int num_ = 0;
  bool waiting_ = true;
  std::optional<TimePoint> at_;
};

}  // namespace weft::rdmap
