#include "apps/perf/rpc_calls.h"

#include <chrono>
#include <span>
#include <string>
#include <utility>

#include "apps/common/command.h"
#include "apps/perf/client.h"

namespace weft::apps::perf {
namespace {

using Clock = std::chrono::steady_clock;

class RpcRun {
 public:
  RpcRun(const PerfOptions& options, Progress& progress, rpcrdma::Client& client, const RpcCalls& calls,
         const std::string& server)
      : options_(options),
        progress_(progress),
        client_(client),
        calls_(calls),
        server_(server),
        depth_(effective_depth(options)) {}
  // Calls that are still under way end before their memory goes away.
  ~RpcRun();

  absl::StatusOr<Measured> run();

 private:
  // Slot is one Call in flight with its own memory.
  struct Slot {
    std::vector<std::uint8_t> args;
    std::vector<std::uint8_t> data;
    Clock::time_point called;
  };

  void call(Slot& slot);
  void on_reply(Slot& slot, const rpcrdma::Reply& reply);

  const PerfOptions& options_;
  Progress& progress_;
  rpcrdma::Client& client_;
  const RpcCalls& calls_;
  const std::string& server_;
  const std::uint32_t depth_;
  std::vector<Slot> slots_;
  Samples samples_;
  std::uint64_t called_ = 0;
  std::uint64_t done_ = 0;
  std::uint32_t outstanding_ = 0;
  bool time_left_ = true;
  absl::Status status_;
};

RpcRun::~RpcRun() {
  time_left_ = false;
  if (outstanding_ == 0) return;
  client_.disconnect();
  client_.process(Clock::now());
}

void RpcRun::call(Slot& slot) {
  slot.args.clear();
  if (calls_.emit_args) calls_.emit_args(called_, slot.args);
  ++called_;
  rpcrdma::CallSpec spec;
  spec.program = calls_.binding->program;
  spec.version = calls_.binding->version;
  spec.procedure = calls_.procedure;
  spec.binding = calls_.binding;
  spec.cred = calls_.cred;
  spec.args = slot.args;
  if (calls_.item == RpcCalls::Item::kResult) spec.result_items = slot.data;
  std::span<const std::size_t> reduced;
  const std::size_t behind = slot.args.size();
  if (calls_.item == RpcCalls::Item::kArgument) {
    spec.items = rpcrdma::ArgumentItem{behind, slot.data};
    reduced = std::span(&behind, 1);
  }
  spec.max_results = calls_.binding->max_results(spec.procedure, spec.args, reduced);
  slot.called = Clock::now();
  auto status = client_.call(spec, [this, &slot](const rpcrdma::Reply& reply) { on_reply(slot, reply); });
  if (!status.ok()) {
    status_ = to_status(status.error(), "cannot call");
    return;
  }
  ++outstanding_;
}

void RpcRun::on_reply(Slot& slot, const rpcrdma::Reply& reply) {
  --outstanding_;
  if (reply.status != rpcrdma::CallStatus::kSuccess) {
    if (status_.ok()) {
      status_ = absl::UnavailableError(std::string(rpcrdma::call_status_str(reply.status)) + ": " + reply.text);
    }
    return;
  }
  if (calls_.check) {
    if (auto status = calls_.check(reply, calls_.size); !status.ok()) {
      if (status_.ok()) status_ = std::move(status);
      return;
    }
  }
  ++done_;
  if (options_.lat) samples_.add(std::uint64_t(std::chrono::nanoseconds(Clock::now() - slot.called).count()));
  if (time_left_ && status_.ok()) call(slot);
}

absl::StatusOr<Measured> RpcRun::run() {
  slots_.resize(depth_);
  for (Slot& slot : slots_) slot.data.resize(calls_.size, 0x5a);
  announce(options_);
  progress_.begin_silence();
  const std::chrono::milliseconds patience = perf::patience(options_);
  Clock::time_point start = Clock::now();
  auto end = start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options_.seconds));
  for (Slot& slot : slots_) {
    if (status_.ok()) call(slot);
  }
  while (status_.ok() && outstanding_ != 0 && !progress_.stop_requested()) {
    progress_.turn(client_, progress_.silent_since() + patience);
    if (Clock::now() >= end) time_left_ = false;
    if (progress_.silent_for(patience)) status_ = not_responding(server_, options_);
    if (client_.state() == rpcrdma::Client::State::kClosed && status_.ok()) {
      status_ = absl::UnavailableError("the connection ended: " + client_.error());
    }
  }
  if (!status_.ok()) {
    // Calls under way name memory that goes away with this run.
    client_.disconnect();
    return status_;
  }
  Measured measured;
  measured.op = options_.op;
  measured.size = calls_.size;
  measured.depth = depth_;
  measured.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  measured.interrupted = time_left_ && progress_.stop_requested();
  measured.ops = done_;
  measured.octets = done_ * calls_.size;
  if (options_.lat) take_quantiles(measured, samples_);
  return measured;
}

}  // namespace

absl::StatusOr<Measured> run_calls(const GlobalOptions& global, const PerfOptions& options, Progress& progress,
                                   rpcrdma::Client& client, const RpcCalls& calls, const std::string& server) {
  auto measured = RpcRun(options, progress, client, calls, server).run();
  if (measured.ok()) measured->waiting = how_it_waited(global, progress.mode(), progress.waits());
  return measured;
}

}  // namespace weft::apps::perf
