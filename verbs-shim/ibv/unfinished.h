#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace weft::verbs::ibv {

// Unfinished remembers the requests of one queue that have not completed, because siw forgets some. siw takes requests
// that are posted between its own step into the error state and our notice of it, and never flushes them. Any thread.
class Unfinished {
 public:
  explicit Unfinished(std::size_t most) : ring_(most) {}

  // A posting thread holds it around add and the call of the driver, so that the order is the queue's.
  std::mutex& order() { return order_; }
  void add(std::uint64_t wr_id, bool signaled) {
    const std::lock_guard lock(mutex_);
    if (num_ == ring_.size()) return;
    ring_[(first_ + num_++) % ring_.size()] = {wr_id, signaled};
  }
  // The driver refused the last one.
  void take_back() {
    const std::lock_guard lock(mutex_);
    if (num_ > 0) --num_;
  }
  // A completion came. It belongs to the oldest request with this wr_id that gets a completion. The requests before it
  // need no completion any more. With an error an unsignaled request gets a completion, too. A completion of an unknown
  // request changes nothing.
  void on_completion(std::uint64_t wr_id, bool success) {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < num_; ++i) {
      const Request& request = ring_[(first_ + i) % ring_.size()];
      if (request.wr_id != wr_id || !(request.signaled || !success)) continue;
      first_ = (first_ + i + 1) % ring_.size();
      num_ -= i + 1;
      return;
    }
  }
  // Waits while a request is being handed to the driver. A concurrent request is either in the result, or its thread
  // sees a flag that was set before this call.
  std::vector<std::uint64_t> take_all() {
    const std::scoped_lock lock(order_, mutex_);
    std::vector<std::uint64_t> out;
    for (; num_ > 0; --num_, first_ = (first_ + 1) % ring_.size()) out.push_back(ring_[first_].wr_id);
    return out;
  }

 private:
  struct Request {
    std::uint64_t wr_id = 0;
    bool signaled = false;
  };
  std::mutex order_;
  std::mutex mutex_;
  std::vector<Request> ring_;
  std::size_t first_ = 0;
  std::size_t num_ = 0;
};

}  // namespace weft::verbs::ibv
