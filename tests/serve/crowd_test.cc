#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <latch>
#include <memory>
#include <string>
#include <vector>

#include "apps/serve/disk_pool.h"
#include "apps/serve/export/search_wishes.h"
#include "apps/serve/export/shared_order.h"

// Each kind of resource of apps/serve, exhausted by each kind of crowd: a client that comes then, or was here before,
// is served. Turns are counted; no time passes.
namespace weft::serve {
namespace {

const DiskClient kHonest{1, "192.0.2.1"};

// Crowd is hostile clients: 16 connections of each address.
struct Crowd {
  std::string name;
  std::vector<DiskClient> clients;
};

Crowd crowd_of(const std::string& name, const std::vector<std::string>& addresses) {
  Crowd out{name, {}};
  std::uint32_t number = 100;
  for (const std::string& address : addresses) {
    for (int i = 0; i < 16; ++i) out.clients.push_back({number++, address});
  }
  return out;
}

std::vector<Crowd> crowds() {
  std::vector<std::string> many;
  for (int i = 0; i < 250; ++i) many.push_back("198.51.100." + std::to_string(i));
  return {crowd_of("own", {kHonest.group}), crowd_of("two", {"203.0.113.1", "203.0.113.2"}), crowd_of("250", many)};
}

class CrowdTest : public ::testing::TestWithParam<Crowd> {
 protected:
  // The clients take turns.
  static void times(std::size_t num, const std::function<void(const DiskClient&)>& ask) {
    const std::vector<DiskClient>& clients = GetParam().clients;
    for (std::size_t i = 0; i < num; ++i) ask(clients[i % clients.size()]);
  }
};

class CountedTask : public DiskTask {
 public:
  explicit CountedTask(std::function<void()> run) : run_(std::move(run)) {}
  void run() override { run_(); }
  void finish() override {}

 private:
  std::function<void()> run_;
};

// The crowd fills the lane. A task of the client finds a place, and waits for no more tasks than there are addresses.
TEST_P(CrowdTest, PlacesAndTurnsOfADiskLane) {
  std::latch started(1), hold(1);
  std::atomic<std::int64_t> now{0};
  std::atomic<int> num_run{0};
  int waited = -1;
  DiskPoolConfig config{.num_workers = 1, .num_sync_workers = 0, .max_queued = 1024, .max_queued_per_group = 512};
  config.now = [&] { return TimePoint(std::chrono::microseconds(now)); };
  DiskPool pool(config);
  const auto submit = [&](const DiskClient& client, std::function<void()> run) {
    std::unique_ptr<DiskTask> task = std::make_unique<CountedTask>(std::move(run));
    return pool.submit(task, DiskLane::kNormal, client);
  };
  ASSERT_TRUE(submit({99, "203.0.113.99"}, [&] { started.count_down(), hold.wait(); }));
  started.wait();
  times(20000, [&](const DiskClient& client) { submit(client, [&] { now += 13000, ++num_run; }); });
  EXPECT_FALSE(submit(GetParam().clients.front(), [] {})) << "the lane is full";
  ASSERT_TRUE(submit(kHonest, [&] { waited = num_run; }));
  hold.count_down();
  while (pool.num_pending() != 0) {
    if (pool.drain() != 0 || !pool.prepare_wait()) continue;
    pollfd wait{.fd = pool.event_fd(), .events = POLLIN, .revents = 0};
    ASSERT_EQ(::poll(&wait, 1, 30000), 1);
    pool.end_wait();
  }
  EXPECT_GE(waited, 0);
  // A newcomer waits for one turn of each that came before it.
  EXPECT_LE(waited, 251);
}

TEST_P(CrowdTest, PlacesOfATable) {
  constexpr std::size_t kMax = 1024;
  SharedOrder<std::size_t> order(kMax);
  std::vector<SharedOrder<std::size_t>::Place> places;
  std::vector<bool> is_here;
  const auto add = [&](const DiskClient& client) {
    while (order.is_full()) {
      const std::size_t out = order.next_out();
      order.remove(places[out]);
      is_here[out] = false;
    }
    places.push_back(order.add(places.size(), client));
    is_here.push_back(true);
  };
  for (int i = 0; i < 3; ++i) add(kHonest);
  times(2500, add);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(is_here[i]) << "what it had before the crowd came: " << i;
  const std::size_t late = places.size();
  for (int i = 0; i < 3; ++i) add({2, "192.0.2.2"});
  times(2500, add);
  for (std::size_t i = late; i < late + 3; ++i) EXPECT_TRUE(is_here[i]) << "what it got among the crowd: " << i - late;
}

TEST_P(CrowdTest, WishesOfASearch) {
  SearchWishes wishes;
  std::uint64_t ino = 1000;
  times(10000, [&](const DiskClient& client) { wishes.add({.dev = 0, .ino = ++ino, .btime_ns = 0}, client); });
  constexpr FileKey kWanted{.dev = 0, .ino = 7, .btime_ns = 0};
  wishes.add(kWanted, kHonest);
  const std::vector<FileKey> taken = wishes.take();
  EXPECT_EQ(std::ranges::count(taken, kWanted), 1);
  EXPECT_LE(taken.size(), 1024 + GetParam().clients.size() + 1);
}

INSTANTIATE_TEST_SUITE_P(All, CrowdTest, ::testing::ValuesIn(crowds()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace weft::serve
