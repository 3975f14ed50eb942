#include "apps/perf/listener.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "apps/common/address.h"
#include "apps/common/command.h"
#include "apps/common/connection.h"
#include "apps/common/output.h"
#include "apps/common/places.h"
#include "apps/common/progress.h"
#include "apps/common/setup.h"
#include "apps/perf/client.h"
#include "apps/perf/rdma_peer.h"
#include "apps/perf/rpc_program.h"
#include "apps/perf/tcp_server.h"
#include "rpcrdma/peer_group.h"

namespace weft::apps::perf {
namespace {

constexpr int kBacklog = 16;
// Clients, and the memory that they ask for. What one address may have leaves room for another one.
constexpr std::uint64_t kMaxPeerMemory = std::uint64_t{2} << 30;
constexpr PlaceLimits kPlaces{
    .all = 16, .per_group = 12, .memory = kMaxPeerMemory, .memory_per_group = kMaxPeerMemory / 4 * 3};
// How often clients are looked at for whether they still do something.
constexpr std::chrono::milliseconds kLookEvery{250};

class Listener {
 public:
  Listener(const GlobalOptions& global, const PerfOptions& options)
      : global_(global), options_(options), progress_(global.progress_or(ProgressMode::kAdapt), &stop_) {}

  absl::Status open();
  void run();

 private:
  absl::Status open_rdma(const sockaddr_storage& addr);
  absl::Status open_rpc(sockaddr_storage addr);
  absl::Status open_tcp(sockaddr_storage addr);
  void on_event(verbs::CmEvent event);
  void on_request(verbs::CmEvent event);
  void refuse(verbs::CmId& id, std::string why);
  // Makes room for a client; why that cannot be, or an empty text.
  std::string make_room(const Occupant& newcomer);
  void end_silent(verbs::TimePoint now);

  const GlobalOptions& global_;
  const PerfOptions& options_;
  StopSignals stop_;
  Progress progress_;
  std::unique_ptr<verbs::Device> device_;
  std::unique_ptr<verbs::CmChannel> channel_;
  std::unique_ptr<verbs::CmId> listener_;
  RpcService rpc_service_;
  std::unique_ptr<rpcrdma::Server> rpc_;
  std::unique_ptr<TcpServer> tcp_;
  struct Client {
    std::unique_ptr<RdmaPeer> peer;
    std::string group;
    std::uint64_t memory = 0;
  };
  std::map<verbs::CmId*, Client> peers_;
  verbs::TimePoint look_at_{};  // for silent clients, where there are clients
};

absl::Status Listener::open() {
  auto addr = resolve_address(options_.listen);
  if (!addr.ok()) return addr.status();
  auto device = open_device(global_, {.congestion_control = kDefaultCongestionControl});
  if (!device.ok()) return device.status();
  device_ = std::move(*device);
  progress_.drive(*device_);
  if (auto status = open_rdma(*addr); !status.ok()) return status;
  if (auto status = open_rpc(*addr); !status.ok()) return status;
  if (auto status = open_tcp(*addr); !status.ok()) return status;
  const std::string crc = global_.is_soft() ? std::string(", CRC ") + (global_.crc ? "on" : "off") : std::string();
  std::fprintf(stderr, "weft: congestion control %s%s, up to %zu clients\n", rdma_congestion_control(global_).c_str(),
               crc.c_str(), kPlaces.all);
  print_ready("rdma=" + format_address(listener_->local_addr()) + " tcp=" + format_address(tcp_->local_addr()));
  return absl::OkStatus();
}

absl::Status Listener::open_rdma(const sockaddr_storage& addr) {
  auto channel = device_->create_event_channel();
  if (!channel.ok()) return to_status(channel.error(), "cannot create an event channel");
  channel_ = std::move(channel.value());
  auto id = channel_->create_id();
  if (!id.ok()) return to_status(id.error(), "cannot create a connection identifier");
  listener_ = std::move(id.value());
  std::string what = "cannot listen at " + format_address(addr);
  if (auto status = listener_->bind_addr(addr); !status.ok()) return to_status(status.error(), what);
  if (auto status = listener_->listen(kBacklog); !status.ok()) return to_status(status.error(), what);
  return absl::OkStatus();
}

absl::Status Listener::open_rpc(sockaddr_storage addr) {
  set_port(addr, 0);
  rpcrdma::ServerConfig config;
  config.inline_threshold = global_.inline_threshold;
  config.credits = global_.credits;
  config.max_item = kMaxItem;
  config.max_connections = kPlaces.all;
  config.ord = global_.ord;
  config.log = program_log();
  const rpcrdma::Program program{&perf_binding(), &rpc_service_};
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
  std::optional<verbs::TimePoint> wake;
  while (!stop_.requested()) {
    if (!wake && !peers_.empty()) wake = look_at_;
    // Beside a client that keeps the loop busy, too, though not at every turn.
    const bool idle = progress_.turn(*rpc_, std::exchange(wake, std::nullopt)) == 0;
    if ((idle || ++turns % kTurnsBetweenLooks == 0) && !peers_.empty()) end_silent(std::chrono::steady_clock::now());
    std::erase_if(peers_, [](auto& entry) {
      bool over = !entry.second.peer->on_progress();
      if (over) spdlog::info("perf: {} is done", entry.second.peer->name());
      return over;
    });
    const auto has_more = [](const auto& entry) { return entry.second.peer->has_more(); };
    if (std::ranges::any_of(peers_, has_more)) wake = std::chrono::steady_clock::now();
    while (std::optional<verbs::CmEvent> event = channel_->get_event()) on_event(std::move(*event));
  }
}

void Listener::on_event(verbs::CmEvent event) {
  switch (event.type) {
    case verbs::CmEventType::kConnectRequest: on_request(std::move(event)); break;
    case verbs::CmEventType::kEstablished: break;
    default:
      if (!event.text.empty()) spdlog::info("perf: {}", event.text);
      peers_.erase(event.id);
      break;
  }
}

// A client that has stopped in the middle keeps its place and its memory from others.
void Listener::end_silent(verbs::TimePoint now) {
  if (now < look_at_) return;
  look_at_ = now + std::min(kLookEvery, patience(options_));
  std::erase_if(peers_, [&](auto& entry) {
    const bool silent = entry.second.peer->silent_for(now) >= patience(options_);
    if (silent) spdlog::warn("perf: {} is given up, it has done nothing for too long", entry.second.peer->name());
    return silent;
  });
}

std::string Listener::make_room(const Occupant& newcomer) {
  const verbs::TimePoint now = std::chrono::steady_clock::now();
  std::vector<verbs::CmId*> ids;
  std::vector<Occupant> occupants;
  for (const auto& [id, client] : peers_) {
    ids.push_back(id);
    occupants.push_back({client.group, client.memory, client.peer->silent_for(now)});
  }
  Admission admission = admit(newcomer, occupants, kPlaces);
  for (const std::size_t i : admission.leaving) {
    spdlog::info("perf: {} gives its place to another client", peers_.at(ids[i]).peer->name());
    peers_.erase(ids[i]);
  }
  return std::move(admission.refusal);
}

void Listener::refuse(verbs::CmId& id, std::string why) {
  spdlog::warn("perf: {} turned away: {}", format_address(id.peer_addr()), why);
  Ready ready;
  ready.error = std::move(why);
  const auto whole = emit_ready(ready);
  std::vector<std::uint8_t> octets(whole.begin(), whole.end());
  cut_ready(octets, device_->caps().max_private_data);
  if (!id.reject(octets).ok()) spdlog::debug("perf: it was gone already");
}

void Listener::on_request(verbs::CmEvent event) {
  std::unique_ptr<verbs::CmId> id = std::move(event.new_id);
  std::optional<Hello> hello = parse_hello(without_padding(event.param.private_data, kHelloLen));
  if (!hello) return refuse(*id, "the private data is no Hello of this version");
  if (hello->op == Op::kSend && hello->size == 0) return refuse(*id, "send needs messages of at least one octet");
  const Occupant newcomer{.group = rpcrdma::peer_group(id->peer_addr()), .memory = RdmaPeer::memory_of(*hello)};
  if (std::string why = make_room(newcomer); !why.empty()) return refuse(*id, std::move(why));

  Ready ready;
  ready.tcp_port = port_of(tcp_->local_addr());
  ready.rpc_port = port_of(rpc_->local_addr());
  ready.congestion_control = rdma_congestion_control(global_);
  ready.crc = global_.crc;
  verbs::CmId* key = id.get();
  auto peer = RdmaPeer::accept(*device_, std::move(id), *hello, std::move(ready));
  if (!peer.ok()) {
    spdlog::warn("perf: {}", std::string(peer.status().message()));
    return;
  }
  spdlog::info("perf: {} connected for {}", (*peer)->name(), op_name(hello->op));
  if (peers_.empty()) {
    look_at_ = std::chrono::steady_clock::now();
    progress_.expect(place_of(key->peer_addr()));
  } else if (place_of(key->peer_addr()) == PeerPlace::kThisMachine) {
    progress_.expect(PeerPlace::kThisMachine);
  }
  peers_.emplace(key, Client{std::move(*peer), newcomer.group, newcomer.memory});
}

}  // namespace

int run_listener(const GlobalOptions& global, const PerfOptions& options) {
  Listener listener(global, options);
  if (auto status = listener.open(); !status.ok()) return fail(status);
  listener.run();
  return kExitDone;
}

}  // namespace weft::apps::perf
