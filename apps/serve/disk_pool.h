#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "apps/serve/fair_queue.h"
#include "apps/serve/watch_habit.h"
#include "base/fd.h"

namespace weft::serve {

// DiskLane: kSync is for work that waits for a device to write (COMMIT, stable WRITEs, changes of names). The lanes
// share no worker, so neither can hold up the other.
enum class DiskLane : std::uint8_t { kNormal, kSync };

struct DiskPoolConfig {
  unsigned num_workers = 4;  // of the normal lane; at least 1
  // Workers of the sync lane. They mostly sleep in fsync(2), and a filesystem writes its journal once for all threads
  // that wait for it at the same time. So more workers than cores pay.
  unsigned num_sync_workers = 128;
  std::size_t max_queued = 8192;            // tasks of a lane that wait; submit refuses more
  std::size_t max_queued_per_group = 4096;  // tasks of a lane that wait, for one group of addresses
  // How long an idle worker watches for more work before it sleeps (WatchHabit): waking a worker costs more than that.
  std::chrono::microseconds spin{30};
};

// DiskPool runs tasks on threads of its own, the tasks of each lane in the order of a FairQueue, and gives them back to
// one loop. One group of addresses has at most seven eighths of the sync lane's workers, because a device may take
// seconds for one fsync(2). Only the loop calls submit, forget, drain, prepare_wait and end_wait.
class DiskPool {
 public:
  explicit DiskPool(const DiskPoolConfig& config);
  // Waits for the running tasks and does not run the waiting ones. Destroys every task here, without finish().
  ~DiskPool();
  DiskPool(const DiskPool&) = delete;
  DiskPool& operator=(const DiskPool&) = delete;

  // submit takes the task. If too many tasks wait, it returns false and the task stays with the caller.
  bool submit(std::unique_ptr<DiskTask>& task, DiskLane lane, const DiskClient& client);
  // The connection is gone. Its waiting tasks that are not wanted without it are destroyed, without finish().
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
  unsigned num_workers(DiskLane lane) const { return max_running_[static_cast<std::size_t>(lane)]; }
  std::size_t max_queued() const { return config_.max_queued; }

  // event_fd polls readable when a task is done, but only between prepare_wait and end_wait: a loop that drains anyway
  // spares the workers the system call. prepare_wait returns false if a task is done already; the caller must not sleep
  // then.
  int event_fd() const { return event_fd_.get(); }
  bool prepare_wait();
  void end_wait();

 private:
  void work();
  bool may_take_locked(DiskLane lane) const;
  std::optional<FairQueue::Taken> take_locked(DiskLane& lane);
  // watch_locked waits a little for a task to be submitted, without the lock; false: none came.
  bool watch_locked(std::unique_lock<std::mutex>& lock);

  const DiskPoolConfig config_;
  const unsigned max_running_[2];  // tasks of each lane at once
  Fd event_fd_;
  std::size_t num_pending_ = 0;

  std::mutex mutex_;
  std::condition_variable has_work_;
  FairQueue queues_[2];
  unsigned num_running_[2] = {};
  std::uint64_t num_done_[2] = {};
  std::uint64_t num_refused_[2] = {};
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
