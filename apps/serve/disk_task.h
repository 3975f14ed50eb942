#pragma once

#include <chrono>
#include <cstddef>

#include "apps/serve/export/client.h"

namespace weft::serve {

// DiskTask is a piece of work that may block on the disk. run() runs on a worker, then finish() and destruction on the
// loop.
class DiskTask {
 public:
  virtual ~DiskTask() = default;
  virtual void run() = 0;
  virtual void finish() = 0;
  // Its client went before a worker took the task. Called on the loop, instead of run() and finish().
  virtual void cancel() {}
  // The time that run() will probably take; 0 if the client's tasks before it are the only hint. It may have become
  // longer since the task was submitted. Any thread.
  virtual std::chrono::microseconds expected_cost() const { return {}; }
  // How long run() took. Called on the worker after run().
  virtual void on_run(std::chrono::microseconds /*took*/) {}
  // The octets that run() has moved. Called on the worker after run().
  virtual std::size_t num_octets() const { return 0; }
};

}  // namespace weft::serve
