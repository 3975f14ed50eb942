#pragma once

#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "apps/metrics/snapshot.h"

namespace weft::metrics {

// EndpointConfig: the bounds of a MetricsEndpoint.
struct EndpointConfig {
  sockaddr_storage listen{};
  std::string program;                            // "serve" or "gateway"
  std::size_t max_connections = 32;               // beyond it one of the address that has most ends
  std::size_t max_per_address = 16;               // the same for one address (base/peer_group.h)
  std::size_t max_request = 4096;                 // bytes of a request
  std::chrono::milliseconds request_time{5000};   // for the whole request
  std::chrono::milliseconds snapshot_time{5000};  // for the program to make its snapshot
  std::chrono::milliseconds answer_time{5000};    // for the whole answer
  std::chrono::milliseconds snapshot_every{100};  // at least this time is between two snapshots
};

// MetricsEndpoint answers `GET /metrics` over HTTP from a thread of its own. The loop of the program makes the numbers:
// the endpoint asks for a snapshot by its descriptor, and the loop delivers one. Requests that come meanwhile share it,
// so clients of metrics cost the loop at most one snapshot in `snapshot_every`.
class MetricsEndpoint {
 public:
  // Listens from here on.
  static absl::StatusOr<std::unique_ptr<MetricsEndpoint>> start(const EndpointConfig& config);
  ~MetricsEndpoint();
  MetricsEndpoint(const MetricsEndpoint&) = delete;
  MetricsEndpoint& operator=(const MetricsEndpoint&) = delete;

  sockaddr_storage local_addr() const;

  // The loop's part: fd is readable while is_wanted.
  int fd() const;
  bool is_wanted() const;
  void deliver(Snapshot snapshot);

 private:
  struct Impl;
  explicit MetricsEndpoint(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace weft::metrics
