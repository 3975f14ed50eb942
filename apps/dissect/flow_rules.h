#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "apps/dissect/frame.h"
#include "rpcrdma/policies.h"

namespace weft::apps::dissect {

struct TransportHeader;

// FlowRules judges when the sides of a connection send: credits, what comes before the first answer, and the order of
// property messages (RFC 8166 section 3.3, RFC 8167 section 4.1, draft-cel-nfsv4-rpcrdma-version-two-05 sections 7.2.2
// and 8, draft-ietf-nfsv4-rpcrdma-version-two-07 sections 4.2.1, 4.3, 6.3.3 and 6.3.4). A value without I/O.
//
// is_judging: the capture has every message of both sides until now, whole and in order.
class FlowRules {
 public:
  static constexpr std::size_t kMaxFirst = 1024;  // octets of a client's first message

  // The messages from here on are of another version.
  void on_protocol(rpcrdma::Protocol protocol);
  // The capture lacks messages of this side, which may have said anything. num: how many; empty if this is not known.
  void on_lost(Side of, std::optional<std::uint32_t> num);
  // Each message of a side, before the calls below. header: null if it cannot be read.
  void on_message(Side from, const TransportHeader* header, std::size_t len, bool is_judging, Frame& frame);
  // A message goes to the side that answers Calls, or comes from it. is_reverse: that side is the client.
  void on_credit(Side from, const TransportHeader& header, bool to_responder, bool is_reverse, Frame& frame);
  // A Call. num_open: Calls of this side without a Reply, with this one.
  void on_call(Side from, std::size_t num_open, bool is_judging, Frame& frame);

  // num_left says how many more messages a side of 2-wg07 takes, as far as it has said.
  std::uint32_t num_left(Side of) const;
  // Whether the capture has the words on which num_left rests.
  bool knows_num_left(Side of) const;
  std::uint32_t num_messages(Side of) const { return halves_[static_cast<std::size_t>(of)].num_messages; }
  // num_uncaused: a side of 2-wg07 may send messages up to this number without the other side's last message.
  std::uint32_t num_uncaused(Side of) const;

 private:
  enum class Properties : std::uint8_t { kNone, kMiddle, kFinal };  // the property message that came last
  struct Half {
    std::uint32_t num_messages = 0;
    bool has_lost_count = false;  // num_messages is not right
    bool has_lost_words = false;  // the capture lacks messages of this side
    // Of the version that is in use:
    bool has_answered = false;  // with a message that is no error
    bool has_called = false;
    std::optional<std::uint32_t> granted;      // the most credits that this side granted so far
    std::optional<std::uint32_t> told;         // 2-wg07: the number of the last message that this side takes
    std::optional<std::uint32_t> told_before;  // the same before its last message
    Properties properties = Properties::kNone;
  };

  Half& half(Side side) { return halves_[static_cast<std::size_t>(side)]; }
  void on_version2(Side from, const TransportHeader* header, std::size_t len, bool is_judging, Frame& frame);
  void judge_first(Side from, std::size_t len, Frame& frame);
  void judge_number(Side from, bool is_grant, Frame& frame);
  void judge_limit(Side from, std::uint32_t word, Frame& frame);
  void judge_properties(const Half& own, const TransportHeader& header, Frame& frame) const;

  rpcrdma::Protocol protocol_ = rpcrdma::Protocol::k1;
  std::array<Half, 2> halves_;
};

}  // namespace weft::apps::dissect
