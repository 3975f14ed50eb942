#pragma once

#include <cstddef>

#include "verbs-shim/soft/device_bell.h"
#include "verbs-shim/soft/poller.h"
#include "verbs-shim/soft/unique_fd.h"

namespace weft::verbs::soft {

// Doorbell makes a channel's descriptor readable while the channel holds events that nobody took. With polled progress
// it is an epoll descriptor over all that the device waits for, so that who sleeps on it is woken by traffic; with
// workers it is an eventfd, and the device's own descriptor is told too. Not thread-safe: the channel's lock is held.
class Doorbell {
 public:
  // poller: of the device that its caller drives; null where workers do.
  Doorbell(Poller* poller, DeviceBell& device_bell) : poller_(poller), device_bell_(device_bell) {}

  // Made when first asked for; -1 where there are no descriptors left.
  int fd();
  void event_queued();
  void events_taken(std::size_t num);

 private:
  Poller* const poller_;
  DeviceBell& device_bell_;
  UniqueFd fd_;
  std::size_t num_events_ = 0;
};

}  // namespace weft::verbs::soft
