#include "verbs-shim/soft/comp_channel.h"

#include <mutex>

namespace weft::verbs::soft {

SoftCompChannel::~SoftCompChannel() {
  bell_.events_taken(fired_.size());
}

int SoftCompChannel::fd() const {
  const std::scoped_lock lock(mutex_);
  return bell_.fd();
}

Cq* SoftCompChannel::get_event() {
  const std::scoped_lock lock(mutex_);
  if (fired_.empty()) return nullptr;
  Cq* cq = fired_.front();
  fired_.pop_front();
  bell_.events_taken(1);
  return cq;
}

void SoftCompChannel::push(Cq& cq) {
  const std::scoped_lock lock(mutex_);
  fired_.push_back(&cq);
  bell_.event_queued();
}

void SoftCompChannel::forget(const Cq& cq) {
  const std::scoped_lock lock(mutex_);
  bell_.events_taken(std::erase(fired_, &cq));
}

}  // namespace weft::verbs::soft
