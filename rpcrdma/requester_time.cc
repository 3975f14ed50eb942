#include <algorithm>
#include <utility>

#include "rpcrdma/requester.h"
#include "rpcrdma/requester_state.h"

// The part of the Requester that uses the clock: deadlines of Calls, and of the peer.
namespace weft::rpcrdma {

std::chrono::milliseconds Requester::timeout_of(const Call& call) const {
  return call.spec.timeout.value_or(config_.call_timeout);
}

// A discarded Reply may be the one of this Call, also under an XID that is not the Call's.
std::string Requester::discards_since(const Call& call) const {
  const std::uint64_t num = counters_.replies_discarded - call.discards_before;
  if (num == 0) return {};
  const std::string what = num == 1
                               ? "1 message was discarded meanwhile, because: "
                               : std::to_string(num) + " messages were discarded meanwhile, the last one because: ";
  return "; " + what + counters_.last_discard;
}

void Requester::expire(Calls& calls, bool sent) {
  for (auto at = calls.begin(); at != calls.end();) {
    const auto call = at++;
    if ((*call)->deadline > now_) {
      // Both lists are in the order of call(). If all Calls have the same time-out, no Call behind this one is due.
      if (!own_timeouts_) return;
      continue;
    }
    if (sent) abandon(**call, now_);
    const bool was_sent = sent || (*call)->may_have_run;
    std::string what = was_sent ? "no Reply within " : "not sent within ";
    what.append(std::to_string(timeout_of(**call).count())).append(" ms");
    if (was_sent && !sent) what += "; it waited to be sent again";
    if (!was_sent) what += started_ ? ": the peer granted no credit for it" : ": no connection was ready";
    finish(calls, call, CallStatus::kTimeout, what + discards_since(**call));
  }
}

// The question holds a credit until its late answer, so the Call that waits for it might never have its turn.
void Requester::end_asker() {
  const auto at = std::ranges::find_if(waiting_, [this](const auto& call) { return call->id == asker_.value; });
  if (at == waiting_.end()) return;
  finish(waiting_, at, CallStatus::kLocalError,
         "the Call does not fit what every peer takes, and the peer does not answer the question what it takes");
}

void Requester::stamp() {
  if (!unstamped_) return;
  unstamped_ = false;
  for (Calls* calls : {&sent_, &waiting_}) {
    for (auto& call : *calls) {
      if (!call->deadline) call->deadline = now_ + timeout_of(*call);
    }
  }
  for (Abandoned& one : abandoned_) {
    if (!one.deadline) one.deadline = now_ + config_.call_timeout;
  }
}

// Calls without a stamp are at the end of the list.
void Requester::stamp_sent() {
  if (config_.retransmit_after.count() == 0) return;
  for (auto call = sent_.rbegin(); call != sent_.rend() && !(*call)->sent_at; ++call) (*call)->sent_at = now_;
}

// A Call may be sent again only on another connection (RFC 7530 section 3.1.1), even if its Reply came and was
// discarded (R1-5.5-03). So this connection is ended.
void Requester::fail_where_unanswered() {
  if (config_.retransmit_after.count() == 0 || !config_.retransmits || sent_.empty()) return;
  if (now_ - *sent_.front()->sent_at < config_.retransmit_after) return;
  endpoint_->fail("a Call has no Reply after " + std::to_string(config_.retransmit_after.count()) + " ms");
}

std::size_t Requester::on_time(TimePoint now) {
  now_ = now;
  stamp();
  stamp_sent();
  round_trip_.on_time(now);
  const bool was_asking = config_.ask_timeout.count() != 0 && is_asking();
  expire(sent_, true);
  expire(waiting_, false);
  if (was_asking && !is_asking()) end_asker();
  if (sent_.empty() && waiting_.empty()) own_timeouts_ = false;
  const auto is_hopeless = [now](const Abandoned& one) { return one.deadline <= now; };
  if (config_.ends_unanswering && is_starved() && std::ranges::all_of(abandoned_, is_hopeless)) {
    endpoint_->fail("the peer answers none of the Calls that it granted");
  }
  fail_where_unanswered();
  const std::size_t num_ended = run_ended();
  pump();
  stamp_sent();
  round_trip_.on_time(now);
  return num_ended;
}

std::optional<TimePoint> Requester::next_timeout() const {
  if (!ended_.empty() || unstamped_) return now_;
  std::optional<TimePoint> next;
  const auto consider = [&next](std::optional<TimePoint> at) { next = earliest(next, at); };
  for (const Calls* calls : {&sent_, &waiting_}) {
    for (const auto& call : *calls) {
      consider(call->deadline);
      if (!own_timeouts_) break;
    }
  }
  if (endpoint_ == nullptr || endpoint_->failure()) return next;
  if (config_.retransmit_after.count() != 0 && config_.retransmits && !sent_.empty()) {
    if (!sent_.back()->sent_at) return now_;
    consider(*sent_.front()->sent_at + config_.retransmit_after);
  }
  if (is_starved()) {
    for (const Abandoned& one : abandoned_) {
      if (one.deadline > now_) consider(one.deadline);
    }
  }
  return next;
}

}  // namespace weft::rpcrdma
