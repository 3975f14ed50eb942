#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

namespace weft::verbs::ibv {

// Reported: the reader of a request's successful completion.
enum class Reported : std::uint8_t {
  kNot,     // there is none
  kToUser,  // the user asked for it
  kToUs,    // the backend asked for it and keeps it (siw_copies.h)
};

// Unfinished remembers the requests of one queue that have not completed, because siw forgets some. siw takes requests
// that are posted between its own step into the error state and our notice of it, and never flushes them. Any thread.
class Unfinished {
 public:
  explicit Unfinished(std::size_t most) : ring_(most) {}

  // A posting thread holds it around add and the call of the driver, so that the order is the queue's.
  std::mutex& order() { return order_; }
  // False: there is no room to remember it.
  bool add(std::uint64_t wr_id, Reported reported) {
    const std::lock_guard lock(mutex_);
    if (num_ == ring_.size()) return false;
    ring_[(first_ + num_++) % ring_.size()] = {wr_id, reported};
    return true;
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
      const Request& request = at(i);
      if (request.wr_id != wr_id || request.reported == Reported::kToUs) continue;
      if (success && request.reported == Reported::kNot) continue;
      return drop_through(i);
    }
  }
  // The same for a completion that the backend asked for: it belongs to the oldest request of that kind, because such
  // requests complete in their order. Returns the user's wr_id.
  std::optional<std::uint64_t> on_our_completion() {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < num_; ++i) {
      if (at(i).reported != Reported::kToUs) continue;
      const std::uint64_t wr_id = at(i).wr_id;
      drop_through(i);
      return wr_id;
    }
    return std::nullopt;
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
    Reported reported = Reported::kNot;
  };
  const Request& at(std::size_t i) const { return ring_[(first_ + i) % ring_.size()]; }
  void drop_through(std::size_t i) {
    first_ = (first_ + i + 1) % ring_.size();
    num_ -= i + 1;
  }

  std::mutex order_;
  std::mutex mutex_;
  std::vector<Request> ring_;
  std::size_t first_ = 0;
  std::size_t num_ = 0;
};

}  // namespace weft::verbs::ibv
