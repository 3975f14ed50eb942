// Measures the cost of an idle client for an RPC-over-RDMA server. The server is one process, its N clients are
// another, over loopback. Each client has 16 Calls with arguments of 3,000 bytes under way at a time for a while, and
// rests. The program prints how much the server grew per client, and fails above 64 KiB. The kernel's memory of a
// socket does not count. One more client, of a process of its own, works before the others come and beside them: the
// program prints the median time of its Calls, one at a time and 16 at a time.
//
//   rpc_idle [CLIENTS (default 1000)]
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
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

class Clients {
 public:
  explicit Clients(const sockaddr_storage& server) : server_(server), device_(must(verbs::open_soft_device({}))) {}

  void add() { clients_.push_back(must(rpcrdma::Client::connect(*device_, server_, {}))); }
  // The newest client makes Calls, `depth` of them at a time. False: its connection is over.
  bool work(int num, int depth) {
    rpcrdma::Client& client = *clients_.back();
    rpcrdma::CallSpec spec;
    spec.program = kBinding.program;
    spec.version = kBinding.version;
    spec.binding = &kBinding;
    spec.args = args_;
    int called = 0, done = 0;
    while (done < num) {
      for (; called < num && called - done < depth && client.state() == rpcrdma::Client::State::kReady; ++called) {
        must(client.call(spec, [&done](const rpcrdma::Reply& reply) {
          if (reply.status != rpcrdma::CallStatus::kSuccess) std::exit(1);
          ++done;
        }));
      }
      client.process(Clock::now());
      if (client.state() == rpcrdma::Client::State::kClosed) return false;
    }
    return true;
  }

 private:
  const sockaddr_storage server_;
  const std::vector<std::uint8_t> args_ = std::vector<std::uint8_t>(3000, 0x5a);
  std::unique_ptr<verbs::Device> device_;
  std::vector<std::unique_ptr<rpcrdma::Client>> clients_;
};

sockaddr_storage server_of(int control) {
  sockaddr_storage addr{};
  if (read(control, &addr, sizeof addr) != sizeof addr) std::_Exit(1);
  return addr;
}

// One client more for every octet that comes; an octet back when its Calls are done.
int run_clients(int control) {
  Clients clients(server_of(control));
  for (char more = 0; read(control, &more, 1) == 1;) {
    clients.add();
    if (!clients.work(kCalls, kDepth) || write(control, &more, 1) != 1) return 1;
  }
  std::_Exit(0);  // the kernel closes their sockets faster than they say goodbye one by one
}

// Microseconds of a Call.
struct Times {
  double alone = 0, of_many = 0;
};

double median_us(Clients& clients, int depth) {
  std::vector<double> rounds;
  for (int i = 0; i < 51; ++i) {
    const auto start = Clock::now();
    if (!clients.work(kCalls, depth)) std::_Exit(1);
    rounds.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count() / kCalls);
  }
  std::nth_element(rounds.begin(), rounds.begin() + 25, rounds.end());
  return rounds[25];
}

// The client that works: its Times for every octet that comes.
int run_worker(int control) {
  Clients client(server_of(control));
  client.add();
  for (char more = 0; read(control, &more, 1) == 1;) {
    const Times times{median_us(client, 1), median_us(client, kDepth)};
    if (write(control, &times, sizeof times) != sizeof times) return 1;
  }
  std::_Exit(0);
}

class Bench {
 public:
  Bench(int control, int worker, std::size_t num_clients)
      : control_(control), worker_(worker), device_(must(verbs::open_soft_device({}))) {
    const rpcrdma::ServedProgram programs[] = {{&kBinding, &service_}};
    rpcrdma::ServerConfig config;
    config.max_connections = num_clients + 2;
    server_ = must(rpcrdma::Server::listen(*device_, bench::any_loopback_port(), programs, config));
    service_.server = server_.get();
    const sockaddr_storage addr = server_->local_addr();
    for (const int to : {control_, worker_}) {
      if (write(to, &addr, sizeof addr) != sizeof addr) std::exit(1);
    }
  }

  void add_client() {
    char octet = 0;
    ask(control_, &octet, 1);
  }
  Times work() {
    Times times;
    ask(worker_, &times, sizeof times);
    return times;
  }
  // Long enough for the device to free the memory that busy connections needed.
  void rest() {
    for (const auto end = Clock::now() + std::chrono::seconds(2); Clock::now() < end;) server_->process(Clock::now());
  }
  const rpcrdma::Server& server() const { return *server_; }

 private:
  // Serves until the answer is there.
  void ask(int process, void* answer, std::size_t len) {
    const char octet = 0;
    if (write(process, &octet, 1) != 1) std::exit(1);
    ssize_t num = 0;
    while ((num = recv(process, answer, len, MSG_DONTWAIT)) < 0) server_->process(Clock::now());
    if (num != static_cast<ssize_t>(len)) std::exit(1);
  }

  int control_, worker_;
  Null service_;
  std::unique_ptr<verbs::Device> device_;
  std::unique_ptr<rpcrdma::Server> server_;
};

int run_server(int control, int worker, std::size_t num) {
  Bench bench(control, worker, num);
  bench.add_client();
  const Times alone = bench.work();
  const std::size_t before = bench::resident();
  for (std::size_t i = 0; i < num; ++i) bench.add_client();
  bench.rest();
  const std::size_t grown = bench::resident() - before;
  const Times beside = bench.work();
  const rpcrdma::ServerMemory memory = bench.server().memory();
  std::printf("clients %zu, octets per client %zu; registered for Receives %zu, for Sends %zu; %u Receives promised\n",
              bench.server().num_connections() - 2, grown / num, memory.receives, memory.sends, memory.promised);
  std::printf("a Call alone %.2f us, %d at a time %.2f us; beside the clients %.2f and %.2f us\n", alone.alone, kDepth,
              alone.of_many, beside.alone, beside.of_many);
  std::fflush(stdout);
  if (grown / num > kLimit) std::fprintf(stderr, "rpc_idle: more than %zu octets per client\n", kLimit);
  std::_Exit(grown / num > kLimit ? 1 : 0);
}

// The other end of the socket of a new process that runs `program`.
int spawn(int (*program)(int control)) {
  int control[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, control) != 0) std::exit(1);
  const pid_t child = fork();
  if (child < 0) std::exit(1);
  close(control[child == 0 ? 0 : 1]);
  if (child == 0) std::_Exit(program(control[1]));
  return control[0];
}

}  // namespace

int main(int argc, char** argv) {
  const long num = argc > 1 ? std::atol(argv[1]) : 1000;
  if (num <= 0 || bench::raise_file_limit() < static_cast<rlim_t>(num + 64)) {
    std::fprintf(stderr, "usage: rpc_idle [CLIENTS], fewer than the limit of open files (ulimit -Hn)\n");
    return 2;
  }
  const int clients = spawn(run_clients), worker = spawn(run_worker);
  return run_server(clients, worker, static_cast<std::size_t>(num));
}
