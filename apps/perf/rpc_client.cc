#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "apps/common/address.h"
#include "apps/common/command.h"
#include "apps/common/rpc_config.h"
#include "apps/perf/client.h"
#include "apps/perf/rpc_calls.h"
#include "apps/perf/rpc_program.h"
#include "base/address.h"
#include "rpcrdma/client.h"
#include "rpcrdma/xdr/xdr.h"

namespace weft::apps::perf {
namespace {

// READ of the program returns the number of octets, and as many octets.
absl::Status check_rpc_read(const rpcrdma::Reply& reply, std::uint64_t size) {
  std::uint32_t len = 0;
  if (rpcrdma::xdr::XdrReader(reply.results).u32(len) && len == size && reply.item_len == size) {
    return absl::OkStatus();
  }
  return absl::DataLossError("the listener returned less than was asked for");
}

RpcCalls perf_calls(const PerfOptions& options) {
  RpcCalls calls;
  calls.binding = &perf_binding();
  switch (options.op) {
    case Op::kRpcRead:
      calls.procedure = kProcRead;
      calls.item = RpcCalls::Item::kResult;
      calls.check = check_rpc_read;
      break;
    case Op::kRpcWrite:
      calls.procedure = kProcWrite;
      calls.item = RpcCalls::Item::kArgument;
      break;
    default: calls.procedure = kProcNull; return calls;
  }
  calls.size = effective_size(options);
  calls.emit_args = [size = calls.size](std::uint64_t, std::vector<std::uint8_t>& args) {
    rpcrdma::xdr::XdrWriter(args).u32(std::uint32_t(size));
  };
  return calls;
}

}  // namespace

absl::StatusOr<Measured> run_rpc(const RunContext& context, std::uint16_t rpc_port) {
  sockaddr_storage addr = context.addr;
  set_port(addr, rpc_port);
  rpcrdma::ClientConfig config = client_config(context.global, kCredits);
  config.connect_timeout = std::min(config.connect_timeout, patience(context.options));
  auto client = rpcrdma::Client::connect(context.device, addr, config);
  if (!client.ok()) return to_status(client.error(), "cannot connect to " + address_str(addr));
  rpcrdma::Client& rpc = **client;
  while (rpc.state() == rpcrdma::Client::State::kConnecting) {
    if (context.progress.stop_requested()) return absl::CancelledError("interrupted");
    context.progress.turn(rpc);
  }
  if (rpc.state() == rpcrdma::Client::State::kClosed) return absl::UnavailableError(rpc.error());
  const std::string server = "the listener at " + address_str(addr);
  auto measured =
      run_calls(context.global, context.options, context.progress, rpc, perf_calls(context.options), server);
  if (measured.ok()) {
    measured->congestion_control = rdma_congestion_control(context.global);
  }
  rpc.disconnect();
  while (rpc.state() != rpcrdma::Client::State::kClosed && !context.progress.stop_requested()) {
    context.progress.turn(rpc);
  }
  return measured;
}

}  // namespace weft::apps::perf
