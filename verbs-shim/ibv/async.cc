#include "verbs-shim/ibv/async.h"

#include <algorithm>
#include <map>

#include "verbs-shim/ibv/cq.h"
#include "verbs-shim/ibv/mapping.h"
#include "verbs-shim/ibv/pd.h"
#include "verbs-shim/ibv/qp.h"

namespace weft::verbs::ibv {

std::optional<AsyncEvent> AsyncQueue::take() {
  const std::lock_guard lock(mutex_);
  if (events_.empty()) return std::nullopt;
  AsyncEvent event = std::move(events_.front());
  events_.pop_front();
  if (events_.empty()) ready_.lower();
  return event;
}

void AsyncQueue::push(AsyncEvent event) {
  const std::lock_guard lock(mutex_);
  if (events_.size() == kMost) events_.pop_front();
  events_.push_back(std::move(event));
  ready_.raise();
  wake_.raise();
}

template <typename Object>
void AsyncQueue::forget(Object* AsyncEvent::*member, Object* object) {
  if (object == nullptr) return;
  const std::lock_guard lock(mutex_);
  std::erase_if(events_, [&](const AsyncEvent& event) { return event.*member == object; });
  if (events_.empty()) ready_.lower();
}

std::shared_ptr<AsyncHub> AsyncHub::of(ibv_context* context) {
  static std::mutex mutex;
  static std::map<ibv_context*, std::weak_ptr<AsyncHub>> hubs;
  const std::lock_guard lock(mutex);
  std::shared_ptr<AsyncHub> hub = hubs[context].lock();
  if (!hub) {
    hub = std::make_shared<AsyncHub>(context);
    hubs[context] = hub;
  }
  return hub;
}

void AsyncHub::attach(AsyncQueue& queue) {
  const std::lock_guard lock(mutex_);
  queues_.push_back(&queue);
}

void AsyncHub::detach(AsyncQueue& queue) {
  const std::lock_guard lock(mutex_);
  std::erase(queues_, &queue);
}

void AsyncHub::add(const ibv_cq* key, AsyncQueue& queue, IbvCq* cq) {
  const std::lock_guard lock(mutex_);
  objects_[key] = {.queue = &queue, .cq = cq};
}

void AsyncHub::add(const ibv_qp* key, AsyncQueue& queue, IbvQp* qp) {
  const std::lock_guard lock(mutex_);
  objects_[key] = {.queue = &queue, .qp = qp};
}

void AsyncHub::add(const ibv_srq* key, AsyncQueue& queue, IbvSrq* srq) {
  const std::lock_guard lock(mutex_);
  objects_[key] = {.queue = &queue, .srq = srq};
}

void AsyncHub::remove(const void* key) {
  const std::lock_guard lock(mutex_);
  const auto found = objects_.find(key);
  if (found == objects_.end()) return;
  const Object& object = found->second;
  object.queue->forget<Cq>(&AsyncEvent::cq, object.cq);
  object.queue->forget<Qp>(&AsyncEvent::qp, object.qp);
  object.queue->forget<Srq>(&AsyncEvent::srq, object.srq);
  objects_.erase(found);
}

void AsyncHub::raise(const void* key, AsyncEventType type) {
  const std::lock_guard lock(mutex_);
  AsyncEvent event;
  event.type = type;
  event.text = async_event_str(type);
  dispatch_to(key, std::move(event));
}

// Events are acknowledged inside the lock that `remove` takes, so ibv_destroy_* never waits for our acknowledgement.
std::size_t AsyncHub::drain() {
  const std::lock_guard lock(mutex_);
  std::size_t num = 0;
  ibv_async_event event{};
  while (::ibv_get_async_event(context_, &event) == 0) {
    dispatch(event);
    ::ibv_ack_async_event(&event);
    ++num;
  }
  return num;
}

void AsyncHub::dispatch(const ibv_async_event& event) {
  const std::optional<AsyncEventType> type = from_ibv(event.event_type);
  if (!type) return;
  AsyncEvent out;
  out.type = *type;
  out.text = ::ibv_event_type_str(event.event_type);
  switch (*type) {
    case AsyncEventType::kCqErr: return dispatch_to(event.element.cq, std::move(out));
    case AsyncEventType::kSrqErr:
    case AsyncEventType::kSrqLimitReached: return dispatch_to(event.element.srq, std::move(out));
    case AsyncEventType::kPortActive:
    case AsyncEventType::kPortErr: out.port_num = static_cast<std::uint8_t>(event.element.port_num); [[fallthrough]];
    case AsyncEventType::kDeviceFatal:
      for (AsyncQueue* queue : queues_) queue->push(out);
      return;
    default: return dispatch_to(event.element.qp, std::move(out));
  }
}

void AsyncHub::dispatch_to(const void* key, AsyncEvent event) {
  const auto found = objects_.find(key);
  if (found == objects_.end()) return;
  const Object& object = found->second;
  if (event.type == AsyncEventType::kSrqLimitReached && !object.srq->on_limit()) return;
  event.cq = object.cq;
  event.qp = object.qp;
  event.srq = object.srq;
  if (object.cq != nullptr) object.cq->on_overflow();
  if (object.qp != nullptr && !object.qp->on_async(event.type)) return;
  object.queue->push(std::move(event));
}

}  // namespace weft::verbs::ibv
