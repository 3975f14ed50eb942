#include "apps/serve/mount/mount_server.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <list>
#include <optional>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "apps/common/setup.h"
#include "apps/common/tcp_endpoint.h"
#include "apps/onc_tcp/record.h"
#include "apps/serve/disk_pool.h"
#include "base/ledger.h"
#include "base/peer_group.h"
#include "fmt/format.h"
#include "rpcrdma/event_log.h"

// g++ 12 takes the operator delete of Asio's coroutine frames for a mismatch when it inlines only one half of the pair.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
#endif

namespace weft::serve {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;

struct State;

// Connection holds its place until its last owner lets it go: the list, its coroutine, or its work.
struct Connection {
  Connection(State& s, tcp::socket accepted, MountClient c);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  State& state;
  const std::uint32_t number;
  Ledger::Client holder;
  Lease place;
  tcp::socket socket;
  const MountClient client;
  Clock::time_point idle_since = Clock::now();
  bool is_closed = false;
  // The Call that is being answered.
  std::chrono::microseconds cost{0};  // 0: there is none
  std::optional<std::vector<std::uint8_t>> reply;
  asio::steady_timer answered;  // cancelled once the Call is done

  bool is_working() const { return cost.count() != 0; }
};

// State is the server's state for its coroutines. All of it belongs to the server's thread.
struct State {
  State(MountService& s, const MountServerConfig& c)
      : service(s),
        config(c),
        places({.all = c.max_connections}),
        acceptor(io),
        sweep_timer(io),
        place_freed(io, Clock::time_point::max()),
        pool({.num_workers = 1, .num_sync_workers = 0, .spin = {}}) {}

  MountService& service;
  const MountServerConfig config;
  Ledger places;
  std::atomic<std::size_t> num_places{0};
  bool is_over = false;
  asio::io_context io{1};
  tcp::acceptor acceptor;
  asio::steady_timer sweep_timer;
  asio::steady_timer place_freed;  // cancelled when a place becomes free
  rpcrdma::EventLog log{apps::program_log(), "serve: mount: client"};
  std::list<std::shared_ptr<Connection>> connections;  // open ones, the longest silent first
  std::uint32_t last_number = 0;
  DiskPool pool;
};

Connection::Connection(State& s, tcp::socket accepted, MountClient c)
    : state(s),
      number(++s.last_number),
      holder(s.places.enter(c.group, number)),
      place(holder.take(1)),
      socket(std::move(accepted)),
      client(std::move(c)),
      answered(s.io, Clock::time_point::max()) {
  state.num_places = state.places.held();
}

Connection::~Connection() {
  place.end();
  state.num_places = state.places.held();
  if (!state.is_over) state.place_freed.cancel();
}

// The place of the connection is free once its coroutine and its running work have ended, too.
void close(State& state, Connection& connection) {
  if (connection.is_closed) return;
  connection.is_closed = true;
  // First, so that nothing of it waits once the peer sees the end.
  state.pool.forget(connection.number);
  error_code ignored;
  connection.socket.close(ignored);
  connection.answered.cancel();
}

// Moves a connection to the end of the line of silent connections.
void touch(State& state, const std::shared_ptr<Connection>& connection) {
  connection->idle_since = Clock::now();
  auto it = std::find(state.connections.begin(), state.connections.end(), connection);
  if (it != state.connections.end()) state.connections.splice(state.connections.end(), state.connections, it);
}

// MountTask is one Call on its way to the disk thread and back.
class MountTask : public DiskTask {
 public:
  MountTask(State& state, std::shared_ptr<Connection> connection, std::vector<std::uint8_t> record)
      : state_(state), connection_(std::move(connection)), record_(std::move(record)) {}
  ~MountTask() override { connection_->cost = {}; }

  void run() override {
    if (state_.config.on_work) state_.config.on_work();
    // What it learns is its address's: the connection will not last.
    const DiskClient client{0, connection_->client.group};
    const ActingFor acting(client);
    reply_ = state_.service.answer(record_, connection_->client);
  }
  void finish() override {
    connection_->reply = std::move(reply_);
    connection_->cost = {};
    connection_->answered.cancel();
  }
  std::chrono::microseconds expected_cost() const override { return connection_->cost; }

 private:
  State& state_;
  std::shared_ptr<Connection> connection_;
  std::vector<std::uint8_t> record_;
  std::optional<std::vector<std::uint8_t>> reply_;
};

// A path has a name for every two octets at most, and each name is looked up.
std::chrono::microseconds expected_cost(ConstBytes record) {
  constexpr std::chrono::microseconds kCall{50}, kOctet{5};
  return kCall + record.size() * kOctet;
}

// The Reply; nothing if there is none, or if the connection was closed.
asio::awaitable<std::optional<std::vector<std::uint8_t>>> answer(State& state, std::shared_ptr<Connection> connection,
                                                                 std::vector<std::uint8_t> record) {
  error_code ignored;
  connection->cost = expected_cost(record);
  std::unique_ptr<DiskTask> task = std::make_unique<MountTask>(state, connection, std::move(record));
  // There are no more tasks than connections.
  if (!state.pool.submit(task, DiskLane::kNormal, {connection->number, connection->client.group}))
    co_return std::nullopt;
  while (connection->is_working() && !connection->is_closed)
    co_await connection->answered.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  co_return std::exchange(connection->reply, std::nullopt);
}

asio::awaitable<void> talk(State& state, std::shared_ptr<Connection> connection) {
  onc_tcp::RecordReader reader(state.config.max_record);
  std::array<std::uint8_t, 4096> buffer;
  error_code error;
  for (;;) {
    std::size_t n = co_await connection->socket.async_read_some(asio::buffer(buffer),
                                                                asio::redirect_error(asio::use_awaitable, error));
    // Another connection may have taken its place since the octets came.
    if (error || connection->is_closed) co_return;
    ConstBytes input(buffer.data(), n);
    while (!input.empty()) {
      auto outcome = reader.next(input);
      if (outcome == onc_tcp::RecordReader::Outcome::kTooLong) {
        state.log.on_time(Clock::now());
        state.log.line(verbs::LogLevel::kWarn, connection->client.host,
                       "a record that is longer than {} bytes or never ends", state.config.max_record);
        co_return;
      }
      if (outcome == onc_tcp::RecordReader::Outcome::kNeedMore) break;
      auto reply = co_await answer(state, connection, reader.take_record());
      touch(state, connection);
      if (!reply || connection->is_closed) co_return;
      std::vector<std::uint8_t> octets;
      onc_tcp::emit_record(*reply, octets);
      co_await asio::async_write(connection->socket, asio::buffer(octets),
                                 asio::redirect_error(asio::use_awaitable, error));
      if (error) co_return;
    }
  }
}

asio::awaitable<void> serve_connection(State& state, std::shared_ptr<Connection> connection) {
  co_await talk(state, connection);
  close(state, *connection);
  std::erase(state.connections, connection);
}

// Gives the Replies of the disk thread to their connections.
asio::awaitable<void> drain_pool(State& state) {
  error_code error;
  asio::posix::stream_descriptor done(state.io, ::dup(state.pool.event_fd()));
  for (;;) {
    while (!state.pool.prepare_wait()) state.pool.drain();
    co_await done.async_wait(asio::posix::stream_descriptor::wait_read,
                             asio::redirect_error(asio::use_awaitable, error));
    if (error) co_return;
    state.pool.end_wait();
    state.pool.drain();
  }
}

asio::awaitable<void> sweep(State& state) {
  error_code error;
  for (;;) {
    state.sweep_timer.expires_after(std::max(state.config.idle_limit / 4, std::chrono::milliseconds(1)));
    co_await state.sweep_timer.async_wait(asio::redirect_error(asio::use_awaitable, error));
    if (error) co_return;
    Clock::time_point limit = Clock::now() - state.config.idle_limit;
    for (const auto& connection : state.connections)
      if (!connection->is_working() && connection->idle_since < limit) close(state, *connection);
  }
}

// A connection whose Call has not come counts as much as this Call: it gives way before ordinary Calls that wait, and
// after dear ones, since its own may be on its way.
constexpr std::chrono::microseconds kSilence{1000};

// Ends the connection that gives way to one of this group of addresses: of the address with most connections, the one
// whose Call costs most, and of several the one that was silent longest. False: its place is not free yet, because its
// Call runs.
bool make_room(State& state, const std::string& group) {
  std::unordered_map<std::uint64_t, std::list<std::shared_ptr<Connection>>::iterator> open;
  for (auto it = state.connections.begin(); it != state.connections.end(); ++it) open.emplace((*it)->number, it);
  const auto judge = [&](std::uint64_t number) -> Ledger::Standing {
    const auto at = open.find(number);
    if (at == open.end()) return {.tenure = Ledger::Tenure::kFixed};  // it is going
    const Connection& connection = **at->second;
    return {.tenure = Ledger::Tenure::kResting,
            .weight = static_cast<Amount>((connection.is_working() ? connection.cost : kSilence).count()),
            .since = connection.idle_since};
  };
  const std::optional<std::uint64_t> number = state.places.gives_way(group, 1, judge);
  if (!number) return true;
  const std::shared_ptr<Connection> victim = *open.at(*number);
  state.connections.erase(open.at(*number));
  close(state, *victim);
  return !victim->is_working();
}

// Waits until a connection of this group may have a place.
asio::awaitable<void> wait_for_place(State& state, const std::string& group) {
  error_code ignored;
  while (state.places.asks(group, 1) != Ledger::Verdict::kFits) {
    while (!make_room(state, group)) {
    }
    co_await state.place_freed.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
}

asio::awaitable<void> accept_all(State& state) {
  error_code error;
  asio::steady_timer pause(state.io);
  for (;;) {
    tcp::socket socket = co_await state.acceptor.async_accept(asio::redirect_error(asio::use_awaitable, error));
    if (error == asio::error::operation_aborted) co_return;
    if (error) {
      state.log.on_time(Clock::now());
      state.log.general_line(verbs::LogLevel::kWarn, "cannot accept a connection: {}", error.message());
      pause.expires_after(state.config.accept_pause);
      co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, error));
      continue;
    }
    const tcp::endpoint peer = socket.remote_endpoint(error);
    if (error) continue;  // gone already
    if (state.config.admits && !state.config.admits(apps::to_sockaddr(peer))) continue;
    MountClient client{peer.address().to_string(), peer_group(apps::to_sockaddr(peer))};
    co_await wait_for_place(state, client.group);
    auto connection = std::make_shared<Connection>(state, std::move(socket), std::move(client));
    state.connections.push_back(connection);
    asio::co_spawn(state.io, serve_connection(state, connection), asio::detached);
  }
}

}  // namespace

struct MountServer::Impl : State {
  using State::State;
  std::thread thread;
};

MountServer::MountServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

absl::StatusOr<std::unique_ptr<MountServer>> MountServer::listen(const sockaddr_storage& addr, MountService& service,
                                                                 const MountServerConfig& config) {
  auto impl = std::make_unique<Impl>(service, config);
  tcp::endpoint endpoint = apps::to_endpoint(addr);
  error_code error;
  tcp::acceptor& acceptor = impl->acceptor;
  if (!acceptor.open(endpoint.protocol(), error)) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(tcp::acceptor::max_listen_connections, error);
  if (error)
    return absl::UnavailableError(fmt::format("cannot listen for MOUNT at {}:{}: {}; choose another --mount-listen",
                                              endpoint.address().to_string(), endpoint.port(), error.message()));
  asio::co_spawn(impl->io, accept_all(*impl), asio::detached);
  asio::co_spawn(impl->io, sweep(*impl), asio::detached);
  asio::co_spawn(impl->io, drain_pool(*impl), asio::detached);
  Impl* state = impl.get();
  impl->thread = std::thread([state] { state->io.run(); });
  return std::unique_ptr<MountServer>(new MountServer(std::move(impl)));
}

MountServer::~MountServer() {
  impl_->io.stop();
  impl_->thread.join();
  impl_->is_over = true;
}

sockaddr_storage MountServer::local_addr() const {
  error_code ignored;
  tcp::endpoint endpoint = impl_->acceptor.local_endpoint(ignored);
  return apps::to_sockaddr(endpoint);
}

std::size_t MountServer::num_connections() const {
  return impl_->num_places;
}

std::size_t MountServer::num_waiting() const {
  return impl_->pool.state_of(DiskLane::kNormal).num_queued;
}

}  // namespace weft::serve
