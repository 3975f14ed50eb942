#include "rpcrdma/link.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "requirements/violates.h"
#include "rpcrdma/requester.h"
#include "rpcrdma/responder.h"
#include "rpcrdma/rpc_message.h"

namespace weft::rpcrdma {

namespace {

using Direction = Reassembly::Direction;

constexpr const char* kForeignInvalidation = "the peer invalidated a handle by a message that is no Reply";
constexpr const char* kOverrun = "the peer sends more messages than it was granted";

}  // namespace

// The refusal of another version is no message of this one, and counts for its credits (W2-4.2.1-3, W2-4.2.1-4).
void Link::ask(const Profile& profile) {
  answering_ = &profile;
  make_flow(profile);
}

void Link::hear(const Arrival& arrival) {
  const ConstBytes message = endpoint_.received(arrival.slot, arrival.len);
  if (tells_received()) tell(LinkMessage::Direction::kReceived, message, arrival.invalidated);
  if (flow_ && violates("W2-4.2.1-8", !flow_->count(flow_->frame(message)))) endpoint_.fail_violation(kOverrun);
  ++num_early_received_;
}

void Link::begin(std::uint32_t credit) {
  profile_ = answering_;
  has_begun_ = true;
  if (!flow_) credits_.granted = violates("R1-4.3.1-05", credit == 0) ? 1 : credit;
}

void Link::count_send(SendSlot slot) {
  if (!is_decided()) ++num_early_sent_;
  if (flow_) flow_->stamp(slot);
}

void Link::observe(LinkObserver& observer, ObservedLink self) {
  observer_ = &observer;
  self_ = std::move(self);
}

void Link::end(std::string_view why) {
  if (LinkObserver* observer = std::exchange(observer_, nullptr)) observer->on_end(self_, why);
}

void Link::tell_sent(std::span<const verbs::Sge> sges, std::optional<std::uint32_t> invalidate) {
  views_.clear();
  for (const verbs::Sge& sge : sges) {
    views_.emplace_back(reinterpret_cast<const std::uint8_t*>(static_cast<std::uintptr_t>(sge.addr)), sge.length);
  }
  tell({.direction = LinkMessage::Direction::kSent, .octets = views_, .invalidated = invalidate});
}

void Link::tell(LinkMessage::Direction direction, ConstBytes octets, std::optional<std::uint32_t> invalidated) {
  tell({.direction = direction, .octets = std::span(&octets, 1), .invalidated = invalidated});
}

// The transport header of a message stands in its first view.
void Link::tell(LinkMessage message) {
  message.profile = profile().name;
  xdr::XdrReader words(message.octets.front());
  if (!words.skip(kCreditOffset) || !words.u32(message.credit)) message.credit = 0;
  probe(message);
  if (observer_ != nullptr) observer_->on_message(self_, message);
}

namespace {

// The procedure of a Call whose RPC header stands in this part of it; else -1.
std::int64_t procedure_of(const Profile& profile, ConstBytes part) {
  ReceivedCall call;
  if (profile.receive_call(part, {}, call) != CallVerdict::kAccept || call.external) return -1;
  xdr::XdrReader in(call.payload);
  CallHeaderView header;
  return parse_call(in, header) == CallParse::kOk ? std::int64_t{header.procedure} : -1;
}

// The number of octets of all views.
std::size_t len_of(std::span<const ConstBytes> views) {
  std::size_t len = 0;
  for (const ConstBytes view : views) len += view.size();
  return len;
}

}  // namespace

// Computes what the probes tell: only while a tracer listens.
void Link::probe(const LinkMessage& message) const {
  const bool is_sent = message.direction == LinkMessage::Direction::kSent;
  if (!(is_sent ? WEFT_PROBE_IS_ARMED(message_sent) : WEFT_PROBE_IS_ARMED(message_received))) return;
  const ConstBytes front = message.octets.front();
  std::uint32_t xid = 0, version = 0;
  xdr::XdrReader words(front);
  if (!words.u32(xid) || !words.u32(version)) xid = version = 0;
  const MessageKind kind = profile().message_kind(front);
  const std::int64_t procedure = kind == MessageKind::kCall ? procedure_of(profile(), front) : -1;
  const std::size_t len = len_of(message.octets);
  if (is_sent) {
    WEFT_PROBE(message_sent, this, static_cast<int>(is_client()), xid, version, message.credit, len,
               static_cast<int>(kind), procedure);
  } else {
    WEFT_PROBE(message_received, this, static_cast<int>(is_client()), xid, version, message.credit, len,
               static_cast<int>(kind), procedure);
  }
}

void Link::on_completion(const verbs::Wc& wc) {
  const auto work = endpoint_.on_completion(wc);
  if (closed_) return;
  if (!work) return on_failure();
  switch (work->kind()) {
    case WorkKind::kReceive: on_receive({work->receive(), wc.byte_len, work->invalidated}); break;
    case WorkKind::kSend: on_sent(work->send()); break;
    // Only requesters have windows, and only responders read and write.
    case WorkKind::kInvalidate: requester_->on_invalidated(work->receive()); break;
    case WorkKind::kRead: responder_->on_read_done(work->call()); break;
    case WorkKind::kWrite: responder_->on_write_done(); break;
  }
}

void Link::exchange_properties(const Properties& own, std::function<void()> on_terms) {
  if (profile().make_exchange == nullptr) return;
  exchange_ = profile().make_exchange(own);
  on_terms_ = std::move(on_terms);
}

void Link::on_opened() {
  if (exchange_ == nullptr || !is_client()) return;
  outbox_.add(exchange_->open(), {});
  pump_outbox();
}

// True: the message is none for an engine.
bool Link::take_property(const Arrival& arrival) {
  if (exchange_ == nullptr) return false;
  const ConstBytes message = endpoint_.received(arrival.slot, arrival.len);
  if (!exchange_->is_mine(message)) return false;
  if (violates("R1-4.3.2-16", arrival.invalidated.has_value())) {
    endpoint_.fail_violation(kForeignInvalidation);
    return true;
  }
  const bool knew_peer = exchange_->peer().has_value();
  auto taken = exchange_->take(message);
  if (*taken.fault != '\0') tell_fault(taken.fault);
  const bool is_answered = !taken.answer.empty();
  outbox_.add(std::move(taken.answer), arrival.slot);
  if (!knew_peer && exchange_->peer()) ask_for_longer_receives();
  if (!is_answered) {
    on_one_way(*taken.fault == '\0');
    endpoint_.post_receive(arrival.slot);
  }
  pump_outbox();
  if (taken.changed && !endpoint_.failure()) settle_terms();
  return true;
}

// Once on a connection: a client that may send longer messages than the server's Receives are asks for longer ones.
// Nothing waits for the answer. Only a grant changes terms().
void Link::ask_for_longer_receives() {
  const std::uint32_t wanted_size = exchange_->own().send_size;
  Properties wanted = *exchange_->peer();
  if (!is_client() || wanted_size <= wanted.receive_size) return;
  wanted.receive_size = wanted_size;
  outbox_.add(exchange_->request(wanted).answer, {});
}

// R2-6.1.1-11
void Link::tell_fault(const char* fault) const {
  if (responder_ != nullptr) return responder_->tell_property_fault(fault);
  if (requester_ != nullptr) requester_->tell_property_fault(fault);
}

void Link::settle_terms() {
  const Terms now = terms();
  if (responder_ != nullptr) responder_->settle(now.thresholds.send);
  if (requester_ != nullptr && is_client()) requester_->settle(now.thresholds, now.chunks);
  if (on_terms_) on_terms_();
}

void Link::pump_outbox() {
  while (!outbox_.empty() && !endpoint_.failure() && endpoint_.send_queue_room() != 0) {
    const auto slot = take_send(Sender::kLink);
    if (!slot) return;
    const std::size_t len = outbox_.fill(endpoint_.send_buffer(*slot));
    xdr::XdrWriter word(endpoint_.send_buffer(*slot).subspan(kCreditOffset, 4));
    word.u32(credits_.grants.grant());
    if (const auto receive = outbox_.leave(*slot)) endpoint_.post_receive(*receive);
    (void)send(*slot, len);
  }
}

// A needless message takes a Receive from the other peers until the turn ends. If credits count messages, the credits
// bound a flood first.
void Link::on_needless() {
  if (endpoint_.config().receives == nullptr) return;
  if (++needless_in_turn_ > endpoint_.share() + kExtraReceives) {
    endpoint_.fail_overrun("the peer sends only messages that are to be discarded");
  }
}

// No credit bounds properties where credits count Calls, so a peer may tell as many as it finds Receives for. A device
// with a reserve sees to it that the other peers find theirs. On any other device good messages are bounded like
// needless ones.
void Link::on_one_way(bool is_good) {
  const ReceivePool* receives = endpoint_.config().receives;
  if (is_good && receives != nullptr && receives->keeps_reserve()) return;
  on_needless();
}

bool Link::has_call(ConstBytes message) const {
  if (!flow_) {
    ReceivedCall call;
    return profile().message_kind(message) == MessageKind::kCall &&
           profile().receive_call(message, {}, call) == CallVerdict::kAccept;
  }
  using Type = Frame::Type;
  const Frame frame = flow_->frame(message);
  const bool is_rpc = frame.type == Type::kInline || frame.type == Type::kExternal || frame.type == Type::kMiddle;
  return is_rpc && frame.direction == Direction::kCall;
}

// Credits, Send buffers or the other engine's sequence can hold up either engine.
void Link::finish_turn() {
  needless_in_turn_ = 0;
  if (!is_decided() || closed_ || endpoint_.failure()) return;
  if (flow_ && flow_->is_short()) pass_on();
  pump_outbox();
  if (!flow_) return;
  if (responder_ != nullptr) responder_->on_room();
  if (requester_ != nullptr) requester_->on_room();
  flow_->grant_if_due();
}

void Link::trim() {
  std::vector<ConstBytes>().swap(views_);
  outbox_.trim();
  if (flow_) flow_->trim();
  endpoint_.trim();
}

void Link::on_time(TimePoint now) {
  now_ = now;
  if (flow_ && flow_->has_deadline() && is_decided() && !closed_) end_late_sequence();
  finish_turn();
}

void Link::end_late_sequence() {
  const auto late = flow_->on_time(now_);
  if (!late || endpoint_.failure()) return;
  const char* why = "its parts took too long";
  if (late->direction == Direction::kReply) {
    if (requester_ != nullptr) requester_->on_refused_parts(late->xid, why);
  } else if (responder_ != nullptr) {
    responder_->refuse_parts({}, late->xid, TransportError::Code::kSystem, why);
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
    ++num_early_received_;
    return;
  }
  settle(**at);
  if (on_decided_) on_decided_();
}

void Link::settle(const Profile& profile) {
  profile_ = &profile;
  make_flow(profile);
}

void Link::make_flow(const Profile& profile) {
  flow_.reset();
  credits_.granted = 1;
  if (profile.framing == nullptr) return;
  // One Receive is the reserve for a GRANT. The message that decided holds one.
  const std::uint32_t receives = std::max(endpoint_.num_ready(), endpoint_.share());
  const auto max_octets = [this](Direction direction, std::uint32_t xid, std::size_t len) {
    if (direction == Direction::kReply) return requester_ != nullptr ? requester_->max_reply(xid, len) : 0;
    return responder_ != nullptr ? responder_->max_continued_call() : 0;
  };
  const auto is_barred = [this] { return exchange_ != nullptr && exchange_->is_between(); };
  flow_.emplace(endpoint_, *profile.framing,
                MessageFlow::Config{.window = receives - 1,
                                    .is_client = is_client(),
                                    .literal_credits = literal_credits_,
                                    .sent = num_early_sent_,
                                    .received = num_early_received_,
                                    .limits = {.max_octets = kMaxContinued},
                                    .share = share_of_parts(),
                                    .max_octets = max_octets,
                                    .is_barred = is_barred,
                                    .post = [this](SendSlot slot, std::size_t len) { return post(slot, len); }});
  credits_.granted = std::numeric_limits<std::uint32_t>::max();
}

// The memory of a server's clients is budgeted, and so is that of the Calls of a client's server. Replies to a client
// are bounded by its own Calls.
Reassembly::Share Link::share_of_parts() {
  const auto is_counted = [this](Direction direction) { return direction == Direction::kCall || !is_client(); };
  return {[this, is_counted](Direction direction, Lease& lease, std::size_t least, std::size_t most) {
            if (!is_counted(direction)) return true;
            return responder_ != nullptr && responder_->take_memory(lease, least, most);
          },
          [this] { return responder_ != nullptr && responder_->is_memory_wanted(); }};
}

// An unclear message goes to the engine of the forward direction. This engine answers or discards it as if it were
// alone.
MessageKind Link::kind_of(ConstBytes message) const {
  const MessageKind kind = profile().message_kind(message);
  if (kind != MessageKind::kUnclear) return kind;
  return end_ == End::kClient ? MessageKind::kReply : MessageKind::kCall;
}

namespace {

// Whether this message can be the whole or the last part of an RPC message, or an error: no other one may invalidate a
// handle, and no engine would see that it does.
bool may_invalidate(const Frame& frame) {
  using Type = Frame::Type;
  return frame.type != Type::kGrant && frame.type != Type::kMiddle && frame.type != Type::kProperties;
}

}  // namespace

void Link::on_receive(Arrival&& arrival) {
  const ConstBytes message = endpoint_.received(arrival.slot, arrival.len);
  if (!is_decided()) decide(message);
  if (tells_received()) tell(LinkMessage::Direction::kReceived, message, arrival.invalidated);
  if (!flow_) return pass(std::move(arrival), true);
  const Frame frame = flow_->frame(message);
  if (violates("W2-6.5-3", arrival.invalidated && !may_invalidate(frame))) {
    return endpoint_.fail_violation(kForeignInvalidation);
  }
  if (violates("W2-4.2.1-8", !flow_->count(frame))) return endpoint_.fail_overrun(kOverrun);
  if (flow_->passes(frame)) return pass(std::move(arrival), may_be_property(frame));
  flow_->keep(frame, std::move(arrival));
  pass_on();
}

void Link::pass_on() {
  while (auto next = flow_->next(now_)) {
    if (next->refusal) {
      refuse(*next);
    } else if (next->is_lost) {
      if (may_lose(*next)) endpoint_.post_receive(next->arrival.slot);
    } else {
      pass(std::move(next->arrival), may_be_property(next->frame));
    }
  }
  if (responder_ != nullptr) responder_->on_parts_passed(flow_->is_short());
}

// Whether no engine needs to see this message: it invalidated no handle, or one that its Reply might.
bool Link::may_lose(const MessageFlow::Next& next) {
  const auto& handle = next.arrival.invalidated;
  if (!handle) return true;
  const bool is_reply = next.frame.direction == Direction::kReply && requester_ != nullptr;
  const bool is_its_own = is_reply && requester_->may_invalidate(next.frame.xid, *handle);
  if (violates("W2-6.5-3", !is_its_own)) {
    endpoint_.fail_violation(kForeignInvalidation);
    return false;
  }
  return true;
}

// A requester sends no errors: its RPC has failed (W2-6.3.9-2).
void Link::refuse(const MessageFlow::Next& next) {
  if (!may_lose(next)) return;
  const ReceiveSlot slot = next.arrival.slot;
  const bool is_call = next.frame.direction == Direction::kCall;
  if (is_call && responder_ != nullptr) {
    return responder_->refuse_parts(slot, next.frame.xid, *next.refusal, next.why);
  }
  // A Call of the peer may have the XID of one of this end's.
  if (!is_call && requester_ != nullptr) requester_->on_refused_parts(next.frame.xid, next.why);
  endpoint_.post_receive(slot);
}

// Between the messages of its properties a peer may send no RPC message, and take_property judges each of them.
bool Link::may_be_property(const Frame& frame) const {
  return frame.type == Frame::Type::kProperties || frame.type == Frame::Type::kMalformed ||
         (exchange_ != nullptr && exchange_->is_between());
}

// R1-7.1.4-02: an XID has a different meaning in a Call and in a Reply.
void Link::pass(Arrival&& arrival, bool may_be_property) {
  if (may_be_property && take_property(arrival)) return;
  if (responder_ == nullptr) return requester_->on_receive(std::move(arrival));
  if (requester_ == nullptr) {
    if (arrival.invalidated) return endpoint_.fail("the peer invalidated a handle, and was given none");
    return responder_->on_receive(std::move(arrival));
  }
  if (kind_of(endpoint_.received(arrival.slot, arrival.len)) == MessageKind::kReply) {
    return requester_->on_receive(std::move(arrival));
  }
  if (violates("R1-4.3.2-16", arrival.invalidated.has_value())) {
    return endpoint_.fail_violation(kForeignInvalidation);
  }
  // Replies need Receives too: Calls beyond the grant must not use them up. Credits of messages see to it themselves.
  if (violates("R1-4.3.1-04", !flow_ && responder_->is_at_limit())) {
    return endpoint_.fail_violation("the peer sends more Calls than it was granted");
  }
  if (flow_ && is_client() && refuse_without_room(arrival)) return;
  responder_->on_receive(std::move(arrival));
}

// Calls of the server hold Receives until they are answered, and its Replies need Receives too. One is the reserve for
// a GRANT. The responder answers any other message at once.
bool Link::refuse_without_room(const Arrival& arrival) {
  const Frame frame = flow_->frame(endpoint_.received(arrival.slot, arrival.len));
  const bool is_call = frame.type == Frame::Type::kInline || frame.type == Frame::Type::kExternal;
  if (!is_call || endpoint_.num_ready() > std::max<std::size_t>(requester_->num_sent(), 1)) return false;
  responder_->refuse_parts(arrival.slot, frame.xid, TransportError::Code::kSystem,
                           "too many Calls are without an answer");
  return true;
}

void Link::on_sent(SendSlot slot) {
  if (flow_ && flow_->on_sent(slot)) return;
  if (outbox_.on_sent(slot)) return endpoint_.give_send(slot);
  const bool is_reply = responder_ != nullptr && (requester_ == nullptr || responder_->is_sending(slot));
  return is_reply ? responder_->on_send_done(slot) : requester_->on_send_done(slot);
}

}  // namespace weft::rpcrdma
