#include "verbs-shim/soft/worker.h"

#include <pthread.h>
#include <sys/eventfd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <semaphore>
#include <system_error>
#include <utility>

#include "verbs-shim/soft/loop.h"
#include "verbs-shim/soft/socket.h"

namespace weft::verbs::soft {

Worker::~Worker() {
  if (!thread_.joinable()) return;
  stopping_ = true;
  wake();
  thread_.join();
}

Status Worker::start() {
  bell_ = UniqueFd(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  // Edge-triggered: every ring wakes once, and nobody has to read it away.
  if (!bell_ || !loop_.poller().add(bell_.get(), EPOLLIN | EPOLLET, bell_source_)) {
    return socket_error("a descriptor for a worker", errno);
  }
  // Signals are for the program's own threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  Status status;
  try {
    thread_ = std::thread([this] { main(); });
  } catch (const std::system_error& error) {
    status = Error{error.code().value(), std::string("a thread for a worker: ") + error.what()};
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return status;
}

void Worker::main() {
  own_id_ = std::this_thread::get_id();
  while (!stopping_) {
    turns_.fetch_add(1);
    std::size_t moved = run_tasks();
    moved += loop_.process(std::chrono::steady_clock::now());
    turns_.fetch_add(1);
    turns_.notify_all();
    if (moved == 0) sleep();
  }
}

std::size_t Worker::run_tasks() {
  {
    const std::scoped_lock lock(mutex_);
    running_.swap(tasks_);
  }
  const std::size_t num = running_.size();
  for (Task& task : running_) task();
  running_.clear();
  return num;
}

void Worker::sleep() {
  asleep_ = true;
  // Who queued something before it could see the flag did not ring.
  const bool idle = [this] {
    const std::scoped_lock lock(mutex_);
    return tasks_.empty() && !loop_.has_work() && !stopping_;
  }();
  if (idle) loop_.poller().wait();
  asleep_ = false;
}

void Worker::wake() {
  if (!asleep_.exchange(false)) return;
  const std::uint64_t count = 1;
  [[maybe_unused]] const ssize_t n = ::write(bell_.get(), &count, sizeof(count));
}

void Worker::post(absl::AnyInvocable<void()> f) {
  {
    const std::scoped_lock lock(mutex_);
    tasks_.push_back(std::move(f));
  }
  wake();
}

void Worker::run(absl::FunctionRef<void()> f) {
  if (in_own_thread()) return f();
  std::binary_semaphore done{0};
  post([&] {
    f();
    done.release();
  });
  done.acquire();
}

void Worker::turn_over() {
  turns_.fetch_add(2);
  turns_.notify_all();
}

void Worker::wait_for_turn() const {
  if (in_own_thread()) return;
  const std::uint64_t turn = turns_;
  if (turn % 2 == 1) turns_.wait(turn);
}

}  // namespace weft::verbs::soft
