#include "verbs-shim/soft/device_bell.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "verbs-shim/soft/socket.h"

namespace weft::verbs::soft {

Status DeviceBell::open() {
  fd_ = Fd(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!fd_) return socket_error("a descriptor for a device with workers", errno);
  return {};
}

int DeviceBell::fd() {
  {
    const std::scoped_lock lock(mutex_);
    asked_ = true;
    watched_ = !busy_;
  }
  sync();
  return fd_.get();
}

void DeviceBell::set_busy(bool busy) {
  {
    const std::scoped_lock lock(mutex_);
    busy_ = busy;
    watched_ = asked_ && !busy_;
  }
  sync();
}

bool DeviceBell::take_completed() {
  if (!completed_.load() || !completed_.exchange(false)) return false;
  sync();
  return true;
}

void DeviceBell::event_queued() {
  if (num_events_.fetch_add(1) == 0) sync();
}

void DeviceBell::events_taken(std::size_t num) {
  if (num > 0 && num_events_.fetch_sub(num) == num) sync();
}

void DeviceBell::completed() {
  // If the flag is set already, the caller has yet to take it, and polls afterwards.
  if (!completed_.load() && !completed_.exchange(true)) sync();
}

// The last thread that gets here after a change sees the change, so the descriptor cannot stay wrong.
void DeviceBell::sync() {
  if (!watched_) return;
  const std::scoped_lock lock(mutex_);
  const bool wanted = completed_ || num_events_ > 0;
  if (wanted == signaled_) return;
  std::uint64_t count = 1;
  const ssize_t n = wanted ? ::write(fd_.get(), &count, sizeof(count)) : ::read(fd_.get(), &count, sizeof(count));
  if (n == static_cast<ssize_t>(sizeof(count))) signaled_ = wanted;
}

}  // namespace weft::verbs::soft
