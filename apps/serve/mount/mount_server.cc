#include "apps/serve/mount/mount_server.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <cstring>
#include <list>
#include <string_view>
#include <thread>
#include <unordered_map>

#include "apps/common/setup.h"
#include "apps/common/tcp_endpoint.h"
#include "apps/onc_tcp/record.h"
#include "fmt/format.h"
#include "rpcrdma/event_log.h"
#include "rpcrdma/peer_group.h"

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

struct Connection {
  explicit Connection(tcp::socket s) : socket(std::move(s)) {}

  tcp::socket socket;
  MountClient client;
  Clock::time_point idle_since = Clock::now();
  bool is_working = false;  // a Call of it is being answered
};

// State is the server's state for its coroutines. All of it belongs to the server's thread.
struct State {
  State(MountService& s, const MountServerConfig& c) : service(s), config(c), acceptor(io), sweep_timer(io) {}

  MountService& service;
  const MountServerConfig config;
  asio::io_context io{1};
  asio::thread_pool disk{1};
  tcp::acceptor acceptor;
  asio::steady_timer sweep_timer;
  rpcrdma::EventLog log{apps::program_log(), "serve: mount: client"};
  std::list<std::shared_ptr<Connection>> connections;  // longest silent first
  std::atomic<std::size_t> num_connections{0};
};

void close(Connection& connection) {
  error_code ignored;
  connection.socket.close(ignored);
}

// Moves a connection to the end of the line of silent connections.
void touch(State& state, const std::shared_ptr<Connection>& connection) {
  connection->idle_since = Clock::now();
  auto it = std::find(state.connections.begin(), state.connections.end(), connection);
  if (it != state.connections.end()) state.connections.splice(state.connections.end(), state.connections, it);
}

asio::awaitable<std::optional<std::vector<std::uint8_t>>> answer_on_disk(MountService& service,
                                                                         std::vector<std::uint8_t> record,
                                                                         MountClient client) {
  co_return service.answer(record, client);
}

asio::awaitable<void> talk(State& state, std::shared_ptr<Connection> connection) {
  onc_tcp::RecordReader reader(state.config.max_record);
  std::array<std::uint8_t, 4096> buffer;
  error_code error;
  for (;;) {
    std::size_t n = co_await connection->socket.async_read_some(asio::buffer(buffer),
                                                                asio::redirect_error(asio::use_awaitable, error));
    if (error) co_return;
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
      connection->is_working = true;
      auto reply = co_await asio::co_spawn(
          state.disk, answer_on_disk(state.service, reader.take_record(), connection->client), asio::use_awaitable);
      connection->is_working = false;
      touch(state, connection);
      if (!reply) co_return;
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
  close(*connection);
  std::erase(state.connections, connection);
  state.num_connections = state.connections.size();
}

asio::awaitable<void> sweep(State& state) {
  error_code error;
  for (;;) {
    state.sweep_timer.expires_after(std::max(state.config.idle_limit / 4, std::chrono::milliseconds(1)));
    co_await state.sweep_timer.async_wait(asio::redirect_error(asio::use_awaitable, error));
    if (error) co_return;
    Clock::time_point limit = Clock::now() - state.config.idle_limit;
    for (const auto& connection : state.connections)
      if (!connection->is_working && connection->idle_since < limit) close(*connection);
  }
}

// Ends the longest silent connection of the group of addresses that has the most connections.
void make_room(State& state) {
  std::unordered_map<std::string_view, std::size_t> num_of_group;
  for (const auto& connection : state.connections) ++num_of_group[connection->client.group];
  auto found = state.connections.begin();
  for (auto it = found; it != state.connections.end(); ++it) {
    if (num_of_group[(*it)->client.group] > num_of_group[(*found)->client.group]) found = it;
  }
  close(**found);
  state.connections.erase(found);
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
    if (state.connections.size() >= state.config.max_connections) make_room(state);
    auto connection = std::make_shared<Connection>(std::move(socket));
    connection->client = {peer.address().to_string(), rpcrdma::peer_group(apps::to_sockaddr(peer))};
    state.connections.push_back(connection);
    state.num_connections = state.connections.size();
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
  Impl* state = impl.get();
  impl->thread = std::thread([state] { state->io.run(); });
  return std::unique_ptr<MountServer>(new MountServer(std::move(impl)));
}

MountServer::~MountServer() {
  impl_->io.stop();
  impl_->thread.join();
  impl_->disk.join();
}

sockaddr_storage MountServer::local_addr() const {
  error_code ignored;
  tcp::endpoint endpoint = impl_->acceptor.local_endpoint(ignored);
  return apps::to_sockaddr(endpoint);
}

std::size_t MountServer::num_connections() const {
  return impl_->num_connections;
}

}  // namespace weft::serve
