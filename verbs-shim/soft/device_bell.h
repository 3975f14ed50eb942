#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>

#include "verbs-shim/api/result.h"
#include "verbs-shim/soft/unique_fd.h"

namespace weft::verbs::soft {

// DeviceBell is Device::fd of a device with workers: readable while a channel holds events that nobody took, and since
// something came into a Cq without a channel, until process. Costs no system call before somebody asked for the
// descriptor, nor while the caller says that it spins. Its lock is the innermost.
class DeviceBell {
 public:
  Status open();

  // ---- for the caller who drives
  // From the first call on it is kept true.
  int fd();
  void set_busy(bool busy);
  // Whether something came into a Cq without a channel since the last call. What comes from here on rings again.
  bool take_completed();

  // ---- for any thread
  void event_queued();
  void events_taken(std::size_t num);
  // Something was pushed into a Cq without a channel.
  void completed();

 private:
  void sync();

  UniqueFd fd_;
  std::atomic<std::size_t> num_events_ = 0;
  std::atomic<bool> completed_ = false;
  // Whether somebody may sleep on the descriptor. Who changes one of the two above looks here afterwards, who sets this
  // looks at them afterwards: one of the two sees the other.
  std::atomic<bool> watched_ = false;
  std::mutex mutex_;  // guards all below
  bool asked_ = false;
  bool busy_ = false;
  bool signaled_ = false;
};

}  // namespace weft::verbs::soft
