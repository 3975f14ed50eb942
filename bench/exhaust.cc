// Measures how an honest client of `weft serve` is served while others exhaust one kind of resource. The attackers come
// from the honest client's own address, from two others, or from 250 others (127.0.0.0/8). For each the program prints
// the median and the longest time of an honest client's requests, in milliseconds, and the server's memory before the
// attack, at its most and after a rest, in MB. "no" is a request that was not answered, or refused, within 10 s.
// Each kind has a server of its own, with the options that a user starts it with (version 2 has to be asked for).
// Stderr says why a request was not served.
//
//   exhaust WEFT [KIND...]
#include <arpa/inet.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <thread>

#include "bench/attackers.h"
#include "bench/honest_client.h"
#include "bench/idle.h"
#include "tests/exhaust/attacks.h"
#include "verbs-shim/soft/device.h"

namespace {

using namespace weft;
using namespace std::chrono_literals;
using bench::HonestClient;
using bench::must;
using exhaust::Attack;
using exhaust::attacks;
using exhaust::Handles;
using Clock = std::chrono::steady_clock;
namespace fs = std::filesystem;

constexpr auto kBefore = 2s, kMost = 30s;  // of an attack: before the first request, and until no further one is made
constexpr auto kRest = 16s;                // longer than the server waits before it gives memory back twice
constexpr int kRounds = 7;
constexpr int kManyFiles = 20000, kGoneFiles = 512, kOpenFiles = 4000;

// --- the server ---

class Served {
 public:
  Served(const char* weft, const fs::path& dir, const char* versions) {
    int out[2];
    if (pipe(out) != 0) std::exit(1);
    pid_ = fork();
    if (pid_ == 0) {
      bench::raise_file_limit();
      dup2(out[1], 1);
      if (std::freopen((dir / "log").c_str(), "a", stderr) == nullptr) std::exit(1);
      for (int fd = 3; fd < 1024; ++fd) close(fd);
      const std::string tree = dir / "tree", state = dir / "state";
      execl(weft, "weft", "--rpcrdma", versions, "serve", tree.c_str(), "--read-write", "--listen", "127.0.0.1:0",
            "--mount-listen", "127.0.0.1:0", "--state-dir", state.c_str(), nullptr);
      std::exit(127);
    }
    close(out[1]);
    FILE* const ready = fdopen(out[0], "r");
    char line[256];
    unsigned rdma_port = 0, mount_port = 0;
    if (std::fgets(line, sizeof line, ready) == nullptr ||
        std::sscanf(line, "ready rdma=127.0.0.1:%u mount=127.0.0.1:%u", &rdma_port, &mount_port) != 2) {
      std::fprintf(stderr, "exhaust: %s serve did not start\n", weft);
      std::exit(1);
    }
    rdma = at(rdma_port);
    mount = at(mount_port);
  }
  ~Served() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;

  bool is_running() const { return waitpid(pid_, nullptr, WNOHANG) == 0; }
  // Its resident memory in MB now, and the most since `forget_most`.
  double memory() const { return status_of("VmRSS:"); }
  double most_memory() const { return status_of("VmHWM:"); }
  void forget_most() const { std::ofstream(proc("clear_refs")) << "5"; }

  sockaddr_in rdma{}, mount{};

 private:
  static sockaddr_in at(unsigned port) {
    sockaddr_in addr{};
    addr.sin_family = AF_INET;
    addr.sin_port = htons(static_cast<std::uint16_t>(port));
    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return addr;
  }
  std::string proc(const char* name) const { return "/proc/" + std::to_string(pid_) + "/" + name; }
  double status_of(const std::string& what) const {
    std::ifstream file(proc("status"));
    for (std::string word; file >> word;) {
      double kib = 0;
      if (word == what && file >> kib) return kib * 1024 / 1e6;
    }
    return 0;
  }

  pid_t pid_ = -1;
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
  const double before = served.memory();
  served.forget_most();
  const sockaddr_in& server = attack.port == Attack::Port::kMount ? served.mount : served.rdma;
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
  const double most = served.most_memory();
  std::this_thread::sleep_for(kRest);
  std::snprintf(text + len, sizeof text - std::size_t(len), " | %.0f, %.0f, %.0f", before, most, served.memory());
  print_row(attack.name, from, std::move(times), text);
  done.open = done.ready = done.messages = done.replies = 0;
}

void touch(const fs::path& dir, const char* prefix, int num) {
  fs::create_directories(dir);
  for (int i = 0; i < num; ++i) std::ofstream(dir / (prefix + std::to_string(i))) << "exhaust\n";
}

// A server, its honest client and the attacks of that tree.
void run_kind(const char* weft, const fs::path& dir, std::size_t kind, exhaust::Done& done) {
  const bool is_of_version_2 = attacks(Handles::none())[kind].pace == Attack::Pace::kCredits;
  const Served served(weft, dir, is_of_version_2 ? "auto" : "1");
  const auto device = must(verbs::open_soft_device({}));
  touch(dir / "tree/gone", "gone-", kGoneFiles);
  HonestClient honest(*device, served.rdma, served.mount);
  Handles handles;
  handles.root = honest.root();
  handles.data = honest.lookup(handles.root, "data").value();
  handles.many = honest.lookup(handles.root, "many").value();
  handles.open = honest.files_of(handles.many, kOpenFiles);
  handles.gone = honest.files_of(honest.lookup(handles.root, "gone").value(), kGoneFiles);
  fs::remove_all(dir / "tree/gone");
  ask(honest);
  std::this_thread::sleep_for(kRest);
  const Attack attack = attacks(handles)[kind];
  std::vector<std::string> two = {"127.0.1.1", "127.0.1.2"}, many;
  for (int i = 1; i <= 250; ++i) many.push_back("127.0.2." + std::to_string(i));
  measure(attack, "its own", {"127.0.0.1"}, served, honest, done);
  measure(attack, "2 others", two, served, honest, done);
  measure(attack, "250 others", many, served, honest, done);
  if (!served.is_running()) std::printf("the server has ended\n");
}

}  // namespace

int main(int argc, char** argv) {
  const auto kinds = attacks(Handles::none());
  const std::set<std::string> wanted(argv + std::min(argc, 2), argv + argc);
  const auto is_kind = [&](const std::string& name) {
    return std::ranges::any_of(kinds, [&](const Attack& one) { return one.name == name; });
  };
  if (argc < 2 || !std::ranges::all_of(wanted, is_kind)) {
    std::fprintf(stderr, "usage: exhaust WEFT [KIND...]\nkinds:\n");
    for (const Attack& one : kinds) std::fprintf(stderr, "  %s\n", one.name);
    return 2;
  }
  signal(SIGPIPE, SIG_IGN);
  void* const shared = mmap(nullptr, sizeof(exhaust::Done), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 1;
  auto& done = *new (shared) exhaust::Done();
  char name[] = "/dev/shm/weft-exhaust-XXXXXX";
  if (mkdtemp(name) == nullptr) return 1;
  const fs::path dir = name;
  touch(dir / "tree/many", "file-", kManyFiles);
  std::ofstream(dir / "tree/data") << std::string(1 << 20, 'w');

  std::printf("| kind | addresses");
  for (const char* op : kOps) std::printf(" | %s", op);
  std::printf(" | each within 1 s | attackers ready, Replies a second | MB before, most, rested |\n|");
  for (std::size_t i = 0; i < 5 + std::size(kOps); ++i) std::printf("---|");
  std::printf("\n");
  std::fflush(stdout);
  for (std::size_t i = 0; i < kinds.size(); ++i)
    if (wanted.empty() || wanted.contains(kinds[i].name)) run_kind(argv[1], dir, i, done);
  fs::remove_all(dir);
  return 0;
}
