#include "verbs-shim/soft/async_queue.h"

#include <mutex>
#include <utility>

namespace weft::verbs::soft {

void AsyncQueue::listen() {
  if (std::exchange(listening_, true)) return;
  for (std::size_t i = 0; i < events_.size(); ++i) bell_.event_queued();
}

int AsyncQueue::fd() {
  const std::scoped_lock lock(mutex_);
  listen();
  return bell_.fd();
}

std::optional<AsyncEvent> AsyncQueue::pop() {
  const std::scoped_lock lock(mutex_);
  listen();
  if (events_.empty()) return std::nullopt;
  std::optional<AsyncEvent> event(std::move(events_.front()));
  events_.pop_front();
  bell_.events_taken(1);
  return event;
}

void AsyncQueue::push(AsyncEvent event) {
  const std::scoped_lock lock(mutex_);
  if (events_.size() == kMaxEvents) {
    events_.pop_front();
    if (listening_) bell_.events_taken(1);
  }
  events_.push_back(std::move(event));
  if (listening_) bell_.event_queued();
}

template <typename Pred>
void AsyncQueue::forget_if(Pred pred) {
  const std::scoped_lock lock(mutex_);
  const std::size_t num = std::erase_if(events_, pred);
  if (listening_) bell_.events_taken(num);
}

void AsyncQueue::forget(const Cq& cq) {
  forget_if([&](const AsyncEvent& event) { return event.cq == &cq; });
}

void AsyncQueue::forget(const Qp& qp) {
  forget_if([&](const AsyncEvent& event) { return event.qp == &qp; });
}

void AsyncQueue::forget(const Srq& srq) {
  forget_if([&](const AsyncEvent& event) { return event.srq == &srq; });
}

}  // namespace weft::verbs::soft
