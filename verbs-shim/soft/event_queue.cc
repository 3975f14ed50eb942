#include "verbs-shim/soft/event_queue.h"

#include <algorithm>
#include <mutex>
#include <utility>

namespace weft::verbs::soft {

int EventQueue::fd() {
  const std::scoped_lock lock(mutex_);
  return bell_.fd();
}

void EventQueue::push(CmEvent event) {
  const std::scoped_lock lock(mutex_);
  if (!open_ || muted_.contains(event.id)) return;
  events_.push_back(std::move(event));
  bell_.event_queued();
}

std::optional<CmEvent> EventQueue::pop() {
  const std::scoped_lock lock(mutex_);
  if (events_.empty()) return std::nullopt;
  std::optional<CmEvent> event(std::move(events_.front()));
  events_.pop_front();
  bell_.events_taken(1);
  return event;
}

void EventQueue::forget(const CmId& id) {
  std::deque<CmEvent> dropped;
  const std::scoped_lock lock(mutex_);
  std::deque<CmEvent> kept;
  for (CmEvent& event : events_) {
    if (event.id == &id && event.new_id) muted_.insert(event.new_id.get());
    (event.id == &id ? dropped : kept).push_back(std::move(event));
  }
  events_ = std::move(kept);
  muted_.erase(&id);
  bell_.events_taken(dropped.size());
}

bool EventQueue::forget_request(const CmId& id) {
  CmEvent dropped;
  const std::scoped_lock lock(mutex_);
  const auto at = std::ranges::find_if(events_, [&](const CmEvent& event) { return event.new_id.get() == &id; });
  if (at == events_.end()) return false;
  dropped = std::move(*at);
  events_.erase(at);
  bell_.events_taken(1);
  return true;
}

void EventQueue::close() {
  std::deque<CmEvent> dropped;
  const std::scoped_lock lock(mutex_);
  open_ = false;
  dropped.swap(events_);
  bell_.events_taken(dropped.size());
}

}  // namespace weft::verbs::soft
