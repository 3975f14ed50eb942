// Measures the cost of an idle client for an RPC-over-RDMA server. The server is one process, its N clients are
// another, over loopback. Each client makes Calls with arguments of 3,000 bytes for a while, DEPTH of them at a time,
// and rests. The program prints how much the server grew per client, and how much is left once malloc has given back
// what is free, as `weft serve` has it do at rest. It fails above 16 KiB; with fewer than 1,000 clients above 64 KiB,
// as they share some 700 KiB among them. The kernel's memory of a socket does not count.
//
// One more client, of a process of its own, works beside them, and another one works alone at a second server of the
// same process. Their rounds take turns, and only the server of the round moves. The program prints the medians of the
// time of a Call, of the server's processor time for it and of the server's turns for it, and the medians of the
// rounds' ratios. Ends that wait sleep.
//
//   rpc_idle [CLIENTS (default 1000) [ROUNDS (default 51) [DEPTH (default 16)]]]
#include <malloc.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "bench/idle.h"
#include "bench/rpc_v2_program.h"
#include "rpcrdma/client.h"
#include "rpcrdma/server.h"
#include "rpcrdma/xdr/xdr.h"
#include "verbs-shim/soft/device.h"

namespace {

using namespace weft;
using bench::must;
using Clock = std::chrono::steady_clock;

// Octets for each of `num` clients.
constexpr std::size_t limit(std::size_t num) {
  return num >= 1000 ? 16 << 10 : 64 << 10;
}

struct Work {
  const char* name;
  bench::Procedure procedure;
  std::uint32_t len = 0;  // octets of the arguments of a NULL, of the results of others
  int depth = 1;          // Calls under way at a time
  int num = 64;           // Calls of a round
};
Work before_rest{"NULL, 3,000 bytes of arguments", bench::kNull, 3000, 16};
constexpr std::array kWorks = {
    Work{"NULL", bench::kNull},
    Work{"NULL, 16 at a time", bench::kNull, 0, 16, 256},
    Work{"GETATTR", bench::kGetattr, 100},
    Work{"GETATTR, 16 at a time", bench::kGetattr, 100, 16, 256},
    Work{"READ 1 MiB", bench::kRead, 1 << 20, 1, 8},
    Work{"READ 1 MiB, 8 at a time", bench::kRead, 1 << 20, 8, 16},
};

// Sleeps until the engine has something to do, or until an octet comes from `control`, which may be -1.
template <typename Engine>
void sleep_on(const Engine& engine, int control = -1) {
  int ms = -1;
  if (const auto at = engine.next_timeout()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*at - Clock::now()).count();
    ms = static_cast<int>(std::clamp<decltype(left)>(left, 0, 1000));
  }
  pollfd fds[] = {{.fd = engine.fd(), .events = POLLIN, .revents = 0}, {.fd = control, .events = POLLIN, .revents = 0}};
  if (poll(fds, 2, ms) < 0) std::exit(1);
}

class Clients {
 public:
  explicit Clients(const sockaddr_storage& server) : server_(server), device_(must(verbs::open_soft_device({}))) {}

  void add() { clients_.push_back(must(rpcrdma::Client::connect(*device_, server_, {}))); }
  // The newest client makes the Calls. False: its connection is over.
  bool run(const Work& work) {
    rpcrdma::Client& client = *clients_.back();
    const rpcrdma::CallSpec spec = spec_of(work);
    int called = 0, done = 0;
    while (done < work.num) {
      for (; called < work.num && called - done < work.depth && client.state() == rpcrdma::Client::State::kReady;
           ++called) {
        must(client.call(spec, [&done](const rpcrdma::Reply& reply) {
          if (reply.status != rpcrdma::CallStatus::kSuccess) std::exit(1);
          ++done;
        }));
      }
      const bool moved = client.process(Clock::now()) > 0;
      if (client.state() == rpcrdma::Client::State::kClosed) return false;
      if (!moved && done < work.num) sleep_on(client);
    }
    return true;
  }

 private:
  rpcrdma::CallSpec spec_of(const Work& work) {
    const rpcrdma::Binding& binding = bench::works_binding();
    args_.clear();
    rpcrdma::xdr::XdrWriter out(args_);
    if (work.procedure == bench::kNull) args_.resize(work.len, 0x5a);
    if (work.procedure != bench::kNull) out.u32(work.len);
    if (work.procedure == bench::kGetattr) out.u32(work.len);
    rpcrdma::CallSpec spec = bench::works_call(work.procedure, args_);
    if (work.procedure == bench::kRead) spec.result_items = MutBytes(room_).first(work.len);
    spec.max_results = binding.max_results(work.procedure, spec.args, {});
    return spec;
  }

  const sockaddr_storage server_;
  std::vector<std::uint8_t> args_;
  std::vector<std::uint8_t> room_ = std::vector<std::uint8_t>(1 << 20);
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
    if (!clients.run(before_rest) || write(control, &more, 1) != 1) return 1;
  }
  std::_Exit(0);  // the kernel closes their sockets faster than they say goodbye one by one
}

// The client that works: for the number of one of kWorks the microseconds of a Call.
int run_worker(int control) {
  Clients client(server_of(control));
  client.add();
  for (char number = 0; read(control, &number, 1) == 1;) {
    const Work& work = kWorks.at(static_cast<std::size_t>(number));
    const auto start = Clock::now();
    if (!client.run(work)) return 1;
    const double us = std::chrono::duration<double, std::micro>(Clock::now() - start).count() / work.num;
    if (write(control, &us, sizeof us) != sizeof us) return 1;
  }
  std::_Exit(0);
}

double processor_us() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) * 1e6 + static_cast<double>(used.tv_nsec) / 1e3;
}

// A server with its client that works.
class Bench {
 public:
  Bench(int worker, std::size_t num_clients) : worker_(worker), device_(must(verbs::open_soft_device({}))) {
    const rpcrdma::ServedProgram programs[] = {{&bench::works_binding(), &service_}};
    rpcrdma::ServerConfig config;
    config.max_connections = num_clients + 2;
    server_ = must(rpcrdma::Server::listen(*device_, bench::any_loopback_port(), programs, config));
    service_.set_server(*server_);
    tell_address(worker_);
  }

  void tell_address(int process) {
    const sockaddr_storage addr = server_->local_addr();
    if (write(process, &addr, sizeof addr) != sizeof addr) std::exit(1);
  }
  void add_client(int clients) {
    char octet = 0;
    ask(clients, 0, &octet, 1);
  }
  // Microseconds of a Call, microseconds of this process for it, and the server's turns for it.
  struct Times {
    double call = 0, processor = 0, turns = 0;
  };
  Times work(std::size_t number) {
    Times times;
    const double before = processor_us();
    num_turns_ = 0;
    ask(worker_, static_cast<char>(number), &times.call, sizeof times.call);
    times.processor = (processor_us() - before) / kWorks[number].num;
    times.turns = static_cast<double>(num_turns_) / kWorks[number].num;
    return times;
  }
  // Long enough for all memory to go that busy connections needed.
  void rest() {
    for (const auto end = Clock::now() + std::chrono::seconds(4); Clock::now() < end;) server_->process(Clock::now());
  }
  const rpcrdma::Server& server() const { return *server_; }

 private:
  // Serves until the answer is there.
  void ask(int process, char octet, void* answer, std::size_t len) {
    if (write(process, &octet, 1) != 1) std::exit(1);
    ssize_t num = 0;
    while ((num = recv(process, answer, len, MSG_DONTWAIT)) < 0) {
      ++num_turns_;
      if (server_->process(Clock::now()) == 0) sleep_on(*server_, process);
    }
    if (num != static_cast<ssize_t>(len)) std::exit(1);
  }

  int worker_;
  int num_turns_ = 0;
  bench::WorksService service_;
  std::unique_ptr<verbs::Device> device_;
  std::unique_ptr<rpcrdma::Server> server_;
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// The rounds of both servers' clients take turns.
void compare(Bench& alone, Bench& beside, int rounds) {
  struct Figures {
    std::vector<double> alone, beside, ratio;
    void add(double a, double b) {
      alone.push_back(a);
      beside.push_back(b);
      ratio.push_back(b / a);
    }
    void print() const { std::printf(" %10.2f %10.2f %7.3f", median(alone), median(beside), median(ratio)); }
  };
  std::array<Figures, kWorks.size()> calls, processor, turns;
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < kWorks.size(); ++i) {
      Bench* const order[] = {&alone, &beside};
      Bench::Times times[2];
      for (const int which : {round % 2, 1 - round % 2}) times[which] = order[which]->work(i);
      calls[i].add(times[0].call, times[1].call);
      processor[i].add(times[0].processor, times[1].processor);
      turns[i].add(times[0].turns, times[1].turns);
    }
  }
  std::printf("%-24s %-29s %-29s %s\n", "alone, beside, ratio:", "a Call (us)", "server's processor time (us)",
              "its turns");
  for (std::size_t i = 0; i < kWorks.size(); ++i) {
    std::printf("%-24s", kWorks[i].name);
    calls[i].print();
    processor[i].print();
    turns[i].print();
    std::printf("\n");
  }
}

int run_server(int clients, int worker_alone, int worker_beside, std::size_t num, int rounds) {
  Bench alone(worker_alone, 0), beside(worker_beside, num);
  beside.tell_address(clients);
  beside.add_client(clients);
  for (std::size_t i = 0; i < kWorks.size(); ++i) {
    alone.work(i);
    beside.work(i);
  }
  const std::size_t before = bench::resident();
  for (std::size_t i = 0; i < num; ++i) beside.add_client(clients);
  beside.rest();
  const std::size_t grown = bench::resident() - before;
  const rpcrdma::ServerMemory memory = beside.server().memory();
  std::printf("clients %zu, octets per client %zu; registered for Receives %zu, for Sends %zu; %u Receives promised\n",
              beside.server().num_connections() - 2, grown / num, memory.receives, memory.sends, memory.promised);
  malloc_trim(0);
  const std::size_t trimmed = std::max(bench::resident(), before) - before;
  std::printf("octets per client after malloc_trim %zu\n", trimmed / num);
  compare(alone, beside, rounds);
  std::fflush(stdout);
  if (grown / num > limit(num)) std::fprintf(stderr, "rpc_idle: more than %zu octets per client\n", limit(num));
  std::_Exit(grown / num > limit(num) ? 1 : 0);
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
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 51;
  if (argc > 3) before_rest.depth = std::atoi(argv[3]);
  before_rest.num = 4 * before_rest.depth;
  if (num <= 0 || rounds <= 0 || before_rest.depth <= 0 || bench::raise_file_limit() < static_cast<rlim_t>(num + 64)) {
    std::fprintf(stderr, "usage: rpc_idle [CLIENTS [ROUNDS [DEPTH]]], fewer clients than the limit of open files\n");
    return 2;
  }
  const int clients = spawn(run_clients), alone = spawn(run_worker), beside = spawn(run_worker);
  return run_server(clients, alone, beside, static_cast<std::size_t>(num), rounds);
}
