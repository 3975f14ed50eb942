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
  // Connections, counted until nothing of them is left: socket, record and work. Beyond it a connection of the address
  // with most ends.
  std::size_t max_connections = 128;
  std::size_t max_record = 4096;                // octets of one Call
  std::chrono::milliseconds idle_limit{30000};  // between one Call and the next, however slowly octets drip in
  std::chrono::milliseconds accept_pause{100};  // after the process ran out of descriptors, until the next accept
  // Which peers are served, by their address; other connections are closed at once. Empty: all. Called on the server's
  // thread.
  std::function<bool(const sockaddr_storage& peer)> admits = {};
  // For tests: called on the disk thread before each Call is answered.
  std::function<void()> on_work = {};
};

// MountServer answers MountService's Calls on TCP (RFC 8267 section 5.1). It has a thread of its own, and another one
// for the work that blocks on the disk: mounting is rare, and a flood on this port leaves the RDMA connections alone.
//
// The disk thread takes the Calls in the order of a FairLine: by the time that it spent on each address, and in it on
// each connection. A connection that ends takes its waiting Call along. If all places are taken, one of the
// address with most connections becomes free: the one whose waiting Call costs most. A connection without a Call counts
// as a Call that costs more than ordinary ones and less than dear ones. Of several, it is the one that was silent
// longest.
class MountServer {
 public:
  // The most descriptors beside one for each connection: the Call on the disk thread, and a connection that waits for a
  // place.
  static constexpr std::size_t kMoreDescriptors = MountService::kDescriptorsOfCall + 1;

  // Listens at addr (port 0 picks one) and answers from then on. The service outlives the server.
  static absl::StatusOr<std::unique_ptr<MountServer>> listen(const sockaddr_storage& addr, MountService& service,
                                                             const MountServerConfig& config = {});
  ~MountServer();
  MountServer(const MountServer&) = delete;
  MountServer& operator=(const MountServer&) = delete;

  sockaddr_storage local_addr() const;
  // Connections of which anything is left; any thread.
  std::size_t num_connections() const;
  // Calls that wait for the disk thread; any thread.
  std::size_t num_waiting() const;

 private:
  struct Impl;
  explicit MountServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace weft::serve
