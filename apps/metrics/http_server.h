#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <functional>
#include <list>
#include <memory>
#include <string>

#include "apps/metrics/metrics_endpoint.h"
#include "base/ledger.h"

namespace weft::metrics {

// HttpServer takes HTTP connections, one request each, and answers `GET /metrics` with the next snapshot. One thread,
// that of its io_context. See MetricsEndpoint and EndpointConfig.
class HttpServer {
 public:
  // ask: asks for one snapshot.
  HttpServer(boost::asio::io_context& io, const EndpointConfig& config, std::function<void()> ask);
  ~HttpServer();

  // listen begins to accept.
  boost::system::error_code listen();
  boost::asio::ip::tcp::endpoint local_endpoint() const;
  void on_snapshot(const Snapshot& snapshot);

 private:
  using Text = std::shared_ptr<const std::string>;

  // Connection is one client from its arrival to the end of its answer.
  struct Connection {
    Connection(boost::asio::ip::tcp::socket socket, Ledger::Client the_holder, std::uint64_t the_number)
        : stream(std::move(socket)),
          holder(std::move(the_holder)),
          place(holder.take(1)),
          number(the_number),
          has_text(stream.get_executor()) {}
    boost::beast::tcp_stream stream;
    Ledger::Client holder;
    Lease place;
    std::uint64_t number;  // its tag in the Ledger
    std::chrono::steady_clock::time_point since = std::chrono::steady_clock::now();
    boost::asio::steady_timer has_text;  // cancelled when `text` is there
    bool has_request = false;            // its request has come
    bool waits = false;                  // for `text`
    bool has_asked = false;              // the snapshot under way was asked for after its request
    Text text;
  };
  using Connections = std::list<std::shared_ptr<Connection>>;

  boost::asio::awaitable<void> accept_all();
  void take_in(boost::asio::ip::tcp::socket socket);
  // Ends connections until one more of the address has a place.
  void make_place(const std::string& address);
  void end(const std::shared_ptr<Connection>& connection);
  boost::asio::awaitable<void> serve(std::shared_ptr<Connection> connection);
  boost::asio::awaitable<void> answer_request(Connection& connection);
  boost::asio::awaitable<bool> wait_for_text(Connection& connection);
  void ask_later();
  boost::asio::awaitable<void> ask_when_due();

  const EndpointConfig config_;
  std::function<void()> ask_;
  boost::asio::ip::tcp::acceptor acceptor_;
  Ledger places_;
  std::uint64_t num_accepted_ = 0;
  Connections connections_;  // the oldest first
  boost::asio::steady_timer due_;
  std::chrono::steady_clock::time_point asked_at_{};
  bool is_asking_ = false;  // until the snapshot is there
};

}  // namespace weft::metrics
