#include "rpcrdma/server.h"

#include <algorithm>
#include <cerrno>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "rpcrdma/channel.h"
#include "rpcrdma/connection_setup.h"
#include "rpcrdma/event_log.h"
#include "rpcrdma/message_resources.h"
#include "rpcrdma/peer_group.h"
#include "rpcrdma/replay_cache.h"
#include "rpcrdma/responder.h"
#include "rpcrdma/reverse.h"

namespace weft::rpcrdma {

namespace {

constexpr std::uint32_t kSendQueueDepth = 64;  // Sends and Writes of one connection; Reads come on top
constexpr std::uint32_t kMaxSge = 4;
constexpr std::chrono::seconds kCloseTimeout{5};
// How long a queue pair that has ended may take to hand out the shared Receives that it had begun to fill; for devices
// that move by themselves.
constexpr std::chrono::milliseconds kFlushTime{100};
// Of these so many at once, beside the connections.
constexpr std::size_t kMaxFlushing = 64;
// How long a client may take to its first Call before it gives way also to clients of addresses with more connections.
constexpr std::chrono::seconds kFirstCallTime{1};
// How often what Calls took is given back, of connections that are at rest then.
constexpr std::chrono::seconds kTrimInterval{1};
// Of each chunk of a Call; a Read list has two chunks (RFC 8267 section 6.4.2).
constexpr std::size_t kMustTakeSegments = 16;
// Completions that one completion queue is made to hold; connections share as many queues as that takes.
constexpr std::uint32_t kSharedCqe = 16384;
// After so many octets pulled, by so many Reads at least, what came of them leaves, and those of the Calls that came
// meanwhile are asked for: behind a long batch the peer would have nothing to do.
constexpr std::size_t kPulledPerTurn = std::size_t{128} << 10;
constexpr int kReadsPerTurn = 2;
// So often within one process(): peers that never stop must not keep it, whose caller has other work.
constexpr int kMaxTurns = 8;

// What was pulled since the last turn.
struct Pulled {
  std::size_t octets = 0;
  int num_reads = 0;

  void count(const verbs::Wc& wc) {
    if (wc.status != verbs::WcStatus::kSuccess || wc.opcode != verbs::WcOpcode::kRdmaRead) return;
    octets += wc.byte_len;
    ++num_reads;
  }
  bool is_worth_a_turn() const { return octets >= kPulledPerTurn && num_reads >= kReadsPerTurn; }
};

// What one Call may hold: its message, its items, results and a Reply.
std::size_t largest_call(const ServerConfig& config) {
  return config.max_call + 3 * config.max_item;
}

// A shared limit beside which the zero of a configuration means a part of it.
std::size_t max_connections_per_group(const ServerConfig& config) {
  if (config.max_connections_per_client != 0) return config.max_connections_per_client;
  return config.max_connections - config.max_connections / 4;
}

std::size_t max_buffered_per_group(const ServerConfig& config) {
  if (config.max_buffered_per_client != 0) return config.max_buffered_per_client;
  return std::max(config.max_buffered / 4, largest_call(config));
}

std::size_t guaranteed_octets(const ServerConfig& config) {
  return std::max(config.min_buffered_per_connection, config.inline_threshold);
}

verbs::Status check(const ServerConfig& config, const verbs::Caps& caps) {
  const std::uint32_t other_receives = kExtraReceives + config.reverse_credits;
  const auto sizes = check_sizes(caps, config.inline_threshold, config.credits, other_receives);
  if (!sizes.ok()) return sizes;
  if (config.reverse_credits > kMaxReverseCredits) {
    return verbs::Error{EINVAL, "reverse credits must be at most 16"};
  }
  if (config.min_credits > config.credits) return verbs::Error{EINVAL, "min_credits must not exceed credits"};
  // U1-6.4.2-05
  if (config.max_segments < 2 * kMustTakeSegments || config.max_read_chunks == 0 || config.max_write_chunks == 0 ||
      config.max_items == 0) {
    return verbs::Error{EINVAL, "a server must take 32 segments a list and one chunk of each kind"};
  }
  if (config.max_buffered_per_client != 0 && config.max_buffered_per_client < largest_call(config)) {
    return verbs::Error{EINVAL, "max_buffered_per_client must hold one Call of max_call and three times max_item"};
  }
  if (config.max_item == 0 || config.max_call == 0 || config.max_item > config.max_buffered ||
      largest_call(config) > config.max_buffered) {
    return verbs::Error{EINVAL, "max_buffered must hold one Call of max_call and three times max_item"};
  }
  return {};
}

}  // namespace

struct Server::Impl {
  struct SharedCq {
    std::unique_ptr<verbs::Cq> cq;
    std::uint32_t room = 0;  // completions that no connection has been promised
    bool overrun = false;    // completions are lost: of no use any more
  };

  struct Connection {
    std::unique_ptr<verbs::CmId> id;
    std::unique_ptr<Channel> channel;
    std::unique_ptr<verbs::Qp> qp;
    std::unique_ptr<Responder> responder;
    std::unique_ptr<ReverseRequester> reverse;  // where there are reverse credits
    SharedCq* shared = nullptr;
    std::uint32_t num_completions = 0;  // of its room
    std::string client;                 // its address
    std::string group;                  // and what limits count it with
    verbs::TimePoint used_at{};         // when something of a Call last came or went
    bool active = false;                // in Impl::active
    bool to_trim = false;               // in Impl::to_trim
    std::optional<verbs::TimePoint> close_deadline;
    std::optional<std::string> ended;  // why, once that is known

    std::uint32_t serial() const { return channel->config().serial; }
    std::string peer() const { return address_str(id->peer_addr()); }
    void end_calls(const std::string& why, verbs::TimePoint now) {
      if (!reverse) return;
      reverse->calls().on_closed(why);
      reverse->calls().on_time(now);
    }
    ~Connection() {
      // The queue pair first: then no request names memory that the responder gives back.
      if (channel) channel->detach();
      qp.reset();
      reverse.reset();
      responder.reset();
      if (shared != nullptr) shared->room += num_completions;
    }
  };

  verbs::Device& device;
  std::vector<Program> programs;
  std::set<Service*> services;  // of these
  ServerConfig config;
  verbs::TimePoint now{};
  bool in_process = false;
  int turns_left = 0;  // of this process()
  EventLog log;

  std::unique_ptr<verbs::CmChannel> cm_events;
  std::unique_ptr<verbs::Pd> pd;
  std::unique_ptr<verbs::CompChannel> events;
  std::vector<std::unique_ptr<SharedCq>> cqs;
  MessageResources messages;
  std::unique_ptr<BufferPool> pool;
  std::vector<std::unique_ptr<BufferPool>> other_pools;  // make_buffers
  Budget budget;
  ReplayCache replays;
  std::unique_ptr<verbs::CmId> listener;
  std::unordered_map<std::uint32_t, std::unique_ptr<Connection>> connections;
  std::unordered_map<std::uint32_t, Connection*> by_qp;       // by number of the queue pair
  std::unordered_map<std::string, std::size_t> num_of_group;  // connections, by group of addresses
  std::vector<std::pair<verbs::TimePoint, std::unique_ptr<Connection>>> flushing;
  std::uint32_t last_serial = 0;
  std::vector<std::uint32_t> active;   // serials of connections with something to watch
  std::vector<std::uint32_t> to_trim;  // and of those that had
  std::optional<verbs::TimePoint> trim_at;
  verbs::QpCounters ended;

  Impl(verbs::Device& d, std::span<const Program> p, const ServerConfig& c)
      : device(d), programs(p.begin(), p.end()), config(c), log(config.log, "client"), replays(config.replays) {
    for (const Program& program : programs) services.insert(program.service);
  }

  verbs::Status open(const sockaddr_storage& addr);
  verbs::Result<SharedCq*> shared_cq();
  void on_cm_event(verbs::CmEvent& event);
  void on_connect_request(verbs::CmEvent& event);
  verbs::Status accept(std::unique_ptr<verbs::CmId> id, const verbs::ConnParam& peer);
  Responder::Config responder_config(const Connection& connection, ConstBytes peer_private_data);
  bool invalidates() const {
    const bool has_own_chunks = config.reverse_credits != 0 && config.reverse_chunks;
    return config.remote_invalidation && can_invalidate(device.caps()) && !has_own_chunks;
  }
  bool make_room(const sockaddr_storage& newcomer);
  Connection* least_missed(const std::string& newcomer, bool only_its_group);
  std::size_t num_of(const std::string& group) const;
  std::size_t turn();
  std::size_t drain();
  std::size_t drain_shared_receives();
  void on_overrun(SharedCq& shared);
  void on_completion(const verbs::Wc& wc);
  void on_shared_receive(const verbs::Wc& wc);
  void handle(Connection& connection, const verbs::Wc& wc);
  Connection* find(std::uint32_t serial);
  void activate(std::uint32_t serial, Connection& connection);
  void run_active();
  void trim_later(std::uint32_t serial, Connection& connection);
  void trim();
  void answer(CallId id, ServedReply&& reply);
  void keep(CallId id, const ServedReply& reply);
  void note_end(Connection& connection, verbs::LogLevel level, std::string why);
  void note_failure(Connection& connection);
  void note_end(Connection& connection, const verbs::CmEvent& event);
  void close(Connection& connection);
  void remove(std::uint32_t serial);
  void flush(std::unique_ptr<Connection>& connection);
};

verbs::Status Server::Impl::open(const sockaddr_storage& addr) {
  const verbs::Caps& caps = device.caps();
  auto made_pd = device.alloc_pd();
  if (!made_pd.ok()) return made_pd.error();
  pd = std::move(*made_pd);
  auto made_events = device.create_comp_channel();
  if (!made_events.ok()) return made_events.error();
  events = std::move(*made_events);
  auto made_cm = device.create_event_channel();
  if (!made_cm.ok()) return made_cm.error();
  cm_events = std::move(*made_cm);
  const std::size_t guaranteed = config.max_connections * guaranteed_octets(config);
  pool = std::make_unique<BufferPool>(*pd, config.max_call + config.max_item, config.max_buffered + guaranteed,
                                      caps.read_sink_needs_remote_write);
  budget.limit = config.max_buffered;
  budget.max_per_group = max_buffered_per_group(config);

  Channel::Config& shape = messages.shape;
  shape.receive_len = config.inline_threshold;
  shape.send_len = config.inline_threshold + Responder::kSendExtra;
  shape.max_send_wr = kSendQueueDepth + std::uint32_t{config.ord};
  shape.max_send_sge = std::min(kMaxSge, caps.max_sge);
  if (auto status = messages.open(device, *pd, *events, config); !status.ok()) return status;

  auto made_id = cm_events->create_id();
  if (!made_id.ok()) return made_id.error();
  listener = std::move(*made_id);
  if (auto status = listener->bind_addr(addr); !status.ok()) return status;
  return listener->listen(config.backlog);
}

verbs::Result<Server::Impl::SharedCq*> Server::Impl::shared_cq() {
  const std::uint32_t need = messages.completions();
  for (auto& shared : cqs) {
    if (shared->room >= need && !shared->overrun) return shared.get();
  }
  const std::uint32_t cqe = std::min(std::max(kSharedCqe, need), device.caps().max_cqe);
  if (cqe < need) return verbs::Error{ENOMEM, "the device's completion queues are too short"};
  auto made = device.create_cq(static_cast<int>(cqe), events.get());
  if (!made.ok()) return made.error();
  cqs.push_back(std::make_unique<SharedCq>(SharedCq{std::move(*made), cqe}));
  return cqs.back().get();
}

Server::Impl::Connection* Server::Impl::find(std::uint32_t serial) {
  const auto at = connections.find(serial);
  return at == connections.end() ? nullptr : at->second.get();
}

void Server::Impl::activate(std::uint32_t serial, Connection& connection) {
  if (connection.active) return;
  connection.active = true;
  active.push_back(serial);
}

void Server::Impl::on_cm_event(verbs::CmEvent& event) {
  if (event.type == verbs::CmEventType::kConnectRequest) return on_connect_request(event);
  if (event.id == nullptr || event.id == listener.get()) return;
  Connection* connection = find(static_cast<std::uint32_t>(event.id->context));
  if (connection == nullptr) return;
  if (event.refused_write) {
    connection->responder->on_write_refused(event.refused_write->rkey, event.refused_write->remote_addr);
  }
  switch (event.type) {
    case verbs::CmEventType::kConnectError:
    case verbs::CmEventType::kUnreachable:
    case verbs::CmEventType::kRejected:
    case verbs::CmEventType::kDisconnected:
    case verbs::CmEventType::kDeviceRemoval:
      note_end(*connection, event);
      remove(connection->serial());
      break;
    default: break;
  }
}

void Server::Impl::on_connect_request(verbs::CmEvent& event) {
  if (!event.new_id) return;
  const sockaddr_storage peer = event.new_id->peer_addr();
  if (config.admits && !config.admits(peer)) {
    log.line(verbs::LogLevel::kInfo, address_str(peer), "rejected: it is not admitted");
    (void)event.new_id->reject({});
    return;
  }
  if (!make_room(peer)) {
    log.line(verbs::LogLevel::kWarn, address_str(peer),
             "rejected: there are {} connections, {} of them of its address, and none gives way", connections.size(),
             num_of(peer_group(peer)));
    (void)event.new_id->reject({});
    return;
  }
  // A connection that cannot be set up is closed by its id's end; the others go on.
  if (const auto status = accept(std::move(event.new_id), event.param); !status.ok()) {
    log.line(verbs::LogLevel::kWarn, address_str(peer), "its connection cannot be accepted: {}",
             status.error().message);
  }
}

std::size_t Server::Impl::num_of(const std::string& group) const {
  const auto at = num_of_group.find(group);
  return at == num_of_group.end() ? 0 : at->second;
}

// Whether there is room for a connection of this peer, if need be since another one was ended for it.
bool Server::Impl::make_room(const sockaddr_storage& newcomer) {
  const std::string group = peer_group(newcomer);
  if (flushing.size() >= kMaxFlushing) return false;
  const bool is_group_full = num_of(group) >= max_connections_per_group(config);
  if (!is_group_full && connections.size() < config.max_connections) return true;
  Connection* connection = least_missed(group, is_group_full);
  if (connection == nullptr) return false;
  note_end(*connection, verbs::LogLevel::kWarn, "it gives way to " + address_str(newcomer));
  remove(connection->serial());
  return true;
}

// The connection that is to give way to a newcomer: one over which no Call ever came before others, one of a group that
// has many before one of a group that has few, and of these the one that was silent longest. Null where there is none:
// Calls that a service works on keep their connection, and no group gives way to one that has more.
Server::Impl::Connection* Server::Impl::least_missed(const std::string& newcomer, bool only_its_group) {
  const std::size_t num_newcomers = num_of(newcomer);
  Connection* found = nullptr;
  std::tuple<bool, std::size_t, verbs::TimePoint> least;
  for (const auto& [serial, connection] : connections) {
    if (only_its_group && connection->group != newcomer) continue;
    if (connection->responder->has_served_calls()) continue;
    const bool has_called = connection->responder->counters().calls_served != 0;
    const std::size_t num = num_of(connection->group);
    const bool had_time = !has_called && now - connection->used_at >= kFirstCallTime;
    if (num < num_newcomers && !had_time) continue;
    const std::tuple value(has_called, SIZE_MAX - num, connection->used_at);
    if (found != nullptr && value >= least) continue;
    found = connection.get();
    least = value;
  }
  return found;
}

Responder::Config Server::Impl::responder_config(const Connection& connection, ConstBytes peer_private_data) {
  Responder::Config calls;
  const std::uint32_t receives = connection.channel->config().num_receives - config.reverse_credits;
  const std::uint32_t least = std::min(messages.idle_credits, receives);
  calls.credits = {.min = least, .initial = least, .max = config.credits};
  calls.reverse_credits = config.reverse_credits;
  calls.max_segments = config.max_segments;
  calls.max_read_chunks = config.max_read_chunks;
  calls.max_write_chunks = config.max_write_chunks;
  calls.max_items = config.max_items;
  calls.max_call = config.max_call;
  calls.max_item = config.max_item;
  calls.max_held = config.max_buffered_per_connection;
  calls.guaranteed = guaranteed_octets(config);
  calls.max_sge = messages.shape.max_send_sge;
  // R1-4.3.2-17
  calls.invalidates = invalidates() && v1::parse_private_data(peer_private_data).remote_invalidate;
  calls.stall_timeout = config.stall_timeout;
  calls.short_stall_timeout = std::min(config.stall_timeout, config.short_stall_timeout);
  calls.peer = address_str(connection.id->peer_addr());
  calls.peer_group = connection.group;
  calls.replays = &replays;
  calls.client = connection.client;
  calls.log = &log;
  return calls;
}

verbs::Status Server::Impl::accept(std::unique_ptr<verbs::CmId> id, const verbs::ConnParam& peer) {
  const verbs::Caps& caps = device.caps();
  do {
    ++last_serial;
  } while (last_serial == 0 || connections.contains(last_serial));
  auto connection = std::make_unique<Connection>();
  auto shared = shared_cq();
  if (!shared.ok()) return shared.error();
  auto channel = Channel::create(*pd, messages.next(last_serial));
  if (!channel.ok()) return channel.error();
  connection->id = std::move(id);
  connection->id->context = last_serial;
  connection->channel = std::move(*channel);
  auto qp = connection->id->create_qp(*pd, connection->channel->qp_attr(*(*shared)->cq, messages.receive_cq.get()));
  if (!qp.ok()) return qp.error();
  connection->qp = std::move(*qp);
  if (auto status = connection->channel->attach(*connection->qp); !status.ok()) return status;

  verbs::ConnParam param;
  param.private_data = own_private_data(caps, config.inline_threshold, invalidates());
  param.responder_resources = std::min(config.ird, peer.responder_resources);
  param.initiator_depth = static_cast<std::uint8_t>(
      std::min<std::uint32_t>(std::min(config.ord, peer.initiator_depth), caps.max_qp_init_rd_atom));
  connection->client = host_str(connection->id->peer_addr());
  connection->group = peer_group(connection->id->peer_addr());
  connection->used_at = now;
  connection->responder =
      std::make_unique<Responder>(*pd, *connection->channel, *pool, budget, std::span<const Program>(programs),
                                  responder_config(*connection, peer.private_data));
  const Thresholds thresholds = settle_thresholds(config.inline_threshold, peer.private_data);
  connection->responder->start(thresholds.send, param.initiator_depth);
  if (config.reverse_credits != 0) {
    connection->reverse =
        std::make_unique<ReverseRequester>(*pd, *connection->channel, *connection->responder,
                                           ReverseRequester::Config{config.reverse_credits, config.reverse_chunks,
                                                                    config.reverse_timeout, connection->peer(), &log});
    connection->reverse->start(thresholds);
  }
  if (auto status = connection->id->accept(param); !status.ok()) return status;
  connection->shared = *shared;
  connection->num_completions = messages.completions();
  connection->shared->room -= connection->num_completions;
  ++num_of_group[connection->group];
  by_qp.emplace(connection->qp->qp_num(), connection.get());
  connections.emplace(last_serial, std::move(connection));
  return {};
}

// Lets the device move, after what Calls gave back of the shared Receives is posted again.
std::size_t Server::Impl::turn() {
  if (messages.receives) messages.receives->refill();
  return device.process(now);
}

std::size_t Server::Impl::drain() {
  take_events(*events);
  std::size_t total = drain_shared_receives();
  Pulled pulled;
  const auto on_wc = [&](const verbs::Wc& wc) {
    if (pulled.is_worth_a_turn() && turns_left > 0) {
      pulled = {};
      --turns_left;
      total += turn();
      total += drain_shared_receives();
    }
    on_completion(wc);
    pulled.count(wc);
  };
  for (std::size_t i = 0; i < cqs.size(); ++i) {
    const int num = drain_completions(*cqs[i]->cq, on_wc);
    if (num < 0) on_overrun(*cqs[i]);
    if (num > 0) total += static_cast<std::size_t>(num);
  }
  return total;
}

// The queue lost completions of its connections, and does not tell which ones.
void Server::Impl::on_overrun(SharedCq& shared) {
  if (std::exchange(shared.overrun, true)) return;
  for (const auto& [serial, connection] : connections) {
    if (connection->shared != &shared) continue;
    connection->channel->fail("the completion queue overflowed");
    activate(serial, *connection);
  }
}

std::size_t Server::Impl::drain_shared_receives() {
  if (!messages.receives) return 0;
  const int num = drain_completions(*messages.receive_cq, [this](const verbs::Wc& wc) { on_shared_receive(wc); });
  return num > 0 ? static_cast<std::size_t>(num) : 0;
}

void Server::Impl::on_shared_receive(const verbs::Wc& wc) {
  const auto at = by_qp.find(wc.qp_num);
  if (at == by_qp.end()) {
    messages.receives->give_back(messages.receives->take(wc.wr_id));  // removed since
    return;
  }
  Connection& connection = *at->second;
  activate(connection.serial(), connection);
  handle(connection, wc);
  // At once: what it takes from now on is others'.
  if (connection.channel->overrun() && connection.qp->state() != verbs::QpState::kErr) {
    (void)connection.qp->modify(verbs::QpState::kErr);
  }
}

void Server::Impl::on_completion(const verbs::Wc& wc) {
  const std::uint32_t serial = Channel::serial_of(wc.wr_id);
  Connection* connection = find(serial);
  if (connection == nullptr) return;  // removed since
  activate(serial, *connection);
  handle(*connection, wc);
}

void Server::Impl::handle(Connection& connection, const verbs::Wc& wc) {
  connection.used_at = now;
  const auto work = connection.channel->on_completion(wc);
  if (work && work->invalidated && !connection.reverse) {
    return connection.channel->fail("the peer invalidated a handle, and was given none");
  }
  if (!work) {
    if (const auto slot = connection.channel->refused_read()) connection.responder->on_read_refused(*slot);
    if (const auto slot = connection.channel->refused_write()) connection.responder->on_write_refused(*slot);
    return;
  }
  if (connection.reverse) return connection.reverse->on_work(*work, wc.byte_len);
  switch (work->kind) {
    case WorkKind::kReceive: connection.responder->on_receive(work->slot, wc.byte_len); break;
    case WorkKind::kSend: connection.responder->on_send_done(work->slot); break;
    case WorkKind::kRead: connection.responder->on_read_done(work->slot); break;
    case WorkKind::kWrite: connection.responder->on_write_done(); break;
    case WorkKind::kInvalidate: break;
  }
}

// Looks after the connections that have work under way, Calls waiting for memory, or an end to come to.
void Server::Impl::run_active() {
  std::vector<std::uint32_t> serials = std::exchange(active, {});
  // Whoever was first to wait for memory last time is not first this time.
  if (serials.size() > 1) std::rotate(serials.begin(), serials.begin() + 1, serials.end());
  for (const std::uint32_t serial : serials) {
    Connection* connection = find(serial);
    if (connection == nullptr) continue;
    connection->active = false;
    trim_later(serial, *connection);
    connection->responder->on_time(now);
    if (connection->reverse) connection->reverse->calls().on_time(now);
    note_failure(*connection);
    if (connection->channel->failure() && !connection->close_deadline) close(*connection);
    if (connection->close_deadline && now >= *connection->close_deadline) {
      remove(serial);
      continue;
    }
    const bool calls = connection->reverse && connection->reverse->calls().num_outstanding() != 0;
    if (connection->close_deadline || connection->responder->has_work() || calls) activate(serial, *connection);
  }
}

void Server::Impl::trim_later(std::uint32_t serial, Connection& connection) {
  if (std::exchange(connection.to_trim, true)) return;
  to_trim.push_back(serial);
  if (!trim_at) trim_at = now + kTrimInterval;
}

void Server::Impl::trim() {
  trim_at.reset();
  for (const std::uint32_t serial : std::exchange(to_trim, {})) {
    Connection* connection = find(serial);
    if (connection == nullptr) continue;
    connection->to_trim = false;
    connection->responder->trim();
  }
  messages.trim();
  // What is idle now goes if it is idle still next time.
  if (pool->trim()) trim_at = now + kTrimInterval;
}

// The first reason that is known counts.
void Server::Impl::note_end(Connection& connection, verbs::LogLevel level, std::string why) {
  if (connection.ended) return;
  log.line(level, connection.peer(), "the connection ends: {}", why);
  connection.ended = std::move(why);
}

// Of what failed here, if it did not follow from an end that the connection manager tells of.
void Server::Impl::note_failure(Connection& connection) {
  const Channel& channel = *connection.channel;
  if (channel.failure() && !channel.failed_by_completion()) {
    note_end(connection, verbs::LogLevel::kWarn, *channel.failure());
  }
}

// What the connection manager tells, its device says as well; that the peer is done is no news.
void Server::Impl::note_end(Connection& connection, const verbs::CmEvent& event) {
  note_failure(connection);
  const auto level = event.status != 0 ? verbs::LogLevel::kInfo : verbs::LogLevel::kDebug;
  const auto& failure = connection.channel->failure();
  note_end(connection, level, !event.text.empty() ? event.text : failure ? *failure : cm_event_str(event.type));
}

// Lets the device say to the peer what there is to say; the connection is removed when that is done.
void Server::Impl::close(Connection& connection) {
  if (connection.reverse) connection.reverse->calls().on_closed("the connection is closed");
  (void)connection.id->disconnect();
  connection.close_deadline = now + kCloseTimeout;
}

void Server::Impl::remove(std::uint32_t serial) {
  const auto at = connections.find(serial);
  if (at == connections.end()) return;
  // Its open Calls end here, and their callbacks find it gone.
  std::unique_ptr<Connection> connection = std::move(at->second);
  connections.erase(at);
  // Where the connection manager told nothing in time, a completion did.
  note_end(*connection, verbs::LogLevel::kWarn, connection->channel->failure().value_or("the connection ended"));
  const ConnectionEnd end{{serial}, *connection->ended};
  connection->end_calls(end.why, now);
  ended += connection->qp->counters();
  if (const auto group = num_of_group.find(connection->group); --group->second == 0) num_of_group.erase(group);
  by_qp.erase(connection->qp->qp_num());
  // While its queue pair is flushed the responder is still there: it leaves the budget's line, and no service gets a
  // Call of it after on_end.
  connection->channel->fail("the connection ended");
  connection->responder->admit();
  if (messages.receives) flush(connection);
  connection.reset();
  for (Service* service : services) service->on_end(end);
}

// A shared Receive that its queue pair has begun to fill comes back by its completion, which must not be forgotten with
// the queue pair.
void Server::Impl::flush(std::unique_ptr<Connection>& connection) {
  (void)connection->qp->modify(verbs::QpState::kErr);
  drain_shared_receives();
  if (device.caps().own_progress) flushing.emplace_back(now + kFlushTime, std::move(connection));
}

void Server::Impl::answer(CallId id, ServedReply&& reply) {
  const auto serial = static_cast<std::uint32_t>(id.value >> 32);
  Connection* connection = find(serial);
  if (connection == nullptr) return;
  connection->responder->reply(id, std::move(reply));
  activate(serial, *connection);
}

// A Call that must not run twice has run, whatever became of its connection.
void Server::Impl::keep(CallId id, const ServedReply& reply) {
  const ReplayCache::Ended ended = replays.on_reply(id, reply);
  for (const CallId waiting : ended.waiting) {
    if (auto kept = ended.reply->revive(*pool)) answer(waiting, std::move(*kept));
  }
}

verbs::Result<std::unique_ptr<Server>> Server::listen(verbs::Device& device, const sockaddr_storage& addr,
                                                      std::span<const Program> programs, const ServerConfig& config) {
  if (auto status = check(config, device.caps()); !status.ok()) return status.error();
  auto impl = std::make_unique<Impl>(device, programs, config);
  if (auto status = impl->open(addr); !status.ok()) {
    return verbs::Error{status.error().errno_value,
                        "cannot listen on " + address_str(addr) + ": " + status.error().message};
  }
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Server::~Server() {
  // Callbacks find a server that is whole.
  for (auto& [serial, connection] : impl_->connections) connection->end_calls("the server is gone", impl_->now);
}

sockaddr_storage Server::local_addr() const {
  return impl_->listener->local_addr();
}
BufferPool& Server::buffers() {
  return *impl_->pool;
}

BufferPool& Server::make_buffers(std::size_t max_len, std::size_t max_total) {
  return *impl_->other_pools.emplace_back(std::make_unique<BufferPool>(*impl_->pd, max_len, max_total));
}

void Server::reply(CallId id, ServedReply reply) {
  impl_->keep(id, reply);
  impl_->answer(id, std::move(reply));
}

bool Server::keeps_reply_of(CallId id) const {
  return impl_->replays.is_running(id);
}

void Server::abandon(CallId id) {
  for (const CallId waiting : impl_->replays.on_abandoned(id)) {
    disconnect({static_cast<std::uint32_t>(waiting.value >> 32)});
  }
}

verbs::Result<CallHandle> Server::call(ConnectionId connection, const CallSpec& spec, ReplyCallback done) {
  Impl::Connection* at = impl_->find(connection.value);
  if (impl_->config.reverse_credits == 0) return verbs::Error{EOPNOTSUPP, "the server has no reverse credits"};
  if (at == nullptr || at->close_deadline) return verbs::Error{ENOTCONN, "the connection is gone"};
  impl_->activate(connection.value, *at);
  return at->reverse->calls().call(spec, std::move(done));
}

bool Server::cancel(ConnectionId connection, CallHandle handle) {
  Impl::Connection* at = impl_->find(connection.value);
  return at != nullptr && at->reverse && at->reverse->calls().cancel(handle);
}

void Server::disconnect(ConnectionId connection) {
  Impl::Connection* at = impl_->find(connection.value);
  if (at == nullptr || at->close_deadline) return;
  impl_->note_end(*at, verbs::LogLevel::kDebug, "its program wants it");
  impl_->close(*at);
  impl_->activate(connection.value, *at);
}

std::size_t Server::process(verbs::TimePoint now) {
  Impl& impl = *impl_;
  if (impl.in_process) return 0;
  impl.in_process = true;
  impl.now = now;
  impl.log.on_time(now);
  impl.turns_left = kMaxTurns;
  impl.replays.on_time(now);
  std::size_t moved = impl.turn();
  std::size_t completions = 0;
  std::optional<verbs::CmEvent> event;
  // Each event behind the completions that came before it, as in Client::process.
  do {
    event = impl.cm_events->get_event();
    completions += impl.drain();
    if (!event) break;
    ++moved;
    impl.on_cm_event(*event);
  } while (true);
  impl.run_active();
  impl.budget.admit_waiting();
  if (impl.trim_at && *impl.trim_at <= now) impl.trim();
  std::erase_if(impl.flushing, [now](const auto& entry) { return entry.first <= now; });
  // What the completions led to goes out now, not after one more turn of the caller's loop.
  if (completions > 0) moved += completions + impl.turn();
  impl.in_process = false;
  return moved;
}

std::optional<verbs::TimePoint> Server::next_timeout() const {
  const Impl& impl = *impl_;
  std::optional<verbs::TimePoint> next = impl.device.next_timeout();
  const auto consider = [&next](std::optional<verbs::TimePoint> at) {
    if (at && (!next || *at < *next)) next = at;
  };
  for (const std::uint32_t serial : impl.active) {
    const auto at = impl.connections.find(serial);
    if (at == impl.connections.end()) continue;
    consider(at->second->close_deadline);
    if (at->second->reverse) consider(at->second->reverse->calls().next_timeout());
    if (!at->second->close_deadline) consider(at->second->responder->next_timeout());
  }
  if (!impl.flushing.empty()) consider(impl.flushing.front().first);
  consider(impl.trim_at);
  return next;
}

int Server::fd() const {
  return impl_->device.fd();
}
std::size_t Server::num_connections() const {
  return impl_->connections.size();
}

ServerMemory Server::memory() const {
  return impl_->messages.memory();
}

verbs::QpCounters Server::counters() const {
  verbs::QpCounters sum = impl_->ended;
  for (const auto& [serial, connection] : impl_->connections) sum += connection->qp->counters();
  return sum;
}

}  // namespace weft::rpcrdma
