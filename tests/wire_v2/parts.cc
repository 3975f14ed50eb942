#include "tests/wire_v2/parts.h"

#include "tests/wire_v2/tables.h"

namespace weft::wire_v2 {

void Parts::on_properties(const Message& message, const Report& report) {
  if (properties_are_told_) report("W2-6.3.4-2", "properties follow RDMA2_CONNPROP_FINAL");
  in_properties_ = message.type == wg07::kConnpropMiddle;
  properties_are_told_ |= !in_properties_;
}

// Whether the message is the next part of the sequence. Another message does not end the sequence.
bool Parts::belongs(const Message& message, const Report& report) const {
  const bool goes_on =
      message.direction == last_->direction && (message.kind == Kind::kPart || message.kind == Kind::kInline);
  if (!goes_on) {
    report(last_->direction == Direction::kCall ? "W2-6.3.6-3" : "W2-6.3.9-2",
           "another message stands between the parts of an RPC message");
    return false;
  }
  if (message.xid != last_->xid) report("W2-6.3.6-4", "a part has another XID");
  return message.xid == last_->xid;
}

Parts::Place Parts::on_message(const Message& message, const Report& report) {
  if (message.kind == Kind::kGrant || message.kind == Kind::kError) return Place::kAlone;
  if (in_properties_ && message.kind != Kind::kProperties) {
    report("W2-6.3.3-3", "another message stands between the properties");
  }
  const bool joins = last_ && belongs(message, report);
  if (message.kind == Kind::kProperties) on_properties(message, report);
  const bool is_last = message.kind != Kind::kPart;
  if (!joins) {
    if (last_) return Place::kAlone;
    forgotten_ = false;
    payload_ = message.payload;
    if (!is_last) last_ = message;
    return is_last ? Place::kAlone : Place::kBegins;
  }
  payload_.insert(payload_.end(), message.payload.begin(), message.payload.end());
  const std::uint64_t left = message.payload.size() + (is_last ? 0 : std::uint64_t{message.remaining});
  if (last_->remaining != left) report("W2-6.3.6-2", "rdma_remaining was not what is left");
  last_ = is_last ? std::nullopt : std::optional(message);
  return is_last ? Place::kEnds : Place::kJoins;
}

void Parts::forget(std::uint32_t xid) {
  if (last_ && last_->xid == xid) forgotten_ = true;
}

}  // namespace weft::wire_v2
