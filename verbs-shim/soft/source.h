#pragma once

#include <cstddef>
#include <cstdint>

#include "base/time.h"
#include "verbs-shim/soft/timer_heap.h"

namespace weft::verbs::soft {

// Source is the owner of a descriptor in the Poller, or of a deadline. The loop calls it in its own thread; each call
// returns the number of octets and events that it moved.
struct Source : TimerHeap::Timer {
  enum class Kind : std::uint8_t { kWake, kConnection, kListener, kPortMap };
  explicit Source(Kind source_kind) : kind(source_kind) {}
  virtual ~Source() = default;
  virtual std::size_t on_ready(std::uint32_t /*epoll_events*/, TimePoint /*now*/) { return 0; }
  virtual std::size_t on_timer(TimePoint /*now*/) { return 0; }
  // The device is gone.
  virtual void unplug() {}
  const Kind kind;
};

}  // namespace weft::verbs::soft
