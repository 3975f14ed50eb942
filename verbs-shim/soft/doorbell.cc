#include "verbs-shim/soft/doorbell.h"

#include <sys/eventfd.h>

#include <cstdint>

namespace weft::verbs::soft {

int Doorbell::fd() {
  if (!fd_) {
    fd_ = poller_ != nullptr ? poller_->nested() : Fd(::eventfd(num_events_ > 0 ? 1 : 0, EFD_NONBLOCK | EFD_CLOEXEC));
  }
  return fd_.get();
}

void Doorbell::event_queued() {
  if (poller_ != nullptr) return poller_->event_queued();
  const std::uint64_t count = 1;
  if (num_events_++ == 0 && fd_) [[maybe_unused]]
    const ssize_t n = ::write(fd_.get(), &count, sizeof(count));
  device_bell_.event_queued();
}

void Doorbell::events_taken(std::size_t num) {
  if (poller_ != nullptr) return poller_->events_taken(num);
  if (num == 0) return;
  num_events_ -= num;
  device_bell_.events_taken(num);
  std::uint64_t count = 0;
  if (num_events_ == 0 && fd_) [[maybe_unused]]
    const ssize_t n = ::read(fd_.get(), &count, sizeof(count));
}

}  // namespace weft::verbs::soft
