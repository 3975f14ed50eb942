#pragma once

#include <sys/socket.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <list>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "apps/onc_tcp/stream.h"
#include "rpcrdma/buffer_pool.h"
#include "rpcrdma/client.h"

namespace weft::gateway {

struct ToRdmaConfig {
  boost::asio::ip::tcp::endpoint listen;
  sockaddr_storage server{};
  rpcrdma::ClientConfig rpc;
  onc_tcp::StreamConfig stream;
  std::size_t max_buffered = 256 << 20;  // octets of Calls and results held for all clients together
  std::size_t max_item = 4 << 20;        // of one result that is placed directly
  // Of everything else in a Reply, where the Call sets no closer bound: more than a READDIR or READ_PLUS of 1 MiB.
  std::size_t max_reply = (1 << 20) + (64 << 10);
  std::size_t max_connections = 1024;
};

class Session;

// ToRdma lets clients that speak RPC over TCP reach an RPC-over-RDMA server. Every TCP connection has an RDMA
// connection of its own; where one ends the other is ended. Calls and Replies go through as they are, XIDs, credentials
// and verifiers included. What an Upper-Layer Binding is needed for, a program without one does not get: it is answered
// PROG_UNAVAIL here.
//
// One thread, that of its io_context.
class ToRdma {
 public:
  // device and io outlive it.
  static absl::StatusOr<std::unique_ptr<ToRdma>> start(const ToRdmaConfig& config, verbs::Device& device,
                                                       boost::asio::io_context& io);
  ~ToRdma();

  boost::asio::ip::tcp::endpoint local_endpoint() const;
  std::size_t process(verbs::TimePoint now);
  std::optional<verbs::TimePoint> next_timeout() const;
  int fd() const { return device_.fd(); }
  std::string summary() const;

 private:
  ToRdma(const ToRdmaConfig& config, verbs::Device& device, boost::asio::io_context& io);
  boost::asio::awaitable<void> accept_all();

  ToRdmaConfig config_;
  verbs::Device& device_;
  boost::asio::io_context& io_;
  boost::asio::ip::tcp::acceptor acceptor_;
  std::unique_ptr<verbs::Pd> pd_;
  std::unique_ptr<rpcrdma::BufferPool> buffers_;
  std::list<std::unique_ptr<Session>> sessions_;
  std::uint64_t num_clients_ = 0, num_calls_ = 0, num_placed_ = 0;  // of the sessions that are over
};

}  // namespace weft::gateway
