#include "verbs-shim/soft/poller.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

namespace weft::verbs::soft {

Status Poller::open() {
  epoll_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
  timer_ = Fd(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  wake_ = Fd(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!epoll_ || !timer_ || !wake_ || !add(timer_.get(), EPOLLIN, timer_source_) ||
      !add(wake_.get(), EPOLLIN, wake_source_)) {
    const int err = errno;
    return Error{err, std::string("no descriptors for a soft RNIC: ") + std::strerror(err) +
                          "; raise the limit of open files (ulimit -n)"};
  }
  return {};
}

int Poller::fd() {
  if (!asked_) {
    asked_ = true;
    sync_wake();
    sync_deadline();
  }
  return epoll_.get();
}

void Poller::set_busy(bool busy) {
  busy_ = busy;
  if (!watched()) return;
  sync_wake();
  sync_deadline();
}

Fd Poller::nested() {
  Fd outer(::epoll_create1(EPOLL_CLOEXEC));
  if (!outer) return outer;
  epoll_event event{};
  event.events = EPOLLIN;
  if (::epoll_ctl(outer.get(), EPOLL_CTL_ADD, fd(), &event) != 0) outer.reset();
  return outer;
}

bool Poller::control(int op, int fd, std::uint32_t events, Source* source) {
  epoll_event event{};
  event.events = events;
  event.data.ptr = source;
  return ::epoll_ctl(epoll_.get(), op, fd, &event) == 0;
}

std::span<epoll_event> Poller::poll() {
  const int n = ::epoll_wait(epoll_.get(), events_.data(), static_cast<int>(events_.size()), 0);
  if (n <= 0) return {};
  std::size_t kept = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
    if (events_[i].data.ptr == &timer_source_) {
      std::uint64_t ticks = 0;
      [[maybe_unused]] const ssize_t got = ::read(timer_.get(), &ticks, sizeof(ticks));
      armed_.reset();
    } else if (static_cast<Source*>(events_[i].data.ptr)->kind != Source::Kind::kWake) {
      events_[kept++] = events_[i];
    }
  }
  return std::span(events_).first(kept);
}

void Poller::wait() {
  pollfd any{.fd = fd(), .events = POLLIN, .revents = 0};
  ::poll(&any, 1, -1);
}

void Poller::sync_wake() {
  if (wanted_ == signaled_) return;
  std::uint64_t count = 1;
  const ssize_t n = wanted_ ? ::write(wake_.get(), &count, sizeof(count)) : ::read(wake_.get(), &count, sizeof(count));
  if (n == static_cast<ssize_t>(sizeof(count))) signaled_ = wanted_;
}

void Poller::sync_deadline() {
  // A timer that fires too early only costs a wake-up: deadlines that move back need no system call.
  if (!deadline_ || (armed_ && *armed_ <= *deadline_)) return;
  const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(deadline_->time_since_epoch()).count();
  itimerspec spec{};
  spec.it_value.tv_sec = ns > 0 ? ns / 1'000'000'000 : 0;
  spec.it_value.tv_nsec = ns > 0 ? ns % 1'000'000'000 : 0;
  if (spec.it_value.tv_sec == 0 && spec.it_value.tv_nsec == 0) spec.it_value.tv_nsec = 1;  // zero would disarm
  if (::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &spec, nullptr) == 0) armed_ = deadline_;
}

}  // namespace weft::verbs::soft
