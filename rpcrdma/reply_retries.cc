#include "rpcrdma/reply_retries.h"

#include <vector>

#include "rpcrdma/argument_positions.h"

namespace weft::rpcrdma {

namespace {

constexpr std::uint32_t kMaxShortReplyRetries = 3;

ReplyBound bound_of(const CallSpec& spec) {
  if (spec.binding == nullptr || spec.binding->bound_reply == nullptr) return {};
  const std::vector<std::size_t> positions = positions_of(filled_items(spec));
  ReplyBound bound;
  const Walked walked = spec.binding->bound_reply(spec.procedure, spec.args, positions, ReplyLimits{}, bound);
  return walked == Walked::kWhole ? bound : ReplyBound{};
}

}  // namespace

// A verifier of RPCSEC_GSS covers the XID and a sequence number (RFC 2203 section 5.3.1), so an RPCSEC_GSS Call can go
// out neither under a new XID nor twice.
std::uint32_t num_retries_allowed(const CallSpec& spec) {
  if (spec.cred != nullptr && spec.cred->flavor == static_cast<std::uint32_t>(AuthFlavor::kRpcsecGss)) return 0;
  const ReplyBound bound = bound_of(spec);
  return bound.may_retry ? kMaxShortReplyRetries : bound.may_retry_once ? 1 : 0;
}

bool is_unpredictable(const CallSpec& spec) {
  const ReplyBound bound = bound_of(spec);
  return bound.is_estimate || bound.may_retry;
}

}  // namespace weft::rpcrdma
