#include "apps/perf/listener.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>

#include "apps/common/address.h"
#include "apps/common/command.h"
#include "apps/common/output.h"
#include "apps/common/places.h"
#include "apps/common/progress.h"
#include "apps/common/rpc_config.h"
#include "apps/common/setup.h"
#include "apps/perf/client.h"
#include "apps/perf/peers.h"
#include "apps/perf/rpc_program.h"
#include "apps/perf/tcp_server.h"
#include "base/address.h"

namespace weft::apps::perf {
namespace {

// Limits of clients, and of the memory that they ask for. The limit of one address leaves room for another address.
constexpr std::uint64_t kMaxPeerMemory = std::uint64_t{2} << 30;
constexpr PlaceLimits kPlaces{
    .all = 16, .per_group = 12, .memory = kMaxPeerMemory, .memory_per_group = kMaxPeerMemory / 4 * 3};

class Listener {
 public:
  Listener(const GlobalOptions& global, const PerfOptions& options)
      : global_(global), options_(options), progress_(global.progress_or(ProgressMode::kAdapt), &stop_) {}

  absl::Status open();
  void run();

 private:
  absl::Status open_rpc(sockaddr_storage addr);
  absl::Status open_tcp(sockaddr_storage addr);

  const GlobalOptions& global_;
  const PerfOptions& options_;
  StopSignals stop_;
  Progress progress_;
  std::unique_ptr<verbs::Device> device_;
  std::unique_ptr<Peers> peers_;
  RpcService rpc_service_;
  std::unique_ptr<rpcrdma::Server> rpc_;
  std::unique_ptr<TcpServer> tcp_;
};

absl::Status Listener::open() {
  auto addr = resolve_address(options_.listen);
  if (!addr.ok()) return addr.status();
  auto device =
      open_device(global_, {.congestion_control = kDefaultCongestionControl, .files = {options_.file, options_.sink}});
  if (!device.ok()) return device.status();
  device_ = std::move(*device);
  progress_.drive(*device_);
  auto peers = Peers::listen(*device_, *addr, progress_,
                             {.places = kPlaces, .patience = patience(options_), .log = program_log()});
  if (!peers.ok()) return peers.status();
  peers_ = std::move(*peers);
  if (auto status = open_rpc(*addr); !status.ok()) return status;
  if (auto status = open_tcp(*addr); !status.ok()) return status;
  Ready ready;
  ready.tcp_port = port_of(tcp_->local_addr());
  ready.rpc_port = port_of(rpc_->local_addr());
  ready.congestion_control = rdma_congestion_control(global_);
  ready.crc = global_.crc;
  peers_->tell(ready);
  const std::string crc = global_.is_soft() ? std::string(", CRC ") + (global_.crc ? "on" : "off") : std::string();
  std::fprintf(stderr, "weft: congestion control %s%s, up to %zu clients\n", rdma_congestion_control(global_).c_str(),
               crc.c_str(), kPlaces.all);
  print_ready("rdma=" + address_str(peers_->local_addr()) + " tcp=" + address_str(tcp_->local_addr()));
  return absl::OkStatus();
}

absl::Status Listener::open_rpc(sockaddr_storage addr) {
  set_port(addr, 0);
  rpcrdma::ServerConfig config = server_config(global_, kCredits);
  config.max_item = kMaxItem;
  config.max_connections = kPlaces.all;
  const rpcrdma::ServedProgram program{&perf_binding(), &rpc_service_};
  auto server = rpcrdma::Server::listen(*device_, addr, {&program, 1}, config);
  if (!server.ok()) return to_status(server.error(), "cannot listen for RPC");
  rpc_ = std::move(server.value());
  rpc_service_.set_server(*rpc_);
  return absl::OkStatus();
}

absl::Status Listener::open_tcp(sockaddr_storage addr) {
  set_port(addr, options_.tcp_port);
  auto server = TcpServer::start(
      addr, {wanted_congestion_control(global_), options_.file, options_.sink, global_.progress, patience(options_)});
  if (!server.ok()) return server.status();
  tcp_ = std::move(*server);
  return absl::OkStatus();
}

void Listener::run() {
  constexpr std::uint64_t kTurnsBetweenLooks = 1024;
  std::uint64_t turns = 0;
  std::optional<TimePoint> wake;
  while (!stop_.requested()) {
    // Silent clients are looked for even while a client keeps the loop busy, though not at every turn.
    const bool idle = progress_.turn(*rpc_, wake) == 0;
    const TimePoint now = std::chrono::steady_clock::now();
    if (idle || ++turns % kTurnsBetweenLooks == 0) peers_->end_silent(now);
    const bool has_more = peers_->on_turn(now);
    if (has_more) {
      wake = now;
    } else if (peers_->empty()) {
      wake.reset();
    } else {
      wake = peers_->next_look();
    }
  }
}

}  // namespace

int run_listener(const GlobalOptions& global, const PerfOptions& options) {
  Listener listener(global, options);
  if (auto status = listener.open(); !status.ok()) return fail(status);
  listener.run();
  return kExitDone;
}

}  // namespace weft::apps::perf
