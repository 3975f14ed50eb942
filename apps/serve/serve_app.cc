#include "apps/serve/serve_app.h"

#include <array>

#include "apps/common/address.h"
#include "apps/common/command.h"
#include "apps/common/progress.h"
#include "apps/serve/backend/reply_limits.h"
#include "base/address.h"
#include "fmt/format.h"
#include "nfsulb/nfs3.h"

namespace weft::serve {
namespace {

class SweepTask : public DiskTask {
 public:
  SweepTask(Backend& backend, bool& is_sweeping) : backend_(backend), is_sweeping_(is_sweeping) {}
  void run() override { backend_.sweep_open_files(); }
  void finish() override { is_sweeping_ = false; }

 private:
  Backend& backend_;
  bool& is_sweeping_;  // the loop's variable
};

class SyncEvictedTask : public DiskTask {
 public:
  SyncEvictedTask(Backend& backend, std::size_t& num_syncing) : backend_(backend), num_syncing_(num_syncing) {}
  void run() override { backend_.sync_evicted_files(); }
  void finish() override { --num_syncing_; }

 private:
  Backend& backend_;
  std::size_t& num_syncing_;  // the loop's variable
};

}  // namespace

absl::StatusOr<std::unique_ptr<ServeApp>> ServeApp::start(const ServeConfig& config, verbs::Device& device) {
  std::unique_ptr<ServeApp> app(new ServeApp(config, device));
  absl::StatusOr<std::unique_ptr<Tree>> tree = Tree::open(config.tree);
  if (!tree.ok()) return tree.status();
  app->tree_ = std::move(*tree);
  app->backend_ = std::make_unique<Backend>(*app->tree_, config.backend, config.calls);
  app->mount_service_ = std::make_unique<MountService>(*app->tree_);
  app->pool_ = std::make_unique<DiskPool>(config.pool);
  app->service_ = std::make_unique<NfsService>(*app->backend_, *app->pool_);

  const std::array programs = {rpcrdma::ServedProgram{.binding = &nfsulb::nfs3_binding(),
                                                      .service = app->service_.get(),
                                                      .keeps_replies = true,
                                                      .results_of = results_of}};
  auto server = rpcrdma::Server::listen(device, config.listen, programs, config.rpc);
  if (!server.ok())
    return apps::to_status(server.error(), fmt::format("cannot listen for RDMA at {} (choose another --listen)",
                                                       address_str(config.listen)));
  app->server_ = std::move(server.value());
  app->service_->attach(*app->server_);
  if (config.has_metrics) app->server_->observe(app->calls_);

  absl::StatusOr<std::unique_ptr<MountServer>> mount =
      MountServer::listen(config.mount_listen, *app->mount_service_, config.mount);
  if (!mount.ok()) return mount.status();
  app->mount_server_ = std::move(*mount);
  return app;
}

std::size_t ServeApp::turn(TimePoint now) {
  // The replies come first, so that the same pass sends them.
  std::size_t moved = pool_->drain();
  sync_evicted_files();
  sweep_when_due(now);
  return moved + server_->process(now);
}

void ServeApp::sweep_when_due(TimePoint now) {
  if (is_sweeping_) return;
  if (backend_->num_open_files() == 0) return sweep_at_.reset();
  if (sweep_at_ && now < *sweep_at_) return;
  const bool is_due = sweep_at_.has_value();
  sweep_at_ = now + Backend::kSweepInterval;
  if (!is_due) return;
  std::unique_ptr<DiskTask> task = std::make_unique<SweepTask>(*backend_, is_sweeping_);
  is_sweeping_ = true;
  // The task belongs to the server itself: no connection has the number 0. If too many tasks wait, the next sweep will
  // do.
  if (!pool_->submit(task, DiskLane::kSync, DiskClient{})) is_sweeping_ = false;
}

void ServeApp::sync_evicted_files() {
  constexpr std::size_t kMostAtOnce = 4;  // a file that is slow to sync holds up no other one
  if (backend_->num_files_waiting() == 0 || num_syncing_ == kMostAtOnce) return;
  std::unique_ptr<DiskTask> task = std::make_unique<SyncEvictedTask>(*backend_, num_syncing_);
  num_syncing_ += pool_->submit(task, DiskLane::kSync, DiskClient{});
}

void ServeApp::wait(int stop_fd, std::optional<TimePoint> until, int wake_fd) {
  if (!pool_->prepare_wait()) return;
  std::optional<TimePoint> wake = earliest(server_->next_timeout(), until);
  if (!is_sweeping_) wake = earliest(wake, sweep_at_);
  apps::wait_readable({server_->fd(), pool_->event_fd(), stop_fd, wake_fd}, wake);
  pool_->end_wait();
}

std::string ServeApp::summary() const {
  const verbs::QpCounters counters = server_->counters();
  std::uint64_t num_calls = 0;
  for (std::uint64_t n : service_->num_calls()) num_calls += n;
  return fmt::format(
      "{} calls ({} READ, {} WRITE); sent {} RDMA Writes ({} bytes), {} RDMA Reads ({} bytes), {} Sends; "
      "{} searches for moved files",
      num_calls, service_->num_calls()[static_cast<std::size_t>(nfs3::Proc::kRead)],
      service_->num_calls()[static_cast<std::size_t>(nfs3::Proc::kWrite)], counters.writes_tx, counters.write_octets_tx,
      counters.reads_tx, counters.read_octets_tx, counters.sends_tx, tree_->num_searches());
}

metrics::Snapshot ServeApp::snapshot() {
  metrics::Snapshot out;
  metrics::take(out, calls_, server_->statistics());
  if (config_.refused_by_device) out.server.not_admitted += *config_.refused_by_device;
  out.max_connections = config_.rpc.max_connections;
  out.terminates = device_.query().terminates;
  const rpcrdma::ServerMemory memory = server_->memory();
  out.memory = {{.kind = "calls", .held = memory.calls, .limit = memory.max_calls},
                {.kind = "sends", .held = memory.sends},
                {.kind = "receives", .held = memory.receives}};
  out.files = {{.kind = "export", .held = backend_->num_open_files(), .limit = config_.backend.max_open_files}};
  for (const auto& [name, lane] : {std::pair{"normal", DiskLane::kNormal}, std::pair{"sync", DiskLane::kSync}}) {
    const DiskPool::LaneState state = pool_->state_of(lane);
    out.lanes.push_back({.lane = name,
                         .queued = state.num_queued,
                         .queue_limit = pool_->max_queued(),
                         .running = state.num_running,
                         .workers = pool_->num_workers(lane),
                         .done = state.num_done,
                         .refused = state.num_refused});
  }
  return out;
}

}  // namespace weft::serve
