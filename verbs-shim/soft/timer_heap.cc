#include "verbs-shim/soft/timer_heap.h"

namespace weft::verbs::soft {

void TimerHeap::set(Timer& timer, std::optional<TimePoint> at) {
  if (!at) {
    if (timer.pending()) remove(timer);
    return;
  }
  if (timer.pending()) {
    if (timer.at_ == *at) return;
    const bool earlier = *at < timer.at_;
    timer.at_ = *at;
    if (earlier) {
      sift_up(timer.slot_, &timer);
    } else {
      sift_down(timer.slot_, &timer);
    }
    return;
  }
  timer.at_ = *at;
  heap_.push_back(&timer);
  sift_up(heap_.size() - 1, &timer);
}

TimerHeap::Timer* TimerHeap::pop_due(TimePoint now) {
  if (heap_.empty() || heap_.front()->at_ > now) return nullptr;
  Timer* timer = heap_.front();
  remove(*timer);
  return timer;
}

void TimerHeap::remove(Timer& timer) {
  const std::size_t slot = timer.slot_;
  Timer* last = heap_.back();
  heap_.pop_back();
  timer.slot_ = Timer::kNone;
  if (last == &timer) return;
  place(slot, last);
  sift_up(slot, last);
  sift_down(last->slot_, last);
}

void TimerHeap::place(std::size_t slot, Timer* timer) {
  heap_[slot] = timer;
  timer->slot_ = slot;
}

void TimerHeap::sift_up(std::size_t slot, Timer* timer) {
  while (slot > 0) {
    const std::size_t parent = (slot - 1) / 2;
    if (heap_[parent]->at_ <= timer->at_) break;
    place(slot, heap_[parent]);
    slot = parent;
  }
  place(slot, timer);
}

void TimerHeap::sift_down(std::size_t slot, Timer* timer) {
  for (;;) {
    std::size_t child = 2 * slot + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && heap_[child + 1]->at_ < heap_[child]->at_) ++child;
    if (timer->at_ <= heap_[child]->at_) break;
    place(slot, heap_[child]);
    slot = child;
  }
  place(slot, timer);
}

}  // namespace weft::verbs::soft
