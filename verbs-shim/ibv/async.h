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

// AsyncQueue holds the asynchronous events of one Device.
class AsyncQueue {
 public:
  // kernels: the descriptor of the ibv_context. False if no descriptors are left.
  bool open(int kernels) { return all_.add(ready_.fd()) && all_.add(kernels); }
  // Readable while the queue has events, or the kernel has events that were not fetched yet.
  int fd() const { return all_.fd(); }
  // Readable from an event until the device has looked.
  Flag& wake() { return wake_; }
  std::optional<AsyncEvent> take();

 private:
  friend class AsyncHub;
  void push(AsyncEvent event);
  template <typename Object>
  void forget(Object* AsyncEvent::*member, Object* object);

  // The most events held for a caller that never asks; the oldest are dropped first.
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
  // key: the object's name in events. An event of an unknown object is dropped.
  void add(const ibv_cq* key, AsyncQueue& queue, IbvCq* cq);
  void add(const ibv_qp* key, AsyncQueue& queue, IbvQp* qp);
  void add(const ibv_srq* key, AsyncQueue& queue, IbvSrq* srq);
  // To be called before the object is destroyed.
  void remove(const void* key);
  // Raises an event of an object that the kernel does not report.
  void raise(const void* key, AsyncEventType type);
  // Takes the kernel's events; returns their number.
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
