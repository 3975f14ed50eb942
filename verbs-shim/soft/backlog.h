#pragma once

#include <cstddef>
#include <deque>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/functional/any_invocable.h"
#include "verbs-shim/soft/handle.h"

namespace weft::verbs::soft {

// Backlog holds the connect requests of a listening id in one loop. At most `most` of them are delivered and not yet
// answered. Further requests wait undelivered, in the order of their arrival.
class Backlog {
 public:
  // deliver: turns the request of a connection into an event.
  Backlog(std::size_t most, absl::AnyInvocable<void(Handle)> deliver) : most_(most), deliver_(std::move(deliver)) {}

  // A whole, acceptable Request arrived.
  void arrived(Handle who) {
    waiting_.push_back(who);
    deliver_next();
  }
  // The request was accepted or rejected, or its connection is gone.
  void answered(Handle who) {
    std::erase(waiting_, who);
    if (delivered_.erase(who) > 0) deliver_next();
  }

 private:
  void deliver_next() {
    if (waiting_.empty() || delivered_.size() >= most_) return;
    const Handle next = waiting_.front();
    waiting_.pop_front();
    delivered_.insert(next);
    deliver_(next);
  }

  const std::size_t most_;
  absl::AnyInvocable<void(Handle)> deliver_;
  absl::flat_hash_set<Handle> delivered_;
  std::deque<Handle> waiting_;
};

}  // namespace weft::verbs::soft
