#include "rpcrdma/testing/first_answers.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "rpcrdma/testing/engines.h"
#include "tests/conformance/ran.h"

namespace weft::rpcrdma::testing {

namespace {

const Profile& profile_for(const Profiles& spoken, ConstBytes message) {
  const auto first = std::ranges::find_if(spoken, [&](const Profile* one) { return one->is_first(message); });
  if (first != spoken.end()) return **first;
  xdr::XdrReader in(message);
  std::uint32_t version = 0;
  EXPECT_TRUE(in.skip(4) && in.u32(version));
  const auto same = std::ranges::find(spoken, version, &Profile::version);
  return same != spoken.end() ? **same : *spoken.front();
}

Octets emitted(const Profile& profile, const rpcrdma::Message& message, const Octets& payload = {}) {
  Octets octets;
  xdr::XdrWriter out(octets);
  profile.emit(out, message);
  out.raw(payload);
  return octets;
}

}  // namespace

std::optional<Octets> first_answer(const Profiles& spoken, ConstBytes message, std::uint32_t credit) {
  const Profile& profile = profile_for(spoken, message);
  conformance::ran(profile.name);
  ReceivedCall call;
  const CallVerdict verdict = profile.receive_call(message, {}, call);
  if (verdict == CallVerdict::kDiscard) return {};
  rpcrdma::Message answer;
  answer.xid = call.xid;
  answer.version = call.version;
  answer.credit = credit;
  answer.error = call.error;
  if (verdict == CallVerdict::kAccept) {
    answer.type = rpcrdma::Message::Type::kReply;
    return emitted(profile, answer, rpc_reply(call.xid, {}, AcceptStat::kProgUnavail));
  }
  answer.type = rpcrdma::Message::Type::kError;
  const auto [low, high] = std::ranges::minmax(spoken, {}, &Profile::version);
  answer.error.low = low->version;
  answer.error.high = high->version;
  return emitted(profile, answer);
}

}  // namespace weft::rpcrdma::testing
