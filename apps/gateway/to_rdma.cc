#include "apps/gateway/to_rdma.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <cstring>
#include <functional>
#include <queue>
#include <string_view>
#include <utility>

#include "apps/common/command.h"
#include "apps/common/output.h"
#include "apps/common/tcp_endpoint.h"
#include "apps/gateway/room_limits.h"
#include "apps/gateway/session.h"
#include "base/address.h"
#include "base/peer_group.h"
#include "fmt/format.h"
#include "spdlog/spdlog.h"

// g++ 12 reports a mismatched operator delete of Asio's coroutine frames when it inlines only one half of the pair.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
#endif

namespace weft::gateway {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

// False if the client has closed or reset its connection. A client that is gone must not end another one.
bool is_there(tcp::socket& socket) {
  char octet = 0;
  const ssize_t len = ::recv(socket.native_handle(), &octet, 1, MSG_PEEK | MSG_DONTWAIT);
  return len > 0 || (len < 0 && (errno == EAGAIN || errno == EINTR));
}

}  // namespace

ToRdma::ToRdma(const ToRdmaConfig& config, verbs::Device& device, asio::io_context& io)
    : config_(config),
      device_(device),
      acceptor_(std::make_shared<tcp::acceptor>(io)),
      places_({.client = 1, .address = config.max_connections_per_address, .all = config.max_connections}),
      arrivals_(std::min(config.max_waiting, config.max_connections / 2)) {}

absl::StatusOr<std::unique_ptr<ToRdma>> ToRdma::start(const ToRdmaConfig& config, verbs::Device& device,
                                                      asio::io_context& io) {
  std::unique_ptr<ToRdma> out(new ToRdma(config, device, io));
  auto pd = device.alloc_pd();
  if (!pd.ok()) return apps::to_status(pd.error());
  out->pd_ = std::move(*pd);
  auto events = device.create_comp_channel();
  if (!events.ok()) return apps::to_status(events.error());
  out->events_ = std::move(*events);
  // The Rooms bound the memory. The pool has one record more, for a record that moves to a larger Buffer.
  const std::size_t longest = std::max(config.stream.record.max_record, config.max_item);
  out->buffers_ = std::make_unique<rpcrdma::BufferPool>(*out->pd_, longest, config.max_buffered + longest);
  const auto room =
      room_limits(config.max_buffered / 2, config.max_buffered_per_address / 2, config.max_connections, 2);
  if (!room.ok()) return room.status();
  const ReplyRooms reply_rooms = rooms_of_replies(*room);
  out->calls_ = std::make_unique<onc_tcp::Room>(*room);
  out->replies_ = std::make_unique<onc_tcp::Room>(reply_rooms.replies);
  out->listings_ = std::make_unique<onc_tcp::Room>(reply_rooms.listings);
  out->shared_ = std::make_unique<SharedBySessions>(
      SharedBySessions{out->config_, device, *out->buffers_, *out->calls_, *out->replies_, *out->listings_, out->log_,
                       *out->events_, out->turns_, config.has_metrics ? &out->metrics_ : nullptr});
  tcp::acceptor& acceptor = *out->acceptor_;
  error_code error;
  if (!acceptor.open(config.listen.protocol(), error)) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(config.listen, error);
  if (!error) acceptor.listen(tcp::acceptor::max_listen_connections, error);
  if (error) {
    return absl::UnavailableError(fmt::format("cannot listen on {}: {}; choose another --listen",
                                              address_str(*config.listen.data()), error.message()));
  }
  ToRdma* self = out.get();
  asio::co_spawn(
      io, [self, at = out->acceptor_]() -> asio::awaitable<void> { co_await accept_all(*self, at); }, asio::detached);
  return out;
}

ToRdma::~ToRdma() {
  sessions_.clear();
  error_code ignored;
  acceptor_->close(ignored);
}

asio::ip::tcp::endpoint ToRdma::local_endpoint() const {
  error_code ignored;
  return acceptor_->local_endpoint(ignored);
}

// Asio may resume this function after `self` has gone, even for the first time. So `self` is used only while the
// acceptor is open.
asio::awaitable<void> ToRdma::accept_all(ToRdma& self, std::shared_ptr<tcp::acceptor> acceptor) {
  error_code error;
  asio::steady_timer pause(acceptor->get_executor());
  while (acceptor->is_open()) {
    tcp::socket socket = co_await acceptor->async_accept(asio::redirect_error(asio::use_awaitable, error));
    if (!acceptor->is_open()) co_return;
    if (error) {
      if (self.log_.take(self.now_)) spdlog::warn("gateway: cannot accept a connection: {}", error.message());
      pause.expires_after(self.config_.accept_pause);
      co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, error));
      continue;
    }
    self.take_in(std::move(socket));
  }
}

void ToRdma::take_in(tcp::socket socket) {
  error_code error;
  const tcp::endpoint peer = socket.remote_endpoint(error);
  if (error) return;  // gone already
  const sockaddr_storage addr = apps::to_sockaddr(peer);
  if (config_.admits && !config_.admits(addr)) {
    ++sums_.not_admitted;
    return;
  }
  const std::string address = peer_group(addr);
  Newcomer newcomer{std::move(socket), peer, address};
  forget_ended();
  if (!has_to_wait(address)) return let_in(std::move(newcomer));
  auto first = arrivals_.add(address, places_.held_by(address), std::move(newcomer));
  if (first && is_there(first->socket)) let_in(std::move(*first));
}

// Whether the newcomer has to end a client of its own address, and others of this address have just done so; or others
// of this address wait.
bool ToRdma::has_to_wait(const std::string& address) {
  const bool has_place = places_.asks(address, 1) == Ledger::Verdict::kFits;
  if (arrivals_.may_end(address, now_) || (has_place && arrivals_.num_of(address) == 0)) return false;
  const auto leaves = gives_way(address);
  return leaves && (*by_id_.at(*leaves).at)->address() == address;
}

void ToRdma::let_in_waiting() {
  const auto has_place = [this](const std::string& address) {
    return places_.asks(address, 1) == Ledger::Verdict::kFits;
  };
  while (auto newcomer = arrivals_.take_if(has_place))
    if (is_there(newcomer->socket)) let_in(std::move(*newcomer));
  while (auto newcomer = arrivals_.take_due(now_))
    if (is_there(newcomer->socket)) let_in(std::move(*newcomer));
}

void ToRdma::let_in(Newcomer newcomer) {
  const std::string peer = address_str(*newcomer.peer.data());
  if (!make_place(newcomer.address)) {
    ++sums_.no_place;
    if (log_.take(now_)) {
      spdlog::warn("gateway: {}: turned away: {} clients are there and none of them gives way", peer, sessions_.size());
    }
    return;
  }
  ++sums_.opened;
  do {
    ++last_id_.value;
  } while (by_id_.contains(last_id_.value));
  const rpcrdma::ConnectionId id = last_id_;
  auto& session =
      sessions_.emplace_back(std::make_unique<Session>(*shared_, id, peer, places_.enter(newcomer.address), now_));
  session->start(std::move(newcomer.socket));
  const Place place{std::prev(sessions_.end()), session->seen_now(now_)};
  order_.add(id.value, newcomer.address, place.seen);
  by_id_.emplace(id.value, place);
}

void ToRdma::see_changes() {
  std::erase_if(shared_->changing, [this](Session* session) {
    Place& place = by_id_.at(session->id().value);
    const rpcrdma::ConnectionOrder::Seen now = session->seen_now(now_);
    order_.see(session->id().value, session->address(), std::exchange(place.seen, now), now);
    return !session->changes_on();
  });
}

// The client that gives way to one of this address, for which there is no place.
std::optional<std::uint32_t> ToRdma::gives_way(const std::string& newcomer) {
  see_changes();
  return order_.gives_way(newcomer, places_.asks(newcomer, 1) == Ledger::Verdict::kAddress, now_);
}

// False if no client gives way to one of this address.
bool ToRdma::make_place(const std::string& address) {
  forget_ended();
  while (places_.asks(address, 1) != Ledger::Verdict::kFits) {
    const auto leaves = gives_way(address);
    if (!leaves) return false;
    Session& session = **by_id_.at(*leaves).at;
    if (session.address() == address) arrivals_.on_end(address, places_.held_by(address), now_);
    session.give_way("all places are taken, and another client needs one");
    forget_ended();
  }
  return true;
}

// One slow client gives way for each client that waits for memory of the same Room: the one that holds most. It is
// another client. Its address is the same, or held more of the Room when this check began. The waiter whose address
// holds most is first, so each next waiter may choose among more slow clients.
void ToRdma::make_room(const onc_tcp::Room& room) {
  struct Slow {
    std::size_t held, used_by_address;
    Session* session;
    bool operator<(const Slow& other) const { return held < other.held; }
  };
  using MostFirst = std::priority_queue<Slow>;
  std::vector<Slow> slow;
  std::vector<std::pair<std::size_t, Session*>> waiters;  // with what their addresses hold
  for (const auto& session : sessions_) {
    if (session->is_over()) continue;
    const std::size_t held = session->held_slowly(room);
    const auto since = session->waits_since(room);
    const bool waits = since && now_ - *since >= kCheckInCrowdEvery;
    if (held == 0 && !waits) continue;
    const std::size_t used = room.used_by(session->address());
    if (held != 0) slow.push_back({held, used, session.get()});
    if (waits) waiters.emplace_back(used, session.get());
  }
  if (slow.empty() || waiters.empty()) return;
  std::ranges::sort(slow, std::greater(), &Slow::used_by_address);
  std::ranges::sort(waiters, std::greater());
  std::unordered_map<std::string_view, MostFirst> of_address;
  for (const Slow& one : slow) of_address[one.session->address()].push(one);

  const auto first_of = [](MostFirst& some) -> std::optional<Slow> {
    while (!some.empty() && some.top().session->is_over()) some.pop();
    return some.empty() ? std::nullopt : std::optional(some.top());
  };
  const auto first_but = [&](const Session* waiter, MostFirst& some) {
    const std::optional<Slow> first = first_of(some);
    if (!first || first->session != waiter) return first;
    some.pop();
    const std::optional<Slow> second = first_of(some);
    some.push(*first);
    return second;
  };
  MostFirst of_addresses_with_more;
  std::size_t num_with_more = 0;
  for (const auto& [used, waiter] : waiters) {
    if (waiter->is_over()) continue;
    for (; num_with_more < slow.size() && slow[num_with_more].used_by_address > used; ++num_with_more) {
      of_addresses_with_more.push(slow[num_with_more]);
    }
    const auto neighbour = first_but(waiter, of_address[waiter->address()]);
    const auto other = first_of(of_addresses_with_more);
    const auto& most = !neighbour || (other && *neighbour < *other) ? other : neighbour;
    if (most) most->session->give_way("it is slow, and others wait for the memory that it holds");
  }
}

bool ToRdma::is_crowded() const {
  return std::ranges::any_of(rooms(), [](const onc_tcp::Room* room) { return room->num_waiting() != 0; });
}

void ToRdma::check() {
  std::size_t num_leaving = 0;
  for (const auto& session : sessions_) {
    if (session->is_over()) continue;
    session->check(now_);
    if (session->is_over() || num_leaving == kLeavingPerCheck || !session->may_leave_server()) continue;
    session->leave_server();
    ++num_leaving;
  }
  for (const onc_tcp::Room* room : rooms()) make_room(*room);
}

void ToRdma::forget_ended() {
  if (shared_->ended.empty()) return;
  for (auto* some : {&shared_->busy, &shared_->changing}) {
    std::erase_if(*some, [](const Session* session) { return session->is_over(); });
  }
  for (const Session* session : std::exchange(shared_->ended, {})) {
    num_calls_ += session->num_calls();
    num_placed_ += session->num_placed();
    const rpcrdma::ConnectionStatistics last = session->statistics();
    sums_.ended_messages += last.messages;
    ++sums_.ended[static_cast<std::size_t>(session->end_reason())];
    if (shared_->observer != nullptr) shared_->observer->on_end(last);
    const Place place = by_id_.extract(session->id().value).mapped();
    order_.remove(session->id().value, session->address(), place.seen);
    turns_.remove(session->id().value);
    if (next_resting_ == place.at) ++next_resting_;
    sessions_.erase(place.at);
  }
}

std::size_t ToRdma::process(TimePoint now) {
  now_ = now;
  if (now >= next_check_) {
    check();
    next_check_ = now + (is_crowded() ? kCheckInCrowdEvery : kCheckEvery);
  }
  if (now >= next_trim_) {
    buffers_->trim();
    next_trim_ = now + kTrimEvery;
  }
  const std::size_t moved = take_records() + device_.process(now);
  take_events();
  for (onc_tcp::Room* room : rooms()) room->serve_line();
  if (now >= next_look_) {
    num_unseen_ = sessions_.size();
    next_look_ = now + kLookEvery;
  }
  const std::size_t news = turn_of_busy() + turn_of_resting();
  forget_ended();
  let_in_waiting();
  // Requests that follow from the news go out now. Looking at clients that rest is no work.
  return moved + news + (news > 0 ? device_.process(now) : 0);
}

// What a client sends at once is no more than its turn. So another client has its turn soon, however many others send
// as many Calls as they can.
std::size_t ToRdma::take_records() {
  std::size_t taken = 0;
  while (taken < kRecordsPerProcess) {
    const auto turn = turns_.take();
    if (!turn) break;
    const std::size_t num = turn->what->is_over() ? 0 : turn->what->take_records(kRecordsPerTurn);
    turns_.done(*turn, num);
    taken += num;
  }
  return taken;
}

void ToRdma::take_events() {
  while (const verbs::Cq* const cq = events_->get_event()) {
    if (const auto at = shared_->by_cq.find(cq); at != shared_->by_cq.end()) at->second->on_event();
  }
}

std::size_t ToRdma::turn_of_busy() {
  std::vector<Session*>& busy = shared_->busy;
  std::size_t moved = 0;
  for (std::size_t i = 0; i < busy.size();) {
    Session& session = *busy[i];
    if (!session.is_over()) moved += session.process(now_);
    if (!session.is_over() && session.is_busy()) {
      ++i;
      continue;
    }
    session.rest();
    busy[i] = busy.back();
    busy.pop_back();
  }
  return moved;
}

std::size_t ToRdma::turn_of_resting() {
  std::size_t moved = 0;
  for (std::size_t i = 0; i < kRestingPerTurn && num_unseen_ > 0; ++i, --num_unseen_) {
    if (next_resting_ == sessions_.end()) next_resting_ = sessions_.begin();
    if (next_resting_ == sessions_.end()) {
      num_unseen_ = 0;
      break;
    }
    Session& session = **next_resting_++;
    if (!session.is_over()) moved += session.process(now_);
    if (!session.is_over() && session.is_busy()) session.on_event();
  }
  return moved;
}

std::optional<TimePoint> ToRdma::next_timeout() const {
  std::optional<TimePoint> next = device_.next_timeout();
  if (!sessions_.empty()) next = earliest(next, std::min(next_check_, next_look_));
  if (buffers_->registered() != 0) next = earliest(next, next_trim_);
  const bool is_line_due = std::ranges::any_of(rooms(), &onc_tcp::Room::is_line_due);
  if (num_unseen_ > 0 || !shared_->ended.empty() || is_line_due || turns_.has_next()) return TimePoint{};
  for (const Session* session : shared_->busy) next = earliest(next, session->next_timeout());
  return earliest(next, arrivals_.next());
}

std::string ToRdma::summary() const {
  std::uint64_t num_calls = num_calls_, num_placed = num_placed_;
  for (const auto& session : sessions_) {
    num_calls += session->num_calls();
    num_placed += session->num_placed();
  }
  return fmt::format("{}, {}; items placed directly: {}", apps::counted(sums_.opened, "client"),
                     apps::counted(num_calls, "call"), num_placed);
}

metrics::Snapshot ToRdma::snapshot() const {
  rpcrdma::ServerStatistics statistics = sums_;
  for (const auto& session : sessions_) statistics.connections.push_back(session->statistics());
  metrics::Snapshot out;
  metrics::take(out, metrics_, std::move(statistics));
  out.max_connections = config_.max_connections;
  out.terminates = device_.query().terminates;
  out.memory = {{.kind = "calls", .held = calls_->used(), .limit = config_.max_buffered / 2},
                {.kind = "replies", .held = replies_->used() + listings_->used(), .limit = config_.max_buffered / 2}};
  return out;
}

}  // namespace weft::gateway
