#include "apps/gateway/to_rdma.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "apps/common/command.h"
#include "apps/gateway/session.h"
#include "fmt/format.h"
#include "spdlog/spdlog.h"

// g++ 12 takes the operator delete of Asio's coroutine frames for a mismatch when it inlines one half of the pair only.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
#endif

namespace weft::gateway {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

// What is waited before the next accept where the process ran out of descriptors.
constexpr std::chrono::milliseconds kAcceptPause{100};

std::string format_endpoint(const tcp::endpoint& endpoint) {
  const std::string host = endpoint.address().to_string();
  return (endpoint.address().is_v6() ? "[" + host + "]" : host) + ":" + std::to_string(endpoint.port());
}

}  // namespace

ToRdma::ToRdma(const ToRdmaConfig& config, verbs::Device& device, asio::io_context& io)
    : config_(config), device_(device), io_(io), acceptor_(io) {}

absl::StatusOr<std::unique_ptr<ToRdma>> ToRdma::start(const ToRdmaConfig& config, verbs::Device& device,
                                                      asio::io_context& io) {
  std::unique_ptr<ToRdma> out(new ToRdma(config, device, io));
  auto pd = device.alloc_pd();
  if (!pd.ok()) return apps::to_status(pd.error());
  out->pd_ = std::move(*pd);
  // Results are placed in Buffers that a record fits into, too.
  out->buffers_ = std::make_unique<rpcrdma::BufferPool>(*out->pd_, std::max(config.stream.max_record, config.max_item),
                                                        config.max_buffered);
  tcp::acceptor& acceptor = out->acceptor_;
  error_code error;
  if (!acceptor.open(config.listen.protocol(), error)) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(config.listen, error);
  if (!error) acceptor.listen(tcp::acceptor::max_listen_connections, error);
  if (error) {
    return absl::UnavailableError(fmt::format("cannot listen at {}: {}; choose another --listen",
                                              format_endpoint(config.listen), error.message()));
  }
  ToRdma* self = out.get();
  asio::co_spawn(
      io, [self]() -> asio::awaitable<void> { co_await self->accept_all(); }, asio::detached);
  return out;
}

ToRdma::~ToRdma() {
  error_code ignored;
  acceptor_.close(ignored);
}

asio::ip::tcp::endpoint ToRdma::local_endpoint() const {
  error_code ignored;
  return acceptor_.local_endpoint(ignored);
}

asio::awaitable<void> ToRdma::accept_all() {
  error_code error;
  asio::steady_timer pause(io_);
  for (;;) {
    tcp::socket socket = co_await acceptor_.async_accept(asio::redirect_error(asio::use_awaitable, error));
    if (error == asio::error::operation_aborted) co_return;
    if (error) {
      spdlog::warn("gateway: accept: {}", error.message());
      pause.expires_after(kAcceptPause);
      co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, error));
      continue;
    }
    const tcp::endpoint peer = socket.remote_endpoint(error);
    if (error) continue;  // gone already
    if (sessions_.size() >= config_.max_connections) {
      spdlog::warn("gateway: {}: turned away, {} clients are there", format_endpoint(peer), sessions_.size());
      continue;
    }
    auto session = std::make_unique<Session>(config_, *buffers_, format_endpoint(peer));
    if (!session->start(std::move(socket), device_)) continue;
    ++num_clients_;
    sessions_.push_back(std::move(session));
  }
}

std::size_t ToRdma::process(verbs::TimePoint now) {
  std::size_t moved = sessions_.empty() ? device_.process(now) : 0;
  for (auto at = sessions_.begin(); at != sessions_.end();) {
    Session& session = **at;
    moved += session.process(now);
    if (session.is_over()) {
      num_calls_ += session.num_calls();
      num_placed_ += session.num_placed();
      at = sessions_.erase(at);
    } else {
      ++at;
    }
  }
  return moved;
}

std::optional<verbs::TimePoint> ToRdma::next_timeout() const {
  std::optional<verbs::TimePoint> next = device_.next_timeout();
  for (const auto& session : sessions_) {
    const auto at = session->is_over() ? verbs::TimePoint{} : session->next_timeout();
    if (at && (!next || *at < *next)) next = at;
  }
  return next;
}

std::string ToRdma::summary() const {
  std::uint64_t num_calls = num_calls_, num_placed = num_placed_;
  for (const auto& session : sessions_) {
    num_calls += session->num_calls();
    num_placed += session->num_placed();
  }
  return fmt::format("{} clients, {} calls, {} items placed directly", num_clients_, num_calls, num_placed);
}

}  // namespace weft::gateway
