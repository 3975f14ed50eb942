#include "apps/dissect/callback_rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "apps/dissect/transport_header.h"
#include "nfsulb/programs.h"
#include "rpcrdma/private_data.h"

namespace weft::apps::dissect {

using rpcrdma::Protocol;

void CallbackRules::on_call(const ProcedureKey& procedure, const std::optional<BackChannel>& channel) {
  const bool is_nfs4 = procedure.program == nfsulb::kNfsProgram && procedure.version == nfsulb::kNfsV4;
  saw_nfs4_ |= channel.has_value() && is_nfs4;
  if (channel && is_nfs4 && !channel->may_be_bound) return;
  // A program of another kind may have readied the server in its own way.
  if (channel && !is_nfs4 && nfsulb::program_name(procedure.program) != nullptr) return;
  may_be_bound_ = true;
  max_request_ = std::max(max_request_, channel && channel->max_request ? *channel->max_request : UINT32_MAX);
}

void CallbackRules::judge(Protocol protocol, const TransportHeader& header, bool takes_reverse_calls,
                          Frame& frame) const {
  constexpr std::string_view kNotReady = "the client drops the Call";
  const bool is_wg07 = protocol == Protocol::k2Wg07;
  if (is_wg07 && !takes_reverse_calls) {
    return frame.find("W2-4.6.3-2", "a Call of the server, and the client has not told that it takes them", kNotReady);
  }
  if (!saw_nfs4_) return;
  if (!may_be_bound_) {
    return frame.find(is_wg07 ? "W2-4.6.3-2" : "R1-7.3.1-01",
                      "a callback before CREATE_SESSION or BIND_CONN_TO_SESSION", kNotReady);
  }
  // Every inline threshold is as long.
  if (!header.external || max_request_ > rpcrdma::kDefaultInline) return;
  frame.find(protocol == Protocol::k1 ? "U1-6.5.2-05" : "U2-5.5.2-6",
             fmt::format("a callback in a chunk, and the client takes {} bytes at most", max_request_),
             "the client refuses the Call");
}

}  // namespace weft::apps::dissect
