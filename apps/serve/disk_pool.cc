#include "apps/serve/disk_pool.h"

#include <sys/eventfd.h>

#include <algorithm>

namespace weft::serve {
namespace {

inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

DiskPool::DiskPool(const DiskPoolConfig& config)
    : config_(config),
      max_running_{std::max(config.num_workers, 1u), std::max(config.num_sync_workers, 1u)},
      event_fd_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      queues_{FairQueue(), FairQueue(max_running_[1] - max_running_[1] / 8)} {
  for (unsigned i = 0; i < max_running_[0] + max_running_[1]; ++i) workers_.emplace_back([this] { work(); });
}

DiskPool::~DiskPool() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  has_work_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

bool DiskPool::submit(std::unique_ptr<DiskTask>& task, DiskLane lane, const DiskClient& client) {
  bool wake = false;
  {
    std::lock_guard lock(mutex_);
    FairQueue& queue = queues_[static_cast<std::size_t>(lane)];
    if (queue.size() >= config_.max_queued || queue.size_of(client.group) >= config_.max_queued_per_group) {
      ++num_refused_[static_cast<std::size_t>(lane)];
      return false;
    }
    queue.push(client, std::move(task));
    num_queued_.fetch_add(1, std::memory_order_release);
    // A watching worker will see the task. A second task needs a second worker. A task that may not run yet needs
    // none: the worker whose task ends looks for the next one.
    wake = num_sleeping_ > 0 && may_take_locked(lane) &&
           num_queued_.load(std::memory_order_relaxed) > num_watching_.load(std::memory_order_relaxed);
  }
  ++num_pending_;
  if (wake) has_work_.notify_one();
  return true;
}

void DiskPool::forget(std::uint32_t connection) {
  for (FairQueue& queue : queues_) {
    std::vector<std::unique_ptr<DiskTask>> unwanted;
    {
      std::lock_guard lock(mutex_);
      unwanted = queue.remove(connection);
      num_queued_.fetch_sub(unwanted.size(), std::memory_order_relaxed);
    }
    num_pending_ -= unwanted.size();
  }
}

bool DiskPool::may_take_locked(DiskLane lane) const {
  const auto index = static_cast<std::size_t>(lane);
  return num_running_[index] < max_running_[index] && queues_[index].has_next();
}

std::optional<FairQueue::Taken> DiskPool::take_locked(DiskLane& lane) {
  for (DiskLane candidate : {DiskLane::kNormal, DiskLane::kSync}) {
    if (!may_take_locked(candidate)) continue;
    const auto index = static_cast<std::size_t>(candidate);
    std::optional<FairQueue::Taken> taken = queues_[index].take();
    num_queued_.fetch_sub(1, std::memory_order_relaxed);
    ++num_running_[index];
    lane = candidate;
    return taken;
  }
  return std::nullopt;
}

bool DiskPool::watch_locked(std::unique_lock<std::mutex>& lock) {
  using Clock = std::chrono::steady_clock;
  // One worker watches, the others sleep: more watchers would take the processor from threads that have work.
  if (config_.spin.count() == 0 || num_watching_.load(std::memory_order_relaxed) != 0 ||
      num_queued_.load(std::memory_order_relaxed) != 0 || !habit_.begin()) {
    return false;
  }
  num_watching_.store(1, std::memory_order_relaxed);
  lock.unlock();
  const Clock::time_point until = Clock::now() + config_.spin;
  while (num_queued_.load(std::memory_order_acquire) == 0 && Clock::now() < until) relax();
  lock.lock();
  num_watching_.store(0, std::memory_order_relaxed);
  const bool has_found = num_queued_.load(std::memory_order_relaxed) != 0;
  habit_.ended(has_found);
  return has_found || stop_;
}

void DiskPool::work() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    DiskLane lane = DiskLane::kNormal;
    std::optional<FairQueue::Taken> taken = take_locked(lane);
    if (!taken) {
      if (watch_locked(lock)) continue;
      ++num_sleeping_;
      has_work_.wait(lock);
      --num_sleeping_;
      continue;
    }
    lock.unlock();
    taken->task->run();
    {
      std::lock_guard done_lock(done_mutex_);
      done_.push_back(std::move(taken->task));
      has_done_.store(true);
    }
    if (loop_waits_.exchange(false)) ::eventfd_write(event_fd_.get(), 1);
    lock.lock();
    const auto index = static_cast<std::size_t>(lane);
    queues_[index].done(taken->connection);
    --num_running_[index];
    ++num_done_[index];
  }
}

DiskPool::LaneState DiskPool::state_of(DiskLane lane) {
  const auto index = static_cast<std::size_t>(lane);
  std::lock_guard lock(mutex_);
  return {.num_queued = queues_[index].size(),
          .num_running = num_running_[index],
          .num_done = num_done_[index],
          .num_refused = num_refused_[index]};
}

std::size_t DiskPool::drain() {
  if (!has_done_.load(std::memory_order_acquire)) return 0;
  std::vector<std::unique_ptr<DiskTask>> done;
  {
    std::lock_guard lock(done_mutex_);
    done.swap(done_);
    has_done_.store(false, std::memory_order_relaxed);
  }
  for (std::unique_ptr<DiskTask>& task : done) {
    task->finish();
    task.reset();
  }
  num_pending_ -= done.size();
  return done.size();
}

bool DiskPool::prepare_wait() {
  loop_waits_.store(true);
  if (!has_done_.load()) return true;
  loop_waits_.store(false);
  return false;
}

void DiskPool::end_wait() {
  loop_waits_.store(false);
  eventfd_t ignored = 0;
  ::eventfd_read(event_fd_.get(), &ignored);
}

}  // namespace weft::serve
