#include <chrono>
#include <deque>
#include <vector>

#include "apps/common/address.h"
#include "apps/common/command.h"
#include "apps/perf/client.h"
#include "apps/perf/rpc_program.h"
#include "rpcrdma/client.h"
#include "rpcrdma/xdr/xdr.h"

namespace weft::apps::perf {
namespace {

using Clock = std::chrono::steady_clock;

// RpcRun keeps `depth` Calls of one procedure in flight over one connection.
class RpcRun {
 public:
  RpcRun(const RunContext& context, rpcrdma::Client& client)
      : context_(context),
        client_(client),
        size_(context.options.op == Op::kRpcNull ? 0 : effective_size(context.options)),
        depth_(effective_depth(context.options)) {}

  absl::StatusOr<Measured> run();

 private:
  // Slot is one Call in flight with the memory that is its own.
  struct Slot {
    std::vector<std::uint8_t> args;
    std::vector<std::uint8_t> data;
    Clock::time_point called;
  };

  void prepare(Slot& slot) const;
  void call(Slot& slot);
  void on_reply(Slot& slot, const rpcrdma::Reply& reply);
  bool reply_is_whole(const rpcrdma::Reply& reply) const;

  const RunContext& context_;
  rpcrdma::Client& client_;
  const std::uint64_t size_;
  const std::uint32_t depth_;
  std::vector<Slot> slots_;
  std::vector<std::uint64_t> samples_;
  std::uint64_t done_ = 0;
  std::uint32_t outstanding_ = 0;
  bool time_left_ = true;
  absl::Status status_;
};

void RpcRun::prepare(Slot& slot) const {
  if (context_.options.op == Op::kRpcNull) return;
  slot.data.resize(size_, 0x5a);
  rpcrdma::xdr::XdrWriter(slot.args).u32(std::uint32_t(size_));
}

void RpcRun::call(Slot& slot) {
  rpcrdma::CallSpec spec;
  spec.program = kPerfProgram;
  spec.version = kPerfVersion;
  spec.args = slot.args;
  switch (context_.options.op) {
    case Op::kRpcRead:
      spec.procedure = kProcRead;
      spec.result_item = slot.data;
      break;
    case Op::kRpcWrite:
      spec.procedure = kProcWrite;
      spec.item = rpcrdma::ArgumentItem{slot.args.size(), slot.data};
      break;
    default: spec.procedure = kProcNull; break;
  }
  spec.max_results = perf_binding().max_results(spec.procedure, spec.args).value_or(0);
  slot.called = Clock::now();
  auto status = client_.call(spec, [this, &slot](const rpcrdma::Reply& reply) { on_reply(slot, reply); });
  if (!status.ok()) {
    status_ = to_status(status.error(), "cannot call");
    return;
  }
  ++outstanding_;
}

bool RpcRun::reply_is_whole(const rpcrdma::Reply& reply) const {
  if (context_.options.op != Op::kRpcRead) return true;
  std::uint32_t len = 0;
  return rpcrdma::xdr::XdrReader(reply.results).u32(len) && len == size_ && reply.item_len.value_or(size_) == size_;
}

void RpcRun::on_reply(Slot& slot, const rpcrdma::Reply& reply) {
  --outstanding_;
  if (reply.status != rpcrdma::CallStatus::kSuccess) {
    if (status_.ok()) {
      status_ = absl::UnavailableError(std::string(rpcrdma::call_status_str(reply.status)) + ": " + reply.text);
    }
    return;
  }
  if (!reply_is_whole(reply)) {
    status_ = absl::DataLossError("the listener returned less than was asked for");
    return;
  }
  ++done_;
  if (context_.options.lat)
    samples_.push_back(std::uint64_t(std::chrono::nanoseconds(Clock::now() - slot.called).count()));
  if (time_left_ && status_.ok()) call(slot);
}

absl::StatusOr<Measured> RpcRun::run() {
  slots_.resize(depth_);
  for (Slot& slot : slots_) prepare(slot);
  Clock::time_point start = Clock::now();
  auto end =
      start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(context_.options.seconds));
  for (Slot& slot : slots_) {
    if (status_.ok()) call(slot);
  }
  while (status_.ok() && outstanding_ != 0) {
    context_.progress.turn(client_);
    if (Clock::now() >= end || context_.progress.stop_requested()) time_left_ = false;
    if (client_.state() == rpcrdma::Client::State::kClosed && status_.ok()) {
      status_ = absl::UnavailableError("the connection ended: " + client_.error());
    }
  }
  if (!status_.ok()) return status_;
  Measured measured;
  measured.op = context_.options.op;
  measured.size = size_;
  measured.depth = depth_;
  measured.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  measured.ops = done_;
  measured.octets = done_ * size_;
  if (context_.options.lat) take_quantiles(measured, samples_);
  return measured;
}

}  // namespace

absl::StatusOr<Measured> run_rpc(const RunContext& context, std::uint16_t rpc_port) {
  sockaddr_storage addr = context.addr;
  set_port(addr, rpc_port);
  rpcrdma::ClientConfig config;
  config.inline_threshold = context.global.inline_threshold;
  config.credits = context.global.credits;
  config.ird = context.global.ird;
  auto client = rpcrdma::Client::connect(context.device, addr, config);
  if (!client.ok()) return to_status(client.error(), "cannot connect to " + format_address(addr));
  rpcrdma::Client& rpc = **client;
  while (rpc.state() == rpcrdma::Client::State::kConnecting) {
    if (context.progress.stop_requested()) return absl::CancelledError("interrupted");
    context.progress.turn(rpc);
  }
  if (rpc.state() == rpcrdma::Client::State::kClosed) return absl::UnavailableError(rpc.error());
  auto measured = RpcRun(context, rpc).run();
  if (measured.ok()) {
    measured->congestion_control = wanted_congestion_control(context.global);
  }
  rpc.disconnect();
  while (rpc.state() != rpcrdma::Client::State::kClosed && !context.progress.stop_requested()) {
    context.progress.turn(rpc);
  }
  return measured;
}

}  // namespace weft::apps::perf
