#pragma once

#include <cstddef>
#include <deque>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/functional/any_invocable.h"
#include "verbs-shim/soft/handle.h"

namespace weft::verbs::soft {

// Backlog is the connect requests of a listening id in one loop. So many are delivered and not yet answered; further
// ones wait, unheard, in the order of their arrival.
class Backlog {
 public:
  // deliver: makes an event of the request of this connection.
  Backlog(std::size_t most, absl::AnyInvocable<void(Handle)> deliver) : most_(most), deliver_(std::move(deliver)) {}

  // A whole, acceptable Request arrived.
  void arrived(Handle who) {
    waiting_.push_back(who);
    deliver_next();
  }
  // It was accepted or rejected, or its connection is gone.
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
