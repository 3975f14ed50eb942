#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <utility>

#include "verbs-shim/api/verbs.h"
#include "verbs-shim/soft/doorbell.h"
#include "verbs-shim/soft/maybe_mutex.h"

namespace weft::verbs::soft {

// AsyncQueue holds the asynchronous events that the program has not taken yet. They make no descriptor readable until
// the program has asked for an event or for the queue's descriptor: a program that does not know of them is not kept
// awake. Any thread.
class AsyncQueue {
 public:
  // The most events that the queue holds; beyond it the oldest is dropped. Peers cause events, and the program may
  // never take them.
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
