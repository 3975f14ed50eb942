#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "rdmap/stream_events.h"
#include "verbs-shim/api/verbs.h"

namespace weft::verbs::soft {

// TerminateCounters counts the Terminates of all connections of a device by their error. A peer chooses the error of
// its Terminate: errors that no RFC registers share one counter. Any thread.
class TerminateCounters {
 public:
  TerminateCounters();
  // Counts the Terminate that ended a stream, if one did.
  void count(const rdmap::Closed& closed);
  // The errors that occurred.
  std::vector<TerminateCount> read() const;

 private:
  struct Pair {
    std::atomic<std::uint64_t> sent = 0, received = 0;
  };
  std::vector<Pair> pairs_;  // by row of rdmap::terminate_rows, and one more for the rest
};

}  // namespace weft::verbs::soft
