#pragma once

#include <deque>
#include <optional>

#include "absl/container/flat_hash_set.h"
#include "verbs-shim/api/cm.h"
#include "verbs-shim/soft/core.h"
#include "verbs-shim/soft/maybe_mutex.h"

namespace weft::verbs::soft {

// A channel and its ids share an EventQueue. Ids may outlive the channel; their events are then dropped. Any thread.
class EventQueue {
 public:
  explicit EventQueue(Core& core) : mutex_(core.threaded()), bell_(core.doorbell()) {}
  int fd();
  void push(CmEvent event);
  std::optional<CmEvent> pop();
  // An id goes away: drops its queued events.
  void forget(const CmId& id);
  // Drops the connect request that brings this id, and the id with it; false if the program has taken it already.
  bool forget_request(const CmId& id);
  // Drops all events, and all later ones.
  void close();

 private:
  Mutex mutex_;  // guards all below; no event is destroyed under it, as a connect request's id comes back here
  Doorbell bell_;
  bool open_ = true;
  std::deque<CmEvent> events_;
  absl::flat_hash_set<const CmId*> muted_;  // ids that go with their connect request, unknown to the program
};

}  // namespace weft::verbs::soft
