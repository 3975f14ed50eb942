#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "rpcrdma/connection_setup.h"
#include "verbs-shim/api/verbs.h"

namespace weft::rpcrdma {

// CompletionQueues: as many queues as the connections of a server need together. Each connection is promised room for
// all completions that it can have at once, so no queue overflows where the device keeps its word. One thread; the
// device and the CompChannel outlive it, and it outlives its Shares.
class CompletionQueues {
  struct Queue {
    std::unique_ptr<verbs::Cq> cq;
    std::uint32_t size = 0;  // completions
    std::uint32_t room = 0;  // of these, promised to no connection
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
    // The queue lost completions of its connections, and does not tell which ones.
    bool overrun() const { return queue_->overrun; }

   private:
    friend class CompletionQueues;
    Share(Queue& queue, std::uint32_t num) : queue_(&queue), num_(num) { queue.room -= num; }

    Queue* queue_;
    std::uint32_t num_;
  };

  CompletionQueues(verbs::Device& device, verbs::CompChannel& events) : device_(device), events_(events) {}

  // Room for `need` completions; a queue is made where the others have none.
  verbs::Result<Share> take(std::uint32_t need);

  // Hands every completion to `handle` and returns how many there were. overrun: set where a queue overflowed.
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
