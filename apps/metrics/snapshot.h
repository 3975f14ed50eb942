#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "apps/metrics/call_metrics.h"
#include "rpcrdma/server_statistics.h"
#include "verbs-shim/api/verbs.h"

namespace weft::metrics {

// Holding: what a program holds of a kind, against its bound.
struct Holding {
  std::string kind;
  std::uint64_t held = 0;
  std::uint64_t limit = 0;  // 0: it follows from other bounds
};

// DiskLaneCounts: one lane of the disk workers of `weft serve`.
struct DiskLaneCounts {
  std::string lane;
  std::uint64_t queued = 0, queue_limit = 0;
  std::uint64_t running = 0, workers = 0;
  std::uint64_t done = 0, refused = 0;
};

// Snapshot: all numbers of a program at one moment, made by the loop that owns them. A value: it goes to another
// thread.
struct Snapshot {
  CallCounts calls;
  rpcrdma::ServerStatistics server;  // `client` is a name of `calls`, or CallMetrics::kOtherClients
  std::size_t num_clients = 0;
  std::size_t max_connections = 0;
  std::vector<verbs::TerminateCount> terminates;
  std::vector<Holding> memory;  // bytes
  std::vector<DiskLaneCounts> lanes;
  std::vector<Holding> files;  // open files
};

// Fills in the parts that every program has.
void take(Snapshot& snapshot, const CallMetrics& calls, rpcrdma::ServerStatistics server);

// to_openmetrics writes a snapshot as OpenMetrics text. program: "serve" or "gateway".
std::string to_openmetrics(const Snapshot& snapshot, const std::string& program);

}  // namespace weft::metrics
