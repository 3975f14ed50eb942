#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"

namespace weft::verbs::soft {

// TimerHeap orders the deadlines of a device; every change costs O(log n).
class TimerHeap {
 public:
  // Timer is one deadline of the object that derives from it. Not copyable: the heap stores its address.
  class Timer {
   public:
    Timer() = default;
    Timer(const Timer&) = delete;
    Timer& operator=(const Timer&) = delete;
    bool pending() const { return slot_ != kNone; }
    TimePoint at() const { return at_; }

   private:
    friend class TimerHeap;
    static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
    TimePoint at_{};
    std::size_t slot_ = kNone;
  };

  // Sets, moves or (nothing given) removes a deadline.
  void set(Timer& timer, std::optional<TimePoint> at);
  // The earliest deadline.
  std::optional<TimePoint> next() const { return heap_.empty() ? std::nullopt : std::optional(heap_.front()->at_); }
  // Takes out one timer whose time has come; null for none.
  Timer* pop_due(TimePoint now);
  std::size_t size() const { return heap_.size(); }

 private:
  void place(std::size_t slot, Timer* timer);
  void sift_up(std::size_t slot, Timer* timer);
  void sift_down(std::size_t slot, Timer* timer);
  void remove(Timer& timer);

  std::vector<Timer*> heap_;
};

}  // namespace weft::verbs::soft
