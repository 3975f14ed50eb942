#pragma once

#include <chrono>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "apps/nfs/io_thread.h"
#include "apps/nfs/local_file.h"
#include "apps/nfs/session.h"
#include "apps/nfs/task.h"
#include "base/time.h"

namespace weft::nfs {

class Flow;

class SlotsHeld;

// Slots are a number of places (files in flight, octets in memory, open directories). Tasks of one Flow wait for them,
// first come, first served.
class Slots {
 public:
  Slots(Flow& flow, std::size_t num) : flow_(flow), num_(num), free_(num) {}
  Slots(const Slots&) = delete;
  Slots& operator=(const Slots&) = delete;

  struct Awaiter {
    Slots& slots;
    std::size_t num;
    std::coroutine_handle<> coroutine = nullptr;
    bool await_ready() { return slots.take(num); }
    void await_suspend(std::coroutine_handle<> handle);
    SlotsHeld await_resume();
  };
  // acquire waits until `num` places are free; a larger `num` than the number of places counts as all of them. It waits
  // even after the Flow was stopped: places then become free all the sooner.
  Awaiter acquire(std::size_t num) { return {*this, num < num_ ? num : num_}; }
  std::size_t num_used() const { return num_ - free_; }

 private:
  friend class SlotsHeld;
  bool take(std::size_t num);
  void release(std::size_t num);

  Flow& flow_;
  const std::size_t num_;
  std::size_t free_;
  std::deque<Awaiter*> waiting_;
};

// SlotsHeld holds places of Slots and gives them back when it ends.
class SlotsHeld {
 public:
  SlotsHeld(SlotsHeld&& other) noexcept : slots_(std::exchange(other.slots_, nullptr)), num_(other.num_) {}
  SlotsHeld& operator=(SlotsHeld&&) = delete;
  ~SlotsHeld() {
    if (slots_ != nullptr) slots_->release(num_);
  }

 private:
  friend struct Slots::Awaiter;
  SlotsHeld(Slots& slots, std::size_t num) : slots_(&slots), num_(num) {}

  Slots* slots_;
  std::size_t num_;
};

inline SlotsHeld Slots::Awaiter::await_resume() {
  return {slots, num};
}

// Event wakes every Task that waits for it; it is set once.
class Event {
 public:
  explicit Event(Flow& flow) : flow_(flow) {}
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void set();

  struct Awaiter {
    Event& event;
    bool await_ready() const { return event.is_set_; }
    void await_suspend(std::coroutine_handle<> coroutine) { event.waiting_.push_back(coroutine); }
    void await_resume() {}
  };
  Awaiter wait() { return {*this}; }

 private:
  Flow& flow_;
  bool is_set_ = false;
  std::vector<std::coroutine_handle<>> waiting_;
};

// Whether a Call goes out after the Flow was stopped.
enum class WhenStopped : bool { kRefuse, kSend };

// Flow runs Tasks over one Session: Calls of many Tasks are under way at once, and local file operations run on a
// thread of the Flow's own. One thread, the session's; only run() resumes Tasks.
class Flow {
 public:
  explicit Flow(Session& session);
  // Not while run() runs.
  ~Flow();
  Flow(const Flow&) = delete;
  Flow& operator=(const Flow&) = delete;

  Session& session() { return session_; }

  // run returns when `root` and every spawned Task have ended. If the connection ends, a stop signal comes, or a
  // Call had no answer in its time, the Flow is stopped: further Calls fail at once, Calls with WhenStopped::kSend a
  // few seconds later.
  void run(Task<void> root);
  // spawn lets a Task run beside the others. It is called inside run() or before it.
  void spawn(Task<void> task);

  // stop makes every further Call fail with `why`. The first reason stays.
  void stop(absl::Status why);
  bool is_stopped() const { return !stop_status_.ok(); }
  const absl::Status& stop_status() const { return stop_status_; }

  // Runs after every turn of the session.
  std::function<void()> on_turn;

  // call is Session::call as a Task.
  template <typename Args, typename Res>
  Task<absl::Status> call(nfs3::Proc proc, Args args, Res& res, WhenStopped when = WhenStopped::kRefuse) {
    PreparedCall prepared{.proc = proc};
    nfs3::XdrWriter writer(prepared.args);
    emit(writer, args);
    for (Patience patience(session_);;) {
      std::vector<std::uint8_t> results;
      const absl::Status status = co_await call_raw(prepared, results, nullptr, when);
      if (!status.ok()) co_return status;
      nfs3::XdrReader reader(results);
      if (!parse(reader, res)) co_return Session::undecodable(proc);
      if (res.status != nfs3::Nfsstat3::kJukebox || is_stopped() || !patience.again()) co_return absl::OkStatus();
      co_await until(patience.next());
    }
  }

  struct CallAwaiter {
    Flow& flow;
    const PreparedCall& prepared;
    std::vector<std::uint8_t>& results;
    std::optional<std::size_t>* item_len;
    WhenStopped when;
    absl::Status status = absl::OkStatus();

    bool await_ready() const { return false; }
    bool await_suspend(std::coroutine_handle<> coroutine);
    absl::Status await_resume() { return std::move(status); }
  };
  // call_raw sends one Call and waits for its results. item_len, unless null, gets Reply::item_len.
  CallAwaiter call_raw(const PreparedCall& prepared, std::vector<std::uint8_t>& results,
                       std::optional<std::size_t>* item_len, WhenStopped when = WhenStopped::kRefuse) {
    return {*this, prepared, results, item_len, when};
  }

  struct IoAwaiter {
    Flow& flow;
    IoThread::Job job;
    std::int64_t result = 0;

    bool await_ready() const { return false; }
    void await_suspend(std::coroutine_handle<> coroutine);
    std::int64_t await_resume() const { return result; }
  };
  // io runs a job on the Flow's I/O thread and returns its result. Everything that the job refers to lives until then.
  // Jobs are short: nothing interrupts them.
  IoAwaiter io(IoThread::Job job) { return {*this, std::move(job)}; }

  struct TimeAwaiter {
    Flow& flow;
    TimePoint when;
    bool await_ready() const { return flow.is_stopped(); }
    void await_suspend(std::coroutine_handle<> coroutine) { flow.sleeping_.emplace(when, coroutine); }
    void await_resume() const {}
  };
  // until waits for a time, or for stop().
  TimeAwaiter until(TimePoint when) { return {*this, when}; }

  struct TurnAwaiter {
    Flow& flow;
    std::optional<TimePoint> latest;
    bool await_ready() const { return false; }
    void await_suspend(std::coroutine_handle<> coroutine) {
      flow.turning_.push_back(coroutine);
      if (latest && (!flow.wake_ || *latest < *flow.wake_)) flow.wake_ = latest;
    }
    void await_resume() const {}
  };
  // turned waits for the next turn of the session, which takes no longer than `latest`.
  TurnAwaiter turned(std::optional<TimePoint> latest = std::nullopt) { return {*this, latest}; }

  // watch makes turns end when fd becomes readable, too.
  void watch(int fd);
  void unwatch(int fd);

  // ready resumes a coroutine soon.
  void ready(std::coroutine_handle<> coroutine) { ready_.push_back(coroutine); }

 private:
  struct Detached;
  static Detached run_detached(Flow& flow, Task<void> task);
  void resume_ready();
  void reap_io();
  void wake_sleepers();
  void turn();

  Session& session_;
  IoThread io_;
  Fd watched_;  // epoll: the descriptors of the I/O thread and of watch()
  std::size_t num_live_ = 0;
  std::deque<std::coroutine_handle<>> ready_;
  std::vector<std::coroutine_handle<>> turning_;
  std::multimap<TimePoint, std::coroutine_handle<>> sleeping_;
  std::optional<TimePoint> wake_;  // the earliest time of the Tasks in turning_
  struct Waiting {
    IoAwaiter* awaiter = nullptr;
    std::coroutine_handle<> coroutine = nullptr;
  };
  std::deque<Waiting> in_io_;  // in the order of posting, which is the order of their ends
  absl::Status stop_status_;
  std::optional<Session::Cleanup> cleanup_;
  bool is_lost_ = false;  // the session is of no more use
};

}  // namespace weft::nfs
