#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <vector>

#include "apps/serve/disk_task.h"
#include "apps/serve/watch_habit.h"
#include "base/fair_line.h"
#include "base/fd.h"
#include "base/ledger.h"
#include "base/time.h"

namespace weft::serve {

// DiskLane: kSync is for work that waits for a device to write (COMMIT, stable WRITEs, changes of names). The lanes
// share no worker, so neither can hold up the other.
enum class DiskLane : std::uint8_t { kNormal, kSync };

struct DiskPoolConfig {
  unsigned num_workers = 4;  // of the normal lane; at least 1
  // Workers of the sync lane. They mostly sleep in fsync(2), and a filesystem writes its journal once for all threads
  // that wait for it at the same time. So more workers than cores pay. 0: no task may need this lane.
  unsigned num_sync_workers = 128;
  // Tasks of a lane that wait: of all clients, and of one group of addresses. A group has at most as many as it leaves
  // free, and a client at most as many as it leaves to its group. Beyond that each client may have one. submit refuses
  // more.
  std::size_t max_queued = 8192;
  std::size_t max_queued_per_group = 4096;
  // How long an idle worker watches for more work before it sleeps (WatchHabit): waking a worker costs more than that.
  std::chrono::microseconds spin{30};
  std::function<TimePoint()> now = std::chrono::steady_clock::now;  // called on the workers
};

// DiskPool runs tasks on threads of its own, and gives them back to one loop. The tasks of each lane have the order of
// a FairLine: by what the workers spent on each group of addresses, and in it on each client. A task costs the
// microseconds that it has a worker, and one more for every kOctetsPerMicrosecond octets. One group has at most three
// quarters of the normal lane's workers, because one task may read a long directory from a slow device, and seven
// eighths of the sync lane's, because a device may take seconds for one fsync(2). Only the loop calls submit, forget,
// drain, prepare_wait and end_wait.
class DiskPool {
 public:
  explicit DiskPool(const DiskPoolConfig& config);
  // Waits for the running tasks and does not run the waiting ones. Destroys every task here, without finish().
  ~DiskPool();
  DiskPool(const DiskPool&) = delete;
  DiskPool& operator=(const DiskPool&) = delete;

  static constexpr std::size_t kOctetsPerMicrosecond = 4096;

  // submit takes the task. If too many tasks wait, it returns false and the task stays with the caller.
  bool submit(std::unique_ptr<DiskTask>& task, DiskLane lane, const DiskClient& client);
  // The connection is gone, and what it holds of the lanes goes with it: its waiting tasks are cancelled. So a client
  // that connects again and again holds no more than one that stays.
  void forget(std::uint32_t connection);

  // drain finishes the tasks that the workers have run, and returns their number.
  std::size_t drain();
  // Tasks submitted and not finished.
  std::size_t num_pending() const { return num_pending_; }

  // LaneState: one lane at this moment, and its sums since the start.
  struct LaneState {
    std::size_t num_queued = 0;
    unsigned num_running = 0;
    std::uint64_t num_done = 0;
    std::uint64_t num_refused = 0;  // by submit
  };
  LaneState state_of(DiskLane lane);
  unsigned num_workers(DiskLane lane) const { return lanes_[static_cast<std::size_t>(lane)].max_running; }
  std::size_t max_queued() const { return config_.max_queued; }

  // event_fd polls readable when a task is done, but only between prepare_wait and end_wait: a loop that drains anyway
  // spares the workers the system call. prepare_wait returns false if a task is done already; the caller must not sleep
  // then.
  int event_fd() const { return event_fd_.get(); }
  bool prepare_wait();
  void end_wait();

 private:
  // Waiting is a task in the line. Its place ends when a worker takes it, or when its client goes.
  struct Waiting {
    std::unique_ptr<DiskTask> task;
    Lease place;
  };
  struct Lane {
    Lane(unsigned workers, std::size_t max_turns, const DiskPoolConfig& config);

    const unsigned max_running;
    Ledger places;
    std::unordered_map<std::uint32_t, Ledger::Client> clients;  // by connection
    FairLine<Waiting> line;
    unsigned num_running = 0;
    std::uint64_t num_done = 0;
    std::uint64_t num_refused = 0;

    bool may_take() const { return num_running < max_running && line.has_next(); }
    // The next task. Only after may_take.
    FairLine<Waiting>::Turn take();
  };
  struct Taken {
    Lane* lane = nullptr;
    std::unique_ptr<DiskTask> task;
    std::uint64_t client = 0;
    Amount expected = 0;
  };

  void work();
  // Runs a task and returns what it cost.
  Amount run(DiskTask& task) const;
  Lane& lane_of(DiskLane lane) { return lanes_[static_cast<std::size_t>(lane)]; }
  std::optional<Taken> take_locked();
  // watch_locked waits a little for a task to be submitted, without the lock; false: none came.
  bool watch_locked(std::unique_lock<std::mutex>& lock);

  const DiskPoolConfig config_;
  Fd event_fd_;
  std::size_t num_pending_ = 0;

  std::mutex mutex_;
  std::condition_variable has_work_;
  Lane lanes_[2];
  unsigned num_sleeping_ = 0;
  WatchHabit habit_;
  bool stop_ = false;
  std::atomic<unsigned> num_watching_{0};
  std::atomic<std::size_t> num_queued_{0};

  std::mutex done_mutex_;
  std::vector<std::unique_ptr<DiskTask>> done_;
  std::atomic<bool> has_done_{false};
  std::atomic<bool> loop_waits_{false};

  std::vector<std::thread> workers_;
};

}  // namespace weft::serve
