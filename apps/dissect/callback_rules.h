#pragma once

#include <cstdint>
#include <optional>

#include "apps/dissect/frame.h"
#include "apps/dissect/program_text.h"
#include "rpcrdma/policies.h"

namespace weft::apps::dissect {

struct TransportHeader;

// CallbackRules judges the callbacks of NFSv4.1 and later, which come as Calls of the reverse direction: whether the
// client has said that it is ready for them, and how long they may be (RFC 8167 section 6, RFC 8267 section 6.5.2,
// draft-ietf-nfsv4-rpcrdma-version-two-07 section 4.6.3). The caller calls it only while the capture has every message
// of both sides until now, whole and in order. A value without I/O.
class CallbackRules {
 public:
  // on_call: the client calls. channel: the words of its operations about callbacks; empty if the Call cannot be read.
  void on_call(const ProcedureKey& procedure, const std::optional<BackChannel>& channel);
  // The capture lacks messages of the client, which may have readied the server in any way.
  void on_lost() {
    may_be_bound_ = true;
    max_request_ = UINT32_MAX;
  }
  // judge: the server calls. takes_reverse_calls: a property of the client says so, in versions that have it.
  void judge(rpcrdma::Protocol protocol, const TransportHeader& header, bool takes_reverse_calls, Frame& frame) const;

 private:
  bool saw_nfs4_ = false;
  bool may_be_bound_ = false;      // the connection has a backchannel, or can have one
  std::uint32_t max_request_ = 0;  // octets: the longest callback that the client may take
};

}  // namespace weft::apps::dissect
