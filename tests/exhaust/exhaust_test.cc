// Each kind of resource that peers hold of `weft serve` is exhausted, from an honest client's own address, from two
// others and from many. The honest client and a newcomer are served all the same, and wait for no timer of the server's
// for longer than a second.
// bench/exhaust.cc has the same attacks at full size, in real time.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "apps/serve/ledger_kinds.h"
#include "rpcrdma/ledger_kinds.h"
#include "tests/exhaust/attacks.h"
#include "tests/exhaust/from.h"
#include "tests/exhaust/siege.h"
#include "tests/serve/serve_world.h"
#include "verbs-shim/soft/ledger_kinds.h"

namespace weft::exhaust {
namespace {

using namespace std::chrono_literals;
using nfs3::Proc;
namespace fs = std::filesystem;

constexpr std::size_t kPlaces = 48;  // of the server under test
constexpr std::size_t kMountPlaces = 16;
constexpr int kManyFiles = 300, kGoneFiles = 16, kOpenFiles = 64;
constexpr auto kMost = 1s;

sockaddr_in in_of(const sockaddr_storage& addr) {
  sockaddr_in in;
  std::memcpy(&in, &addr, sizeof in);
  return in;
}

class Exhaust : public serve::testing::ServeWorld, public ::testing::WithParamInterface<std::tuple<std::size_t, From>> {
 protected:
  Exhaust() {
    config.rpc.protocols = {rpcrdma::Protocol::k1, rpcrdma::Protocol::k2Wg07};
    config.rpc.credits = 128;
    config.rpc.max_connections = kPlaces;
    config.rpc.max_buffered = 16 << 20;
    config.rpc.max_shared_receives = 1 << 20;
    config.backend.max_open_files = kOpenFiles / 2;
    config.tree.max_indexed_files = kManyFiles / 2;
    config.mount.max_connections = kMountPlaces;
    config.mount.on_work = [this] { ++num_mount_calls_; };
    config.pool.num_workers = 2;
    config.pool.num_sync_workers = 8;
    config.pool.max_queued = 32;
    config.pool.max_queued_per_group = 16;
    // Every task costs the same.
    config.pool.now = [this] { return TimePoint(std::chrono::milliseconds(++pool_ms_)); };
    soft.max_silent = 32;
    soft.max_parked = 1 << 20;

    touch(dir + "/many", "file-", kManyFiles);
    touch(dir + "/gone", "gone-", kGoneFiles);
    std::ofstream(dir + "/data") << std::string(1 << 20, 'w');
  }
  ~Exhaust() override {
    siege_.end();
    stop();  // the pool still reads pool_ms_
  }

  static void touch(const fs::path& dir, const char* prefix, int num) {
    fs::create_directories(dir);
    for (int i = 0; i < num; ++i) std::ofstream(dir / (prefix + std::to_string(i))) << "exhaust\n";
  }

  void turn() override {
    const std::size_t moved = turn_at(siege_.now());
    siege_.turn(moved, app->num_tasks() != 0);
  }

  void begin() {
    start();
    honest_ = connect(honest_config());
    handles_.root = mount(dir);
    handles_.data = lookup(*honest_, handles_.root, "data");
    handles_.many = lookup(*honest_, handles_.root, "many");
    handles_.open = files_of(handles_.many, "file-", kOpenFiles);
    handles_.gone = files_of(lookup(*honest_, handles_.root, "gone"), "gone-", kGoneFiles);
    fs::remove_all(dir + "/gone");
  }
  std::vector<nfs3::NfsFh3> files_of(const nfs3::NfsFh3& in, const char* prefix, int num) {
    std::vector<nfs3::NfsFh3> files;
    for (int i = 0; i < num; ++i) files.push_back(lookup(*honest_, in, prefix + std::to_string(i)));
    return files;
  }
  // As NFS clients do, this one connects again and sends its Calls again.
  static rpcrdma::ClientConfig honest_config() {
    rpcrdma::ClientConfig config;
    config.call_timeout = config.connect_timeout = 10s;
    config.reconnect.max_time = 60s;
    config.reserve_credit = true;
    return config;
  }

  // Begins the attack, and lets it come to where it does not grow any more.
  void attack(Attack attack, const From& from) {
    attack_ = attack;
    attack.connections = attack.connections > rpcrdma::ServerConfig{}.max_connections ? kPlaces + 20 : kPlaces - 8;
    attack.depth = std::min(attack.depth, 8u);
    const bool is_mount = attack.port == Attack::Port::kMount;
    siege_.begin(attack, in_of(is_mount ? app->mount_addr() : app->rdma_addr()), addresses_of(from));
    for (std::size_t i = 0; i < kTurnsBefore; ++i) turn();
    ASSERT_GT(siege_.done().ready, 0u) << "the attack has not begun";
  }

  template <typename F>
  void within_a_second(const char* what, F request) {
    const TimePoint start = siege_.now();
    run_until([&] { return honest_->client->state() == rpcrdma::Client::State::kReady; });
    request();
    EXPECT_LE(siege_.now() - start, kMost) << what;
  }
  // MOUNT has threads and a clock of its own, so Calls are counted instead of time. A Call of each place may wait
  // already. Half as many more may be answered before this one.
  template <typename F>
  void within_counted_calls(const char* what, F request) {
    const std::uint64_t before = num_mount_calls_;
    request();
    EXPECT_LE(num_mount_calls_ - before, kMountPlaces + kMountPlaces / 2) << what;
  }
  void getattr(Peer& peer) {
    const auto res = call<nfs3::GetattrRes>(peer, Proc::kGetattr, nfs3::FhArgs{handles_.root});
    EXPECT_EQ(res.status, nfs3::Nfsstat3::kOk);
  }
  void null(Peer& peer) {
    Answer answer;
    start_call(peer, Proc::kNull, {}, answer);
    run_until([&] { return answer.done; });
    EXPECT_EQ(answer.status, rpcrdma::CallStatus::kSuccess);
  }
  void read(Peer& peer) {
    std::vector<std::uint8_t> into(1 << 20);
    EXPECT_EQ(ServeWorld::read(peer, handles_.data, 0, into).status, nfs3::Nfsstat3::kOk);
    EXPECT_EQ(into.size(), std::size_t{1} << 20);
  }
  void create(Peer& peer, int round) {
    nfs3::CreateArgs args;
    args.where = {handles_.root, "honest-" + std::to_string(round)};
    EXPECT_EQ(call<nfs3::NewObjectRes>(peer, Proc::kCreate, args).status, nfs3::Nfsstat3::kOk);
  }

  void ask() {
    for (int round = 0; round < 3 && !HasFailure(); ++round) {
      within_a_second("NULL", [&] { null(*honest_); });
      within_a_second("GETATTR", [&] { getattr(*honest_); });
      within_a_second("READ of 1 MiB", [&] { read(*honest_); });
      within_a_second("CREATE", [&] { create(*honest_, round); });
      within_counted_calls("MNT", [&] { mount(dir); });
      within_a_second("a newcomer's GETATTR", [&] { newcomer([&](Peer& peer) { getattr(peer); }); });
      if (promises_newcomers_a_read(attack_, std::get<From>(GetParam())))
        within_a_second("a newcomer's READ of 1 MiB", [&] { newcomer([&](Peer& peer) { read(peer); }); });
    }
  }
  template <typename F>
  void newcomer(F request) {
    const auto peer = connect(honest_config());
    if (!HasFailure()) request(*peer);
    std::erase(peers, peer.get());
  }

  static constexpr std::size_t kTurnsBefore = 150;

  std::atomic<std::int64_t> pool_ms_ = 0;
  std::atomic<std::uint64_t> num_mount_calls_ = 0;
  Siege siege_;
  Attack attack_;
  std::unique_ptr<Peer> honest_;
  Handles handles_;
};

TEST_P(Exhaust, ASecondClientIsServed) {
  const auto& [kind, from] = GetParam();
  begin();
  attack(attacks(handles_)[kind], from);
  ask();
}

std::string name_of(const ::testing::TestParamInfo<Exhaust::ParamType>& info) {
  return test_name(attacks(Handles::none())[std::get<0>(info.param)].name, std::get<1>(info.param));
}

// Attacks that exhaust no kind differ from others in their size alone.
std::vector<std::size_t> attacks_with_kinds() {
  std::vector<std::size_t> with;
  const auto all = attacks(Handles::none());
  for (std::size_t i = 0; i < all.size(); ++i)
    if (!all[i].kinds.empty()) with.push_back(i);
  return with;
}
INSTANTIATE_TEST_SUITE_P(Kinds, Exhaust,
                         ::testing::Combine(::testing::ValuesIn(attacks_with_kinds()), ::testing::ValuesIn(kFrom)),
                         name_of);

// `weft serve` cuts a connection that failed and waits for no peer to close it (LingeringTest has the device's bound).
// Only devices with threads of their own, and RNICs, flush a queue pair after its connection has ended (Flushing has
// that). The clock stands still while octets move, so the time of the loop is counted in turns (SecurityLimits).
constexpr std::string_view kNotHere[] = {
    "connections that are closing",
    "connections that have ended, while their queue pairs are flushed (0.1 s; `--backend ibv` and `--progress "
    "threads=N` alone)",
    "time of the loop"};

TEST(ExhaustKinds, EveryKindHasAnAttack) {
  std::set<std::string_view> kinds, attacked(std::begin(kNotHere), std::end(kNotHere));
  for (const LedgerKind& kind : verbs::soft::kLedgerKinds) kinds.insert(kind.name);
  for (const LedgerKind& kind : rpcrdma::kLedgerKinds) kinds.insert(kind.name);
  for (const LedgerKind& kind : serve::kLedgerKinds) kinds.insert(kind.name);
  for (const Attack& attack : attacks(Handles::none())) attacked.insert(attack.kinds.begin(), attack.kinds.end());
  EXPECT_EQ(attacked, kinds);
}

}  // namespace
}  // namespace weft::exhaust
