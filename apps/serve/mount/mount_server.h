#pragma once

#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "apps/serve/mount/mount_service.h"

namespace weft::serve {

struct MountServerConfig {
  std::size_t max_connections = 128;            // beyond it a connection of the address with most ends
  std::size_t max_record = 4096;                // octets of one Call
  std::chrono::milliseconds idle_limit{30000};  // between one Call and the next, however slowly octets drip in
  std::chrono::milliseconds accept_pause{100};  // after the process ran out of descriptors, until the next accept
  // Which peers are served, by their address; other connections are closed at once. Empty: all. Called on the server's
  // thread.
  std::function<bool(const sockaddr_storage& peer)> admits = {};
};

// MountServer answers MountService's Calls on TCP (RFC 8267 section 5.1). It has a thread of its own, and another one
// for the work that blocks on the disk: mounting is rare, and a flood on this port leaves the RDMA connections alone.
class MountServer {
 public:
  // Listens at addr (port 0 picks one) and answers from then on. The service outlives the server.
  static absl::StatusOr<std::unique_ptr<MountServer>> listen(const sockaddr_storage& addr, MountService& service,
                                                             const MountServerConfig& config = {});
  ~MountServer();
  MountServer(const MountServer&) = delete;
  MountServer& operator=(const MountServer&) = delete;

  sockaddr_storage local_addr() const;
  // Connections open now; any thread.
  std::size_t num_connections() const;

 private:
  struct Impl;
  explicit MountServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace weft::serve
