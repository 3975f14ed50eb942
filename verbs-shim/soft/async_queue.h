#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <utility>

#include "verbs-shim/api/verbs.h"
#include "verbs-shim/soft/doorbell.h"
#include "verbs-shim/soft/maybe_mutex.h"

namespace weft::verbs::soft {

// AsyncQueue holds the asynchronous events that nobody took yet. No descriptor tells of them before somebody has asked
// for one, or for the queue's: a caller who does not know of them is not kept awake. Any thread.
class AsyncQueue {
 public:
  // Beyond so many the oldest gives way: peers bring them about, and perhaps nobody looks.
  static constexpr std::size_t kMaxEvents = 1024;

  AsyncQueue(bool threaded, Doorbell bell) : mutex_(threaded), bell_(std::move(bell)) {}

  int fd();
  std::optional<AsyncEvent> pop();
  void push(AsyncEvent event);
  // Drop the events of an object that is being destroyed.
  void forget(const Cq& cq);
  void forget(const Qp& qp);
  void forget(const Srq& srq);

 private:
  void listen();
  template <typename Pred>
  void forget_if(Pred pred);

  Mutex mutex_;  // guards all below
  Doorbell bell_;
  bool listening_ = false;
  std::deque<AsyncEvent> events_;
};

}  // namespace weft::verbs::soft
