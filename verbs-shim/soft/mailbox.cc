#include "verbs-shim/soft/mailbox.h"

#include <sys/eventfd.h>

#include <cerrno>
#include <semaphore>
#include <utility>

#include "verbs-shim/soft/socket.h"

namespace weft::verbs::soft {

Status Mailbox::open(Poller& poller) {
  bell_ = Fd(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  // Edge-triggered: every ring wakes once and is never read.
  if (!bell_ || !poller.add(bell_.get(), EPOLLIN | EPOLLET, bell_source_)) {
    return socket_error("a descriptor for a worker", errno);
  }
  open_ = true;
  return {};
}

std::size_t Mailbox::run_tasks() {
  {
    const std::scoped_lock lock(mutex_);
    running_.swap(tasks_);
  }
  const std::size_t num = running_.size();
  for (Task& task : running_) task();
  running_.clear();
  return num;
}

void Mailbox::sleep(absl::FunctionRef<bool()> has_work, absl::FunctionRef<void()> wait) {
  asleep_ = true;
  // A task that was queued before its thread could see the flag came without a ring.
  const bool idle = [&] {
    const std::scoped_lock lock(mutex_);
    return tasks_.empty() && !has_work() && !stopping_;
  }();
  if (idle) wait();
  asleep_ = false;
}

void Mailbox::wake() {
  if (!asleep_.exchange(false)) return;
  const std::uint64_t count = 1;
  [[maybe_unused]] const ssize_t n = ::write(bell_.get(), &count, sizeof(count));
}

void Mailbox::stop() {
  stopping_ = true;
  wake();
}

void Mailbox::post(Task f) {
  if (!open_) return f();
  {
    const std::scoped_lock lock(mutex_);
    tasks_.push_back(std::move(f));
  }
  wake();
}

void Mailbox::run(absl::FunctionRef<void()> f) {
  if (!open_ || in_own_thread()) return f();
  std::binary_semaphore done{0};
  post([&] {
    f();
    done.release();
  });
  done.acquire();
}

void Mailbox::wait_for_turn() const {
  if (!open_ || in_own_thread()) return;
  const std::uint64_t turn = turns_;
  if (turn % 2 == 1) turns_.wait(turn);
}

}  // namespace weft::verbs::soft
