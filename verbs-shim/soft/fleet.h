#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "verbs-shim/soft/core.h"
#include "verbs-shim/soft/loop.h"
#include "verbs-shim/soft/port_map_answers.h"
#include "verbs-shim/soft/worker.h"

namespace weft::verbs::soft {

// Fleet holds the loops of a device: one loop that the caller drives, or one loop for each worker.
class Fleet {
 public:
  explicit Fleet(Core& core);
  // Ends the workers; the caller's thread drives the loops from then on.
  ~Fleet() { workers_.clear(); }
  Status open();

  Core& core() { return core_; }
  Loop& front() const { return *loops_.front(); }
  const std::vector<std::unique_ptr<Loop>>& loops() const { return loops_; }
  // The loop for the next connection; the loops take turns.
  Loop& next_loop() { return *loops_[next_loop_++ % loops_.size()]; }
  // In the thread of the first loop.
  PortMapAnswers& port_map_answers() { return port_map_answers_; }
  // Takes an STag out of the table. After the return no turn of a loop uses memory that the STag named.
  void remove(ddp::Stag stag);
  // Resets all connections, accepts no more, and tells the ids.
  void unplug();

 private:
  Core& core_;
  std::atomic<std::size_t> next_loop_ = 0;
  std::vector<std::unique_ptr<Loop>> loops_;
  PortMapAnswers port_map_answers_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace weft::verbs::soft
