#include "rpcrdma/requester.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "rpcrdma/probes.h"
#include "rpcrdma/requester_state.h"
#include "rpcrdma/rpcsec_gss.h"

namespace weft::rpcrdma {

namespace {

constexpr std::size_t kMaxSegmentLen = 0xffffffff;
constexpr std::size_t kMaxSpare = 64;

verbs::Error refused(const char* why) {
  return verbs::Error{EINVAL, why};
}

}  // namespace

Requester::Requester(verbs::Pd& pd, Link& link, const Config& config, std::uint32_t first_xid)
    : pd_(pd), config_(config), next_xid_(first_xid), answered_xids_(config.credits) {
  rules_.chunks = config.chunks;
  rules_.short_only = config.short_only;
  resume(link);
}

Requester::~Requester() {
  on_closed("the requester is gone");
  run_ended();
}

verbs::Status Requester::check(const CallSpec& spec) const {
  if (spec.args.size() % 4 != 0) return refused("arguments are not a multiple of 4 bytes");
  for (const OpaqueAuth* auth : {spec.cred, spec.verf}) {
    if (auth != nullptr && auth->body.size() > kMaxAuthBody) {
      return refused("a credential or verifier is longer than 400 bytes");
    }
  }
  if (spec.args.size() > kMaxSegmentLen / 4 || spec.max_results > kMaxSegmentLen / 4 || spec.max_verf > kMaxAuthBody) {
    return refused("arguments or results do not fit a segment");
  }
  if (spec.binding != nullptr && (spec.binding->program != spec.program || spec.binding->version != spec.version)) {
    return refused("the binding is that of another program or version");
  }
  if (spec.call_only && !spec.result_items.empty()) return refused("a Call without a Reply has no results");
  if (auto status = check_items(spec); !status.ok()) return status;
  if (spec.xid && xid_is_used(*spec.xid)) return verbs::Error{EEXIST, "a Call with this XID is under way"};
  return {};
}

verbs::Status Requester::check_items(const CallSpec& spec) const {
  if (spec.items.size() > kMaxArgumentItems) return refused("more than 64 items");
  std::size_t items_len = 0;
  std::size_t position = 0;
  for (const ArgumentItem& item : spec.items) {
    if (item.position % 4 != 0 || item.position < position || item.position > spec.args.size()) {
      return refused("an item's position is not a place in the arguments");
    }
    position = item.position;
    items_len += len_of(item.data);
    if (num_segments_of(item.data, kMaxSegmentLen) > config_.chunks.max_segments) {
      return refused("an item is in more buffers than a chunk may have segments");
    }
  }
  std::size_t results_len = 0;
  for (const ScatteredBytes& item : spec.result_items) {
    results_len += len_of(item);
    if (num_segments_of(item, kMaxSegmentLen) > config_.chunks.max_segments) {
      return refused("a result is in more buffers than a chunk may have segments");
    }
  }
  if (items_len > kMaxSegmentLen / 2 || results_len > kMaxSegmentLen / 2) {
    return refused("arguments or results do not fit a segment");
  }
  return items_len == 0 && results_len == 0 ? verbs::Status{} : check_against_binding(spec);
}

// R1-8-01, R1-4.4.2-01: only items that a binding names are ever reduced.
verbs::Status Requester::check_against_binding(const CallSpec& spec) const {
  if (spec.binding == nullptr) return refused("a program without a binding has nothing to reduce");
  const bool has_room = std::ranges::any_of(spec.result_items, [](const auto& room) { return len_of(room) != 0; });
  if (has_room && spec.binding->walk_results == nullptr) {
    return refused("the binding finds no results (Binding::walk_results), so none can have room");
  }
  // R1-10.2.2-01, R1-10.2.2.3-01
  if (spec.cred != nullptr && !may_reduce(*spec.cred)) return refused("nothing of a GSS-protected Call is an item");
  const std::vector<const ArgumentItem*> items = filled_items(spec);
  if (items.empty()) return {};
  std::vector<EligibleItem> found;
  const auto walk = spec.binding->walk_arguments;
  if (walk == nullptr || walk(spec.procedure, spec.args, positions_of(items), found) == Walked::kGarbage) {
    return refused("the binding does not find these items in the arguments");
  }
  std::size_t next = 0;
  for (const EligibleItem& item : found) {
    if (!item.reduced) continue;
    if (next == items.size() || item.offset != items[next]->position || item.len != len_of(items[next]->data)) break;
    ++next;
  }
  return next == items.size() ? verbs::Status{} : refused("the binding finds other items in the arguments");
}

verbs::Result<CallId> Requester::call(const CallSpec& spec, ReplyCallback done) {
  if (closed_) return verbs::Error{ENOTCONN, "the connection is closed"};
  if (auto status = check(spec); !status.ok()) return status.error();
  std::unique_ptr<Call> call;
  if (spare_.empty()) {
    call = std::make_unique<Call>();
  } else {
    call = std::move(spare_.back());
    spare_.pop_back();
    spare_octets_ -= call->kept_octets();
  }
  call->spec = spec;
  call->done = std::move(done);
  call->discards_before = counters_.replies_discarded;
  const CallId id{call->id = ++last_id_};
  WEFT_PROBE(client_call_begin, call.get(), spec.program, spec.version, spec.procedure, spec.args.size());
  unstamped_ = true;
  own_timeouts_ |= spec.timeout.has_value() || spec.is_health_check;
  given_xids_ |= spec.xid.has_value();
  waiting_.insert(spec.is_health_check ? waiting_.begin() : waiting_.end(), std::move(call));
  if (!dispatching_) pump();
  return id;
}

bool Requester::cancel(CallId id) {
  for (Calls* calls : {&sent_, &waiting_}) {
    const auto at = std::ranges::find_if(*calls, [id](const auto& call) { return call->id == id.value; });
    if (at == calls->end()) continue;
    if (calls == &sent_) abandon(**at, (*at)->deadline);
    finish(*calls, at, CallStatus::kCancelled, "cancelled");
    return true;
  }
  return false;
}

void Requester::start(std::size_t call_threshold, std::size_t reply_threshold) {
  const Profile& profile = link_->profile();
  started_ = true;
  round_trip_ = {};
  has_answered_ = false;
  num_discards_ = num_stray_ = 0;
  sent_opening_ = asked_terms_ = no_parts_ = no_external_ = no_calls_ = false;
  is_opening_ = link_->is_client() && !link_->has_begun() && profile.first_threshold != 0;
  settled_threshold_ = call_threshold;
  rules_.call_threshold = is_opening_ ? std::min(call_threshold, profile.first_threshold) : call_threshold;
  rules_.reply_threshold = reply_threshold;
  rules_.call_lengths = profile.call_lengths;
  rules_.reply_lengths = profile.reply_lengths;
  rules_.chunk_terms = profile.default_chunks;
  rules_.part_header_len = profile.framing != nullptr ? profile.framing->middle_header_len : 0;
  settle_continuation();
  if (link_->has_begun()) link_->on_opened();
  pump();
}

void Requester::settle_continuation() {
  const bool may_continue = link_->flow() != nullptr && forms_ >= ReverseSupport::kContinued;
  rules_.max_continued_call = rules_.max_continued_reply = 0;
  if (may_continue) rules_.max_continued_reply = config_.chunks.max_continued_reply;
  if (may_continue && !is_opening_ && !no_parts_) rules_.max_continued_call = config_.chunks.max_continued_call;
  rules_.max_unpredictable_reply = may_continue ? kMaxContinued : 0;
}

void Requester::settle(const Thresholds& thresholds, const ChunkTerms& chunks) {
  settled_threshold_ = thresholds.send;
  if (!is_opening_) rules_.call_threshold = thresholds.send;
  rules_.reply_threshold = thresholds.receive;
  rules_.chunk_terms = chunks;
  if (!dispatching_) pump();
}

void Requester::limit_forms(ReverseSupport support) {
  forms_ = support;
  rules_.short_only = config_.short_only || support < ReverseSupport::kGeneral;
  if (link_ != nullptr) settle_continuation();
}

// R1-4.3.1-06
std::uint32_t Requester::window() const {
  return link_ == nullptr ? 1 : std::min(config_.credits, link_->credits().granted);
}

// U1-6.7.2-01: an idle or stalled connection can be checked although all other credits are taken.
bool Requester::may_send(bool is_health_check) const {
  const bool keep_one = config_.reserve_credit && !is_health_check && window() > 1;
  if (sent_.size() + abandoned_.size() >= window() - (keep_one ? 1 : 0)) return false;
  if (link_ == nullptr || link_->flow() == nullptr) return true;
  // Where nothing is under way there is nothing to check.
  return link_->flow()->num_credits() > (keep_one && !sent_.empty() ? 1u : 0u);
}

// Whether no Call can leave before a Reply comes, and none is expected but for Calls that were given up.
bool Requester::is_starved() const {
  if (abandoned_.empty()) return false;
  return abandoned_.size() >= window() || (sent_.empty() && link_ != nullptr && !may_send(true));
}

std::optional<CallSpec> Requester::health_check() const {
  if (!started_ || closed_ || last_program_ == 0 || !may_send(true)) return {};
  CallSpec spec;
  spec.program = last_program_;
  spec.version = last_version_;
  spec.is_health_check = true;
  return spec;
}

// Sends the Calls that the peer's grant allows (R1-4.3.1-04, R1-4.3.1-08).
void Requester::pump() {
  if (continued_ && !continue_call()) return;
  while (started_ && !closed_ && !continued_ && !waiting_.empty() && !endpoint_->failure() &&
         may_send(waiting_.front()->spec.is_health_check)) {
    const auto at = waiting_.begin();
    sent_.splice(sent_.end(), waiting_, at);
    switch (transmit(**at)) {
      case Transmitted::kSent: break;
      case Transmitted::kDone: finish(sent_, at, CallStatus::kSuccess, {}); break;
      case Transmitted::kNoRoom: waiting_.splice(waiting_.begin(), sent_, at); return;
      case Transmitted::kTooEarly:
        waiting_.splice(waiting_.begin(), sent_, at);
        ask_with_null(*waiting_.front());
        break;
      case Transmitted::kFailed: finish(sent_, at, CallStatus::kLocalError, std::move((*at)->text)); break;
    }
  }
  if (waiting_.empty()) given_xids_ = false;
}

// Whether a NULL Call of ask_with_null waits, or is under way.
bool Requester::is_asking() const {
  const auto is_it = [this](const auto& call) { return call->id == asking_.value; };
  return std::ranges::any_of(sent_, is_it) || std::ranges::any_of(waiting_, is_it);
}

// Whether a Call without a form may have one later. The chunk lists of a Call can be longer than the first message may
// be, or have more segments than a peer takes that has not told its properties.
bool Requester::may_learn_more() const {
  return is_opening_ ? !sent_opening_ : link_->may_expect_terms() && !asked_terms_;
}

// A NULL Call of its program then goes first. If its Reply comes before the peer's properties, none are expected.
void Requester::ask_with_null(const Call& before) {
  CallSpec spec;
  spec.program = before.spec.program;
  spec.version = before.spec.version;
  spec.is_health_check = true;
  if (config_.ask_timeout.count() != 0) spec.timeout = config_.ask_timeout;
  asker_ = {before.id};
  (is_opening_ ? sent_opening_ : asked_terms_) = true;
  const bool outer = std::exchange(dispatching_, true);  // call() would pump
  if (const auto asked = call(spec, {}); asked.ok()) asking_ = *asked;
  dispatching_ = outer;
}

bool Requester::xid_is_used(std::uint32_t xid) const {
  const auto has_xid = [xid](const auto& call) { return call->xid == xid; };
  if (std::ranges::any_of(sent_, has_xid)) return true;
  if (std::ranges::any_of(abandoned_, [xid](const Abandoned& one) { return one.xid == xid; })) return true;
  return given_xids_ && std::ranges::any_of(waiting_, [xid](const auto& call) {
           return call->spec.xid == xid || (call->keeps_xid && call->xid == xid);
         });
}

// The peer may still answer, and until then it counts the Call against its grant. The Call's memory is fenced: a late
// Write ends the connection and does not change the caller's memory (R1-5.4.1-03).
void Requester::abandon(const Call& call, std::optional<TimePoint> deadline) {
  if (call.fence) return;  // its Reply has come
  abandoned_.push_back({call.xid, deadline, call.invalidatable()});
  unstamped_ |= !deadline;
}

// Ends a Call without results; its callback runs from the next on_time.
void Requester::finish(Calls& from, Calls::iterator at, CallStatus status, std::string text) {
  Call& call = **at;
  if (&from == &sent_) keep_parts(call);
  round_trip_.forget(call.id);
  // R1-10.1.3-01
  if (call.fence) {
    unfenced_.push_back({call.fence->slot, call.registrations.clear_keeping_windows()});
    call.fence.reset();
  } else {
    call.registrations.clear();
  }
  call.status = status;
  const bool was_sent = &from == &sent_ && status != CallStatus::kLocalError;
  call.did_not_run = !call.may_have_run && (!was_sent || call.was_refused);
  call.text = std::move(text);
  ended_.splice(ended_.end(), from, at);
}

void Requester::end(Call& call, const Reply& reply) {
  WEFT_PROBE(client_call_end, &call, call.xid, call.spec.program, call.spec.version, call.spec.procedure,
             static_cast<int>(reply.status));
  ReplyCallback done = std::move(call.done);
  if (done) done(reply);
}

void Requester::release(Calls& from, Calls::iterator at) {
  retry_room_ -= (*at)->min_reply_chunk;
  Call& call = **at;
  call.reset();
  if (spare_.size() >= kMaxSpare) {
    from.erase(at);
    return;
  }
  if (spare_octets_ + call.kept_octets() > kMaxSpareOctets) call.drop_memory();
  spare_octets_ += call.kept_octets();
  spare_.splice(spare_.end(), from, at);
}

std::size_t Requester::run_ended() {
  std::size_t num_ended = 0;
  const bool outer = std::exchange(dispatching_, true);
  while (!ended_.empty()) {
    Calls one;
    one.splice(one.end(), ended_, ended_.begin());
    Reply reply;
    reply.status = one.front()->status;
    reply.text = one.front()->text;
    reply.did_not_run = one.front()->did_not_run;
    end(*one.front(), reply);
    release(one, one.begin());
    ++num_ended;
  }
  dispatching_ = outer;
  return num_ended;
}

// Makes a Call that was sent go out again: it waits before `before`, an entry of waiting_.
void Requester::send_again(Calls::iterator at, Calls::iterator before, bool same_xid) {
  round_trip_.forget((*at)->id);
  (*at)->unsend();  // its forms are chosen anew: the next connection may have other thresholds (R1-4.3.2-13)
  (*at)->keeps_xid = same_xid;
  given_xids_ |= (*at)->has_xid();
  waiting_.splice(before, sent_, at);
}

void Requester::suspend(const std::string& why) {
  started_ = false;
  others_.clear();
  other_versions_.reset();
  link_ = nullptr;
  endpoint_ = nullptr;
  continued_.reset();
  abandoned_.clear();  // these Calls stay given up, and their credits belonged to the old connection
  const auto before = waiting_.begin();
  while (!sent_.empty()) {
    sent_.front()->may_have_run = true;
    send_again(sent_.begin(), before, true);
  }
  unfenced_.clear();  // no request names them any more
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    const auto call = at++;
    if ((*call)->spec.is_health_check) finish(waiting_, call, CallStatus::kDisconnected, why);
  }
}

void Requester::resume(Link& link) {
  link_ = &link;
  endpoint_ = &link.endpoint();
  link.join(*this);
}

void Requester::end_waiting(const std::string& why) {
  while (!waiting_.empty()) finish(waiting_, waiting_.begin(), CallStatus::kLocalError, why);
}

void Requester::on_closed(const std::string& why) {
  closed_ = true;
  while (!sent_.empty()) finish(sent_, sent_.begin(), CallStatus::kDisconnected, why);
  while (!waiting_.empty()) finish(waiting_, waiting_.begin(), CallStatus::kDisconnected, why);
  abandoned_.clear();
  unfenced_.clear();
}

}  // namespace weft::rpcrdma
