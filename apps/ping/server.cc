#include <algorithm>
#include <chrono>
#include <map>
#include <vector>

#include "apps/common/address.h"
#include "apps/common/command.h"
#include "apps/common/connection.h"
#include "apps/common/output.h"
#include "apps/common/places.h"
#include "apps/common/setup.h"
#include "apps/ping/run.h"
#include "base/address.h"
#include "base/peer_group.h"
#include "rpcrdma/event_log.h"

namespace weft::apps::ping {
namespace {

constexpr int kBacklog = 16;
// The limits of all clients together, and of the clients of one peer_group.
constexpr PlaceLimits kPlaces{.all = 64, .per_group = 48};
// The interval between checks for silent clients.
constexpr std::chrono::milliseconds kLookEvery{250};

// Peer is one client. It follows the completions: a message of the client starts an RDMA Read, then a Write, in turn.
// The end of either one sends go ahead.
class Peer {
 public:
  static absl::StatusOr<std::unique_ptr<Peer>> accept(verbs::Device& device, verbs::Pd& pd,
                                                      std::unique_ptr<verbs::CmId> id, rpcrdma::EventLog& log);

  // log outlives the Peer.
  explicit Peer(rpcrdma::EventLog& log) : log_(log) {}
  // Takes all completions. False if the connection must be ended.
  bool on_progress();
  void disconnect() {
    if (!id_->disconnect().ok()) log_.line(verbs::LogLevel::kDebug, name_, "is gone already");
  }
  const std::string& name() const { return name_; }
  const std::string& group() const { return group_; }
  // The time of the client's last event.
  TimePoint heard_at() const { return heard_at_; }
  verbs::CmId* id() const { return id_.get(); }

 private:
  enum class Next : std::uint8_t { kRead, kWrite };

  absl::Status prepare(verbs::Device& device, verbs::Pd& pd);
  absl::Status post_recv();
  bool on_completion(const verbs::Wc& wc);
  bool on_message(std::uint32_t len);
  bool send_go_ahead();
  bool post(const verbs::SendWr& wr);

  rpcrdma::EventLog& log_;
  std::string name_;
  std::string group_;
  TimePoint heard_at_ = std::chrono::steady_clock::now();
  std::unique_ptr<verbs::Cq> cq_;
  std::vector<std::uint8_t> data_ = std::vector<std::uint8_t>(kMaxSize);
  InfoOctets info_{}, go_ahead_{};
  std::unique_ptr<verbs::Mr> data_mr_, info_mr_, go_ahead_mr_;
  std::unique_ptr<verbs::CmId> id_;
  std::unique_ptr<verbs::Qp> qp_;
  Next next_ = Next::kRead;
  bool busy_ = false;         // a Read or Write of ours is on its way
  std::size_t read_len_ = 0;  // octets of data_ that the last Read filled
};

absl::StatusOr<std::unique_ptr<Peer>> Peer::accept(verbs::Device& device, verbs::Pd& pd,
                                                   std::unique_ptr<verbs::CmId> id, rpcrdma::EventLog& log) {
  auto peer = std::make_unique<Peer>(log);
  peer->id_ = std::move(id);
  peer->name_ = address_str(peer->id_->peer_addr());
  peer->group_ = peer_group(peer->id_->peer_addr());
  if (auto status = peer->prepare(device, pd); !status.ok()) return status;
  verbs::ConnParam param;
  param.responder_resources = param.initiator_depth = 1;
  if (auto status = peer->id_->accept(param); !status.ok()) return to_status(status.error(), "cannot accept");
  return peer;
}

absl::Status Peer::prepare(verbs::Device& device, verbs::Pd& pd) {
  using verbs::Access;
  auto cq = device.create_cq(16, nullptr);
  if (!cq.ok()) return to_status(cq.error(), "cannot create a completion queue");
  cq_ = std::move(cq.value());
  // Some devices want the sink of an RDMA Read to be a target of remote writes, too.
  Access sink = Access::kLocalWrite;
  if (device.caps().read_sink_needs_remote_write) sink = sink | Access::kRemoteWrite;
  struct Region {
    std::unique_ptr<verbs::Mr>& mr;
    std::span<std::uint8_t> octets;
    Access access;
  };
  const Region regions[] = {
      {data_mr_, data_, sink}, {info_mr_, info_, Access::kLocalWrite}, {go_ahead_mr_, go_ahead_, Access::kNone}};
  for (const Region& region : regions) {
    auto mr = reg_mr(pd, region.octets.data(), region.octets.size(), region.access);
    if (!mr.ok()) return mr.status();
    region.mr = std::move(*mr);
  }
  verbs::QpInitAttr attr;
  attr.send_cq = attr.recv_cq = cq_.get();
  attr.cap.max_send_wr = attr.cap.max_recv_wr = 4;
  auto qp = id_->create_qp(pd, attr);
  if (!qp.ok()) return to_status(qp.error(), "cannot create a queue pair");
  qp_ = std::move(qp.value());
  return post_recv();
}

absl::Status Peer::post_recv() {
  verbs::Sge sge{reinterpret_cast<std::uintptr_t>(info_.data()), kInfoLen, info_mr_->lkey()};
  auto status = qp_->post_recv({.wr_id = 0, .sg_list = {&sge, 1}});
  return status.ok() ? absl::OkStatus() : to_status(status.error(), "cannot post a receive");
}

bool Peer::on_progress() {
  verbs::Wc wc[8];
  int num = 0;
  do {
    num = cq_->poll(wc);
    if (num > 0) heard_at_ = std::chrono::steady_clock::now();
    for (int i = 0; i < num; ++i) {
      if (!on_completion(wc[i])) return false;
    }
  } while (num == int(std::size(wc)));
  return num >= 0;
}

bool Peer::on_completion(const verbs::Wc& wc) {
  if (wc.status != verbs::WcStatus::kSuccess) return false;
  switch (wc.opcode) {
    case verbs::WcOpcode::kRecv: return on_message(wc.byte_len);
    case verbs::WcOpcode::kRdmaRead: next_ = Next::kWrite; return send_go_ahead();
    case verbs::WcOpcode::kRdmaWrite: next_ = Next::kRead; return send_go_ahead();
    default: return true;
  }
}

bool Peer::on_message(std::uint32_t len) {
  if (len != kInfoLen) {
    log_.line(verbs::LogLevel::kWarn, name_, "sent a message of {} bytes, not {}", len, kInfoLen);
    return false;
  }
  BufferInfo info = parse_info(info_);
  if (busy_ || info.length == 0 || info.length > kMaxSize) {
    log_.line(verbs::LogLevel::kWarn, name_, "sent a message out of turn, or of a buffer of {} bytes", info.length);
    return false;
  }
  if (!post_recv().ok()) return false;
  verbs::SendWr wr;
  wr.remote_addr = info.addr;
  wr.rkey = info.rkey;
  verbs::Sge sge{reinterpret_cast<std::uintptr_t>(data_.data()), 0, data_mr_->lkey()};
  if (next_ == Next::kRead) {
    wr.opcode = verbs::WrOpcode::kRdmaRead;
    sge.length = info.length;
    read_len_ = info.length;
  } else {
    wr.opcode = verbs::WrOpcode::kRdmaWrite;
    auto text = text_len(std::span(data_).first(read_len_));
    sge.length = std::uint32_t(std::min<std::size_t>(text, info.length));
  }
  wr.sg_list = {&sge, 1};
  busy_ = true;
  return post(wr);
}

bool Peer::send_go_ahead() {
  busy_ = false;
  verbs::Sge sge{reinterpret_cast<std::uintptr_t>(go_ahead_.data()), kInfoLen, go_ahead_mr_->lkey()};
  verbs::SendWr wr;
  wr.sg_list = {&sge, 1};
  return post(wr);
}

bool Peer::post(const verbs::SendWr& wr) {
  auto status = qp_->post_send(wr);
  if (!status.ok()) log_.line(verbs::LogLevel::kWarn, name_, "{}", status.error().message);
  return status.ok();
}

class Server {
 public:
  Server(const GlobalOptions& global, const PingOptions& options)
      : options_(options),
        // Waking up for every message would be most of the time that a ping measures.
        progress_(global.progress_or(ProgressMode::kAdapt), &stop_) {}

  absl::Status open(const GlobalOptions& global);
  void run();

 private:
  void on_event(verbs::CmEvent event);
  void on_request(std::unique_ptr<verbs::CmId> id);
  void end(const std::vector<Peer*>& peers, const char* why);
  void end_silent(TimePoint now);
  // Makes a place for a client of this group. Returns the reason if there is none, or an empty text.
  std::string make_place(const std::string& group);
  void drop(verbs::CmId* id);

  const PingOptions& options_;
  StopSignals stop_;
  Progress progress_;
  rpcrdma::EventLog log_{program_log(), "ping: client"};
  std::unique_ptr<verbs::Device> device_;
  std::unique_ptr<verbs::Pd> pd_;
  std::unique_ptr<verbs::CmChannel> channel_;
  std::unique_ptr<verbs::CmId> listener_;
  std::map<verbs::CmId*, std::unique_ptr<Peer>> peers_;
  std::uint64_t served_ = 0;
  TimePoint look_at_{};  // the next check for silent clients, if there are clients
};

absl::Status Server::open(const GlobalOptions& global) {
  auto addr = resolve_address(options_.listen, kDefaultPort);
  if (!addr.ok()) return addr.status();
  auto device = open_device(global);
  if (!device.ok()) return device.status();
  device_ = std::move(*device);
  progress_.drive(*device_);
  auto pd = alloc_pd(*device_);
  if (!pd.ok()) return pd.status();
  pd_ = std::move(*pd);
  auto channel = device_->create_event_channel();
  if (!channel.ok()) return to_status(channel.error(), "cannot create an event channel");
  channel_ = std::move(channel.value());
  auto id = channel_->create_id();
  if (!id.ok()) return to_status(id.error(), "cannot create a connection identifier");
  listener_ = std::move(id.value());
  std::string what = "cannot listen on " + address_str(*addr);
  if (auto status = listener_->bind_addr(*addr); !status.ok()) return to_status(status.error(), what);
  if (auto status = listener_->listen(kBacklog); !status.ok()) return to_status(status.error(), what);
  print_ready("rdma=" + address_str(listener_->local_addr()));
  return absl::OkStatus();
}

void Server::run() {
  constexpr std::uint64_t kTurnsBetweenLooks = 1024;
  std::uint64_t turns = 0;
  while (!stop_.requested() && (options_.count == 0 || served_ < options_.count)) {
    const auto wake = peers_.empty() ? std::nullopt : std::optional(look_at_);
    const bool idle = progress_.turn(*device_, wake) == 0;
    const TimePoint now = std::chrono::steady_clock::now();
    log_.on_time(now);
    std::vector<Peer*> ended;
    for (auto& [id, peer] : peers_) {
      if (!peer->on_progress()) ended.push_back(peer.get());
    }
    end(ended, "is done");
    // Silent clients are looked for even while a client keeps the loop busy, though not at every turn.
    if ((idle || ++turns % kTurnsBetweenLooks == 0) && !peers_.empty()) end_silent(now);
    while (std::optional<verbs::CmEvent> event = channel_->get_event()) on_event(std::move(*event));
  }
}

void Server::end(const std::vector<Peer*>& peers, const char* why) {
  for (Peer* peer : peers) {
    log_.line(verbs::LogLevel::kInfo, peer->name(), "{}", why);
    peer->disconnect();
    drop(peer->id());
  }
}

// A client that has stopped midway keeps its place from others.
void Server::end_silent(TimePoint now) {
  if (now < look_at_) return;
  look_at_ = now + std::min(kLookEvery, patience(options_));
  std::vector<Peer*> silent;
  for (auto& [id, peer] : peers_) {
    if (now - peer->heard_at() >= patience(options_)) silent.push_back(peer.get());
  }
  end(silent, "is given up, it has said nothing for too long");
}

std::string Server::make_place(const std::string& group) {
  const TimePoint now = std::chrono::steady_clock::now();
  std::vector<Peer*> peers, leaving;
  std::vector<Occupant> occupants;
  for (const auto& [id, peer] : peers_) {
    peers.push_back(peer.get());
    occupants.push_back({.group = peer->group(), .silent_for = now - peer->heard_at()});
  }
  Admission admission = admit({.group = group}, occupants, kPlaces);
  for (const std::size_t i : admission.leaving) leaving.push_back(peers[i]);
  end(leaving, "gives its place to another client");
  return std::move(admission.refusal);
}

void Server::on_event(verbs::CmEvent event) {
  switch (event.type) {
    case verbs::CmEventType::kConnectRequest: on_request(std::move(event.new_id)); break;
    case verbs::CmEventType::kEstablished: break;
    default:
      if (const auto it = peers_.find(event.id); it != peers_.end() && !event.text.empty()) {
        log_.line(verbs::LogLevel::kInfo, it->second->name(), "{}", event.text);
      }
      drop(event.id);
      break;
  }
}

void Server::on_request(std::unique_ptr<verbs::CmId> id) {
  const std::string name = address_str(id->peer_addr());
  if (const std::string why = make_place(peer_group(id->peer_addr())); !why.empty()) {
    log_.line(verbs::LogLevel::kWarn, name, "turned away: {}", why);
    if (!id->reject({}).ok()) log_.line(verbs::LogLevel::kDebug, name, "was gone already");
    return;
  }
  verbs::CmId* key = id.get();
  auto peer = Peer::accept(*device_, *pd_, std::move(id), log_);
  if (!peer.ok()) {
    log_.line(verbs::LogLevel::kWarn, name, "{}", std::string(peer.status().message()));
    return;
  }
  log_.line(verbs::LogLevel::kInfo, name, "connected");
  if (peers_.empty()) {
    look_at_ = std::chrono::steady_clock::now();
    progress_.expect(place_of(key->peer_addr()));
  } else if (place_of(key->peer_addr()) == PeerPlace::kThisMachine) {
    progress_.expect(PeerPlace::kThisMachine);
  }
  peers_.emplace(key, std::move(*peer));
}

void Server::drop(verbs::CmId* id) {
  if (peers_.erase(id) != 0) ++served_;
}

}  // namespace

int run_server(const GlobalOptions& global, const PingOptions& options) {
  Server server(global, options);
  if (auto status = server.open(global); !status.ok()) return fail(status);
  server.run();
  return kExitDone;
}

}  // namespace weft::apps::ping
