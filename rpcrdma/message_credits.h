#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "requirements/violates.h"

namespace weft::rpcrdma {

// MessageCredits: the credits of one connection, both directions, where a credit is one message and the credit word is
// the number of the last message that the peer may send, modulo 2^32 (draft-ietf-nfsv4-rpcrdma-version-two-07 section
// 4.2.1). A plain value.
//
// Of the Receives of this end one is a reserve for a GRANT beyond the limit, and is never advertised (W2-4.2.1.1-3). So
// a GRANT can be sent when all credits are used, one at a time: the next one has to wait for a word that counts it.
// Every other message waits for a credit, RDMA2_ERROR too.
class MessageCredits {
 public:
  enum class Kind : std::uint8_t { kGrant, kError, kOther };

  // Most credits that an end may give (W2-4.2.1-10).
  static constexpr std::uint32_t kMostCredits = 0x7ffffffe;
  // GRANTs of two ends can cross. Then an end may have used two credits for GRANTs before the other end has heard of
  // its own credits, and answers neither of them. The third one is for what it wants to send.
  static constexpr std::uint32_t kLeastWindow = 3;

  struct Config {
    std::uint32_t window = 32;  // credits that this end gives at once; kLeastWindow to kMostCredits
    // The most credits that are believed at once; up to kMostCredits. A peer with more than twice as many Receives
    // might wait with its GRANT for longer than this end can send.
    std::uint32_t max_peer_window = 65536;
    bool is_client = false;  // this end sends the first message
    // The credit word is the sum that the draft prints, Sent + Advertised. It gives too many credits to a peer that
    // gets more messages than it sends, and so few to one that gets fewer that two ends may wait for each other.
    bool literal = false;  // ClientConfig::literal_credits
    // Messages of the connection before these credits count: 0 of each on every connection (W2-4.2.1-3, W2-4.2.1-4),
    // unless first messages of other versions were refused on it.
    std::uint32_t sent = 0;
    std::uint32_t received = 0;
  };

  explicit MessageCredits(const Config& config)
      : config_(config),
        window_(clamp_window(config.window)),
        max_peer_window_(std::min(config.max_peer_window, kMostCredits)),
        sent_(config.sent),
        received_(config.received),
        limit_(config.sent + 1),
        told_(config.received + 1),
        waits_(!config.is_client) {}

  // may_send: whether a message of this kind may be posted now (W2-4.2.1-8, W2-4.2.1.1-5). A client's first message
  // waits for its answer before another may follow; one error answer makes room for one message. A server never speaks
  // first (W2-4.3-1, W2-4.3-3).
  bool may_send(Kind kind) const {
    if (waits_) return false;
    return distance(limit_, sent_) > 0 || (kind == Kind::kGrant && !reserve_used_by_);
  }

  // How many messages may be posted before the peer gives more credits.
  std::uint32_t num_left() const {
    return waits_ ? 0 : static_cast<std::uint32_t>(std::max(distance(limit_, sent_), 0));
  }

  // The credit word of the next message.
  std::uint32_t word() const {
    const std::uint32_t ready = std::min(ready_, window_ + 1);
    // Less than was counted, while even the reserve is in use.
    const std::uint32_t now = (config_.literal ? sent_ : received_) + ready - 1;
    return distance(now, told_) > 0 ? now : told_;  // W2-4.2.1-11, W2-A-01: no announced limit is taken back
  }

  // on_sent: a message was posted. told: the word() that it had.
  void on_sent() { on_sent(word()); }
  void on_sent(std::uint32_t told) {
    if (distance(told, told_) > 0) told_ = told;
    ++sent_;
    if (distance(limit_, sent_) < 0) reserve_used_by_ = sent_;
    num_grants_heard_ = 0;
    has_heard_other_ = false;
    waits_ = !is_settled_;
  }

  // on_ready: so many more Receives are there for messages of this connection.
  void on_ready(std::uint32_t num) { ready_ += num; }
  // set_ready: so many Receives are there now.
  void set_ready(std::uint32_t num) { ready_ = num; }

  enum class Verdict : std::uint8_t {
    kGood,
    kLeapt,    // the word gives more than max_peer_window credits: so many are believed
    kOverrun,  // the peer had no credit for this message: end the connection
  };
  // on_received: a message filled a Receive. `word` is its credit word: none if the message does not tell it in this
  // version's way, because it is malformed or an error of another version (W2-4.3-2).
  Verdict on_received(Kind kind, std::optional<std::uint32_t> word) {
    ++received_;
    if (ready_ > 0) --ready_;
    if (kind == Kind::kGrant) {
      ++num_grants_heard_;
    } else {
      has_heard_other_ = true;
    }
    settle(kind, word.has_value());
    // A client that tries its versions has a Receive for each refusal, and tells of it in no word of this version.
    if (word) {
      has_heard_word_ = true;
    } else if (!has_heard_word_ && !config_.is_client) {
      limit_ = config_.sent + (received_ - config_.received);
    }
    const std::int32_t most_beyond = kind == Kind::kGrant ? 1 : 0;
    if (violates("W2-4.2.1-8", distance(received_, told_) > most_beyond)) return Verdict::kOverrun;
    return word ? believe(*word) : Verdict::kGood;
  }

  // grant_is_due: whether a GRANT should go out if no other message does: the peer has less than half of the window
  // left (W2-4.2.1.1-4), and there is more to tell than GRANTs. No GRANT answers a GRANT: that would never end. For the
  // same reason a GRANT to a peer that has credits leaves one to this end, since nothing might ever give it back.
  bool grant_is_due() const {
    if (!peer_is_low() || !is_settled_) return false;
    const std::int64_t gain = distance(word(), told_);
    const bool has_news = gain > (has_heard_other_ ? 0 : num_grants_heard_);
    const bool may_spend = promised() == 0 ? may_send(Kind::kGrant) : distance(limit_, sent_) > 1;
    return has_news && may_spend;
  }

  bool peer_is_low() const { return promised() < window_ - window_ / 2; }

  // The window may change at any time. Promised credits stay.
  void set_window(std::uint32_t window) { window_ = clamp_window(window); }

  // promised: how many messages the peer may still send, as far as this end knows.
  std::uint32_t promised() const { return static_cast<std::uint32_t>(std::max(distance(told_, received_), 0)); }
  // How many Receives there should be, the reserve included.
  std::uint32_t num_wanted() const { return std::max(window_, promised()) + 1; }

 private:
  // W2-4.2.1-9
  static std::int32_t distance(std::uint32_t to, std::uint32_t from) { return static_cast<std::int32_t>(to - from); }
  static std::uint32_t clamp_window(std::uint32_t window) { return std::clamp(window, kLeastWindow, kMostCredits); }

  void settle(Kind kind, bool has_word) {
    if (config_.is_client && !has_word) return;
    waits_ = false;
    if (!config_.is_client || kind != Kind::kError) is_settled_ = true;
  }

  // The word of the message that came last counts, also a lower one (W2-A-01). Numbers wrap, so a limit below sent_ is
  // kept as sent_: both leave nothing to send, and later words are compared with what was sent.
  Verdict believe(std::uint32_t word) {
    const std::int32_t left = distance(word, sent_);
    if (reserve_used_by_ && distance(word, *reserve_used_by_) >= 0) reserve_used_by_.reset();
    if (violates("W2-4.2.1-10", left > static_cast<std::int64_t>(max_peer_window_))) {
      limit_ = sent_ + max_peer_window_;
      return Verdict::kLeapt;
    }
    limit_ = left > 0 ? word : sent_;
    return Verdict::kGood;
  }

  Config config_;
  std::uint32_t window_;
  std::uint32_t max_peer_window_;
  std::uint32_t sent_;
  std::uint32_t received_;
  std::uint32_t limit_;                 // of this end's messages: the last word, as far as it is believed (W2-4.2.1-6)
  std::uint32_t told_;                  // of the peer's messages: the highest word sent
  std::uint32_t ready_ = 0;             // Receives, the reserve included
  std::uint32_t num_grants_heard_ = 0;  // since this end's last message
  bool has_heard_other_ = false;        // the same
  bool has_heard_word_ = false;         // of this version
  bool is_settled_ = false;             // version and credits are known
  std::optional<std::uint32_t> reserve_used_by_;  // the number of a GRANT beyond the limit that no word has counted yet
  bool waits_;                                    // until then: for an answer, or for the first message
};

}  // namespace weft::rpcrdma
