#pragma once

#include <deque>

#include "verbs-shim/api/verbs.h"
#include "verbs-shim/soft/core.h"
#include "verbs-shim/soft/maybe_mutex.h"

namespace weft::verbs::soft {

// SoftCompChannel holds the completion queues that have fired. Any thread.
class SoftCompChannel final : public CompChannel {
 public:
  explicit SoftCompChannel(Core& core) : mutex_(core.threaded()), bell_(core.doorbell()) {}
  ~SoftCompChannel() override;

  int fd() const override;
  Cq* get_event() override;

  void push(Cq& cq);
  void forget(const Cq& cq);

 private:
  mutable Mutex mutex_;  // guards all below
  mutable Doorbell bell_;
  std::deque<Cq*> fired_;
};

}  // namespace weft::verbs::soft
