#include "rpcrdma/link.h"

#include <algorithm>

#include "requirements/violates.h"
#include "rpcrdma/requester.h"
#include "rpcrdma/responder.h"

namespace weft::rpcrdma {

void Link::on_completion(const verbs::Wc& wc) {
  const auto work = endpoint_.on_completion(wc);
  if (closed_) return;
  if (!work) return on_failure();
  switch (work->kind()) {
    case WorkKind::kReceive: return on_receive(*work, wc.byte_len);
    case WorkKind::kSend: return on_sent(work->send());
    // Only requesters have windows, and only responders read and write.
    case WorkKind::kInvalidate: return requester_->on_invalidated(work->receive());
    case WorkKind::kRead: return responder_->on_read_done(work->call());
    case WorkKind::kWrite: return responder_->on_write_done();
  }
}

void Link::on_failure() {
  if (responder_ == nullptr) return;
  if (const auto call = endpoint_.refused_read()) responder_->on_read_refused(*call);
  if (const auto reply = endpoint_.refused_write()) responder_->on_write_refused(*reply);
}

namespace {

// The word behind the XID, in every version; 0 for a message without it.
std::uint32_t version_of(ConstBytes message) {
  xdr::XdrReader in(message);
  std::uint32_t version = 0;
  return in.skip(4) && in.u32(version) ? version : 0;
}

}  // namespace

Link::Versions Link::versions() const {
  if (is_decided()) return {profile_->version, profile_->version};
  const auto [low, high] = std::ranges::minmax(profiles_, {}, &Profile::version);
  return {low->version, high->version};
}

// A message that no client begins with decides nothing. The best profile of its version answers it, or the first one.
void Link::decide(ConstBytes message) {
  const auto at = std::ranges::find_if(profiles_, [message](const Profile* one) { return one->is_first(message); });
  if (at == profiles_.end()) {
    const auto same = std::ranges::find(profiles_, version_of(message), &Profile::version);
    answering_ = same != profiles_.end() ? *same : profiles_.front();
    return;
  }
  profile_ = *at;
  if (on_decided_) on_decided_();
}

// An unclear message goes to the engine of the forward direction. This engine answers or discards it as if it were
// alone.
MessageKind Link::kind_of(ConstBytes message) const {
  const MessageKind kind = profile().message_kind(message);
  if (kind != MessageKind::kUnclear) return kind;
  return end_ == End::kClient ? MessageKind::kReply : MessageKind::kCall;
}

// R1-7.1.4-02: an XID has a different meaning in a Call and in a Reply.
void Link::on_receive(const Work& work, std::size_t len) {
  const ReceiveSlot slot = work.receive();
  if (!is_decided()) decide(endpoint_.received(slot, len));
  if (responder_ == nullptr) return requester_->on_receive(slot, len, work.invalidated);
  if (requester_ == nullptr) {
    if (work.invalidated) return endpoint_.fail("the peer invalidated a handle, and was given none");
    return responder_->on_receive(slot, len);
  }
  if (kind_of(endpoint_.received(slot, len)) == MessageKind::kReply) {
    return requester_->on_receive(slot, len, work.invalidated);
  }
  if (violates("R1-4.3.2-16", work.invalidated.has_value())) {
    return endpoint_.fail_violation("the peer invalidated a handle by a message that is no Reply");
  }
  // Replies need Receives too: Calls beyond the grant must not use them up.
  if (violates("R1-4.3.1-04", responder_->is_at_limit())) {
    return endpoint_.fail_violation("the peer sends more Calls than it was granted");
  }
  responder_->on_receive(slot, len);
}

void Link::on_sent(SendSlot slot) {
  const bool is_reply = responder_ != nullptr && (requester_ == nullptr || responder_->is_sending(slot));
  return is_reply ? responder_->on_send_done(slot) : requester_->on_send_done(slot);
}

}  // namespace weft::rpcrdma
