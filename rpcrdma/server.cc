#include "rpcrdma/server.h"

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

#include "base/address.h"
#include "base/peer_group.h"
#include "rpcrdma/arrivals.h"
#include "rpcrdma/completion_queues.h"
#include "rpcrdma/connection_setup.h"
#include "rpcrdma/connection_table.h"
#include "rpcrdma/duplicate_request_cache.h"
#include "rpcrdma/event_log.h"
#include "rpcrdma/flushing.h"
#include "rpcrdma/message_resources.h"
#include "rpcrdma/server_connection.h"
#include "rpcrdma/server_limits.h"

namespace weft::rpcrdma {

namespace {

constexpr std::uint32_t kSendQueueDepth = 64;  // Sends and Writes of one connection, without Reads
constexpr std::uint32_t kMaxSge = 4;
// How long a queue pair that has ended may take to return the shared Receives that it began to fill. For devices that
// move by themselves.
constexpr std::chrono::milliseconds kFlushTime{100};
// A group of addresses may have as many of these queue pairs as connections, and at least this number. All groups
// together may have twice as many as connections.
constexpr std::size_t kMinFlushing = 64;
// A device with threads divides its backlog among so many loops at most.
constexpr int kMaxLoops = 256;
// How often the buffers that connections share are looked at: those that nobody needs go.
constexpr std::chrono::seconds kTrimInterval{1};
// After so many octets pulled by at least kReadsPerTurn Reads, the server takes a turn: the messages that follow from
// them leave, and Reads for the Calls that came meanwhile go out. During a longer batch the peer would have nothing to
// do.
constexpr std::size_t kPulledPerTurn = std::size_t{128} << 10;
constexpr int kReadsPerTurn = 2;
// The most turns within one process(): the caller has other work, and peers that never stop must not hold it up.
constexpr int kMaxTurns = 8;

// Pulled counts the octets and Reads since the last turn.
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

}  // namespace

struct Server::Impl {
  // A peer that asks for a connection.
  struct Newcomer {
    sockaddr_storage peer{};
    std::string group;
    std::unique_ptr<verbs::CmId> id;
    verbs::ConnParam param;
  };

  verbs::Device& device;
  std::vector<ServedProgram> programs;
  std::set<Service*> services;  // of `programs`, each once
  ServerConfig config;
  TimePoint now{};
  bool in_process = false;
  int turns_left = 0;  // of this process()
  EventLog log;

  std::unique_ptr<verbs::CmChannel> cm_events;
  std::unique_ptr<verbs::Pd> pd;
  std::unique_ptr<verbs::CompChannel> events;
  std::optional<CompletionQueues> cqs;
  MessageResources messages;
  std::unique_ptr<BufferPool> pool;
  std::vector<std::unique_ptr<BufferPool>> other_pools;  // make_buffers
  Budget budget;                                         // the memory of Calls
  DuplicateRequestCache duplicate_requests;
  std::unique_ptr<verbs::CmId> listener;
  std::optional<ServerConnection::Shared> shared;
  ConnectionTable connections;
  Arrivals<Newcomer> arrivals;
  Flushing<ServerConnection> flushing;
  std::vector<std::uint32_t> active;  // serials of connections with work to watch
  RestWatch<std::uint32_t> resting;   // serials
  std::optional<TimePoint> trim_at;   // of the shared buffers
  ServerStatistics sums;              // without the open connections

  Impl(verbs::Device& d, std::span<const ServedProgram> p, const ServerConfig& c)
      : device(d),
        programs(p.begin(), p.end()),
        config(with_default_threshold(c)),
        log(config.log, "client"),
        budget(call_memory(config)),
        duplicate_requests(config.duplicate_requests, SipHash::random_key()),
        connections(config.max_connections, max_connections_per_group(config)),
        arrivals(max_waiting(config)),
        flushing(2 * std::max(kMinFlushing, config.max_connections),
                 std::max(kMinFlushing, max_connections_per_group(config))) {
    for (const ServedProgram& program : programs) services.insert(program.service);
  }

  verbs::Status open(const sockaddr_storage& addr);
  void on_cm_event(verbs::CmEvent& event);
  void on_connect_request(verbs::CmEvent& event);
  std::size_t let_in_waiting();
  void let_in(Newcomer newcomer);
  verbs::Status accept(ConnectionTable::Place place, Newcomer newcomer);
  bool has_to_wait(const std::string& group);
  std::optional<ConnectionTable::Place> take_place(const Newcomer& newcomer);
  std::size_t turn();
  std::size_t drain();
  std::size_t drain_shared_receives();
  void on_overrun();
  void on_completion(const verbs::Wc& wc);
  void on_shared_receive(const verbs::Wc& wc);
  void activate(ServerConnection& connection);
  void run_active();
  void trim();
  void answer(ServedCallId id, ServedReply&& reply);
  void keep(ServedCallId id, const ServedReply& reply);
  void remove(std::uint32_t serial);
  void flush(std::unique_ptr<ServerConnection>& connection);
};

verbs::Status Server::Impl::open(const sockaddr_storage& addr) {
  const verbs::Caps& caps = device.caps();
  auto made_pd = device.alloc_pd();
  if (!made_pd.ok()) return made_pd.error();
  pd = std::move(*made_pd);
  auto made_events = device.create_comp_channel();
  if (!made_events.ok()) return made_events.error();
  events = std::move(*made_events);
  cqs.emplace(device, *events);
  auto made_cm = device.create_event_channel();
  if (!made_cm.ok()) return made_cm.error();
  cm_events = std::move(*made_cm);
  pool = std::make_unique<BufferPool>(*pd, config.max_call + config.max_item, max_call_memory(config),
                                      caps.read_sink_needs_remote_write);

  Endpoint::Config& shape = messages.shape;
  shape.receive_len = config.inline_threshold;
  shape.send_len = config.inline_threshold + Responder::kSendExtra;
  shape.max_send_wr = kSendQueueDepth + std::uint32_t{config.ord};
  shape.max_send_sge = std::min(kMaxSge, caps.max_sge);
  if (auto status = messages.open(device, *pd, *events, config); !status.ok()) return status;
  shared.emplace(ServerConnection::Shared{device, *pd, config, programs, messages, *pool, budget, duplicate_requests,
                                          Responder::make_answer_rooms(), log});

  auto made_id = cm_events->create_id();
  if (!made_id.ok()) return made_id.error();
  listener = std::move(*made_id);
  if (auto status = listener->bind_addr(addr); !status.ok()) return status;
  // For the device newcomers that wait are requests without an answer. All of them may be of one loop.
  return listener->listen(config.backlog + kMaxLoops * static_cast<int>(max_waiting(config)));
}

void Server::Impl::activate(ServerConnection& connection) {
  if (std::exchange(connection.active, true)) return;
  active.push_back(connection.serial());
  connections.on_active(connection);
}

void Server::Impl::on_cm_event(verbs::CmEvent& event) {
  if (event.type == verbs::CmEventType::kConnectRequest) return on_connect_request(event);
  if (event.id == nullptr || event.id == listener.get()) return;
  ServerConnection* connection = connections.find(static_cast<std::uint32_t>(event.id->context));
  // The only event of a newcomer that waits is its end.
  if (connection == nullptr)
    return arrivals.drop_if([&](const Newcomer& newcomer) { return newcomer.id.get() == event.id; });
  if (event.refused_write) {
    connection->responder().on_write_refused(event.refused_write->rkey, event.refused_write->remote_addr);
  }
  switch (event.type) {
    case verbs::CmEventType::kConnectError:
    case verbs::CmEventType::kUnreachable:
    case verbs::CmEventType::kRejected:
    case verbs::CmEventType::kDisconnected:
    case verbs::CmEventType::kDeviceRemoval:
      connection->note_end(event);
      remove(connection->serial());
      break;
    default: break;
  }
}

void Server::Impl::on_connect_request(verbs::CmEvent& event) {
  if (!event.new_id) return;
  const sockaddr_storage peer = event.new_id->peer_addr();
  if (config.admits && !config.admits(peer)) {
    ++sums.not_admitted;
    log.line(verbs::LogLevel::kInfo, address_str(peer), "rejected: it is not admitted");
    (void)event.new_id->reject({});
    return;
  }
  Newcomer newcomer{peer, peer_group(peer), std::move(event.new_id), std::move(event.param)};
  if (!has_to_wait(newcomer.group)) return let_in(std::move(newcomer));
  log.line(verbs::LogLevel::kDebug, address_str(peer), "waits: {} connections are of its address, and {} wait",
           connections.num_of(newcomer.group), arrivals.num_of(newcomer.group));
  const std::string group = newcomer.group;
  if (auto first = arrivals.add(group, connections.num_of(group), std::move(newcomer))) let_in(std::move(*first));
}

// Whether the newcomer has to end a connection of its own group, and others of this group have just done so; or others
// of this group wait.
bool Server::Impl::has_to_wait(const std::string& group) {
  if (arrivals.may_end(group, now) || (connections.has_place(group) && arrivals.num_of(group) == 0)) return false;
  const ServerConnection* const leaves = connections.gives_way(group, now);
  return leaves != nullptr && leaves->group() == group;
}

std::size_t Server::Impl::let_in_waiting() {
  const auto has_place = [this](const std::string& group) { return connections.has_place(group); };
  const std::size_t before = arrivals.size();
  while (auto newcomer = arrivals.take_if(has_place)) let_in(std::move(*newcomer));
  while (auto newcomer = arrivals.take_due(now)) let_in(std::move(*newcomer));
  return before - arrivals.size();
}

void Server::Impl::let_in(Newcomer newcomer) {
  const auto refuse = [&]<typename... Args>(fmt::format_string<Args...> why, Args&&... args) {
    ++sums.no_place;
    log.line(verbs::LogLevel::kWarn, address_str(newcomer.peer), why, std::forward<Args>(args)...);
    (void)newcomer.id->reject({});
  };
  if (!flushing.has_room(newcomer.group)) {
    return refuse(
        "rejected: {} connections have just ended, {} of them of its address; they keep their places for {} ms",
        flushing.size(), flushing.num_of(newcomer.group), kFlushTime.count());
  }
  std::optional<ConnectionTable::Place> place = take_place(newcomer);
  if (!place) {
    return refuse("rejected: there are {} connections, {} of them of its address, and none gives way",
                  connections.size(), connections.num_of(newcomer.group));
  }
  const sockaddr_storage peer = newcomer.peer;
  // A connection that cannot be set up is closed by its id's end; the others go on.
  if (const auto status = accept(std::move(*place), std::move(newcomer)); !status.ok()) {
    ++sums.not_accepted;
    log.line(verbs::LogLevel::kWarn, address_str(peer), "its connection cannot be accepted: {}",
             status.error().message);
  }
}

// Takes a place for a connection of this peer. If necessary it ends other connections.
std::optional<ConnectionTable::Place> Server::Impl::take_place(const Newcomer& newcomer) {
  std::optional<ConnectionTable::Place> place = connections.take(newcomer.group);
  while (!place) {
    ServerConnection* connection = connections.gives_way(newcomer.group, now);
    if (connection == nullptr) return {};
    if (connection->group() == newcomer.group) arrivals.on_end(newcomer.group, connections.num_of(newcomer.group), now);
    connection->note_end(EndReason::kGaveWay, verbs::LogLevel::kWarn, "it gives way to " + address_str(newcomer.peer));
    remove(connection->serial());
    place = connections.take(newcomer.group);
  }
  return place;
}

verbs::Status Server::Impl::accept(ConnectionTable::Place place, Newcomer newcomer) {
  if (auto status = messages.replace_overrun(device, *pd, *events); !status.ok()) return status.error();
  auto completions = cqs->take(messages.completions());
  if (!completions.ok()) return completions.error();
  auto connection = ServerConnection::accept(*shared, std::move(*completions), std::move(newcomer.id), newcomer.param,
                                             place.serial, now);
  if (!connection.ok()) return connection.error();
  ++sums.opened;
  if (shared->observer != nullptr) {
    shared->observer->on_connection({(*connection)->serial()}, (*connection)->group());
  }
  connections.insert(std::move(place), std::move(*connection));
  return {};
}

// Posts the shared Receives that Calls gave back, then lets the device move.
std::size_t Server::Impl::turn() {
  if (messages.receives) messages.receives->pool->refill();
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
  bool overrun = false;
  total += cqs->drain(on_wc, overrun);
  if (overrun) on_overrun();
  return total;
}

void Server::Impl::on_overrun() {
  connections.for_each([this](ServerConnection& connection) {
    if (!connection.lost_completions()) return;
    connection.endpoint().fail("the completion queue overflowed");
    activate(connection);
  });
}

std::size_t Server::Impl::drain_shared_receives() {
  if (!messages.receives || messages.receives->overrun) return 0;
  const int num = drain_completions(*messages.receives->cq, [this](const verbs::Wc& wc) { on_shared_receive(wc); });
  if (num >= 0) return static_cast<std::size_t>(num);
  messages.receives->overrun = true;
  on_overrun();
  return 0;
}

void Server::Impl::on_shared_receive(const verbs::Wc& wc) {
  ServerConnection* connection = connections.find_by_qp(wc.qp_num);
  if (connection == nullptr) {
    messages.receives->pool->give_back(messages.receives->pool->take(wc.wr_id));  // removed since
    return;
  }
  activate(*connection);
  connection->on_completion(wc, now);
  // The queue pair ends at once: from now on it takes Receives of other connections.
  if (connection->endpoint().overrun() && connection->qp().state() != verbs::QpState::kErr) {
    (void)connection->qp().modify(verbs::QpState::kErr);
  }
}

void Server::Impl::on_completion(const verbs::Wc& wc) {
  ServerConnection* connection = connections.find(Endpoint::serial_of(wc.wr_id));
  if (connection == nullptr) return;  // removed since
  activate(*connection);
  connection->on_completion(wc, now);
}

// Runs the connections that have work under way, have Calls that wait for memory, or are about to end.
void Server::Impl::run_active() {
  std::vector<std::uint32_t> serials = std::exchange(active, {});
  // The connection that was first to wait for memory last time is not first this time.
  if (serials.size() > 1) std::rotate(serials.begin(), serials.begin() + 1, serials.end());
  for (const std::uint32_t serial : serials) {
    ServerConnection* connection = connections.find(serial);
    if (connection == nullptr) continue;
    connection->active = false;
    resting.use(serial, connection->rest, now);
    if (!trim_at) trim_at = now + kTrimInterval;
    connection->on_time(now);
    if (connection->is_over(now)) {
      remove(serial);
    } else if (connection->has_work()) {
      activate(*connection);
    }
  }
}

void Server::Impl::trim() {
  resting.run(
      now, [this](std::uint32_t serial) { return connections.find(serial); },
      [](ServerConnection& connection) -> RestWatch<std::uint32_t>::Mark& { return connection.rest; },
      [](ServerConnection& connection) { connection.trim(); });
  if (!trim_at || now < *trim_at) return;
  trim_at.reset();
  messages.trim();
  // Memory that is idle now is released if it is still idle next time.
  const bool has_idle_rooms = Responder::trim(*shared->answer_rooms);
  if (pool->trim() || has_idle_rooms) trim_at = now + kTrimInterval;
}

void Server::Impl::remove(std::uint32_t serial) {
  // Its open Calls end here. Their callbacks do not find the connection any more.
  std::unique_ptr<ServerConnection> connection = connections.extract(serial);
  if (connection == nullptr) return;
  // If the connection manager reported no reason in time, a completion did.
  connection->note_end(EndReason::kLost, verbs::LogLevel::kWarn,
                       connection->endpoint().failure().value_or("the connection ended"));
  const ConnectionEnd end{{serial}, *connection->ended()};
  connection->end_calls(end.why, now);
  connection->link().end(end.why);
  ++sums.ended[static_cast<std::size_t>(connection->end_reason())];
  const ConnectionStatistics last = connection->statistics();
  sums.ended_messages += last.messages;
  sums.ended_calls += last.calls;
  if (shared->observer != nullptr) shared->observer->on_end(last);
  // The responder still exists while its queue pair is flushed. It leaves the budget's line, and no service gets a Call
  // of it after on_end.
  connection->endpoint().fail("the connection ended");
  connection->responder().admit();
  if (messages.receives) flush(connection);
  connection.reset();
  for (Service* service : services) service->on_end(end);
}

// A shared Receive that its queue pair has begun to fill comes back by its completion. The end of the queue pair must
// not lose this completion.
void Server::Impl::flush(std::unique_ptr<ServerConnection>& connection) {
  const std::string group = connection->group();
  (void)connection->qp().modify(verbs::QpState::kErr);
  drain_shared_receives();
  if (device.caps().own_progress) flushing.add(now + kFlushTime, group, std::move(connection));
}

void Server::Impl::answer(ServedCallId id, ServedReply&& reply) {
  ServerConnection* connection = connections.find(static_cast<std::uint32_t>(id.value >> 32));
  if (connection == nullptr) return;
  connection->responder().reply(id, std::move(reply));
  activate(*connection);
}

// Keeps the Reply of a Call that must not run twice, even if the Call's connection is gone.
void Server::Impl::keep(ServedCallId id, const ServedReply& reply) {
  const DuplicateRequestCache::Ended ended = duplicate_requests.on_reply(id, reply);
  for (const ServedCallId waiting : ended.waiting) {
    if (auto kept = ended.reply->revive(*pool)) answer(waiting, std::move(*kept));
  }
}

verbs::Result<std::unique_ptr<Server>> Server::listen(verbs::Device& device, const sockaddr_storage& addr,
                                                      std::span<const ServedProgram> programs,
                                                      const ServerConfig& config) {
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
  // Callbacks see a complete server.
  impl_->connections.for_each([this](ServerConnection& connection) {
    connection.end_calls("the server is gone", impl_->now);
    connection.link().end("the server is gone");
  });
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

void Server::reply(ServedCallId id, ServedReply reply) {
  impl_->keep(id, reply);
  impl_->answer(id, std::move(reply));
}

void Server::finish(ServedCallId id) {
  for (const ServedCallId waiting : impl_->duplicate_requests.on_abandoned(id)) finish(waiting);
  ServerConnection* connection = impl_->connections.find(static_cast<std::uint32_t>(id.value >> 32));
  if (connection == nullptr) return;
  connection->responder().finish(id);
  impl_->activate(*connection);
}

bool Server::keeps_reply_of(ServedCallId id) const {
  return impl_->duplicate_requests.is_running(id);
}

void Server::abandon(ServedCallId id) {
  for (const ServedCallId waiting : impl_->duplicate_requests.on_abandoned(id)) {
    disconnect({static_cast<std::uint32_t>(waiting.value >> 32)});
  }
}

verbs::Result<CallId> Server::call(ConnectionId connection, const CallSpec& spec, ReplyCallback done) {
  ServerConnection* at = impl_->connections.find(connection.value);
  if (impl_->config.reverse_credits == 0) return verbs::Error{EOPNOTSUPP, "the server has no reverse credits"};
  if (at == nullptr || at->close_deadline()) return verbs::Error{ENOTCONN, "the connection is gone"};
  impl_->activate(*at);
  return at->reverse()->call(spec, std::move(done));
}

bool Server::cancel(ConnectionId connection, CallId id) {
  ServerConnection* at = impl_->connections.find(connection.value);
  return at != nullptr && at->reverse() != nullptr && at->reverse()->cancel(id);
}

void Server::disconnect(ConnectionId connection) {
  ServerConnection* at = impl_->connections.find(connection.value);
  if (at == nullptr || at->close_deadline()) return;
  at->note_end(EndReason::kProgram, verbs::LogLevel::kDebug, "its program wants it");
  at->close(impl_->now);
  impl_->activate(*at);
}

std::size_t Server::process(TimePoint now) {
  Impl& impl = *impl_;
  if (impl.in_process) return 0;
  impl.in_process = true;
  impl.now = now;
  impl.log.on_time(now);
  impl.turns_left = kMaxTurns;
  impl.duplicate_requests.on_time(now);
  std::size_t moved = impl.turn();
  std::size_t completions = 0;
  std::optional<verbs::CmEvent> event;
  // Takes each event after the completions that came before it, as in Client::process.
  do {
    event = impl.cm_events->get_event();
    completions += impl.drain();
    if (!event) break;
    ++moved;
    impl.on_cm_event(*event);
  } while (true);
  impl.run_active();
  moved += impl.let_in_waiting();
  impl.budget.admit_waiting();
  if (impl.resting.is_due(now) || (impl.trim_at && *impl.trim_at <= now)) impl.trim();
  impl.flushing.drop(now);
  // Requests that follow from the completions go out now, not after another turn of the caller's loop.
  if (completions > 0) moved += completions + impl.turn();
  impl.in_process = false;
  return moved;
}

std::optional<TimePoint> Server::next_timeout() const {
  const Impl& impl = *impl_;
  std::optional<TimePoint> next = impl.device.next_timeout();
  const auto consider = [&next](std::optional<TimePoint> at) { next = earliest(next, at); };
  for (const std::uint32_t serial : impl.active) {
    ServerConnection* connection = impl.connections.find(serial);
    if (connection != nullptr) consider(connection->next_timeout());
  }
  consider(impl.arrivals.next());
  consider(impl.flushing.next());
  consider(impl.resting.due());
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
  ServerMemory memory = impl_->messages.memory();
  memory.calls = impl_->budget.held();
  memory.max_calls = max_call_memory(impl_->config);
  return memory;
}

verbs::QpCounters Server::counters() const {
  verbs::QpCounters sum = impl_->sums.ended_messages;
  impl_->connections.for_each([&sum](ServerConnection& connection) { sum += connection.qp().counters(); });
  return sum;
}

ServerStatistics Server::statistics() const {
  ServerStatistics all = impl_->sums;
  all.connections.reserve(impl_->connections.size());
  impl_->connections.for_each(
      [&all](ServerConnection& connection) { all.connections.push_back(connection.statistics()); });
  return all;
}

void Server::observe(CallObserver& observer) {
  impl_->shared->observer = &observer;
}

}  // namespace weft::rpcrdma
