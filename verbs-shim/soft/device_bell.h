#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>

#include "base/fd.h"
#include "verbs-shim/api/result.h"

namespace weft::verbs::soft {

// DeviceBell is Device::fd of a device with workers. It is readable while a channel holds events that were not taken.
// It is also readable from a completion in a Cq without a channel until process. It costs no system call before the
// descriptor was asked for, nor while the caller says that it spins. Its lock is the innermost.
class DeviceBell {
 public:
  Status open();

  // ---- for the driving caller
  // The descriptor is kept up to date from the first call on.
  int fd();
  void set_busy(bool busy);
  // Whether a completion came into a Cq without a channel since the last call. The next one rings again.
  bool take_completed();

  // ---- for any thread
  void event_queued();
  void events_taken(std::size_t num);
  // A completion was pushed into a Cq without a channel.
  void completed();

 private:
  void sync();

  Fd fd_;
  std::atomic<std::size_t> num_events_ = 0;
  std::atomic<bool> completed_ = false;
  // Whether a thread may sleep on the descriptor. A thread that changes one of the two members above reads this one
  // afterwards. A thread that sets this one reads the other two afterwards. So one of the threads sees the other's
  // change.
  std::atomic<bool> watched_ = false;
  std::mutex mutex_;  // guards all below
  bool asked_ = false;
  bool busy_ = false;
  bool signaled_ = false;
};

}  // namespace weft::verbs::soft
