// Measures how an honest client of `weft serve` is served while others exhaust one kind of resource. The attackers come
// from the honest client's own address, from two others, or from 250 others (127.0.0.0/8). For each the program prints
// the median and the longest time of an honest client's requests, in milliseconds, and the server's memory before the
// attack, at its most and after a rest, in MB. "no" is a request that was not answered, or refused, within 10 s.
// Each kind has a server of its own, with the options that a user starts it with (version 2 has to be asked for).
// Stderr says why a request was not served.
//
// With --gateway tcp, all clients are TCP clients of a `weft gateway` to the server; with --gateway rdma, they are RDMA
// clients of a gateway to a gateway to the server. MNT goes to the server itself. The memory is that of the gateway
// that the clients reach.
//
//   exhaust [--gateway tcp|rdma] WEFT [KIND...]
#include <arpa/inet.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <thread>

#include "bench/attackers.h"
#include "bench/gateway_attacks.h"
#include "bench/honest_client.h"
#include "bench/idle.h"
#include "bench/scratch_folder.h"
#include "bench/weft_process.h"
#include "tests/exhaust/attacks.h"
#include "verbs-shim/soft/device.h"

namespace {

using namespace weft;
using namespace std::chrono_literals;
using bench::HonestClient;
using bench::must;
using bench::WeftProcess;
using exhaust::Attack;
using exhaust::Handles;
using Clock = std::chrono::steady_clock;
namespace fs = std::filesystem;

constexpr auto kBefore = 2s, kMost = 30s;  // of an attack: before the first request, and until no further one is made
constexpr auto kRest = 16s;                // longer than the server waits before it gives memory back twice
constexpr int kRounds = 7;
constexpr int kManyFiles = 20000, kGoneFiles = 512, kOpenFiles = 4000;

// --- the server ---

// The gateways between the clients and the server. kOfTcpClients: one. kOfRdmaClients: one, and one behind it.
enum class Gateways : std::uint8_t { kNone, kOfTcpClients, kOfRdmaClients };

class Served {
 public:
  Served(const char* weft, const fs::path& dir, const char* versions, Gateways gateways)
      : server_(weft,
                {"--rpcrdma", versions, "serve", dir / "tree", "--read-write", "--listen", "127.0.0.1:0",
                 "--mount-listen", "127.0.0.1:0", "--state-dir", dir / "state"},
                dir / "log") {
    if (gateways != Gateways::kNone) add_gateway(weft, dir, "tcp", "rdma");
    if (gateways == Gateways::kOfRdmaClients) add_gateway(weft, dir, "rdma", "tcp");
  }

  bool are_running() const {
    return server_.is_running() && std::ranges::all_of(gateways_, [](const auto& one) { return one->is_running(); });
  }
  // The process that the clients reach, and its address.
  const WeftProcess& first() const { return gateways_.empty() ? server_ : *gateways_.back(); }
  sockaddr_in nfs() const { return first().address(gateways_.empty() ? "rdma" : "listen"); }
  sockaddr_in mount() const { return server_.address("mount"); }

 private:
  void add_gateway(const char* weft, const fs::path& dir, const std::string& from, const std::string& to) {
    const std::string server = to + "://127.0.0.1:" + std::to_string(ntohs(nfs().sin_port));
    gateways_.push_back(std::make_unique<WeftProcess>(
        weft, std::vector<std::string>{"gateway", "--listen", from + "://127.0.0.1:0", "--connect", server},
        dir / "log"));
  }

  WeftProcess server_;
  std::vector<std::unique_ptr<WeftProcess>> gateways_;
};

// What the command line asks for.
struct Wish {
  const char* weft = nullptr;
  Gateways gateways = Gateways::kNone;
  std::set<std::string> kinds;

  std::vector<Attack> attacks(const Handles& of) const {
    if (gateways == Gateways::kOfTcpClients) return bench::gateway_attacks(of);
    auto all = exhaust::attacks(of);
    if (gateways == Gateways::kOfRdmaClients)
      std::erase_if(all, [](const Attack& one) { return one.port == Attack::Port::kMount || is_of_version_2(one); });
    return all;
  }
  static bool is_of_version_2(const Attack& one) { return one.pace == Attack::Pace::kCredits; }
};

// --- the table ---

struct Times {
  std::vector<double> ms;
  bool all_served = true;
  void add(HonestClient::Millis time) {
    if (time)
      ms.push_back(*time);
    else
      all_served = false;
  }
  std::string text() {
    std::sort(ms.begin(), ms.end());
    char text[64];
    if (ms.empty()) return "no";
    std::snprintf(text, sizeof text, "%.1f, %.1f%s", ms[ms.size() / 2], ms.back(), all_served ? "" : ", no");
    return text;
  }
  bool within_a_second() const {
    return all_served && std::ranges::all_of(ms, [](double one) { return one <= 1000; });
  }
};

constexpr const char* kOps[] = {"NULL",           "GETATTR", "READ 1 MiB", "CREATE", "MNT", "newcomer's GETATTR",
                                "newcomer's READ"};

std::map<std::string, Times> ask(HonestClient& honest) {
  std::map<std::string, Times> times;
  const auto end = Clock::now() + kMost;
  for (int round = 0; round < kRounds && (round == 0 || Clock::now() < end); ++round) {
    times["NULL"].add(honest.null());
    times["GETATTR"].add(honest.getattr());
    times["READ 1 MiB"].add(honest.read());
    times["CREATE"].add(honest.create());
    times["MNT"].add(honest.mnt());
    times["newcomer's GETATTR"].add(honest.newcomers_getattr());
    times["newcomer's READ"].add(honest.newcomers_read());
  }
  return times;
}

void print_row(const char* kind, const std::string& from, std::map<std::string, Times> times, const std::string& rest) {
  std::printf("| %s | %s", kind, from.c_str());
  bool served = true;
  for (const char* op : kOps) {
    std::printf(" | %s", times[op].text().c_str());
    served = served && times[op].within_a_second();
  }
  std::printf(" | %s | %s |\n", served ? "yes" : "NO", rest.c_str());
  std::fflush(stdout);
}

void measure(const Attack& attack, const std::string& from, const std::vector<std::string>& addresses,
             const Served& served, HonestClient& honest, exhaust::Done& done) {
  const double before = served.first().memory();
  served.first().forget_most();
  const sockaddr_in server = attack.port == Attack::Port::kMount ? served.mount() : served.nfs();
  const pid_t attackers = bench::attack(attack, server, addresses, done);
  std::this_thread::sleep_for(kBefore);
  const auto start = Clock::now();
  const std::uint64_t replies = done.replies;
  auto times = ask(honest);
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  char text[160];
  const int len = std::snprintf(text, sizeof text, "%llu of %zu, %.0f", static_cast<unsigned long long>(done.ready),
                                attack.connections, static_cast<double>(done.replies - replies) / seconds);
  kill(attackers, SIGKILL);
  waitpid(attackers, nullptr, 0);
  const double most = served.first().most_memory();
  std::this_thread::sleep_for(kRest);
  std::snprintf(text + len, sizeof text - std::size_t(len), " | %.0f, %.0f, %.0f", before, most,
                served.first().memory());
  print_row(attack.name, from, std::move(times), text);
  done.open = done.ready = done.messages = done.replies = 0;
}

void touch(const fs::path& dir, const char* prefix, int num) {
  fs::create_directories(dir);
  for (int i = 0; i < num; ++i) std::ofstream(dir / (prefix + std::to_string(i))) << "exhaust\n";
}

// A server, its honest client and the attacks of that tree.
void run_kind(const Wish& wish, const fs::path& dir, std::size_t kind, exhaust::Done& done) {
  const bool is_of_version_2 = Wish::is_of_version_2(wish.attacks(Handles::none())[kind]);
  const Served served(wish.weft, dir, is_of_version_2 ? "auto" : "1", wish.gateways);
  const auto device = must(verbs::open_soft_device({}));
  touch(dir / "tree/gone", "gone-", kGoneFiles);
  const bool is_over_tcp = wish.gateways == Gateways::kOfTcpClients;
  const auto dial = is_over_tcp ? bench::dial_tcp(served.nfs()) : bench::dial_rdma(*device, served.nfs());
  HonestClient honest(dial, served.mount());
  Handles handles;
  handles.root = honest.root();
  handles.data = honest.lookup(handles.root, "data").value();
  handles.many = honest.lookup(handles.root, "many").value();
  handles.open = honest.files_of(handles.many, kOpenFiles);
  handles.gone = honest.files_of(honest.lookup(handles.root, "gone").value(), kGoneFiles);
  fs::remove_all(dir / "tree/gone");
  ask(honest);
  std::this_thread::sleep_for(kRest);
  const Attack attack = wish.attacks(handles)[kind];
  std::vector<std::string> two = {"127.0.1.1", "127.0.1.2"}, many;
  for (int i = 1; i <= 250; ++i) many.push_back("127.0.2." + std::to_string(i));
  measure(attack, "its own", {"127.0.0.1"}, served, honest, done);
  measure(attack, "2 others", two, served, honest, done);
  measure(attack, "250 others", many, served, honest, done);
  if (!served.are_running()) std::printf("the server has ended, or a gateway\n");
}

}  // namespace

int main(int argc, char** argv) {
  Wish wish;
  int at = 1;
  bool is_known = true;
  if (argc > 2 && std::string_view(argv[1]) == "--gateway") {
    const std::string_view clients = argv[2];
    wish.gateways = clients == "tcp" ? Gateways::kOfTcpClients : Gateways::kOfRdmaClients;
    is_known = clients == "tcp" || clients == "rdma";
    at = 3;
  }
  if (at < argc) wish.weft = argv[at];
  wish.kinds = std::set<std::string>(argv + std::min(argc, at + 1), argv + argc);
  const auto kinds = wish.attacks(Handles::none());
  const auto is_kind = [&](const std::string& name) {
    return std::ranges::any_of(kinds, [&](const Attack& one) { return one.name == name; });
  };
  if (!is_known || at >= argc || !std::ranges::all_of(wish.kinds, is_kind)) {
    std::fprintf(stderr, "usage: exhaust [--gateway tcp|rdma] WEFT [KIND...]\nkinds:\n");
    for (const Attack& one : kinds) std::fprintf(stderr, "  %s\n", one.name);
    return 2;
  }
  signal(SIGPIPE, SIG_IGN);
  void* const shared = mmap(nullptr, sizeof(exhaust::Done), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 1;
  auto& done = *new (shared) exhaust::Done();
  const bench::ScratchFolder scratch("weft-exhaust");
  const fs::path& dir = scratch.path();
  touch(dir / "tree/many", "file-", kManyFiles);
  std::ofstream(dir / "tree/data") << std::string(1 << 20, 'w');

  std::printf("| kind | addresses");
  for (const char* op : kOps) std::printf(" | %s", op);
  std::printf(" | each within 1 s | attackers ready, Replies a second | MB before, most, rested |\n|");
  for (std::size_t i = 0; i < 5 + std::size(kOps); ++i) std::printf("---|");
  std::printf("\n");
  std::fflush(stdout);
  for (std::size_t i = 0; i < kinds.size(); ++i)
    if (wish.kinds.empty() || wish.kinds.contains(kinds[i].name)) run_kind(wish, dir, i, done);
  return 0;
}
