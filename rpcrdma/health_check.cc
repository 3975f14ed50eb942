#include "rpcrdma/health_check.h"

#include <cassert>

namespace weft::rpcrdma {

void HealthCheck::restart() {
  watching_ = asking_ = unanswered_ = false;
}

bool HealthCheck::has_to_watch(const Requester& requester) const {
  return policy_.after.count() != 0 && (policy_.when_idle || requester.num_sent() != 0);
}

bool HealthCheck::on_time(Requester& requester, TimePoint now) {
  const bool watching = has_to_watch(requester);
  // Every message is a sign of life. Silence begins with the first Call.
  if (!watching_ || requester.num_received() != num_received_) quiet_since_ = now;
  watching_ = watching;
  num_received_ = requester.num_received();
  if (!watching || unanswered_) return unanswered_;
  if (asking_ || now - quiet_since_ < policy_.after) return false;
  if (const auto spec = requester.health_check()) send(requester, *spec);
  return false;
}

void HealthCheck::send(Requester& requester, const CallSpec& spec) {
  CallSpec null = spec;
  null.timeout = policy_.answer;
  asking_ = true;
  [[maybe_unused]] const auto called =
      requester.call(null, [this, &requester, before = num_received_](const Reply& reply) {
        asking_ = false;
        // Any Reply counts: a Reply to another Call, or of a server that does not know the program.
        unanswered_ = reply.status == CallStatus::kTimeout && requester.num_received() == before;
      });
  assert(called.ok());  // the requester made this Call itself
}

std::optional<TimePoint> HealthCheck::next_timeout(const Requester& requester) const {
  if (!has_to_watch(requester) || asking_) return {};
  if (!watching_) return TimePoint{};  // on_time has to start its clock
  // Without a credit the check can only wait. The Calls' own time-outs still apply.
  return requester.health_check() ? std::optional(quiet_since_ + policy_.after) : std::nullopt;
}

}  // namespace weft::rpcrdma
