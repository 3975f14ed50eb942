#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "apps/common/progress.h"
#include "apps/perf/options.h"
#include "apps/perf/report.h"
#include "rpcrdma/binding.h"
#include "rpcrdma/client.h"

namespace weft::apps::perf {

// RpcCalls describes the Calls of one run.
struct RpcCalls {
  enum class Item : std::uint8_t { kNone, kArgument, kResult };

  const rpcrdma::Binding* binding = nullptr;
  std::uint32_t procedure = 0;
  const rpcrdma::OpaqueAuth* cred = nullptr;  // null for AUTH_NONE
  std::uint64_t size = 0;                     // octets of the item
  Item item = Item::kNone;                    // the item that may move by RDMA; an argument is the last of its Call
  // The arguments of Call `number`, without the item's octets; null for none.
  std::function<void(std::uint64_t number, std::vector<std::uint8_t>& args)> emit_args;
  // Ok if a Reply brought, or took, everything that was asked for; null if there is nothing to check.
  std::function<absl::Status(const rpcrdma::Reply& reply, std::uint64_t size)> check;
};

// run_calls keeps options' depth of them in flight over an established connection, for options' seconds, or until a
// stop signal. After a failure or an interruption the connection is over. `server` names the other side in errors.
absl::StatusOr<Measured> run_calls(const GlobalOptions& global, const PerfOptions& options, Progress& progress,
                                   rpcrdma::Client& client, const RpcCalls& calls, const std::string& server);

}  // namespace weft::apps::perf
