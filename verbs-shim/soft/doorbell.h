#pragma once

#include <cstddef>

#include "base/fd.h"
#include "verbs-shim/soft/device_bell.h"
#include "verbs-shim/soft/poller.h"

namespace weft::verbs::soft {

// Doorbell makes a channel's descriptor readable while the channel holds events that were not taken. With polled
// progress it is an epoll descriptor over everything that the device waits for, so that traffic wakes a caller that
// sleeps on it. With workers it is an eventfd, and the device's own descriptor is told, too. Not thread-safe: the
// caller holds the channel's lock.
class Doorbell {
 public:
  // poller: the Poller of a device that its caller drives; null with workers.
  Doorbell(Poller* poller, DeviceBell& device_bell) : poller_(poller), device_bell_(device_bell) {}

  // The first call makes the descriptor; -1 if no descriptors are left.
  int fd();
  void event_queued();
  void events_taken(std::size_t num);

 private:
  Poller* const poller_;
  DeviceBell& device_bell_;
  Fd fd_;
  std::size_t num_events_ = 0;
};

}  // namespace weft::verbs::soft
