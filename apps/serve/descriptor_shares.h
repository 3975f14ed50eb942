#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"

namespace weft::serve {

// DescriptorShares is how `weft serve` divides its descriptors.
struct DescriptorShares {
  std::size_t connections = 0;        // RDMA connections, one descriptor each
  std::size_t open_files = 0;         // BackendConfig::max_open_files, each with two descriptors
  std::size_t mount_connections = 0;  // MountServerConfig::max_connections
  unsigned sync_workers = 0;          // DiskPoolConfig::num_sync_workers
  std::size_t waiting = 0;            // ServerConfig::max_waiting
  std::size_t silent = 0;             // SoftConfig::max_silent
  std::size_t lingering = 0;          // SoftConfig::max_lingering
};

// ShareWish says for what `weft serve` needs descriptors.
struct ShareWish {
  std::uint64_t limit = 0;  // RLIMIT_NOFILE
  std::size_t own = 0;      // of the server at rest without any client
  unsigned disk_workers = 0;
  std::optional<std::size_t> connections = {};  // --max-connections
  DescriptorShares most = {};                   // where the limit is high
};

// What the server has at least, however low the limit is.
inline constexpr DescriptorShares kLeastShares{.connections = 0,
                                               .open_files = 8,
                                               .mount_connections = 4,
                                               .sync_workers = 2,
                                               .waiting = 4,
                                               .silent = 8,
                                               .lingering = 8};

// share_descriptors divides the descriptors. Tasks come first: each worker has as many as one task may have open at
// once, so that no task fails for want of descriptors, whatever the other tasks do. Open files, MOUNT and connections
// share the others, and so do more workers of the sync lane. It fails if the limit is too low for kLeastShares, or for
// the number of connections that was asked for. The message names the limit that is needed.
absl::StatusOr<DescriptorShares> share_descriptors(const ShareWish& wish);

}  // namespace weft::serve
