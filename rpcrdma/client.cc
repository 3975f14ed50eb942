#include "rpcrdma/client.h"

#include <algorithm>
#include <cerrno>
#include <random>
#include <utility>

#include "base/address.h"
#include "rpcrdma/client_connection.h"
#include "rpcrdma/connection_setup.h"
#include "rpcrdma/health_check.h"
#include "rpcrdma/known_servers.h"
#include "rpcrdma/profiles.h"
#include "rpcrdma/reconnect.h"
#include "rpcrdma/requester.h"
#include "rpcrdma/version_search.h"

namespace weft::rpcrdma {

namespace {
constexpr std::chrono::seconds kLastWords{1};
}  // namespace

struct Client::Impl {
  verbs::Device& device;
  const ClientConfig config;
  const sockaddr_storage dst;
  KnownServers& servers;
  State state = State::kConnecting;
  std::string error;
  bool in_process = false;
  TimePoint now{};
  EventLog log;
  std::uint64_t num_connections = 0;
  std::uint32_t last_serial = 0;
  verbs::QpCounters past;  // of connections that are gone
  ReconnectSchedule schedule;
  std::optional<TimePoint> retry_at;  // set while there is no connection
  VersionSearch search;

  // In the order of construction; destroyed in the reverse order.
  std::unique_ptr<verbs::Pd> pd;
  std::unique_ptr<ClientConnection> connection;
  HealthCheck health;
  std::unique_ptr<Requester> requester;

  Impl(verbs::Device& d, const sockaddr_storage& to, const ClientConfig& c)
      : device(d),
        config(c),
        dst(to),
        servers(c.known_servers != nullptr ? *c.known_servers : KnownServers::of_process()),
        log(config.log, "server"),
        schedule(c.reconnect),
        health(c.health_check) {}
  ~Impl() {
    // The queue pair goes first: then no request names memory that the requester gives back.
    if (!connection) return;
    connection->endpoint->detach();
    connection->qp.reset();
  }

  verbs::Status open();
  verbs::Status open_connection();
  void begin_turn(TimePoint time);
  std::size_t take_news();
  void on_established();
  void ask();
  void on_step(const Negotiation::Step& step);
  void start();
  void on_completion(const verbs::Wc& wc);
  void find_end();
  std::string why_late() const;
  void end_connection();
  void go_on_at_once(const char* how);
  void turn_back();
  VersionSearch::Next next_of_search();
  bool reconnects() const;
  void leave_connection(const std::string& why);
  void connect_again();
  void note_end();
  void note_given_up();
  void close(std::string why);
};

namespace {

bool are_distinct(std::vector<Protocol> protocols) {
  std::ranges::sort(protocols);
  return std::ranges::adjacent_find(protocols) == protocols.end();
}

verbs::Status check(const ClientConfig& config, const verbs::Caps& caps) {
  if (config.protocols.empty() || !are_distinct(config.protocols)) {
    return verbs::Error{EINVAL, "a client needs a protocol, and each one once"};
  }
  const std::uint32_t reverse = config.reverse_programs.empty() ? 0 : config.reverse_credits;
  auto sizes = check_sizes(caps, config.inline_threshold, config.credits, kExtraReceives + reverse);
  if (!sizes.ok()) return sizes;
  if (!config.reverse_programs.empty() && (reverse == 0 || reverse > kMaxReverseCredits)) {
    return verbs::Error{EINVAL, "reverse credits must be from 1 to 16"};
  }
  return {};
}

}  // namespace

verbs::Status Client::Impl::open() {
  auto made_pd = device.alloc_pd();
  if (!made_pd.ok()) {
    return verbs::Error{made_pd.error().errno_value,
                        "cannot connect to " + address_str(dst) + ": " + made_pd.error().message};
  }
  pd = std::move(*made_pd);
  if (auto status = open_connection(); !status.ok()) return status;
  Requester::Config calls;
  calls.credits = config.credits;
  calls.call_timeout = config.call_timeout;
  calls.reserve_credit = config.reserve_credit;
  calls.max_discards = config.max_discards;
  calls.chunks = config.chunks;
  calls.windows = connection->takes_windows();
  calls.retransmits = config.reconnect.is_on();
  calls.retransmit_after = config.reconnect.retransmit_after;
  calls.peer = address_str(dst);
  calls.log = &log;
  requester = std::make_unique<Requester>(*pd, *connection->link, calls, std::random_device{}());
  connection->serve_reverse(log);
  return {};
}

verbs::Status Client::Impl::open_connection() {
  Profiles profiles = search.is_last_resort() ? Profiles{&profile_1()} : profiles_of(config.protocols);
  auto made = ClientConnection::open(device, *pd, dst, config, std::move(profiles), ++last_serial);
  if (!made.ok()) return made.error();
  connection = std::move(*made);
  return {};
}

void Client::Impl::on_established() {
  if (state != State::kConnecting) return;
  if (connection->has_version()) return start();
  const auto known = servers.find(dst, config.protocols, now);
  connection->negotiate(known ? &profile_of(*known) : nullptr, search.range(), std::random_device{}());
  ask();
}

void Client::Impl::ask() {
  connection->deadline = now + config.first_answer_timeout;
  connection->send_probe();
}

void Client::Impl::on_step(const Negotiation::Step& step) {
  using Kind = Negotiation::Step::Kind;
  switch (step.kind) {
    case Kind::kIgnore:
    case Kind::kKeep: return;
    case Kind::kProbe: servers.forget(dst, config.protocols); return ask();
    case Kind::kFailed:
      servers.forget(dst, config.protocols);
      return connection->end("cannot connect to " + address_str(dst) + ": " + step.why);
    case Kind::kDecided:
      search.on_answer(*parse_protocol(step.profile->name));
      connection->begin(step.credit);
      connection->serve_reverse(log);
      start();
      return connection->pass_early_messages();
    case Kind::kLastResort:
    case Kind::kUnanswered: return;  // only an end leads to them
  }
}

// The connection is there, and its version is known.
void Client::Impl::start() {
  state = State::kReady;
  connection->start();
  const auto how = search.is_last_resort() ? KnownServers::Learnt::kBySilence : KnownServers::Learnt::kByAnswer;
  if (config.protocols.size() > 1) servers.learn(dst, config.protocols, *connection->protocol(), now, how);
  ++num_connections;
  schedule.on_ready(now);
  requester->take_answered();  // over an earlier connection
  health.restart();
  if (search.is_last_resort()) requester->doubt_version(profiles_of(config.protocols));
  requester->start(connection->thresholds.send, connection->thresholds.receive);
}

void Client::Impl::on_completion(const verbs::Wc& wc) {
  ClientConnection& on = *connection;
  if (wc.status != verbs::WcStatus::kSuccess && !on.last_words) on.last_words = now + kLastWords;
  on.link->set_now(now);
  if (!on.has_version()) return on_step(on.on_early_completion(wc));
  on.link->on_completion(wc);
}

// Takes each event after the completions that came before it: Replies that arrived before the connection ended still
// count. A device with threads of its own may add events and completions meanwhile.
std::size_t Client::Impl::take_news() {
  std::size_t moved = 0;
  std::optional<verbs::CmEvent> event;
  do {
    event = connection->cm_events->get_event();
    if (connection->own_events) take_events(*connection->own_events);
    const int num = drain_completions(*connection->cq, [this](const verbs::Wc& wc) { on_completion(wc); });
    if (num < 0) connection->end("the completion queue overflowed");
    moved += static_cast<std::size_t>(std::max(num, 0));
    if (!event) break;
    ++moved;
    if (connection->on_cm_event(*event)) on_established();
  } while (true);
  return moved;
}

// Finds ends that the connection itself does not report.
void Client::Impl::find_end() {
  ClientConnection& on = *connection;
  if (requester->other_versions()) on.end_told(address_str(dst) + " refuses RPC-over-RDMA version 1");
  if (state == State::kConnecting && now >= *on.deadline) on.end("cannot connect to " + address_str(dst) + why_late());
  if (state == State::kReady && health.on_time(*requester, now)) {
    on.end("the connection to " + address_str(dst) + " failed: no answer to a health check within " +
           std::to_string(config.health_check.answer.count()) + " ms");
  }
  const bool may_hear_more = on.last_words && now < *on.last_words;
  if (on.endpoint->failure() && !may_hear_more) {
    on.end("the connection to " + address_str(dst) + " failed: " + *on.endpoint->failure(), on.endpoint->violated());
  }
}

std::string Client::Impl::why_late() const {
  const auto within = [](std::chrono::milliseconds time) { return " within " + std::to_string(time.count()) + " ms"; };
  if (!connection->negotiation) return ": no answer" + within(config.connect_timeout);
  return ": no answer to a first message of RPC-over-RDMA " + std::string(connection->negotiation->asked().name) +
         within(config.first_answer_timeout);
}

// The connection ended or failed to start. Schedules another one, or closes the client.
void Client::Impl::end_connection() {
  if (requester->other_versions() && !connection->is_last) return turn_back();
  switch (next_of_search()) {
    case VersionSearch::Next::kAskAgain: return go_on_at_once("and asking again");
    case VersionSearch::Next::kVersion1: return go_on_at_once("with version 1");
    case VersionSearch::Next::kPolicy: break;
  }
  const std::string why = *connection->ended;
  note_end();
  if (!reconnects() || connection->is_last) return close(why);
  // A discarded message does not count as an answer: the client gives up a server that sends no other messages.
  if (requester->take_answered()) schedule.on_answer();
  const bool was_ready = state == State::kReady;
  retry_at = schedule.on_ended(now, connection->violated);
  if (!retry_at) note_given_up();
  if (schedule.is_hopeless()) {
    return close(why + "; given up, because one connection after the other ends with a violation of the protocol");
  }
  if (was_ready || error.empty()) error = why;
  if (!retry_at) return close(error == why ? why : error + "; no other in its place: " + why);
  state = State::kConnecting;
  log.line(verbs::LogLevel::kInfo, address_str(dst), "connecting again in {} ms; {} Calls wait for that",
           std::chrono::duration_cast<std::chrono::milliseconds>(*retry_at - now).count(),
           requester->num_outstanding());
  leave_connection(why);
}

// The end leads to another question, or answers one: it costs no time, and ReconnectPolicy does not count it.
void Client::Impl::go_on_at_once(const char* how) {
  error = *connection->ended;
  note_end();
  state = State::kConnecting;
  retry_at = now;
  log.line(verbs::LogLevel::kInfo, address_str(dst), "connecting again, {}", how);
  leave_connection(error);
}

// The server refuses version 1, which the client took for the last resort, and names newer versions.
void Client::Impl::turn_back() {
  search.turn_back(*requester->other_versions());
  schedule.on_refused();
  requester->take_answered();  // the refusal is no answer that gives the server more time
  servers.forget(dst, config.protocols);
  go_on_at_once("with the versions that the server names");
}

// What the end of this connection means for the version. The reason of the end may become another one.
VersionSearch::Next Client::Impl::next_of_search() {
  ClientConnection& on = *connection;
  if (!on.negotiation || on.has_version() || on.is_last) {
    if (state == State::kReady && requester->has_answered()) search.on_answer(*on.protocol());
    search.on_end();
    return VersionSearch::Next::kPolicy;
  }
  const auto known = servers.find(dst, config.protocols, now);
  const Negotiation::Step end = on.negotiation->on_end(*on.ended);
  const auto next = search.on_unanswered(end, on.negotiation->asked(), known && *known != Protocol::k1);
  if (next == VersionSearch::Next::kAskAgain) return next;
  servers.forget(dst, config.protocols);
  if (!end.why.empty()) on.ended = end.why;
  return next;
}

// A first connection whose answer was lost counts like a connection that was lost later: there is a server.
bool Client::Impl::reconnects() const {
  return config.reconnect.is_on() && (num_connections > 0 || search.is_unanswered());
}

void Client::Impl::leave_connection(const std::string& why) {
  connection->link->end(why);
  requester->suspend(why);
  if (connection->reverse) connection->reverse->end(why);
  if (connection->qp) past += connection->qp->counters();
  connection.reset();
}

// An end that the connection manager reports is only kInfo: the device logs faults itself, and a peer that is done is
// normal.
void Client::Impl::note_end() {
  const auto level = connection->told ? verbs::LogLevel::kInfo : verbs::LogLevel::kWarn;
  log.line(level, address_str(dst), "{}", *connection->ended);
}

void Client::Impl::note_given_up() {
  log.line(verbs::LogLevel::kWarn, address_str(dst), "{}",
           schedule.is_hopeless() ? "given up: one connection after the other ends with a violation of the protocol"
                                  : "given up: could not reconnect in time");
}

void Client::Impl::connect_again() {
  retry_at.reset();
  const auto status = open_connection();
  if (status.ok()) {
    connection->deadline = now + config.connect_timeout;
    requester->resume(*connection->link);
    connection->serve_reverse(log);
    return;
  }
  log.line(verbs::LogLevel::kWarn, address_str(dst), "{}", status.error().message);
  search.on_end();
  if (reconnects()) {
    retry_at = schedule.on_ended(now, false);
    if (retry_at) return;
    note_given_up();
  }
  close(error + "; no other in its place: " + status.error().message);
}

void Client::Impl::close(std::string why) {
  if (state == State::kClosed) return;
  state = State::kClosed;
  error = std::move(why);
  retry_at.reset();
  if (connection) connection->link->end(error);
  requester->on_closed(error);
  if (connection && connection->reverse) connection->reverse->end(error);
  // The error is ignored: the connection is over either way.
  if (connection && connection->connected) (void)connection->id->disconnect();
}

verbs::Result<std::unique_ptr<Client>> Client::connect(verbs::Device& device, const sockaddr_storage& dst,
                                                       const ClientConfig& config) {
  if (auto status = check(config, device.caps()); !status.ok()) return status.error();
  auto impl = std::make_unique<Impl>(device, dst, config);
  if (auto status = impl->open(); !status.ok()) return status.error();
  return std::unique_ptr<Client>(new Client(std::move(impl)));
}

Client::Client(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Client::~Client() {
  // Callbacks see a client that is closed but complete.
  impl_->close("the client is gone");
  impl_->requester->on_time(impl_->now);
}

Client::State Client::state() const {
  return impl_->state;
}
const std::string& Client::error() const {
  return impl_->error;
}
std::uint64_t Client::num_connections() const {
  return impl_->num_connections;
}
std::optional<Protocol> Client::protocol() const {
  return impl_->connection ? impl_->connection->protocol() : std::nullopt;
}

verbs::Result<CallId> Client::call(const CallSpec& spec, ReplyCallback done) {
  if (impl_->state == State::kClosed) return verbs::Error{ENOTCONN, impl_->error};
  return impl_->requester->call(spec, std::move(done));
}

bool Client::cancel(CallId id) {
  return impl_->requester->cancel(id);
}

void Client::reply(ServedCallId id, ServedReply reply) {
  if (impl_->connection && impl_->connection->reverse) impl_->connection->reverse->reply(id, std::move(reply));
}

std::size_t Client::num_outstanding() const {
  return impl_->requester->num_outstanding();
}

std::size_t Client::process(TimePoint now) {
  if (impl_->in_process) return 0;
  impl_->begin_turn(now);
  const std::size_t moved = impl_->device.process(now);
  const std::size_t news = progress(now);
  // Requests that follow from the completions go out now, not after another turn of the caller's loop.
  return moved + news + (news > 0 ? impl_->device.process(now) : 0);
}

void Client::Impl::begin_turn(TimePoint time) {
  now = time;
  log.on_time(now);
  if (retry_at && now >= *retry_at) connect_again();
  if (connection && !connection->deadline) connection->deadline = now + config.connect_timeout;
}

std::size_t Client::progress(TimePoint now) {
  Impl& impl = *impl_;
  if (impl.in_process) return 0;
  impl.in_process = true;
  impl.begin_turn(now);
  std::size_t moved = 0;
  std::size_t news = 0;
  if (impl.connection) news = impl.take_news();
  if (impl.connection) impl.connection->link->on_time(now);
  moved += impl.requester->on_time(now);
  if (impl.connection && impl.connection->reverse) impl.connection->reverse->on_time(now);
  if (impl.connection && impl.state != State::kClosed) {
    impl.find_end();
    if (impl.connection->ended) {
      impl.end_connection();
      ++moved;
      moved += impl.requester->on_time(now);
    }
  }
  impl.in_process = false;
  return moved + news;
}

std::optional<TimePoint> Client::next_timeout() const {
  std::optional<TimePoint> next = impl_->device.next_timeout();
  const auto consider = [&next](std::optional<TimePoint> at) { next = earliest(next, at); };
  consider(impl_->requester->next_timeout());
  if (impl_->state == State::kClosed) return next;
  consider(impl_->retry_at);
  if (!impl_->connection) return next;
  consider(impl_->connection->link->next_timeout());
  if (impl_->connection->reverse) consider(impl_->connection->reverse->next_timeout());
  consider(impl_->connection->last_words);
  if (impl_->state == State::kConnecting) consider(impl_->connection->deadline.value_or(impl_->now));
  if (impl_->state == State::kReady) consider(impl_->health.next_timeout(*impl_->requester));
  return next;
}

int Client::fd() const {
  return impl_->device.fd();
}

void Client::disconnect() {
  impl_->close("disconnected");
}

const verbs::Cq* Client::completion_queue() const {
  return impl_->connection ? impl_->connection->cq.get() : nullptr;
}

verbs::QpCounters Client::counters() const {
  verbs::QpCounters sum = impl_->past;
  if (impl_->connection && impl_->connection->qp) sum += impl_->connection->qp->counters();
  return sum;
}

ReplyCounts Client::replies() const {
  const RequesterCounters& counters = impl_->requester->counters();
  return {counters.replies_accepted, counters.replies_discarded, counters.last_discard};
}

}  // namespace weft::rpcrdma
