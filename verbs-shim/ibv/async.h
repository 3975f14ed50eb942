#pragma once

#include <infiniband/verbs.h>

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "verbs-shim/api/verbs.h"
#include "verbs-shim/ibv/epoll.h"

namespace weft::verbs::ibv {

class IbvCq;
class IbvQp;
class IbvSrq;

// AsyncQueue is where one Device finds its asynchronous events.
class AsyncQueue {
 public:
  // kernels: the descriptor of the ibv_context. False where there are no descriptors left.
  bool open(int kernels) { return all_.add(ready_.fd()) && all_.add(kernels); }
  // Readable while there are events, or the kernel has some that nobody asked for yet.
  int fd() const { return all_.fd(); }
  // Readable from an event until the device has looked.
  Flag& wake() { return wake_; }
  std::optional<AsyncEvent> take();

 private:
  friend class AsyncHub;
  void push(AsyncEvent event);
  template <typename Object>
  void forget(Object* AsyncEvent::*member, Object* object);

  // A caller that never asks holds no more than this; the oldest go first.
  static constexpr std::size_t kMost = 256;
  std::mutex mutex_;
  std::deque<AsyncEvent> events_;
  Flag ready_, wake_;
  Epoll all_;
};

// AsyncHub takes the events of one ibv_context, which librdmacm shares among all Devices of this process that opened
// the same RDMA device, and hands each to the Device whose object it names. Any thread.
class AsyncHub {
 public:
  static std::shared_ptr<AsyncHub> of(ibv_context* context);
  explicit AsyncHub(ibv_context* context) : context_(context) {}

  void attach(AsyncQueue& queue);
  void detach(AsyncQueue& queue);
  // What an object is called in events; an event of an object that is not there is dropped.
  void add(const ibv_cq* key, AsyncQueue& queue, IbvCq* cq);
  void add(const ibv_qp* key, AsyncQueue& queue, IbvQp* qp);
  void add(const ibv_srq* key, AsyncQueue& queue, IbvSrq* srq);
  // Before the object is destroyed.
  void remove(const void* key);
  // An event of such an object that the kernel does not tell.
  void raise(const void* key, AsyncEventType type);
  // Takes what the kernel has; returns how many.
  std::size_t drain();

 private:
  struct Object {
    AsyncQueue* queue = nullptr;
    IbvCq* cq = nullptr;
    IbvQp* qp = nullptr;
    IbvSrq* srq = nullptr;
  };
  void dispatch(const ibv_async_event& event);
  void dispatch_to(const void* key, AsyncEvent event);

  ibv_context* context_;
  std::mutex mutex_;
  std::vector<AsyncQueue*> queues_;
  std::unordered_map<const void*, Object> objects_;
};

}  // namespace weft::verbs::ibv
