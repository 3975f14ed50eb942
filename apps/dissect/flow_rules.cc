#include "apps/dissect/flow_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "apps/dissect/effect.h"
#include "apps/dissect/rule_ids.h"
#include "apps/dissect/transport_header.h"

namespace weft::apps::dissect {

namespace {

using rpcrdma::Protocol;
using rpcrdma::v2_wg07::Htype;

constexpr std::string_view kNoReceive = "the receiver may have no Receive for it, and end the connection";
constexpr std::string_view kInvalCont = "the receiver answers RDMA2_ERROR with INVAL_CONT, and drops it";

// Numbers of messages are modulo 2^32 (W2-4.2.1-9).
std::int32_t distance(std::uint32_t to, std::uint32_t from) {
  return static_cast<std::int32_t>(to - from);
}

}  // namespace

void FlowRules::on_protocol(Protocol protocol) {
  protocol_ = protocol;
  for (Half& each : halves_) {
    const Half before = each;
    each = {};
    each.num_messages = before.num_messages;
    each.has_lost_count = before.has_lost_count;
    each.has_lost_words = before.has_lost_words;
  }
}

void FlowRules::on_lost(Side of, std::optional<std::uint32_t> num) {
  Half& own = half(of);
  own.num_messages += num.value_or(0);
  own.has_lost_count |= !num;
  own.has_lost_words = own.has_answered = own.has_called = true;
  own.properties = Properties::kNone;
}

bool FlowRules::knows_num_left(Side of) const {
  const Half& own = halves_[static_cast<std::size_t>(of)];
  return !own.has_lost_words && !halves_[static_cast<std::size_t>(other(of))].has_lost_count;
}

void FlowRules::on_message(Side from, const TransportHeader* header, std::size_t len, bool is_judging, Frame& frame) {
  Half& own = half(from);
  ++own.num_messages;
  if (protocol_ != Protocol::k1) on_version2(from, header, len, is_judging, frame);
  own.has_answered |= header != nullptr && !header->error;
}

void FlowRules::on_version2(Side from, const TransportHeader* header, std::size_t len, bool is_judging, Frame& frame) {
  Half& own = half(from);
  const bool is_grant = header != nullptr && header->is(Htype::kGrant);
  if (is_judging) {
    judge_first(from, len, frame);
    if (protocol_ == Protocol::k2Wg07) judge_number(from, is_grant, frame);
    if (protocol_ == Protocol::k2Wg07 && header != nullptr) judge_properties(own, *header, frame);
  }
  if (header == nullptr) return;
  if (header->is_connprop_wg07()) {
    own.properties = header->is(Htype::kConnpropFinal) ? Properties::kFinal : Properties::kMiddle;
  }
  own.told_before = own.told;
  const bool has_word = protocol_ == Protocol::k2Wg07 && header->version == 2;
  if (is_judging && has_word && !own.told && !own.has_lost_words && !header->error)
    judge_limit(from, header->credit, frame);
  if (has_word && (!own.told || distance(header->credit, *own.told) > 0)) own.told = header->credit;
}

std::uint32_t FlowRules::num_left(Side of) const {
  const auto told = halves_[static_cast<std::size_t>(of)].told;
  const std::uint32_t received = halves_[static_cast<std::size_t>(other(of))].num_messages;
  return told ? static_cast<std::uint32_t>(std::max(0, distance(*told, received))) : 0;
}

// Before the first word: one message, and one more for each refusal (judge_first).
std::uint32_t FlowRules::num_uncaused(Side of) const {
  const Half& peer = halves_[static_cast<std::size_t>(other(of))];
  return peer.told_before.value_or(peer.num_messages);
}

// A server may have version 1 alone, and Receives of that version's default size.
void FlowRules::judge_first(Side from, std::size_t len, Frame& frame) {
  const Half& own = half(from);
  const Half& peer = half(other(from));
  if (from != Side::kClient || own.has_lost_words || peer.has_lost_words) return;
  if (own.num_messages == 1 && len > kMaxFirst) {
    frame.find(protocol_ == Protocol::k2Wg07 ? "W2-4.3-4" : "R2-8-3",
               fmt::format("the first message has {} bytes, above {}", len, kMaxFirst),
               may_end("a server whose Receives have 1024 bytes ends the connection"));
  }
  // A refusal makes room for one more.
  if (!peer.has_answered && own.num_messages > peer.num_messages + 1) {
    frame.find(requirement_of(RpcRule::kFirstReply, protocol_),
               fmt::format("message {} before the answer to the first one", own.num_messages), may_end(kNoReceive));
  }
}

void FlowRules::judge_number(Side from, bool is_grant, Frame& frame) {
  const Half& own = half(from);
  const Half& peer = half(other(from));
  if (!peer.told) return;  // judge_first, and a server that answers messages without a word
  if (own.has_lost_count || peer.has_lost_words) return;
  if (distance(own.num_messages, *peer.told) <= (is_grant ? 1 : 0)) return;  // W2-4.2.1.1-5
  frame.find(requirement_of(RpcRule::kCredits, protocol_),
             fmt::format("message {}, where the other side takes messages up to {}", own.num_messages, *peer.told),
             may_end(kNoReceive));
}

// The first word of a side says how many messages it takes from here on: there is no word before it to fall from. A
// word that is a little lower than the number of messages that have come is no limit.
void FlowRules::judge_limit(Side from, std::uint32_t word, Frame& frame) {
  constexpr std::uint32_t kLimit = 0x7fffffff, kLower = 0xffff0000;
  const std::uint32_t num = word - half(other(from)).num_messages;
  if (num < kLimit || num >= kLower) return;
  frame.find("W2-4.2.1-10", fmt::format("takes {} messages at once, where 2^31 - 2 is the most", num),
             "the receiver may take it for none");
}

void FlowRules::judge_properties(const Half& own, const TransportHeader& header, Frame& frame) const {
  if (own.properties == Properties::kFinal && header.is_connprop_wg07()) {
    frame.find("W2-6.3.4-2", fmt::format("{} behind RDMA2_CONNPROP_FINAL", type_str(header.type)), kInvalCont);
  }
  const bool may_stand_inside = header.is_connprop_wg07() || header.is(Htype::kGrant) || header.error;
  if (own.properties == Properties::kMiddle && !may_stand_inside) {
    frame.find("W2-6.3.3-3", fmt::format("{} before RDMA2_CONNPROP_FINAL", type_str(header.type)), kInvalCont);
  }
}

void FlowRules::on_credit(Side from, const TransportHeader& header, bool to_responder, bool is_reverse, Frame& frame) {
  Half& own = half(from);
  if (!to_responder) own.granted = std::max(own.granted.value_or(0), header.credit);
  const bool has_direction = header.has_payload || header.external;
  if (header.credit != 0 || protocol_ == Protocol::k2Wg07) return;
  if (protocol_ == Protocol::k1 && is_reverse) {
    // The direction of a message without the RPC message is a guess.
    if (has_direction)
      frame.find("R1-7.2.1-03", "no credits in the reverse direction", "the receiver takes it for one");
  } else if (!to_responder && (has_direction || protocol_ == Protocol::k1)) {
    frame.find(requirement_of(RpcRule::kZeroCredits, protocol_), "a grant of no credits",
               "the requester takes it for one credit");
  }
}

void FlowRules::on_call(Side from, std::size_t num_open, bool is_judging, Frame& frame) {
  Half& own = half(from);
  const bool has_called = std::exchange(own.has_called, true);
  if (!is_judging || protocol_ == Protocol::k2Wg07 || half(other(from)).has_lost_words) return;
  const auto granted = half(other(from)).granted;
  if (granted) {
    if (num_open <= std::max<std::uint32_t>(1, *granted)) return;
    frame.find(requirement_of(RpcRule::kCredits, protocol_),
               fmt::format("{} Calls at once with {} credits", num_open, *granted),
               may_end("the responder may have no Receive for it, and end the connection"));
  } else if (protocol_ == Protocol::k1 && from == Side::kClient && has_called) {
    frame.find(num_open > 1 ? requirement_of(RpcRule::kFirstReply, protocol_) : "R1-4.3.3-03",
               num_open > 1 ? fmt::format("{} Calls at once before the first Reply", num_open)
                            : std::string("a Call again before the first Reply"),
               may_end("the responder may have no Receive for it, and end the connection"));
  }
}

}  // namespace weft::apps::dissect
