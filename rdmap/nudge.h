#pragma once

#include <optional>

#include "mpa/wire/bytes.h"
#include "rdmap/work.h"

namespace weft::rdmap {

// Nudge says when an initiator that has spoken and heard nothing yet sends an RDMA Write of no octets. Linux siw as
// responder loses the wake-up for what arrives while it is about to accept, and then sits on it until more arrives; a
// Write of no octets touches no memory and no ULP sees it (RFC 5040 section 5.1). From the first FPDU on, at an
// interval that doubles each time, until the peer's first FPDU; a few times at most.
class Nudge {
 public:
  static constexpr int kMost = 6;

  // interval: 0 for never.
  explicit Nudge(Duration interval) : interval_(interval) {}

  // FPDUs of ours left.
  void on_sent(TimePoint now) {
    if (waiting_ && !at_ && interval_ > Duration::zero()) at_ = now + interval_;
  }
  // The peer's first FPDU arrived, or the stream ends.
  void stop() {
    waiting_ = false;
    at_.reset();
  }
  // Whether one is due. If so the next one waits twice as long.
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
