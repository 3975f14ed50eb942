#pragma once

#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "apps/common/allow_list.h"
#include "apps/metrics/snapshot.h"
#include "apps/serve/backend/backend.h"
#include "apps/serve/disk_pool.h"
#include "apps/serve/mount/mount_server.h"
#include "apps/serve/mount/mount_service.h"
#include "apps/serve/nfs_service.h"
#include "base/time.h"
#include "rpcrdma/server.h"
#include "verbs-shim/api/verbs.h"

namespace weft::serve {

struct ServeConfig {
  TreeConfig tree;
  BackendConfig backend;
  DiskPoolConfig pool;
  rpcrdma::ServerConfig rpc;
  MountServerConfig mount;
  sockaddr_storage listen{};        // RPC-over-RDMA
  sockaddr_storage mount_listen{};  // MOUNT on TCP
  bool has_metrics = false;         // snapshot() has the Calls, which then cost a little more
  // The peers that the device refused by itself; null for none.
  std::shared_ptr<const apps::RefusedPeers> refused_by_device = {};
  DiskCalls calls;  // for tests
};

// ServeApp is `weft serve` without its command line: one export, NFSv3 on RPC-over-RDMA and MOUNT v3 on TCP. It listens
// from start() on; the caller drives it with turn(). One thread.
class ServeApp {
 public:
  // The device outlives the app.
  static absl::StatusOr<std::unique_ptr<ServeApp>> start(const ServeConfig& config, verbs::Device& device);

  sockaddr_storage rdma_addr() const { return server_->local_addr(); }
  sockaddr_storage mount_addr() const { return mount_server_->local_addr(); }
  const std::string& real_path() const { return tree_->real_path(); }

  // turn does the work that is ready, and returns how much it did.
  std::size_t turn(TimePoint now);
  // wait sleeps until turn has work, `until` has come, stop_fd or wake_fd is readable, or a signal came. It may return
  // at once. A negative descriptor is left out.
  void wait(int stop_fd, std::optional<TimePoint> until, int wake_fd = -1);

  // Requests that disk workers run or will run.
  std::size_t num_tasks() const { return pool_->num_pending(); }

  // summary is one line about the work done so far.
  std::string summary() const;
  // snapshot: all numbers at this moment.
  metrics::Snapshot snapshot();

 private:
  explicit ServeApp(const ServeConfig& config, verbs::Device& device) : config_(config), device_(device) {}
  void sweep_when_due(TimePoint now);
  void sync_evicted_files();

  const ServeConfig config_;
  verbs::Device& device_;
  metrics::CallMetrics calls_;
  std::size_t num_syncing_ = 0;        // workers that sync files which lost their place
  bool is_sweeping_ = false;           // a worker closes idle files
  std::optional<TimePoint> sweep_at_;  // while files are open

  // Destroyed from the last to the first: tasks in the pool hold buffers of the server.
  std::unique_ptr<Tree> tree_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<MountService> mount_service_;
  std::unique_ptr<NfsService> service_;
  std::unique_ptr<rpcrdma::Server> server_;
  std::unique_ptr<DiskPool> pool_;
  std::unique_ptr<MountServer> mount_server_;
};

}  // namespace weft::serve
