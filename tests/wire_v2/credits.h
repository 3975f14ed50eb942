#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

// Ledgers of the messages that one end was allowed to send. A ledger hears of posts and not of receipts. It judges
// whether some order of receipt keeps the rule. If so, it knows which messages must have been received.
namespace weft::wire_v2 {

// RpcCredits: the Calls of one direction in cel05, counted as in version 1: one credit is one unanswered Call.
class RpcCredits {
 public:
  // call: whether this many unanswered Calls were both asked for and granted.
  bool call(std::uint32_t requested);
  // answer: a Reply or an error, which is the event of this number.
  void answer(std::uint32_t granted, std::size_t event);
  // keep_answer: an answer that leaves the grant as it was.
  void keep_answer(std::size_t event) { answer(answers_.back().granted, event); }
  // The last answer that the requester must have received.
  std::size_t proved() const { return answers_[received_].event; }

 private:
  struct Answer {
    std::uint32_t granted = 0;
    std::size_t event = 0;
  };
  std::vector<Answer> answers_ = {{1, 0}};  // before the first one: one credit
  std::size_t received_ = 0;
  std::uint64_t calls_ = 0;
};

// MessageCredits: the messages of one end in wg07. A credit value is the number of the last message that may be sent,
// modulo 2^32.
class MessageCredits {
 public:
  explicit MessageCredits(std::uint32_t sent = 0) : sent_(sent), limits_{{sent + 1, 0}} {}

  enum class Announced : std::uint8_t { kGood, kGoesBack, kTooLarge };
  // send: whether one more message may be sent; a GRANT may be one beyond the limit.
  bool send(bool is_grant);
  // announce: the peer's message, which is the event of this number, has this credit value.
  Announced announce(std::uint32_t credit, std::size_t event);
  std::uint32_t limit() const { return limits_.back().value; }
  std::size_t proved() const { return limits_[received_].event; }

 private:
  struct Limit {
    std::uint32_t value = 0;
    std::size_t event = 0;
  };
  std::uint32_t sent_;
  std::vector<Limit> limits_;  // before the first one: one message
  std::size_t received_ = 0;
};

}  // namespace weft::wire_v2
