#include "apps/serve/disk_pool.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <latch>
#include <string>
#include <utility>

namespace weft::serve {
namespace {

class FunctionTask : public DiskTask {
 public:
  FunctionTask(std::function<void()> run, std::function<void()> finish)
      : run_(std::move(run)), finish_(std::move(finish)) {}
  void run() override { run_(); }
  void finish() override { finish_(); }

 private:
  std::function<void()> run_, finish_;
};

class DiskPoolTest : public ::testing::Test {
 protected:
  static bool submit(DiskPool& pool, std::function<void()> run, std::function<void()> finish,
                     DiskLane lane = DiskLane::kNormal, const DiskClient& client = {1, "192.0.2.1"}) {
    std::unique_ptr<DiskTask> task = std::make_unique<FunctionTask>(std::move(run), std::move(finish));
    return pool.submit(task, lane, client);
  }
  // Like the server's loop: drain, sleep until a task is done.
  static void drain_until(DiskPool& pool, const std::function<bool()>& done) {
    while (!done()) {
      if (pool.drain() != 0 || !pool.prepare_wait()) continue;
      pollfd wait{.fd = pool.event_fd(), .events = POLLIN, .revents = 0};
      ASSERT_EQ(::poll(&wait, 1, 30000), 1) << "nobody woke the loop";
      pool.end_wait();
    }
  }
};

TEST_F(DiskPoolTest, RunsElsewhereAndFinishesHere) {
  DiskPool pool({.num_workers = 3});
  const std::thread::id here = std::this_thread::get_id();
  std::atomic<int> ran{0};
  int finished = 0;
  for (int round = 0; round < 200; ++round) {
    const int want = finished + 5;
    for (int i = 0; i < 5; ++i)
      ASSERT_TRUE(submit(
          pool,
          [&] {
            EXPECT_NE(std::this_thread::get_id(), here);
            ++ran;
          },
          [&] {
            EXPECT_EQ(std::this_thread::get_id(), here);
            ++finished;
          }));
    drain_until(pool, [&] { return finished == want; });
  }
  EXPECT_EQ(ran, 1000);
  EXPECT_EQ(pool.num_pending(), 0u);
}

TEST_F(DiskPoolTest, WithoutSpinningToo) {
  DiskPool pool({.num_workers = 2, .max_queued = 100, .spin = std::chrono::microseconds(0)});
  int finished = 0;
  for (int round = 0; round < 200; ++round) {
    ASSERT_TRUE(submit(
        pool, [] {}, [&] { ++finished; }));
    drain_until(pool, [&] { return finished == round + 1; });
  }
}

TEST_F(DiskPoolTest, ReadsThatFillTheirLaneLeaveSyncsTheirs) {
  DiskPool pool({.num_workers = 2, .num_sync_workers = 1});
  std::latch hold(1);
  int synced = 0, others = 0;
  for (int i = 0; i < 10; ++i)
    submit(
        pool, [&] { hold.wait(); }, [&] { ++others; });
  for (int i = 1; i <= 300; ++i) {
    submit(
        pool, [] {}, [&] { ++synced; }, DiskLane::kSync);
    drain_until(pool, [&] { return synced == i; });
  }
  EXPECT_EQ(others, 0);
  hold.count_down();
  drain_until(pool, [&] { return others == 10; });
}

TEST_F(DiskPoolTest, AsManySyncsRunAtOnceAsThereAreWorkersForThem) {
  constexpr int kSyncs = 5;
  DiskPool pool({.num_workers = 2, .num_sync_workers = kSyncs});
  std::latch all_run(kSyncs);
  int synced = 0;
  for (int i = 0; i < kSyncs; ++i)
    submit(
        pool, [&] { all_run.arrive_and_wait(); }, [&] { ++synced; }, DiskLane::kSync);
  drain_until(pool, [&] { return synced == kSyncs; });
}

TEST_F(DiskPoolTest, SlowSyncsLeaveAWorkerFree) {
  DiskPool pool({.num_workers = 3, .num_sync_workers = 3});
  std::latch hold(1);
  int synced = 0, others = 0;
  for (int i = 0; i < 10; ++i)
    submit(
        pool, [&] { hold.wait(); }, [&] { ++synced; }, DiskLane::kSync);
  // One after the other: a worker that has finished a task looks for more, and must not take a sync.
  for (int i = 1; i <= 300; ++i) {
    submit(
        pool, [] {}, [&] { ++others; });
    drain_until(pool, [&] { return others == i; });
  }
  EXPECT_EQ(synced, 0);
  hold.count_down();
  drain_until(pool, [&] { return synced == 10; });
}

TEST_F(DiskPoolTest, TheQueueIsBoundedAndARefusedTaskStaysTheCallers) {
  // A client has a place of its own, and at most as many as it leaves to its address, which leaves as many free.
  constexpr int kWorkers = 2, kQueued = 1 + 8 / 4;
  std::latch started(kWorkers), hold(1);
  int finished = 0;
  DiskPool pool({.num_workers = kWorkers, .max_queued = 8});
  for (int i = 0; i < kWorkers; ++i) {
    ASSERT_TRUE(submit(
        pool, [&] { started.count_down(), hold.wait(); }, [&] { ++finished; }));
  }
  started.wait();  // both workers are at it: the queue is empty
  for (int i = 0; i < kQueued; ++i) {
    EXPECT_TRUE(submit(
        pool, [] {}, [&] { ++finished; }));
  }
  std::unique_ptr<DiskTask> refused = std::make_unique<FunctionTask>([] {}, [] {});
  EXPECT_FALSE(pool.submit(refused, DiskLane::kNormal, {1, "192.0.2.1"}));
  EXPECT_NE(refused, nullptr);
  hold.count_down();
  drain_until(pool, [&] { return finished == kWorkers + kQueued; });
}

TEST_F(DiskPoolTest, OneGroupOfAddressesFillsItsPartOfTheQueueOnly) {
  std::latch started(2), hold(1);
  int finished = 0;
  DiskPool pool({.num_workers = 2, .max_queued = 8, .max_queued_per_group = 4});
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(submit(
        pool, [&] { started.count_down(), hold.wait(); }, [&] { ++finished; }));
  }
  started.wait();
  // However many connections it comes over.
  int num_taken = 0;
  for (std::uint32_t i = 0; i < 100; ++i) {
    num_taken += submit(
        pool, [] {}, [&] { ++finished; }, DiskLane::kNormal, {i, "192.0.2.1"});
  }
  EXPECT_EQ(num_taken, 100) << "one each";
  num_taken = 0;
  for (std::uint32_t i = 0; i < 100; ++i) {
    num_taken += submit(
        pool, [] {}, [&] { ++finished; }, DiskLane::kNormal, {i, "192.0.2.1"});
  }
  EXPECT_LE(num_taken, 4);
  const int before = 2 + 100 + num_taken;
  EXPECT_TRUE(submit(
      pool, [] {}, [&] { ++finished; }, DiskLane::kNormal, {200, "192.0.2.2"}));
  EXPECT_TRUE(submit(
      pool, [] {}, [&] { ++finished; }, DiskLane::kNormal, {200, "192.0.2.2"}));
  hold.count_down();
  drain_until(pool, [&] { return finished == before + 2; });
}

// Both clients have an address in common. One lists directories, the other asks for a hundred times less.
TEST_F(DiskPoolTest, WorkersAreSharedByTheTimeThatTasksTake) {
  std::atomic<std::int64_t> now{0};
  std::latch hold(1);
  std::string order;  // the only worker's
  int finished = 0;
  DiskPool pool(
      {.num_workers = 1, .num_sync_workers = 0, .now = [&] { return TimePoint(std::chrono::microseconds(now)); }});
  ASSERT_TRUE(submit(
      pool, [&] { hold.wait(); }, [&] { ++finished; }, DiskLane::kNormal, {3, "192.0.2.1"}));
  const auto add = [&](char name, std::int64_t cost, std::uint32_t client) {
    ASSERT_TRUE(submit(
        pool, [&, name, cost] { order += name, now += cost; }, [&] { ++finished; }, DiskLane::kNormal,
        {client, "192.0.2.1"}));
  };
  for (int i = 0; i < 10; ++i) add('L', 13000, 1);
  for (int i = 0; i < 100; ++i) add('s', 130, 2);
  hold.count_down();
  drain_until(pool, [&] { return finished == 111; });
  EXPECT_LE(std::ranges::count(order.substr(0, order.rfind('s')), 'L'), 2) << order;
}

TEST_F(DiskPoolTest, OctetsCostTooWhenTheyTakeNoTime) {
  class Read : public FunctionTask {
   public:
    using FunctionTask::FunctionTask;
    std::size_t num_octets() const override { return 1 << 20; }
  };
  std::latch hold(1);
  std::string order;
  int finished = 0;
  DiskPool pool({.num_workers = 1, .num_sync_workers = 0, .now = [] { return TimePoint(); }});
  ASSERT_TRUE(submit(
      pool, [&] { hold.wait(); }, [&] { ++finished; }, DiskLane::kNormal, {3, "192.0.2.1"}));
  for (int i = 0; i < 10; ++i) {
    std::unique_ptr<DiskTask> task = std::make_unique<Read>([&] { order += 'R'; }, [&] { ++finished; });
    ASSERT_TRUE(pool.submit(task, DiskLane::kNormal, {1, "192.0.2.1"}));
  }
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(submit(
        pool, [&] { order += 's'; }, [&] { ++finished; }, DiskLane::kNormal, {2, "192.0.2.1"}));
  }
  hold.count_down();
  drain_until(pool, [&] { return finished == 111; });
  EXPECT_LE(std::ranges::count(order.substr(0, order.rfind('s')), 'R'), 2) << order;
}

// Each task's expected cost is what counts before any of it was measured.
TEST_F(DiskPoolTest, AmongNewcomersTheOneThatAsksForLittleIsNext) {
  class Listing : public FunctionTask {
   public:
    using FunctionTask::FunctionTask;
    std::chrono::microseconds expected_cost() const override { return std::chrono::microseconds(13000); }
  };
  class Small : public FunctionTask {
   public:
    using FunctionTask::FunctionTask;
    std::chrono::microseconds expected_cost() const override { return std::chrono::microseconds(20); }
  };
  std::latch hold(1), started(1);
  int finished = 0, listed = 0, listed_before = -1;
  DiskPool pool({.num_workers = 1, .num_sync_workers = 0, .now = [] { return TimePoint(); }});
  ASSERT_TRUE(submit(
      pool, [&] { started.count_down(), hold.wait(); }, [&] { ++finished; }, DiskLane::kNormal, {1000, "192.0.2.1"}));
  started.wait();
  for (std::uint32_t client = 1; client <= 200; ++client) {
    std::unique_ptr<DiskTask> task = std::make_unique<Listing>([&] { ++listed; }, [&] { ++finished; });
    ASSERT_TRUE(pool.submit(task, DiskLane::kNormal, {client, "192.0.2.1"}));
  }
  std::unique_ptr<DiskTask> small = std::make_unique<Small>([&] { listed_before = listed; }, [&] { ++finished; });
  ASSERT_TRUE(pool.submit(small, DiskLane::kNormal, {2000, "192.0.2.1"}));
  hold.count_down();
  drain_until(pool, [&] { return finished == 202; });
  EXPECT_EQ(listed_before, 0);
}

// As listings of a directory that proves to be large. The parameter: whether all clients have one address.
class DearTasks : public DiskPoolTest, public ::testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(OneAddress, DearTasks, ::testing::Bool());

TEST_P(DearTasks, ArePassedAlsoIfTheyBecameDearWhileTheyWaited) {
  struct Task : FunctionTask {
    Task(std::function<void()> run, std::atomic<int>& the_cost) : FunctionTask(std::move(run), [] {}), cost(the_cost) {}
    std::chrono::microseconds expected_cost() const override { return std::chrono::microseconds(cost); }
    std::atomic<int>& cost;
  };
  DiskPool pool({.num_workers = 1});
  std::latch started(1), hold(1);
  std::vector<int> order;  // by the one worker
  std::atomic<int> first{10}, dear{10}, cheap{20};
  const auto add = [&](std::uint32_t client, std::function<void()> run, std::atomic<int>& cost) {
    std::unique_ptr<DiskTask> task = std::make_unique<Task>(std::move(run), cost);
    const std::string address = GetParam() ? "192.0.2.1" : "192.0.2." + std::to_string(client);
    ASSERT_TRUE(pool.submit(task, DiskLane::kNormal, {client, address}));
  };
  add(
      1, [&] { started.count_down(), hold.wait(); }, first);
  started.wait();
  add(
      2, [&] { order.push_back(2); }, dear);
  add(
      2, [&] { order.push_back(3); }, dear);
  add(
      4, [&] { order.push_back(4); }, cheap);
  dear = 1'000'000;
  hold.count_down();
  drain_until(pool, [&] { return pool.num_pending() == 0; });
  EXPECT_EQ(order, (std::vector<int>{4, 2, 3}));
}

// One client has all workers and thirty tasks waiting. Another client's task is done next, in either lane.
// A quarter of the workers is for other addresses.
TEST_F(DiskPoolTest, AClientWithThirtyTasksDelaysItsAddressByThoseThatRunAndNoOther) {
  constexpr int kWorkers = 4, kOfAnAddress = 3;
  DiskPool pool({.num_workers = kWorkers});
  std::latch started(kOfAnAddress);
  std::array<std::latch, 30> holds = [] {
    return []<std::size_t... I>(std::index_sequence<I...>) {
      return std::array<std::latch, 30>{((void)I, std::latch(1))...};
    }
    (std::make_index_sequence<30>());
  }();
  int finished = 0, committed = 0, listed = 0, neighbours = 0;
  for (std::size_t i = 0; i < holds.size(); ++i) {
    ASSERT_TRUE(submit(
        pool,
        [&, i] {
          if (i < kOfAnAddress) started.count_down();
          holds[i].wait();
        },
        [&] { ++finished; }, DiskLane::kNormal, {1, "192.0.2.1"}));
  }
  started.wait();
  ASSERT_TRUE(submit(
      pool, [] {}, [&] { ++committed; }, DiskLane::kSync, {2, "192.0.2.2"}));
  ASSERT_TRUE(submit(
      pool, [] {}, [&] { ++listed; }, DiskLane::kNormal, {3, "192.0.2.3"}));
  drain_until(pool, [&] { return committed == 1 && listed == 1; });
  EXPECT_EQ(finished, 0);
  ASSERT_TRUE(submit(
      pool, [] {}, [&] { ++neighbours; }, DiskLane::kNormal, {4, "192.0.2.1"}));
  // One of the thirty ends, and no other.
  holds[0].count_down();
  drain_until(pool, [&] { return neighbours == 1; });
  EXPECT_EQ(finished, 1);
  for (std::size_t i = 1; i < holds.size(); ++i) holds[i].count_down();
  drain_until(pool, [&] { return finished == 30; });
}

TEST_F(DiskPoolTest, WhatALostConnectionWaitedForIsNotRun) {
  std::latch started(2), hold(1);
  int finished = 0, others = 0;
  DiskPool pool({.num_workers = 2});
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(submit(
        pool, [&] { started.count_down(), hold.wait(); }, [&] { ++finished; }));
  }
  started.wait();
  static int cancelled;
  cancelled = 0;
  class Lost : public DiskTask {
    void run() override { ADD_FAILURE() << "it ran"; }
    void finish() override { ADD_FAILURE() << "it was finished"; }
    void cancel() override { ++cancelled; }
  };
  for (int i = 0; i < 5; ++i) {
    std::unique_ptr<DiskTask> task = std::make_unique<Lost>();
    ASSERT_TRUE(pool.submit(task, DiskLane::kNormal, {1, "192.0.2.1"}));
  }
  ASSERT_TRUE(submit(
      pool, [] {}, [&] { ++others; }, DiskLane::kNormal, {2, "192.0.2.1"}));
  EXPECT_EQ(pool.num_pending(), 8u);
  pool.forget(1);
  EXPECT_EQ(cancelled, 5);
  EXPECT_EQ(pool.num_pending(), 3u);
  hold.count_down();
  drain_until(pool, [&] { return finished == 2 && others == 1; });
  EXPECT_EQ(pool.num_pending(), 0u);
}

TEST_F(DiskPoolTest, TheEndDestroysWhatIsLeftHere) {
  struct Counter {
    int& n;
    explicit Counter(int& count) : n(count) { ++n; }
    Counter(const Counter& other) : n(other.n) { ++n; }
    ~Counter() { --n; }
  };
  int alive = 0;
  bool finished = false;
  {
    std::latch started(2), hold(1);
    DiskPool pool({.num_workers = 2});
    for (int i = 0; i < 6; ++i) {
      submit(
          pool,
          [&, counter = Counter(alive), i] {
            if (i < 2) started.count_down(), hold.wait();
          },
          [&] { finished = true; });
    }
    started.wait();
    EXPECT_EQ(alive, 6);
    hold.count_down();
  }
  EXPECT_EQ(alive, 0);
  EXPECT_FALSE(finished);
}

TEST_F(DiskPoolTest, ALaneKnowsItsTasks) {
  std::latch started(2), hold(1);
  DiskPool pool({.num_workers = 2, .num_sync_workers = 3, .max_queued = 1, .spin = std::chrono::microseconds(0)});
  int finished = 0;
  const auto add = [&] {
    return submit(
        pool, [&] { started.count_down(), hold.wait(); }, [&] { ++finished; });
  };
  ASSERT_TRUE(add());
  while (pool.state_of(DiskLane::kNormal).num_running < 1) std::this_thread::yield();
  ASSERT_TRUE(add());
  started.wait();
  // One place is the client's own, and one is shared.
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(submit(
        pool, [] {}, [&] { ++finished; }));
  }
  EXPECT_FALSE(submit(
      pool, [] {}, [] {}));
  const DiskPool::LaneState busy = pool.state_of(DiskLane::kNormal);
  EXPECT_EQ(busy.num_running, 2u);
  EXPECT_EQ(busy.num_queued, 2u);
  EXPECT_EQ(busy.num_refused, 1u);
  EXPECT_EQ(busy.num_done, 0u);
  EXPECT_EQ(pool.state_of(DiskLane::kSync).num_running, 0u);
  EXPECT_EQ(pool.num_workers(DiskLane::kNormal), 2u);
  EXPECT_EQ(pool.num_workers(DiskLane::kSync), 3u);
  hold.count_down();
  drain_until(pool, [&] { return finished == 4; });
  // A worker counts its task after it has given it back.
  while (pool.state_of(DiskLane::kNormal).num_done < 4) std::this_thread::yield();
  EXPECT_EQ(pool.state_of(DiskLane::kNormal).num_running, 0u);
  EXPECT_EQ(pool.state_of(DiskLane::kNormal).num_queued, 0u);
}

}  // namespace
}  // namespace weft::serve
