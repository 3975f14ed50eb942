#include "rpcrdma/message_flow.h"

#include <algorithm>
#include <span>
#include <utility>

#include "requirements/violates.h"

namespace weft::rpcrdma {

namespace {

using Part = Reassembly::Part;
using Type = Frame::Type;

MessageCredits::Kind credit_kind(Type type) {
  if (type == Type::kGrant) return MessageCredits::Kind::kGrant;
  return type == Type::kError ? MessageCredits::Kind::kError : MessageCredits::Kind::kOther;
}

Part::Kind part_kind(Type type) {
  switch (type) {
    case Type::kMiddle: return Part::Kind::kMiddle;
    case Type::kInline: return Part::Kind::kInline;
    case Type::kExternal: return Part::Kind::kExternal;
    case Type::kGrant:
    case Type::kError: return Part::Kind::kExempt;
    case Type::kMalformed:
    case Type::kProperties: break;
  }
  return Part::Kind::kOther;
}

}  // namespace

MessageFlow::MessageFlow(Endpoint& endpoint, const Framing& framing, Config config)
    : endpoint_(endpoint),
      framing_(framing),
      config_(std::move(config)),
      credits_({.window = config_.window,
                .is_client = config_.is_client,
                .literal = config_.literal_credits,
                .sent = config_.sent,
                .received = config_.received}),
      reassembly_(config_.limits, config_.share) {
  sync();
}

// Receives come and go with the messages that the engines hold.
void MessageFlow::sync() {
  credits_.set_ready(endpoint_.num_ready());
}

bool MessageFlow::may_send(Sender sender) const {
  return (!in_sequence_ || in_sequence_ == sender) && credits_.may_send(MessageCredits::Kind::kOther);
}

void MessageFlow::stamp(SendSlot slot) {
  sync();
  const std::uint32_t word = credits_.word();
  xdr::XdrWriter out(endpoint_.send_buffer(slot).subspan(kCreditOffset, 4));
  out.u32(word);
  credits_.on_sent(word);
  in_sequence_.reset();
}

std::optional<SendSlot> MessageFlow::take_send() {
  return endpoint_.send_queue_room() != 0 ? endpoint_.take_send() : std::nullopt;
}

bool MessageFlow::send(SendSlot slot, std::size_t len) {
  own_sends_.push_back(slot);
  stamp(slot);
  return config_.post(slot, len);
}

bool MessageFlow::send_parts(Sender sender, Continuation& continuation, std::size_t threshold) {
  const std::size_t room = threshold - framing_.middle_header_len;
  while (continuation.needs_part()) {
    const auto slot = may_send(sender) ? take_send() : std::nullopt;
    if (!slot) return false;
    xdr::XdrWriter out(endpoint_.send_buffer(*slot));
    const std::size_t len = continuation.next_len(room);
    framing_.emit_middle(out, continuation.direction(), continuation.xid(),
                         static_cast<std::uint32_t>(continuation.remaining() - len));
    continuation.write(out, len);
    if (!send(*slot, out.size())) return false;
    in_sequence_ = sender;
  }
  return true;
}

bool MessageFlow::on_sent(SendSlot slot) {
  if (std::erase(own_sends_, slot) == 0) return false;
  endpoint_.give_send(slot);
  return true;
}

void MessageFlow::grant() {
  sync();
  if (!credits_.grant_is_due() || endpoint_.failure()) return;
  const auto slot = take_send();
  if (!slot) return;
  const auto in_sequence = in_sequence_;
  xdr::XdrWriter out(endpoint_.send_buffer(*slot));
  framing_.emit_grant(out);
  (void)send(*slot, out.size());
  in_sequence_ = in_sequence;  // a GRANT may stand inside a sequence (W2-6.3.6-3)
}

std::uint32_t MessageFlow::receives_for(std::uint32_t window) {
  credits_.set_window(window);
  // Promised credits stay, beside the Receives whose messages the engines hold.
  return std::max(credits_.num_wanted(), endpoint_.num_held() + credits_.promised() + 1);
}

bool MessageFlow::count(const Frame& frame) {
  return credits_.on_received(credit_kind(frame.type), frame.credit) != MessageCredits::Verdict::kOverrun;
}

// Whether no sequence can hold up the message, and it is no part of one: the usual case.
bool MessageFlow::is_alone(const Frame& frame) const {
  return frame.type == Type::kMalformed ||
         (frame.type != Type::kMiddle && frame.type != Type::kGrant && reassembly_.is_idle());
}

// Whether the message goes to an engine by itself. The caller hands it up then.
bool MessageFlow::leaves(const Frame& frame) {
  if (!is_alone(frame)) return false;
  if (frame.type == Type::kMalformed) reassembly_.on_malformed(frame.xid);
  return true;
}

void MessageFlow::keep(const Frame& frame, Arrival&& arrival) {
  if (frame.type == Type::kGrant) {
    endpoint_.post_receive(arrival.slot);
  } else {
    arrived_.push_back({frame, std::move(arrival)});
  }
}

std::optional<MessageFlow::Next> MessageFlow::next(TimePoint now) {
  while (!arrived_.empty() && !endpoint_.failure()) {
    Arrived& first = arrived_.front();
    if (leaves(first.frame)) {
      Next next{first.frame, {first.arrival.slot, first.arrival.len, first.arrival.invalidated}, {}, ""};
      arrived_.pop_front();
      return next;
    }
    const std::size_t before = arrived_.size();
    auto next = join(first, now);
    if (arrived_.size() == before) {
      if (!short_since_) short_since_ = now;
      break;
    }
    short_since_.reset();
    if (next) return next;
  }
  return {};
}

std::optional<Reassembly::Sequence> MessageFlow::on_time(TimePoint now) {
  if (const auto late = reassembly_.on_time(now)) return late;
  if (!short_since_ || now - *short_since_ < config_.limits.max_time) return {};
  const Frame& frame = arrived_.front().frame;
  reassembly_.refuse(frame.direction, frame.xid);
  return Reassembly::Sequence{frame.direction, frame.xid};
}

std::optional<TimePoint> MessageFlow::next_timeout() const {
  std::optional<TimePoint> part;
  if (short_since_) part = *short_since_ + config_.limits.max_time;
  return earliest(reassembly_.next_timeout(), part);
}

// Empty: the message is done with, or it waits for memory and stays first.
std::optional<MessageFlow::Next> MessageFlow::join(Arrived& first, TimePoint now) {
  using Verdict = Reassembly::Verdict;
  const Frame frame = first.frame;
  const bool has_payload = frame.type == Type::kMiddle || frame.type == Type::kInline;
  const auto payload = has_payload ? payload_of(first) : std::optional<ConstBytes>(ConstBytes());
  const std::size_t announced = frame.type == Type::kMiddle ? frame.remaining : 0;
  const std::size_t len = reassembly_.len() + (payload ? payload->size() : 0) + announced;
  const std::size_t max_octets = config_.max_octets(frame.direction, frame.xid, len);
  const bool is_stray = max_octets == 0;
  Verdict verdict = Verdict::kAlone;
  const bool is_useless = !payload || (has_payload && is_stray);
  // The engine refuses a malformed part, and discards a stray one. A later Call may get the XID of a stray one.
  if (is_useless && frame.type == Type::kMiddle) {
    if (!is_stray) reassembly_.refuse(frame.direction, frame.xid);
  } else if (is_useless) {
    reassembly_.on_last(frame.direction, frame.xid);
  } else {
    verdict = reassembly_.on_message(part_of(first, *payload, max_octets), now);
  }
  if (verdict == Verdict::kShort) return {};
  Next next{frame, std::move(first.arrival), {}, ""};
  arrived_.pop_front();
  switch (verdict) {
    case Verdict::kAlone: return next;
    case Verdict::kWhole:
      next.arrival.joined = std::make_unique<Reassembly::Joined>(reassembly_.take_message());
      return next;
    case Verdict::kInvalCont:
      next.refusal = TransportError::Code::kSequence;
      next.why = "it stands inside the parts of another RPC message";
      return next;
    case Verdict::kBadXdr:
      next.refusal = TransportError::Code::kBadHeader;
      next.why = "its first part does not begin with its XID";
      return next;
    case Verdict::kTooLong:
      next.refusal = TransportError::Code::kSystem;
      next.why = "its parts are too many or too long";
      return next;
    case Verdict::kDiscard:
      next.is_lost = next.arrival.invalidated.has_value();
      if (next.is_lost) return next;
      [[fallthrough]];
    case Verdict::kTaken: endpoint_.post_receive(next.arrival.slot); break;
    case Verdict::kShort: break;
  }
  return {};
}

// Empty: the header is malformed. The header of a part has a fixed length, and frame() has judged its words.
std::optional<ConstBytes> MessageFlow::payload_of(const Arrived& arrived) const {
  const ConstBytes message = endpoint_.received(arrived.arrival.slot, arrived.arrival.len);
  if (arrived.frame.type != Type::kMiddle) return framing_.payload(message);
  if (violates("W2-7.2.1-1", message.size() < framing_.middle_header_len + kLeastPart)) return {};
  return message.subspan(std::min(framing_.middle_header_len, message.size()));
}

Part MessageFlow::part_of(const Arrived& arrived, ConstBytes payload, std::size_t max_octets) const {
  const Frame& frame = arrived.frame;
  const std::size_t announced = frame.type == Type::kMiddle ? frame.remaining : 0;
  return {part_kind(frame.type), frame.direction, frame.xid, payload, max_octets, config_.is_barred(), announced};
}

}  // namespace weft::rpcrdma
