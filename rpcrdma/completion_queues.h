#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "rpcrdma/connection_setup.h"
#include "verbs-shim/api/verbs.h"

namespace weft::rpcrdma {

// CompletionQueues: the queues that the connections of a server need together. Each connection is promised room for all
// completions that it can have at once. So no queue overflows if the device keeps its word. One thread. The device and
// the CompChannel outlive it, and it outlives its Shares.
class CompletionQueues {
  struct Queue {
    std::unique_ptr<verbs::Cq> cq;
    std::uint32_t size = 0;  // completions
    std::uint32_t room = 0;  // of `size`, promised to no connection
    bool overrun = false;    // completions are lost
  };

 public:
  // Share: the room of one connection, given back at its end.
  class Share {
   public:
    Share(Share&& other) noexcept : queue_(std::exchange(other.queue_, nullptr)), num_(other.num_) {}
    Share& operator=(Share&&) = delete;
    ~Share() {
      if (queue_ != nullptr) queue_->room += num_;
    }

    verbs::Cq& cq() const { return *queue_->cq; }
    // The queue lost completions of its connections. It does not report which ones.
    bool overrun() const { return queue_->overrun; }

   private:
    friend class CompletionQueues;
    Share(Queue& queue, std::uint32_t num) : queue_(&queue), num_(num) { queue.room -= num; }

    Queue* queue_;
    std::uint32_t num_;
  };

  CompletionQueues(verbs::Device& device, verbs::CompChannel& events) : device_(device), events_(events) {}

  // Takes room for `need` completions. It makes a new queue if no other queue has the room.
  verbs::Result<Share> take(std::uint32_t need);

  // Passes every completion to `handle` and returns their number. overrun: set if a queue overflowed.
  template <typename Handle>
  std::size_t drain(Handle handle, bool& overrun) {
    std::size_t total = 0;
    for (std::size_t i = 0; i < queues_.size(); ++i) {
      const int num = drain_completions(*queues_[i]->cq, handle);
      if (num > 0) total += static_cast<std::size_t>(num);
      if (num < 0 && !std::exchange(queues_[i]->overrun, true)) overrun = true;
    }
    return total;
  }

 private:
  verbs::Device& device_;
  verbs::CompChannel& events_;
  std::vector<std::unique_ptr<Queue>> queues_;
};

}  // namespace weft::rpcrdma
