#include "apps/nfs/io_thread.h"

#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

namespace weft::nfs {
namespace {

// A signal with a handler that does nothing makes a blocked read or write return EINTR.
constexpr int kInterrupt = SIGUSR1;
constexpr std::chrono::milliseconds kInterruptEvery{5};

void on_interrupt(int) {}

}  // namespace

IoThread::IoThread() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  sigaction(kInterrupt, &action, nullptr);
  // Signals that end the program go to the thread that waits for them.
  sigset_t all, before;
  sigfillset(&all);
  sigdelset(&all, kInterrupt);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

IoThread::~IoThread() {
  {
    std::unique_lock lock(mutex_);
    ended_ = true;
    discarding_ = true;
    posted_.clear();
    changed_.notify_all();
    interrupt_and_wait(lock);
  }
  thread_.join();
  close(fd_);
}

void IoThread::post(std::uint32_t tag, Job job) {
  const std::lock_guard lock(mutex_);
  posted_.push_back({tag, std::move(job)});
  // A running thread looks for more work before it sleeps.
  if (!running_) changed_.notify_all();
}

std::optional<IoThread::Done> IoThread::poll() {
  const std::lock_guard lock(mutex_);
  if (done_.empty()) return std::nullopt;
  const Done done = done_.front();
  done_.pop_front();
  if (done_.empty()) {
    eventfd_t count = 0;
    eventfd_read(fd_, &count);
  }
  return done;
}

void IoThread::discard() {
  std::unique_lock lock(mutex_);
  posted_.clear();
  discarding_ = true;
  interrupt_and_wait(lock);
  discarding_ = false;
  done_.clear();
  eventfd_t count = 0;
  eventfd_read(fd_, &count);
}

bool IoThread::stopping() const {
  const std::lock_guard lock(mutex_);
  return discarding_;
}

void IoThread::interrupt_and_wait(std::unique_lock<std::mutex>& lock) {
  while (running_) {
    pthread_kill(thread_.native_handle(), kInterrupt);
    changed_.wait_for(lock, kInterruptEvery, [this] { return !running_; });
  }
}

void IoThread::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ended_ || !posted_.empty(); });
    if (ended_) return;
    Posted posted = std::move(posted_.front());
    posted_.pop_front();
    running_ = true;
    lock.unlock();
    const std::int64_t result = posted.job();
    lock.lock();
    running_ = false;
    // The descriptor stays readable until all finished jobs are taken.
    if (done_.empty()) eventfd_write(fd_, 1);
    done_.push_back({posted.tag, result});
    if (discarding_) changed_.notify_all();
  }
}

std::int64_t read_fully(int fd, std::span<std::uint8_t> out, const IoThread& thread) {
  std::size_t done = 0;
  while (done < out.size()) {
    if (thread.stopping()) return -ECANCELED;
    const ssize_t len = read(fd, out.data() + done, out.size() - done);
    if (len == 0) break;
    if (len < 0 && errno != EINTR) return -errno;
    if (len > 0) done += static_cast<std::size_t>(len);
  }
  return static_cast<std::int64_t>(done);
}

std::int64_t write_fully(int fd, std::span<const std::uint8_t> in, const IoThread& thread) {
  while (!in.empty()) {
    if (thread.stopping()) return -ECANCELED;
    const ssize_t len = write(fd, in.data(), in.size());
    if (len < 0 && errno != EINTR) return -errno;
    if (len > 0) in = in.subspan(static_cast<std::size_t>(len));
  }
  return 0;
}

}  // namespace weft::nfs
