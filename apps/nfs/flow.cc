#include "apps/nfs/flow.h"

#include <poll.h>
#include <sys/epoll.h>

#include <chrono>

namespace weft::nfs {

// Detached is the coroutine around a spawned Task; it destroys itself.
struct Flow::Detached {
  struct promise_type {
    Detached get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() noexcept { std::abort(); }
  };
  std::coroutine_handle<> coroutine;
};

Flow::Detached Flow::run_detached(Flow& flow, Task<void> task) {
  co_await std::move(task);
  --flow.num_live_;
}

void Slots::Awaiter::await_suspend(std::coroutine_handle<> handle) {
  coroutine = handle;
  slots.waiting_.push_back(this);
}

bool Slots::take(std::size_t num) {
  if (!waiting_.empty() || num > free_) return false;
  free_ -= num;
  return true;
}

void Slots::release(std::size_t num) {
  free_ += num;
  while (!waiting_.empty() && waiting_.front()->num <= free_) {
    free_ -= waiting_.front()->num;
    flow_.ready(waiting_.front()->coroutine);
    waiting_.pop_front();
  }
}

void Event::set() {
  is_set_ = true;
  for (std::coroutine_handle<> coroutine : std::exchange(waiting_, {})) flow_.ready(coroutine);
}

Flow::Flow(Session& session) : session_(session), watched_(epoll_create1(EPOLL_CLOEXEC)) {
  watch(io_.fd());
}

Flow::~Flow() = default;

void Flow::watch(int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  epoll_ctl(watched_.get(), EPOLL_CTL_ADD, fd, &event);
}

void Flow::unwatch(int fd) {
  epoll_ctl(watched_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

void Flow::spawn(Task<void> task) {
  ++num_live_;
  ready(run_detached(*this, std::move(task)).coroutine);
}

void Flow::stop(absl::Status why) {
  if (is_stopped()) return;
  stop_status_ = std::move(why);
  // Calls under way may end, and temporary files may be removed, but not for long.
  cleanup_.emplace(session_);
  for (const auto& [when, coroutine] : std::exchange(sleeping_, {})) ready(coroutine);
}

bool Flow::CallAwaiter::await_suspend(std::coroutine_handle<> coroutine) {
  if (flow.is_lost_ || (flow.is_stopped() && when == WhenStopped::kRefuse)) {
    status = flow.stop_status_;
    return false;
  }
  status = flow.session_.start(prepared, [this, coroutine](const rpcrdma::Reply& reply) {
    status = Session::call_error(prepared.proc, reply);
    results.assign(reply.results.begin(), reply.results.end());
    if (item_len != nullptr) *item_len = reply.item_len;
    flow.ready(coroutine);
  });
  return status.ok();
}

void Flow::IoAwaiter::await_suspend(std::coroutine_handle<> coroutine) {
  flow.in_io_.push_back({this, coroutine});
  // The awaiter lives in the waiting coroutine, and the job in the awaiter.
  flow.io_.post(0, [this] { return job(); });
}

void Flow::reap_io() {
  while (const auto done = io_.poll()) {
    const Waiting waiting = in_io_.front();
    in_io_.pop_front();
    waiting.awaiter->result = done->result;
    ready(waiting.coroutine);
  }
}

void Flow::wake_sleepers() {
  if (sleeping_.empty()) return;
  const auto now = std::chrono::steady_clock::now();
  while (!sleeping_.empty() && sleeping_.begin()->first <= now) {
    ready(sleeping_.begin()->second);
    sleeping_.erase(sleeping_.begin());
  }
}

void Flow::resume_ready() {
  while (!ready_.empty()) {
    const std::coroutine_handle<> coroutine = ready_.front();
    ready_.pop_front();
    coroutine.resume();
  }
}

void Flow::turn() {
  if (is_lost_) {
    // Only the I/O thread can still end a wait.
    pollfd polled{watched_.get(), POLLIN, 0};
    poll(&polled, 1, in_io_.empty() ? 0 : -1);
    return;
  }
  std::optional<TimePoint> wake = wake_;
  if (!sleeping_.empty() && (!wake || sleeping_.begin()->first < *wake)) wake = sleeping_.begin()->first;
  const absl::Status status = session_.turn(watched_.get(), wake);
  if (status.ok()) {
    if (session_.unanswered()) stop(*session_.unanswered());
    return;
  }
  const bool was_interrupted = !is_stopped() && absl::IsCancelled(status);
  stop(status);
  if (was_interrupted) return;
  is_lost_ = true;
  session_.drain();
}

void Flow::run(Task<void> root) {
  spawn(std::move(root));
  while (true) {
    resume_ready();
    if (num_live_ == 0) break;
    reap_io();
    wake_sleepers();
    if (!ready_.empty()) continue;
    turn();
    wake_.reset();
    for (std::coroutine_handle<> coroutine : std::exchange(turning_, {})) ready(coroutine);
    if (on_turn) on_turn();
  }
  cleanup_.reset();
}

}  // namespace weft::nfs
