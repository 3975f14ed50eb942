#pragma once

#include <mutex>
#include <shared_mutex>

namespace weft::verbs::soft {

// MaybeMutex is a mutex in a device with workers. In a device that one thread drives it does nothing, since no other
// thread contends for it.
template <typename Mutex>
class MaybeMutex {
 public:
  explicit MaybeMutex(bool real) : real_(real) {}
  void lock() {
    if (real_) mutex_.lock();
  }
  void unlock() {
    if (real_) mutex_.unlock();
  }
  void lock_shared() {
    if (real_) mutex_.lock_shared();
  }
  void unlock_shared() {
    if (real_) mutex_.unlock_shared();
  }

 private:
  const bool real_;
  Mutex mutex_;
};

using Mutex = MaybeMutex<std::mutex>;
using SharedMutex = MaybeMutex<std::shared_mutex>;

}  // namespace weft::verbs::soft
