// The same Calls over RPC-over-RDMA version 1 and both drafts of version 2, over loopback. Both ends are in this
// process and in one thread that drives them in turn. bench/rpc-v2 runs it and puts the figures together.
//
//   rpc_v2 count                       registrations, work requests, octets for each Call, as TSV
//   rpc_v2 time ROUNDS MILLISECONDS    latency and rate, interleaved rounds, as TSV
//   rpc_v2 run SETTING                 the works of one setting under callgrind, which writes a file for each work
//   rpc_v2 settings                    the names of the settings
#include <sys/socket.h>
#include <valgrind/callgrind.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/counted_device.h"
#include "bench/idle.h"
#include "bench/rpc_v2_program.h"
#include "rpcrdma/client.h"
#include "rpcrdma/server.h"
#include "verbs-shim/soft/device.h"

namespace {

std::uint64_t octets_sent = 0, octets_copied = 0;

}  // namespace

// The linker leads the calls of the whole program here (--wrap): all that is written to sockets, and copies whose
// length the compiler does not know. The kernel's copies are not among them.
extern "C" {
ssize_t __real_send(int fd, const void* octets, std::size_t len, int flags);
ssize_t __wrap_send(int fd, const void* octets, std::size_t len, int flags) {
  const ssize_t sent = __real_send(fd, octets, len, flags);
  if (sent > 0) octets_sent += static_cast<std::uint64_t>(sent);
  return sent;
}
ssize_t __real_sendmsg(int fd, const msghdr* message, int flags);
ssize_t __wrap_sendmsg(int fd, const msghdr* message, int flags) {
  const ssize_t sent = __real_sendmsg(fd, message, flags);
  if (sent > 0) octets_sent += static_cast<std::uint64_t>(sent);
  return sent;
}
void* __real_memcpy(void* to, const void* from, std::size_t len);
void* __wrap_memcpy(void* to, const void* from, std::size_t len) {
  octets_copied += len;
  return __real_memcpy(to, from, len);
}
void* __real_memmove(void* to, const void* from, std::size_t len);
void* __wrap_memmove(void* to, const void* from, std::size_t len) {
  octets_copied += len;
  return __real_memmove(to, from, len);
}
}

namespace {

using namespace weft;
using bench::must;
using Clock = std::chrono::steady_clock;

// The clock of counted runs counts turns: the work of a second then falls on the same operations in every run.
bool has_real_clock = false;
TimePoint now() {
  static TimePoint turns = Clock::now();
  return has_real_clock ? Clock::now() : turns += std::chrono::microseconds(1);
}

struct Setting {
  std::string name;
  rpcrdma::Protocol protocol;
  std::size_t threshold;
  // Octets that wg07 sends in several messages, whatever it costs; none: the default of Weft's programs.
  std::optional<std::size_t> continued = {};
  bool windows = false;  // remote invalidation: the client's chunks are memory windows
};

const std::vector<Setting>& settings() {
  using rpcrdma::Protocol;
  static const std::vector<Setting> all = {
      {"1/4K", Protocol::k1, 4096},
      {"1/1K", Protocol::k1, 1024},
      {"1/64K", Protocol::k1, 65536},
      {"2-cel05/4K", Protocol::k2Cel05, 4096},
      {"2-cel05/64K", Protocol::k2Cel05, 65536},
      {"2-wg07/4K", Protocol::k2Wg07, 4096},
      {"2-wg07/64K", Protocol::k2Wg07, 65536},
      {"2-wg07/4K/chunks", Protocol::k2Wg07, 4096, 0},
      {"2-wg07/4K/parts", Protocol::k2Wg07, 4096, 128 << 10},
      {"1/4K/invalidation", Protocol::k1, 4096, {}, true},
      {"2-wg07/4K/invalidation", Protocol::k2Wg07, 4096, {}, true},
  };
  return all;
}

struct Work {
  std::string name;
  bench::Procedure procedure;
  std::uint32_t len = 0;    // of the Reply or of the item
  std::uint32_t bound = 0;  // of the Reply
};

std::string octets_text(std::uint32_t octets) {
  if (octets >= 1 << 20) return std::to_string(octets >> 20) + "M";
  return std::to_string(octets >> 10) + (octets % 1024 == 0 ? "K" : ".5K");
}

// The bound that the gateway works out for the results of a GETATTR with an ACL: nfsulb assumes 64 KiB for what has no
// bound.
constexpr std::uint32_t kUnknown = 65616;

std::vector<Work> works() {
  using enum bench::Procedure;
  std::vector<Work> all = {
      {"NULL", kNull}, {"GETATTR", kGetattr, 100, 100}, {"GETATTR+ACL", kGetattrAcl, 200, kUnknown}};
  for (const std::uint32_t len : {2048u, 8192u, 32768u}) {
    all.push_back({"READDIR " + octets_text(len), kReaddir, len, 32768});
  }
  for (const std::uint32_t len : {1536u, 4096u, 6144u, 7680u, 8192u, 16384u, 32768u, 65536u}) {
    all.push_back({"Reply " + octets_text(len), kReply, len, len});
  }
  for (const auto procedure : {kRead, kWrite}) {
    for (const std::uint32_t len : {4096u, 6144u, 7680u, 8192u, 12288u, 16384u, 32768u, 65536u, 1u << 20}) {
      all.push_back({(procedure == kRead ? "READ " : "WRITE ") + octets_text(len), procedure, len, len});
    }
  }
  return all;
}

// One setting with its connection.
class Pair {
 public:
  explicit Pair(const Setting& setting) {
    const rpcrdma::ServedProgram programs[] = {{&bench::works_binding(), &service_}};
    rpcrdma::ServerConfig server;
    server.inline_threshold = setting.threshold;
    server.protocols = {setting.protocol};
    server.remote_invalidation = true;
    server.log.sink = [name = setting.name](verbs::LogLevel, std::string_view line) {
      std::fprintf(stderr, "rpc_v2: the server of %s: %s\n", name.c_str(), std::string(line).c_str());
    };
    server_ = must(rpcrdma::Server::listen(server_device_, bench::any_loopback_port(), programs, server));
    service_.set_server(*server_);
    rpcrdma::ClientConfig client;
    client.inline_threshold = setting.threshold;
    client.protocols = {setting.protocol};
    client.remote_invalidation = setting.windows;
    client.chunks.weighs_round_trip = true;
    if (setting.continued) {
      client.chunks.max_continued_call = client.chunks.max_continued_reply = *setting.continued;
    }
    client_ = must(rpcrdma::Client::connect(client_device_, server_->local_addr(), client));
    while (client_->state() == rpcrdma::Client::State::kConnecting) turn();
    for (int i = 0; i < 4; ++i) run({"NULL", bench::kNull});  // versions and properties are settled by then
  }

  void start(const Work& work);
  void run(const Work& work) {
    start(work);
    while (num_open_ > 0) turn();
  }
  void turn() {
    const auto at = now();
    server_->process(at);
    client_->process(at);
  }
  int num_open() const { return num_open_; }

  struct Counts {
    std::uint64_t registrations, sends, reads, writes, octets, copied;
  };
  Counts counts() const {
    verbs::QpCounters sum = client_->counters();
    sum += server_->counters();
    return {client_device_.registrations() + server_device_.registrations(),
            sum.sends_tx,
            sum.reads_tx,
            sum.writes_tx,
            octets_sent,
            octets_copied};
  }

 private:
  int num_open_ = 0;
  std::vector<std::uint8_t> data_ = std::vector<std::uint8_t>(1 << 20, 0x5a);
  std::vector<std::uint8_t> args_;
  bench::WorksService service_;
  bench::CountedDevice server_device_{must(verbs::open_soft_device({}))};
  bench::CountedDevice client_device_{must(verbs::open_soft_device({}))};
  std::unique_ptr<rpcrdma::Server> server_;
  std::unique_ptr<rpcrdma::Client> client_;
};

void Pair::start(const Work& work) {
  const rpcrdma::Binding& binding = bench::works_binding();
  args_.clear();
  rpcrdma::xdr::XdrWriter out(args_);
  if (work.procedure != bench::kNull) out.u32(work.bound);
  if (work.procedure != bench::kNull && work.procedure < bench::kRead) out.u32(work.len);
  rpcrdma::CallSpec spec = bench::works_call(work.procedure, args_);
  const std::size_t behind = args_.size();
  std::span<const std::size_t> reduced;
  if (work.procedure == bench::kRead) spec.result_items = MutBytes(data_).first(work.len);
  if (work.procedure == bench::kWrite) {
    spec.items = rpcrdma::ArgumentItem{behind, ConstBytes(data_).first(work.len)};
    reduced = std::span(&behind, 1);
  }
  const bool is_bounded = work.procedure != bench::kGetattrAcl;
  spec.max_results = is_bounded ? binding.max_results(work.procedure, spec.args, reduced) : work.bound;
  ++num_open_;
  must(client_->call(spec, [this, work](const rpcrdma::Reply& reply) {
    --num_open_;
    if (reply.status != rpcrdma::CallStatus::kSuccess) {
      std::fprintf(stderr, "rpc_v2: %s failed: %s\n", work.name.c_str(), reply.text.c_str());
      std::exit(1);
    }
    // A client wants an item in its buffer, however it came.
    if (work.procedure == bench::kRead && reply.results.size() >= 4 + work.len) {
      std::memcpy(data_.data(), reply.results.data() + 4, work.len);
    }
  }));
}

int num_calls(const Work& work) {
  return work.len >= 1 << 20 ? 16 : 128;
}

void count() {
  std::printf("setting\twork\tregistrations\tsends\treads\twrites\toctets\tcopied\n");
  for (const Setting& setting : settings()) {
    Pair pair(setting);
    for (const Work& work : works()) {
      for (int i = 0; i < 32; ++i) pair.run(work);
      const auto before = pair.counts();
      const int num = num_calls(work);
      for (int i = 0; i < num; ++i) pair.run(work);
      const auto after = pair.counts();
      const auto each = [num](std::uint64_t from, std::uint64_t to) { return static_cast<double>(to - from) / num; };
      std::printf("%s\t%s\t%.2f\t%.2f\t%.2f\t%.2f\t%.0f\t%.0f\n", setting.name.c_str(), work.name.c_str(),
                  each(before.registrations, after.registrations), each(before.sends, after.sends),
                  each(before.reads, after.reads), each(before.writes, after.writes), each(before.octets, after.octets),
                  each(before.copied, after.copied));
    }
  }
}

// callgrind counts only between the two requests, and its files tell the work and the number of Calls.
void run_setting(const Setting& setting) {
  Pair pair(setting);
  for (const Work& work : works()) {
    for (int i = 0; i < 16; ++i) pair.run(work);
    const int num = num_calls(work) / 4;
    CALLGRIND_ZERO_STATS;
    for (int i = 0; i < num; ++i) pair.run(work);
    const std::string label = work.name + "/" + std::to_string(num);
    CALLGRIND_DUMP_STATS_AT(label.c_str());
  }
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// One work over one setting, one Call at a time: the median latency in microseconds.
double latency(Pair& pair, const Work& work, std::chrono::milliseconds time) {
  std::vector<double> taken;
  const auto end = Clock::now() + time;
  for (auto before = Clock::now(); before < end || taken.size() < 5;) {
    pair.run(work);
    const auto after = Clock::now();
    taken.push_back(std::chrono::duration<double, std::micro>(after - before).count());
    before = after;
  }
  return median(std::move(taken));
}

// Calls in a second, of eight at a time.
double rate(Pair& pair, const Work& work, std::chrono::milliseconds time) {
  const auto begin = Clock::now();
  int num = 0;
  while (Clock::now() < begin + time || num < 8) {
    for (; pair.num_open() < 8; ++num) pair.start(work);
    pair.turn();
  }
  while (pair.num_open() > 0) pair.turn();
  return num / std::chrono::duration<double>(Clock::now() - begin).count();
}

// The ratios are medians of the rounds' own ratios, against the first setting.
void time_works(int rounds, std::chrono::milliseconds time) {
  has_real_clock = true;
  std::vector<std::unique_ptr<Pair>> pairs;
  for (const Setting& setting : settings()) pairs.push_back(std::make_unique<Pair>(setting));
  struct Figures {
    std::vector<double> latency, rate, latency_ratio, rate_ratio;
  };
  std::printf("setting\twork\tlatency_us\tlatency_ratio\trate\trate_ratio\n");
  for (const Work& work : works()) {
    std::vector<Figures> figures(pairs.size());
    for (int round = 0; round < rounds; ++round) {
      for (std::size_t i = 0; i < pairs.size(); ++i) {
        Figures& one = figures[i];
        one.latency.push_back(latency(*pairs[i], work, time));
        one.rate.push_back(rate(*pairs[i], work, time));
        one.latency_ratio.push_back(one.latency.back() / figures[0].latency.back());
        one.rate_ratio.push_back(one.rate.back() / figures[0].rate.back());
      }
    }
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      std::printf("%s\t%s\t%.2f\t%.3f\t%.0f\t%.3f\n", settings()[i].name.c_str(), work.name.c_str(),
                  median(figures[i].latency), median(figures[i].latency_ratio), median(figures[i].rate),
                  median(figures[i].rate_ratio));
    }
  }
}

int usage() {
  std::fprintf(stderr, "usage: rpc_v2 count | time ROUNDS MILLISECONDS | run SETTING | settings\n");
  return 2;
}

int run_command(std::span<char* const> words) {
  const std::string_view command = words.empty() ? "" : words[0];
  if (command == "count" && words.size() == 1) {
    count();
  } else if (command == "settings" && words.size() == 1) {
    for (const Setting& setting : settings()) std::printf("%s\n", setting.name.c_str());
  } else if (command == "time" && words.size() == 3 && std::atoi(words[1]) > 0) {
    time_works(std::atoi(words[1]), std::chrono::milliseconds(std::atoi(words[2])));
  } else if (command == "run" && words.size() == 2) {
    const auto at = std::ranges::find(settings(), words[1], &Setting::name);
    if (at == settings().end()) return usage();
    run_setting(*at);
  } else {
    return usage();
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const int status = run_command(std::span(argv + 1, static_cast<std::size_t>(argc - 1)));
  std::fflush(stdout);
  std::_Exit(status);  // the end of the connections is not counted
}
