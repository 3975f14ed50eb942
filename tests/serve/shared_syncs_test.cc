#include "apps/serve/backend/shared_syncs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "tests/serve/fixture.h"

namespace weft::serve {
namespace {

const FileKey kFile{.dev = 0, .ino = 7};
const FileKey kOther{.dev = 0, .ino = 8};

void wait_for_waiters(const SharedSyncs& syncs, std::size_t num) {
  while (syncs.num_waiting(kFile) < num) std::this_thread::yield();
}

TEST(SharedSyncs, OneSyncAnswersAllThatWaitedWhenItBegan) {
  SharedSyncs syncs;
  std::atomic<int> num_runs = 0;
  std::latch first_runs(1), go_on(1);
  std::thread first([&] {
    syncs.sync(kFile, [&] {
      ++num_runs;
      first_runs.count_down();
      go_on.wait();
      return 0;
    });
  });
  first_runs.wait();
  constexpr std::size_t kLater = 6;
  std::vector<std::thread> later;
  std::atomic<int> num_ended = 0;
  for (std::size_t i = 0; i < kLater; ++i) {
    later.emplace_back([&] {
      EXPECT_EQ(syncs.sync(kFile, [&] { return ++num_runs, 0; }), 0);
      ++num_ended;
    });
  }
  wait_for_waiters(syncs, kLater);
  // The sync under way may have begun before their changes, so it answers none of them.
  EXPECT_EQ(num_ended, 0);
  EXPECT_EQ(syncs.sync(kOther, [] { return 0; }), 0);
  go_on.count_down();
  first.join();
  for (std::thread& thread : later) thread.join();
  EXPECT_EQ(num_runs, 2);
  EXPECT_EQ(syncs.size(), 0u);
}

// The changes of the threads that wait may be among those that the kernel lost while they waited.
TEST(SharedSyncs, AnErrorGoesToThoseWhoWaitedForTheRoundToo) {
  SharedSyncs syncs;
  std::latch first_runs(1), go_on(1);
  std::atomic<int> first_error = -1, num_failed = 0;
  std::thread first(
      [&] { first_error = syncs.sync(kFile, [&] { return first_runs.count_down(), go_on.wait(), EIO; }); });
  first_runs.wait();
  std::vector<std::thread> later;
  for (int i = 0; i < 3; ++i) later.emplace_back([&] { num_failed += syncs.sync(kFile, [] { return 0; }) == EIO; });
  wait_for_waiters(syncs, later.size());
  go_on.count_down();
  first.join();
  for (std::thread& thread : later) thread.join();
  EXPECT_EQ(first_error, EIO);
  EXPECT_EQ(num_failed, 3);
  EXPECT_EQ(syncs.sync(kFile, [] { return 0; }), 0);
}

TEST(SharedSyncs, AnErrorGoesToAllOfItsRoundAndToNoOther) {
  SharedSyncs syncs;
  std::latch first_runs(1), go_on(1);
  std::atomic<int> first_error = -1, num_failed = 0;
  std::thread first([&] { first_error = syncs.sync(kFile, [&] { return first_runs.count_down(), go_on.wait(), 0; }); });
  first_runs.wait();
  std::vector<std::thread> later;
  std::atomic<int> num_runs = 0;
  for (int i = 0; i < 4; ++i) {
    // The kernel tells of the loss once, to the sync that comes first.
    later.emplace_back([&] { num_failed += syncs.sync(kFile, [&] { return num_runs++ == 0 ? EIO : 0; }) == EIO; });
  }
  wait_for_waiters(syncs, later.size());
  go_on.count_down();
  first.join();
  for (std::thread& thread : later) thread.join();
  EXPECT_EQ(first_error, 0);
  EXPECT_EQ(num_failed, 4);
  EXPECT_EQ(syncs.sync(kFile, [] { return 0; }), 0);
}

TEST(SharedSyncs, TheNextRoundWaitsForTheOneUnderWay) {
  SharedSyncs syncs;
  std::latch first_runs(1), go_on(1);
  std::atomic<int> num_running = 0, most_running = 0;
  const auto run = [&] {
    most_running = std::max<int>(most_running, ++num_running);
    first_runs.count_down();
    go_on.wait();
    return --num_running, 0;
  };
  std::thread first([&] { syncs.sync(kFile, run); });
  first_runs.wait();
  std::thread second([&] {
    syncs.sync(kFile, [&] {
      most_running = std::max<int>(most_running, num_running + 1);
      return 0;
    });
  });
  wait_for_waiters(syncs, 1);
  go_on.count_down();
  first.join();
  second.join();
  EXPECT_EQ(most_running, 1);
}

TEST(SharedSyncs, AThreadThatFollowsHasOtherWorkDoneMeanwhile) {
  SharedSyncs syncs;
  std::latch first_runs(1), go_on(1), done_meanwhile(1);
  std::thread first([&] { syncs.sync(kFile, [&] { return first_runs.count_down(), go_on.wait(), 0; }); });
  first_runs.wait();
  std::thread leader([&] { EXPECT_EQ(syncs.sync(kFile, [] { return EIO; }), EIO); });
  wait_for_waiters(syncs, 1);
  std::thread follower([&] {
    EXPECT_EQ(syncs.sync(
                  kFile, [] { return 0; }, [&] { done_meanwhile.count_down(); }),
              EIO);
  });
  done_meanwhile.wait();  // while the sync before the follower's still runs
  go_on.count_down();
  first.join();
  leader.join();
  follower.join();
}

TEST(SharedSyncs, AThreadThatLeadsSyncsFirstAndDoesItsOtherWorkThen) {
  SharedSyncs syncs;
  std::string order;
  syncs.sync(
      kFile, [&] { return order += "sync ", 0; }, [&] { order += "other"; });
  EXPECT_EQ(order, "sync other");
}

class SharedSyncsOfABackend : public testing::ExportTest {};

TEST_F(SharedSyncsOfABackend, ChangesOfOneDirectoryShareASync) {
  constexpr std::size_t kFiles = 8;
  std::atomic<int> num_fsync = 0;
  calls.fsync = [&](int fd) {
    // The first sync lasts until everything else that changed the directory waits for the next one.
    if (num_fsync++ == 0) {
      while (backend->syncs().num_waiting(tree->root().key) < kFiles - 1) std::this_thread::yield();
    }
    return ::fsync(fd);
  };
  config.sync_metadata = true;
  start();
  for (std::size_t i = 0; i < kFiles; ++i) testing::write_local(dir + "/" + std::to_string(i), "x");
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kFiles; ++i) {
    threads.emplace_back([&, i] {
      EXPECT_EQ(backend->remove({{root(), std::to_string(i)}}).status, nfs3::Nfsstat3::kOk);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(num_fsync, 2);
}

}  // namespace
}  // namespace weft::serve
