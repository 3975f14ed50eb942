#pragma once

#include <thread>

#include "verbs-shim/api/result.h"
#include "verbs-shim/soft/loop.h"

namespace weft::verbs::soft {

// Worker is a thread that drives one Loop: turn after turn while something moves, asleep on the Loop's descriptor while
// nothing does.
class Worker {
 public:
  explicit Worker(Loop& loop) : loop_(loop) {}
  // Ends the thread. Tasks that were posted and have not run are dropped.
  ~Worker();
  Status start();

 private:
  void main();

  Loop& loop_;
  std::thread thread_;
};

}  // namespace weft::verbs::soft
