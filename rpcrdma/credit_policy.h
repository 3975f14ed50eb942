#pragma once

#include <algorithm>
#include <cstdint>

namespace weft::rpcrdma {

// CreditPolicy says how many credits a responder grants on one connection (RFC 8166 section 3.3.1): more to a client
// that uses all its credits, fewer to a client that uses few, and fewer to all clients while memory is short. A plain
// value.
class CreditPolicy {
 public:
  struct Config {
    std::uint32_t min = 32;      // at least 1
    std::uint32_t initial = 32;  // grant of a client when idle
    std::uint32_t max = 32;
  };

  explicit CreditPolicy(const Config& config)
      : config_{std::max(config.min, 1u), config.initial, config.max}, grant_(config.initial), promised_(grant_) {}

  // on_call: a Call arrived that asks for `requested` credits. `under_way` Calls have no answer yet, including this
  // one.
  void on_call(std::uint32_t requested, std::uint32_t under_way) {
    if (promised_ > grant_ && ++calls_since_lowered_ >= promised_) promised_ = grant_;
    peak_ = std::max(peak_, under_way);
    if (under_way >= grant_ && !short_) {
      const std::uint32_t wanted = std::min(2 * grant_, std::min(requested, config_.max));
      grant_ = std::max(grant_, wanted);
    }
    if (++calls_ < 2 * grant_) return;
    // A round: every credit could have been used twice.
    if (short_) {
      lower(std::max(grant_ / 2, config_.min));
    } else if (peak_ < grant_ / 4) {
      lower(std::min(grant_, std::max({grant_ / 2, config_.min, config_.initial})));
    }
    calls_ = peak_ = 0;
  }

  // set_short: memory for Calls is short, or no longer short.
  void set_short(bool is_short) {
    if (is_short && !short_) lower(std::max(grant_ / 2, config_.min));
    short_ = is_short;
  }

  // hold_at: there are Receives for at most so many credits.
  void hold_at(std::uint32_t most) {
    if (grant_ <= most) return;
    grant_ = std::max(most, 1u);
    calls_ = peak_ = 0;
  }

  // The grant for the next Reply; never 0 (R1-4.3.1-05). Its Receives must be posted before the Reply (R1-4.3.1-09).
  std::uint32_t grant() const { return grant_; }

  // promised: how many Calls the client may rightly have under way. An old, higher grant counts until as many Calls
  // came as the client could have sent before it knew the new grant.
  std::uint32_t promised() const { return std::max(promised_, grant_); }

 private:
  void lower(std::uint32_t grant) {
    if (grant >= grant_) return;
    promised_ = std::max(promised_, grant_);
    calls_since_lowered_ = 0;
    grant_ = grant;
  }

  Config config_;
  std::uint32_t grant_;
  std::uint32_t promised_;
  std::uint32_t calls_since_lowered_ = 0;
  std::uint32_t calls_ = 0;  // in this round
  std::uint32_t peak_ = 0;   // Calls under way at once in this round
  bool short_ = false;
};

}  // namespace weft::rpcrdma
