#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "base/fd.h"
#include "verbs-shim/api/result.h"
#include "verbs-shim/soft/poller.h"

namespace weft::verbs::soft {

// Mailbox connects other threads with the thread that drives a loop. It has tasks, a bell that ends the thread's sleep,
// and a count of its turns; other threads can wait for the end of a turn. While no thread drives the loop (before open,
// after stop) the caller runs every task at once.
class Mailbox {
 public:
  using Task = absl::AnyInvocable<void()>;

  // ---- before the thread begins, and after it has ended
  Status open(Poller& poller);
  void close() { open_ = false; }

  // ---- any thread
  // Runs f between two turns and returns afterwards. The loop's own thread runs f at once.
  void run(absl::FunctionRef<void()> f);
  // The same without waiting. Tasks keep their order.
  void post(Task f);
  // Wakes the loop for work that waits outside of the Mailbox.
  void wake();
  void stop();
  // Returns when the current turn, if any, is over. From then on no turn of this loop uses an entry that was taken out
  // of a table before the call. Returns at once in the loop's own thread.
  void wait_for_turn() const;

  // ---- the loop's thread
  void begin() { own_id_ = std::this_thread::get_id(); }
  bool stopping() const { return stopping_; }
  void begin_turns() { turns_.fetch_add(1); }
  // One connection's turn is over and the next turn begins. Threads that wait for the end of the turn go on.
  void turn_over() {
    if (open_) next_turn(2);
  }
  void end_turns() { next_turn(1); }
  std::size_t run_tasks();
  // Calls wait() unless there is a task or has_work() reports work.
  void sleep(absl::FunctionRef<bool()> has_work, absl::FunctionRef<void()> wait);

 private:
  bool in_own_thread() const { return std::this_thread::get_id() == own_id_.load(); }
  void next_turn(std::uint64_t step) {
    turns_.fetch_add(step);
    turns_.notify_all();
  }

  bool open_ = false;
  Fd bell_;
  Source bell_source_{Source::Kind::kWake};
  std::atomic<std::thread::id> own_id_;
  std::atomic<bool> stopping_ = false;
  // Whether the thread looks at its queues only after a ring. The thread that rings resets it.
  std::atomic<bool> asleep_ = false;
  std::atomic<std::uint64_t> turns_ = 0;  // begun and ended turns: odd while connections have their turns
  std::mutex mutex_;
  std::vector<Task> tasks_;
  std::vector<Task> running_;
};

}  // namespace weft::verbs::soft
