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

#include "apps/nfs3/mount.h"
#include "bench/attackers.h"
#include "bench/honest_client.h"
#include "bench/idle.h"
#include "nfsulb/nfs3.h"
#include "rpcrdma/rpc_message.h"
#include "rpcrdma/v1/header.h"
#include "rpcrdma/v2_wg07/header.h"
#include "verbs-shim/soft/device.h"

namespace {

using namespace weft;
using namespace std::chrono_literals;
using bench::Attack;
using bench::HonestClient;
using bench::must;
using bench::Octets;
using Clock = std::chrono::steady_clock;
using nfs3::Proc;
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

// --- the attacks ---

struct Handles {
  nfs3::NfsFh3 root = {}, data = {}, many = {};
  std::vector<nfs3::NfsFh3> open, gone;
  static Handles none() { return {.open = std::vector<nfs3::NfsFh3>(1), .gone = std::vector<nfs3::NfsFh3>(1)}; }
};

template <typename Args, typename... Form>
Octets nfs_call(std::uint32_t xid, Proc proc, const Args& args, Form... form) {
  Octets octets;
  nfs3::XdrWriter out(octets);
  rpcrdma::CallHeader header;
  header.xid = xid;
  header.program = nfs3::kProgram;
  header.version = nfs3::kVersion;
  header.procedure = static_cast<std::uint32_t>(proc);
  header.cred = rpcrdma::auth_sys_of_this_process();
  emit_call(out, header);
  emit(out, args, form...);
  return octets;
}

Octets message(std::uint32_t xid, const Octets& call, rpcrdma::ChunkListsView lists = {}) {
  rpcrdma::v1::Header header;
  header.xid = xid;
  header.credit = 128;
  header.lists = std::move(lists);
  Octets octets;
  nfs3::XdrWriter out(octets);
  emit_header(out, header);
  out.raw(call);
  return octets;
}

Octets null(std::uint32_t xid) {
  return message(xid, nfs_call(xid, Proc::kNull, nfs3::VoidArgs{}));
}

template <typename Body>
Octets wg07(std::uint32_t xid, Body body, const Octets& payload) {
  constexpr std::uint32_t kEnoughCredits = 30000;  // so that the server never waits for them
  Octets octets;
  nfs3::XdrWriter out(octets);
  rpcrdma::v2_wg07::Header header;
  header.xid = xid;
  header.credit = kEnoughCredits;
  header.body = std::move(body);
  emit_header(out, header);
  out.raw(payload);
  return octets;
}

// A listing as long as the server makes one, into a Reply chunk that nobody looks at.
Octets list(std::uint32_t xid, const nfs3::NfsFh3& dir) {
  constexpr std::uint32_t kLen = 1 << 20;
  rpcrdma::ChunkListsView lists;
  lists.reply_chunk = {{.handle = 0x7777, .length = kLen + 4096, .offset = 0}};
  return message(
      xid, nfs_call(xid, Proc::kReaddirplus, nfs3::ReaddirplusArgs{.dir = dir, .dircount = kLen, .maxcount = kLen}),
      std::move(lists));
}

// A WRITE of 1 MiB from memory that the client never lets the server read.
Octets starved_write(std::uint32_t xid, const nfs3::NfsFh3& file) {
  constexpr std::uint32_t kLen = 1 << 20;
  const nfs3::WriteArgs args{file, 0, kLen, nfs3::StableHow::kUnstable, {kLen, {}}};
  const Octets call = nfs_call(xid, Proc::kWrite, args, nfs3::ItemForm::kReduced);
  rpcrdma::ChunkListsView lists;
  lists.read_list = {{static_cast<std::uint32_t>(call.size()), {.handle = 0x7777, .length = kLen, .offset = 0}}};
  return message(xid, call, std::move(lists));
}

Octets part(std::uint32_t xid) {
  Octets octets(4000);
  for (int i = 0; i < 4; ++i) octets[std::size_t(i)] = static_cast<std::uint8_t>(xid >> (24 - 8 * i));
  return wg07(xid, rpcrdma::v2_wg07::CallMiddle{1 << 20}, octets);
}

Octets mnt(std::uint32_t xid) {
  std::string path;
  for (int i = 0; i < 100; ++i) path += "/many/..";
  Octets octets;
  nfs3::XdrWriter out(octets);
  rpcrdma::CallHeader header;
  header.xid = xid;
  header.program = nfs3::kMountProgram;
  header.version = nfs3::kMountVersion;
  header.procedure = static_cast<std::uint32_t>(nfs3::MountProc::kMnt);
  emit_call(out, header);
  emit(out, nfs3::DirpathArgs{path});
  return octets;
}

bool is_of_mount(const Attack& attack) {
  return std::string_view(attack.name).starts_with("MOUNT");
}

std::vector<Attack> attacks(const Handles& of) {
  using enum Attack::Over;
  using enum Attack::Pace;
  const auto starve = [of](std::uint32_t xid) { return starved_write(xid, of.data); };
  const auto list_many = [of](std::uint32_t xid) { return list(xid, of.many); };
  const auto touch_gone = [of](std::uint32_t xid) {
    return message(xid, nfs_call(xid, Proc::kGetattr, nfs3::FhArgs{of.gone[xid % of.gone.size()]}));
  };
  const auto open = [of](std::uint32_t xid) {
    return message(xid, nfs_call(xid, Proc::kRead, nfs3::ReadArgs{of.open[xid % of.open.size()], 0, 16}));
  };
  const auto create = [of](std::uint32_t xid) {
    nfs3::CreateArgs args;
    args.where = {of.root, "hostile-" + std::to_string(xid % 64)};
    return message(xid, nfs_call(xid, Proc::kCreate, args));
  };
  const auto first_wg07 = [](std::uint32_t xid) {
    return wg07(xid, rpcrdma::v2_wg07::CallInline{}, nfs_call(xid, Proc::kNull, nfs3::VoidArgs{}));
  };
  return {
      {.name = "connections, silent", .connections = 2200, .over = kTcp},
      {.name = "connections, resting", .connections = 1100, .first = null},
      {.name = "connections, Calls under way",
       .connections = 1100,
       .pace = kAgain,
       .depth = 1,
       .first = null,
       .message = list_many},
      {.name = "chunks, 60 connections", .connections = 60, .depth = 8, .first = null, .message = starve},
      {.name = "chunks, 200 connections", .connections = 200, .depth = 8, .first = null, .message = starve},
      {.name = "chunks, 700 connections", .connections = 700, .depth = 8, .first = null, .message = starve},
      {.name = "disk lane", .connections = 200, .pace = kAgain, .depth = 8, .first = null, .message = list_many},
      {.name = "MOUNT, silent", .connections = 300, .over = kTcp},
      {.name = "MOUNT, flood", .connections = 256, .over = kRecords, .depth = 1, .per_second = 2200, .message = mnt},
      {.name = "open files", .connections = 64, .pace = kAgain, .depth = 16, .first = null, .message = open},
      {.name = "searches", .connections = 64, .pace = kAgain, .depth = 16, .first = null, .message = touch_gone},
      {.name = "Receives", .connections = 700, .pace = kAgain, .depth = 128, .first = null, .message = null},
      {.name = "version 2, half Calls",
       .connections = 700,
       .pace = kCredits,
       .depth = 40,
       .first = first_wg07,
       .message = part},
      {.name = "kept Replies", .connections = 64, .pace = kAgain, .depth = 16, .first = null, .message = create},
  };
}

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

constexpr const char* kOps[] = {"NULL", "GETATTR", "READ 1 MiB", "CREATE", "MNT", "newcomer"};

std::map<std::string, Times> ask(HonestClient& honest) {
  std::map<std::string, Times> times;
  const auto end = Clock::now() + kMost;
  for (int round = 0; round < kRounds && (round == 0 || Clock::now() < end); ++round) {
    times["NULL"].add(honest.null());
    times["GETATTR"].add(honest.getattr());
    times["READ 1 MiB"].add(honest.read());
    times["CREATE"].add(honest.create());
    times["MNT"].add(honest.mnt());
    times["newcomer"].add(honest.newcomer());
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
             const Served& served, HonestClient& honest, bench::Done& done) {
  const double before = served.memory();
  served.forget_most();
  const pid_t attackers = bench::attack(attack, is_of_mount(attack) ? served.mount : served.rdma, addresses, done);
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
void run_kind(const char* weft, const fs::path& dir, std::size_t kind, bench::Done& done) {
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
  void* const shared = mmap(nullptr, sizeof(bench::Done), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 1;
  auto& done = *new (shared) bench::Done();
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
