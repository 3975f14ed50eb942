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

// The workers that one group of addresses may have. One part in `parts` is for the others.
unsigned of_a_group(unsigned workers, unsigned parts) {
  return workers - workers / parts;
}

Amount expected_of(const DiskTask& task) {
  constexpr std::int64_t kMost = std::int64_t{1} << 32;  // more than an hour
  return static_cast<Amount>(std::clamp<std::int64_t>(task.expected_cost().count(), 0, kMost));
}

}  // namespace

DiskPool::Lane::Lane(unsigned workers, std::size_t max_turns, const DiskPoolConfig& config)
    : max_running(workers),
      places(
          {.address = config.max_queued_per_group, .all = config.max_queued, .guaranteed = 1, .leaves_as_much = true}),
      line(max_turns) {}

// A task that has become much dearer while it waited stands in the line again, by what it costs now.
FairLine<DiskPool::Waiting>::Turn DiskPool::Lane::take() {
  for (;;) {
    auto turn = std::move(*line.take());
    const Amount expected = expected_of(*turn.what.task);
    if (expected / 2 <= turn.expected) return turn;
    line.put_back(std::move(turn), expected);
  }
}

DiskPool::DiskPool(const DiskPoolConfig& config)
    : config_(config),
      event_fd_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      lanes_{Lane(std::max(config.num_workers, 1u), of_a_group(std::max(config.num_workers, 1u), 4), config),
             Lane(config.num_sync_workers, of_a_group(config.num_sync_workers, 8), config)} {
  const unsigned num = lanes_[0].max_running + lanes_[1].max_running;
  for (unsigned i = 0; i < num; ++i) workers_.emplace_back([this] { work(); });
}

DiskPool::~DiskPool() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  has_work_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

bool DiskPool::submit(std::unique_ptr<DiskTask>& task, DiskLane which, const DiskClient& client) {
  const Amount expected = expected_of(*task);
  bool wake = false;
  {
    std::lock_guard lock(mutex_);
    Lane& lane = lane_of(which);
    Ledger::Client& holder = lane.clients[client.connection];
    if (!holder) holder = lane.places.enter(client.group, client.connection);
    Lease place = holder.take(1);
    if (!place) {
      ++lane.num_refused;
      return false;
    }
    lane.line.push({client.connection, client.group}, {std::move(task), std::move(place)}, expected);
    num_queued_.fetch_add(1, std::memory_order_release);
    // A watching worker will see the task. A second task needs a second worker. A task that may not run yet needs
    // none: the worker whose task ends looks for the next one.
    wake = num_sleeping_ > 0 && lane.may_take() &&
           num_queued_.load(std::memory_order_relaxed) > num_watching_.load(std::memory_order_relaxed);
  }
  ++num_pending_;
  if (wake) has_work_.notify_one();
  return true;
}

void DiskPool::forget(std::uint32_t connection) {
  std::vector<std::unique_ptr<DiskTask>> cancelled;
  {
    std::lock_guard lock(mutex_);
    for (Lane& lane : lanes_) {
      for (Waiting& waiting : lane.line.remove(connection)) cancelled.push_back(std::move(waiting.task));
      lane.clients.erase(connection);
    }
    num_queued_.fetch_sub(cancelled.size(), std::memory_order_relaxed);
  }
  num_pending_ -= cancelled.size();
  for (const std::unique_ptr<DiskTask>& task : cancelled) task->cancel();
}

std::optional<DiskPool::Taken> DiskPool::take_locked() {
  for (Lane& lane : lanes_) {
    if (!lane.may_take()) continue;
    auto turn = lane.take();
    num_queued_.fetch_sub(1, std::memory_order_relaxed);
    ++lane.num_running;
    return Taken{&lane, std::move(turn.what.task), turn.client, turn.expected};
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

Amount DiskPool::run(DiskTask& task) const {
  const TimePoint began = config_.now();
  task.run();
  const auto took = std::chrono::duration_cast<std::chrono::microseconds>(config_.now() - began);
  task.on_run(took);
  return static_cast<Amount>(std::max<std::int64_t>(took.count(), 0)) + task.num_octets() / kOctetsPerMicrosecond;
}

void DiskPool::work() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    std::optional<Taken> taken = take_locked();
    if (!taken) {
      if (watch_locked(lock)) continue;
      ++num_sleeping_;
      has_work_.wait(lock);
      --num_sleeping_;
      continue;
    }
    lock.unlock();
    const Amount cost = run(*taken->task);
    {
      std::lock_guard done_lock(done_mutex_);
      done_.push_back(std::move(taken->task));
      has_done_.store(true);
    }
    if (loop_waits_.exchange(false)) ::eventfd_write(event_fd_.get(), 1);
    lock.lock();
    taken->lane->line.done(taken->client, taken->expected, cost);
    --taken->lane->num_running;
    ++taken->lane->num_done;
  }
}

DiskPool::LaneState DiskPool::state_of(DiskLane which) {
  std::lock_guard lock(mutex_);
  const Lane& lane = lane_of(which);
  return {.num_queued = lane.line.size(),
          .num_running = lane.num_running,
          .num_done = lane.num_done,
          .num_refused = lane.num_refused};
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
