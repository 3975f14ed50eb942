// Measures the cost of an idle client for an RPC-over-RDMA server. The server is one process, its N clients are
// another, over loopback. Each client has 16 Calls with arguments of 3,000 bytes under way at a time for a while, and
// rests. The program prints how much the server grew per client, and fails above 64 KiB. The kernel's memory of a
// socket does not count.
//
//   rpc_idle [CLIENTS (default 1000)]
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "bench/idle.h"
#include "rpcrdma/client.h"
#include "rpcrdma/server.h"
#include "verbs-shim/soft/device.h"

namespace {

using namespace weft;
using bench::must;
using Clock = std::chrono::steady_clock;

constexpr rpcrdma::Binding kBinding{.program = 0x20000078, .version = 1};
constexpr int kDepth = 16, kCalls = 64;   // of each client
constexpr std::size_t kLimit = 64 << 10;  // octets

class Null : public rpcrdma::Service {
 public:
  void on_call(rpcrdma::ServedCall call) override { server->reply(call.id, {}); }
  rpcrdma::Server* server = nullptr;
};

// run_clients: one client more for every octet that comes; an octet back when its Calls are done.
int run_clients(int control) {
  sockaddr_storage addr{};
  if (read(control, &addr, sizeof addr) != sizeof addr) return 1;
  auto device = must(verbs::open_soft_device({}));
  const std::vector<std::uint8_t> args(3000, 0x5a);
  std::vector<std::unique_ptr<rpcrdma::Client>> clients;
  for (char more = 0; read(control, &more, 1) == 1;) {
    clients.push_back(must(rpcrdma::Client::connect(*device, addr, {})));
    rpcrdma::Client& client = *clients.back();
    rpcrdma::CallSpec spec;
    spec.program = kBinding.program;
    spec.version = kBinding.version;
    spec.binding = &kBinding;
    spec.args = args;
    int called = 0, done = 0;
    while (done < kCalls) {
      for (; called < kCalls && called - done < kDepth && client.state() == rpcrdma::Client::State::kReady; ++called) {
        must(client.call(spec, [&done](const rpcrdma::Reply& reply) {
          if (reply.status != rpcrdma::CallStatus::kSuccess) std::exit(1);
          ++done;
        }));
      }
      client.process(Clock::now());
      if (client.state() == rpcrdma::Client::State::kClosed) return 1;
    }
    if (write(control, &more, 1) != 1) return 1;
  }
  std::_Exit(0);  // the kernel closes their sockets faster than they say goodbye one by one
}

class Bench {
 public:
  explicit Bench(int control) : control_(control), device_(must(verbs::open_soft_device({}))) {
    const rpcrdma::ServedProgram programs[] = {{&kBinding, &service_}};
    rpcrdma::ServerConfig config;
    server_ = must(rpcrdma::Server::listen(*device_, bench::any_loopback_port(), programs, config));
    service_.server = server_.get();
    const sockaddr_storage addr = server_->local_addr();
    if (write(control_, &addr, sizeof addr) != sizeof addr) std::exit(1);
  }

  void add_client() {
    char octet = 0;
    if (write(control_, &octet, 1) != 1) std::exit(1);
    ssize_t num = 0;
    while ((num = recv(control_, &octet, 1, MSG_DONTWAIT)) < 0) server_->process(Clock::now());
    if (num == 0) std::exit(1);
  }
  // Long enough for the device to free the memory that busy connections needed.
  void rest() {
    for (const auto end = Clock::now() + std::chrono::seconds(2); Clock::now() < end;) server_->process(Clock::now());
  }
  const rpcrdma::Server& server() const { return *server_; }

 private:
  int control_;
  Null service_;
  std::unique_ptr<verbs::Device> device_;
  std::unique_ptr<rpcrdma::Server> server_;
};

int run_server(int control, std::size_t num) {
  Bench bench(control);
  bench.add_client();
  const std::size_t before = bench::resident();
  for (std::size_t i = 0; i < num; ++i) bench.add_client();
  bench.rest();
  const std::size_t grown = bench::resident() - before;
  const rpcrdma::ServerMemory memory = bench.server().memory();
  std::printf("clients %zu, octets per client %zu; registered for Receives %zu, for Sends %zu; %u Receives promised\n",
              bench.server().num_connections() - 1, grown / num, memory.receives, memory.sends, memory.promised);
  std::fflush(stdout);
  if (grown / num > kLimit) std::fprintf(stderr, "rpc_idle: more than %zu octets per client\n", kLimit);
  std::_Exit(grown / num > kLimit ? 1 : 0);
}

}  // namespace

int main(int argc, char** argv) {
  const long num = argc > 1 ? std::atol(argv[1]) : 1000;
  if (num <= 0 || bench::raise_file_limit() < static_cast<rlim_t>(num + 64)) {
    std::fprintf(stderr, "usage: rpc_idle [CLIENTS], fewer than the limit of open files (ulimit -Hn)\n");
    return 2;
  }
  int control[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, control) != 0) return 1;
  const pid_t child = fork();
  if (child < 0) return 1;
  close(control[child == 0 ? 0 : 1]);
  return child == 0 ? run_clients(control[1]) : run_server(control[0], std::size_t(num));
}
