#include "apps/serve/disk_pool.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <functional>
#include <latch>

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
                     DiskLane lane = DiskLane::kNormal) {
    std::unique_ptr<DiskTask> task = std::make_unique<FunctionTask>(std::move(run), std::move(finish));
    return pool.submit(task, lane);
  }
  // As the server's loop does: drain, sleep until something is done.
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
  // One after the other: a worker that is done with one of these looks for more, and must not take a sync.
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
  constexpr int kWorkers = 2, kQueued = 8;
  std::latch started(kWorkers), hold(1);
  int finished = 0;
  DiskPool pool({.num_workers = kWorkers, .max_queued = kQueued});
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
  EXPECT_FALSE(pool.submit(refused, DiskLane::kNormal));
  EXPECT_NE(refused, nullptr);
  hold.count_down();
  drain_until(pool, [&] { return finished == kWorkers + kQueued; });
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

}  // namespace
}  // namespace weft::serve
