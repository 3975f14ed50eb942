// Operations of one kind, one after the other, over loopback, both ends in this process and in one thread that drives
// them in turn, with a clock of its own: so nearly as many instructions in every run. bench/instructions counts them.
//
//   operations send|write|null|null-metrics|rpc-read|rpc-write OCTETS NUMBER
//
// null-metrics: a NULL Call that the metrics of `weft serve --metrics` count.
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "apps/metrics/call_metrics.h"
#include "apps/perf/rpc_program.h"
#include "bench/ends.h"
#include "rpcrdma/client.h"
#include "rpcrdma/server.h"
#include "rpcrdma/xdr/xdr.h"

namespace {

using namespace weft;
using bench::must;
using Clock = std::chrono::steady_clock;

// This clock counts turns. With a real clock, the work of every second would follow a different number of operations in
// each run.
TimePoint clock_of_turns() {
  static TimePoint now = Clock::now();
  return now += std::chrono::microseconds(1);
}

class Operation {
 public:
  virtual ~Operation() = default;
  virtual void run() = 0;
};

// From the post until both ends have their completions.
class Send final : public Operation {
 public:
  explicit Send(std::uint32_t len) : len_(len) {
    ends_.clock = clock_of_turns;
    ends_.connect();
  }
  void run() override {
    must(ends_.server.qps.back()->post_recv({.wr_id = 0, .sg_list = std::array{ends_.server.sge(len_)}}));
    must(ends_.client.qps.back()->post_send({.wr_id = 0, .sg_list = std::array{ends_.client.sge(len_)}}));
    for (int left = 2; left > 0; left -= ends_.client.polled() + ends_.server.polled()) ends_.turn();
  }

 private:
  std::uint32_t len_;
  bench::Ends ends_;
};

// From the post until its last octet is there and the writer has its completion.
class Write final : public Operation {
 public:
  explicit Write(std::uint32_t len) : len_(len) {
    ends_.clock = clock_of_turns;
    ends_.connect();
  }
  void run() override {
    const std::uint8_t number = ++ends_.client.memory[len_ - 1];
    ends_.write(len_);
    for (int done = 0; done == 0 || ends_.server.memory[len_ - 1] != number; done += ends_.client.polled())
      ends_.turn();
  }

 private:
  std::uint32_t len_;
  bench::Ends ends_;
};

// A Call of perf's program, until it ended.
class Call final : public Operation {
 public:
  Call(std::uint32_t procedure, std::uint32_t len, bool has_metrics = false) : procedure_(procedure), data_(len, 0x5a) {
    const rpcrdma::ServedProgram programs[] = {{&apps::perf::perf_binding(), &service_}};
    server_ = must(rpcrdma::Server::listen(*server_device_, bench::any_loopback_port(), programs, {}));
    service_.set_server(*server_);
    if (has_metrics) server_->observe(metrics_);
    client_ = must(rpcrdma::Client::connect(*client_device_, server_->local_addr(), {}));
    while (client_->state() == rpcrdma::Client::State::kConnecting) turn();
  }
  void run() override;

 private:
  void turn() {
    const auto now = clock_of_turns();
    server_->process(now);
    client_->process(now);
  }

  std::uint32_t procedure_;
  std::vector<std::uint8_t> data_;
  std::vector<std::uint8_t> args_;
  apps::perf::RpcService service_;
  metrics::CallMetrics metrics_;
  std::unique_ptr<verbs::Device> server_device_ = must(verbs::open_soft_device({}));
  std::unique_ptr<verbs::Device> client_device_ = must(verbs::open_soft_device({}));
  std::unique_ptr<rpcrdma::Server> server_;
  std::unique_ptr<rpcrdma::Client> client_;
};

void Call::run() {
  const rpcrdma::Binding& binding = apps::perf::perf_binding();
  args_.clear();
  if (procedure_ != apps::perf::kProcNull) rpcrdma::xdr::XdrWriter(args_).u32(static_cast<std::uint32_t>(data_.size()));
  rpcrdma::CallSpec spec;
  spec.program = binding.program;
  spec.version = binding.version;
  spec.procedure = procedure_;
  spec.binding = &binding;
  spec.args = args_;
  const std::size_t behind = args_.size();
  std::span<const std::size_t> reduced;
  if (procedure_ == apps::perf::kProcRead) spec.result_items = MutBytes(data_);
  if (procedure_ == apps::perf::kProcWrite) {
    spec.items = rpcrdma::ArgumentItem{behind, ConstBytes(data_)};
    reduced = std::span(&behind, 1);
  }
  spec.max_results = binding.max_results(procedure_, spec.args, reduced);
  bool done = false;
  must(client_->call(spec, [&](const rpcrdma::Reply& reply) {
    done = true;
    if (reply.status == rpcrdma::CallStatus::kSuccess &&
        (procedure_ != apps::perf::kProcRead || reply.item_len == data_.size()))
      return;
    std::fprintf(stderr, "operations: a Call failed: %s\n", reply.text.c_str());
    std::exit(1);
  }));
  while (!done) turn();
}

std::unique_ptr<Operation> make(std::string_view name, std::uint32_t len) {
  if (name == "null-metrics") return std::make_unique<Call>(apps::perf::kProcNull, 0, true);
  if (name == "null") return std::make_unique<Call>(apps::perf::kProcNull, 0);
  if (len == 0) return nullptr;
  if (name == "rpc-read") return std::make_unique<Call>(apps::perf::kProcRead, len);
  if (name == "rpc-write") return std::make_unique<Call>(apps::perf::kProcWrite, len);
  if (len > bench::End::kRegionLen) return nullptr;
  if (name == "send") return std::make_unique<Send>(len);
  if (name == "write") return std::make_unique<Write>(len);
  return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  const auto number = [&](int at) { return argc == 4 ? std::atol(argv[at]) : 0; };
  const auto operation = argc == 4 ? make(argv[1], static_cast<std::uint32_t>(number(2))) : nullptr;
  if (!operation || number(3) <= 0) {
    std::fprintf(stderr, "usage: operations send|write|null|rpc-read|rpc-write OCTETS NUMBER\n");
    return 2;
  }
  for (long i = 0; i < number(3); ++i) operation->run();
  std::_Exit(0);  // the end of the connections is not counted
}
