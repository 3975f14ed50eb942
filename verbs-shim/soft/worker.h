#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "verbs-shim/api/result.h"
#include "verbs-shim/soft/poller.h"
#include "verbs-shim/soft/unique_fd.h"

namespace weft::verbs::soft {

class Loop;

// Worker is a thread that drives one Loop: turn after turn while something moves, asleep on the Loop's descriptor while
// nothing does. All members but the destructor and start are for any thread.
class Worker {
 public:
  explicit Worker(Loop& loop) : loop_(loop) {}
  // Ends the thread. What was posted by then and not carried out is dropped.
  ~Worker();
  Status start();

  // Carries f out in the worker's thread, between two turns, and returns then; at once where that thread calls.
  void run(absl::FunctionRef<void()> f);
  // The same without waiting. Tasks keep their order.
  void post(absl::AnyInvocable<void()> f);
  // The Loop's inbox has something.
  void wake();
  // One connection's turn is over and another's begins: who waits for that goes on. The worker's own thread.
  void turn_over();
  // Returns when the turn that is under way, if any, is over: what was taken out of a table that turns look into is
  // used by none of this worker's from then on. At once where the worker's own thread calls.
  void wait_for_turn() const;

 private:
  using Task = absl::AnyInvocable<void()>;

  void main();
  std::size_t run_tasks();
  void sleep();
  bool in_own_thread() const { return std::this_thread::get_id() == own_id_.load(); }

  Loop& loop_;
  UniqueFd bell_;
  Source bell_source_{Source::Kind::kWake};
  std::atomic<std::thread::id> own_id_;
  std::atomic<bool> stopping_ = false;
  // Whether somebody has to ring for the thread to look at its queues; who rings, resets it.
  std::atomic<bool> asleep_ = false;
  std::atomic<std::uint64_t> turns_ = 0;  // begun and ended: odd while connections have theirs
  std::mutex mutex_;
  std::vector<Task> tasks_;
  std::vector<Task> running_;
  std::thread thread_;
};

}  // namespace weft::verbs::soft
