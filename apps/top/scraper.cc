#include "apps/top/scraper.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <optional>

#include "apps/common/tcp_endpoint.h"
#include "base/address.h"
#include "fmt/format.h"

// g++ 12 reports a mismatched operator delete of Asio's coroutine frames when it inlines only one half of the pair.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
#endif

namespace weft::apps::top {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;

namespace {

constexpr std::size_t kMaxAnswer = 8 << 20;

// Exchange is one request and its answer.
struct Exchange {
  explicit Exchange(asio::io_context& io) : stream(io) { parser.body_limit(kMaxAnswer); }

  beast::tcp_stream stream;
  http::response_parser<http::string_body> parser;
  error_code error;
  bool done = false;
};

asio::awaitable<void> run(Exchange& exchange, sockaddr_storage where, std::chrono::milliseconds timeout) {
  error_code& error = exchange.error;
  exchange.stream.expires_after(timeout);
  co_await exchange.stream.async_connect(to_endpoint(where), asio::redirect_error(asio::use_awaitable, error));
  if (!exchange.error) {
    http::request<http::empty_body> request{http::verb::get, "/metrics", 11};
    request.set(http::field::host, address_str(where));
    request.keep_alive(false);
    co_await http::async_write(exchange.stream, request, asio::redirect_error(asio::use_awaitable, error));
  }
  if (!exchange.error) {
    beast::flat_buffer buffer;
    co_await http::async_read(exchange.stream, buffer, exchange.parser,
                              asio::redirect_error(asio::use_awaitable, error));
  }
  exchange.done = true;
}

absl::StatusOr<metrics::Scrape> read(const Exchange& exchange) {
  if (exchange.error == beast::error::timeout) return absl::DeadlineExceededError("no answer in time");
  if (exchange.error) return absl::UnavailableError(exchange.error.message());
  const auto& response = exchange.parser.get();
  if (response.result() != http::status::ok) {
    return absl::UnavailableError(fmt::format("it answers with HTTP status {}", response.result_int()));
  }
  return metrics::parse_openmetrics(response.body());
}

}  // namespace

absl::StatusOr<TimedScrape> fetch(const sockaddr_storage& where, std::chrono::milliseconds timeout,
                                  const StopSignals& stop) {
  constexpr std::chrono::milliseconds kLook{50};  // for a stop signal
  asio::io_context io(1);
  Exchange exchange(io);
  asio::co_spawn(io, run(exchange, where, timeout), asio::detached);
  while (!exchange.done && !stop.requested()) io.run_one_for(kLook);
  if (!exchange.done) return absl::CancelledError("stopped");
  absl::StatusOr<metrics::Scrape> scrape = read(exchange);
  if (!scrape.ok()) {
    return absl::Status(scrape.status().code(),
                        fmt::format("no metrics from {}: {}; is it the --metrics address of a weft serve or gateway?",
                                    address_str(where), std::string(scrape.status().message())));
  }
  return TimedScrape{std::move(*scrape), std::chrono::steady_clock::now()};
}

}  // namespace weft::apps::top
