#include "apps/metrics/http_server.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/span.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/span_body.hpp>
#include <boost/beast/http/write.hpp>
#include <boost/none.hpp>
#include <string_view>
#include <utility>

#include "apps/common/tcp_endpoint.h"
#include "apps/metrics/openmetrics_writer.h"
#include "base/peer_group.h"

// g++ 12 reports a mismatched operator delete of Asio's coroutine frames when it inlines only one half of the pair.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
#endif

namespace weft::metrics {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

// Response is an answer whose body lives elsewhere.
using Response = http::response<http::span_body<const char>>;

Response make_response(http::status status, std::string_view type, std::string_view body) {
  Response response{status, 11};
  response.set(http::field::content_type, beast::string_view(type.data(), type.size()));
  response.body() = beast::span<const char>(body.data(), body.size());
  response.keep_alive(false);
  response.prepare_payload();
  return response;
}

constexpr std::string_view kPlain = "text/plain; charset=utf-8";

// Whether the client sent octets that are no acceptable request. All other errors are the end of the connection.
bool is_bad_request(const error_code& error) {
  return error.category() == http::make_error_code(http::error::bad_method).category() &&
         error != http::error::end_of_stream && error != http::error::partial_message;
}

// The target may be a whole URL (RFC 9112 section 3.2.2).
bool is_metrics_path(beast::string_view target) {
  constexpr std::string_view kScheme = "http://";
  std::string_view path(target.data(), target.size());
  if (path.starts_with(kScheme)) path.remove_prefix(std::min(path.find('/', kScheme.size()), path.size()));
  return path.substr(0, path.find('?')) == "/metrics";
}

}  // namespace

HttpServer::HttpServer(asio::io_context& io, const EndpointConfig& config, std::function<void()> ask)
    : config_(config),
      ask_(std::move(ask)),
      acceptor_(io),
      places_({.address = config.max_per_address, .all = config.max_connections}),
      due_(io) {}

HttpServer::~HttpServer() = default;

error_code HttpServer::listen() {
  const tcp::endpoint at = apps::to_endpoint(config_.listen);
  error_code error;
  if (!acceptor_.open(at.protocol(), error)) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor_.bind(at, error);
  if (!error) acceptor_.listen(static_cast<int>(config_.max_connections), error);
  if (error) return error;
  asio::co_spawn(acceptor_.get_executor(), accept_all(), asio::detached);
  return {};
}

tcp::endpoint HttpServer::local_endpoint() const {
  error_code ignored;
  return acceptor_.local_endpoint(ignored);
}

asio::awaitable<void> HttpServer::accept_all() {
  constexpr std::chrono::milliseconds kPause{100};  // after an accept that failed, for example without descriptors
  asio::steady_timer pause(acceptor_.get_executor());
  while (true) {
    error_code error;
    tcp::socket socket = co_await acceptor_.async_accept(asio::redirect_error(asio::use_awaitable, error));
    if (!error) {
      take_in(std::move(socket));
      continue;
    }
    pause.expires_after(kPause);
    co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, error));
  }
}

void HttpServer::take_in(tcp::socket socket) {
  error_code error;
  const tcp::endpoint peer = socket.remote_endpoint(error);
  if (error) return;  // gone already
  const std::string address = peer_group(apps::to_sockaddr(peer));
  make_place(address);
  const std::uint64_t number = ++num_accepted_;
  const auto& connection = connections_.emplace_back(
      std::make_shared<Connection>(std::move(socket), places_.enter(address, number), number));
  asio::co_spawn(acceptor_.get_executor(), serve(connection), asio::detached);
}

// Of the address that has most, the oldest without a request goes, since others are answered soon; else the oldest.
void HttpServer::make_place(const std::string& address) {
  const auto find = [this](std::uint64_t number) {
    return *std::ranges::find_if(connections_, [number](const auto& one) { return one->number == number; });
  };
  const auto judge = [&](std::uint64_t number) {
    const auto connection = find(number);
    return Ledger::Standing{.tenure = Ledger::Tenure::kResting,
                            .weight = connection->has_request ? Amount{0} : Amount{1},
                            .since = connection->since};
  };
  while (places_.asks(address, 1) != Ledger::Verdict::kFits) {
    end(find(*places_.gives_way(address, 1, judge)));  // the address that has most never holds less than this one
  }
}

void HttpServer::end(const std::shared_ptr<Connection>& connection) {
  connection->stream.close();
  connection->has_text.cancel();
  connection->place.end();
  connections_.remove(connection);
}

asio::awaitable<void> HttpServer::serve(std::shared_ptr<Connection> connection) {
  co_await answer_request(*connection);
  error_code ignored;
  connection->stream.socket().shutdown(tcp::socket::shutdown_send, ignored);
  end(connection);
}

asio::awaitable<void> HttpServer::answer_request(Connection& connection) {
  error_code error;
  http::request_parser<http::empty_body> parser;
  parser.header_limit(static_cast<std::uint32_t>(config_.max_request));
  parser.body_limit(boost::none);  // a body is not read
  beast::flat_buffer buffer(config_.max_request);
  connection.stream.expires_after(config_.request_time);
  co_await http::async_read_header(connection.stream, buffer, parser, asio::redirect_error(asio::use_awaitable, error));
  if (error && !is_bad_request(error)) co_return;
  connection.has_request = true;
  Response response;
  if (error) {
    response = make_response(http::status::bad_request, kPlain, "This is no HTTP request, or it is too long.\n");
  } else if (!is_metrics_path(parser.get().target())) {
    response = make_response(http::status::not_found, kPlain, "There is only /metrics.\n");
  } else if (parser.get().method() != http::verb::get) {
    response = make_response(http::status::method_not_allowed, kPlain, "There is only GET.\n");
    response.set(http::field::allow, "GET");
  } else if (co_await wait_for_text(connection)) {
    response = make_response(http::status::ok, OpenMetricsWriter::kContentType, *connection.text);
  } else {
    response = make_response(http::status::service_unavailable, kPlain, "The program gives no numbers now.\n");
  }
  // The length of the body is told, and the body does not come (RFC 9110 section 9.3.2).
  if (!error && parser.get().method() == http::verb::head) response.body() = {};
  connection.stream.expires_after(config_.answer_time);
  co_await http::async_write(connection.stream, response, asio::redirect_error(asio::use_awaitable, error));
}

asio::awaitable<bool> HttpServer::wait_for_text(Connection& connection) {
  connection.waits = true;
  ask_later();
  error_code ignored;
  connection.has_text.expires_after(config_.snapshot_time);
  co_await connection.has_text.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  connection.waits = false;
  co_return connection.text != nullptr;
}

void HttpServer::ask_later() {
  if (!std::exchange(is_asking_, true)) asio::co_spawn(acceptor_.get_executor(), ask_when_due(), asio::detached);
}

asio::awaitable<void> HttpServer::ask_when_due() {
  error_code ignored;
  due_.expires_at(asked_at_ + config_.snapshot_every);
  co_await due_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  asked_at_ = std::chrono::steady_clock::now();
  for (const auto& connection : connections_) connection->has_asked = connection->waits;
  ask_();
}

void HttpServer::on_snapshot(const Snapshot& snapshot) {
  is_asking_ = false;
  const Text text = std::make_shared<const std::string>(to_openmetrics(snapshot, config_.program));
  for (const auto& connection : connections_) {
    if (!connection->waits) continue;
    // A snapshot from before the request would lack what its client has seen already.
    if (!connection->has_asked) {
      ask_later();
      continue;
    }
    connection->text = text;
    connection->has_text.cancel();
  }
}

}  // namespace weft::metrics
