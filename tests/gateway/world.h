#pragma once

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/onc_tcp/stream.h"
#include "base/time.h"
#include "rpcrdma/buffer_pool.h"
#include "rpcrdma/rpc_message.h"
#include "verbs-shim/api/verbs.h"

// Shared by tests of both gateways: soft RNICs and TCP sockets on the loopback interface, moved by one thread.
namespace weft::gateway::testing {

using Octets = std::vector<std::uint8_t>;

// Parts of the messages of NFS version 3 that tests send (RFC 1813 sections 3.3.6, 3.3.7 and 3.3.17).
inline constexpr std::uint32_t kNull = 0, kRead = 6, kWrite = 7, kReaddirplus = 17;
Octets counted(std::size_t len);
Octets read_args(std::uint32_t count);
Octets readdirplus_args(std::uint32_t maxcount);
Octets read_results(const Octets& data);
// Of the data inline; without them and their roundup where that is asked for.
Octets write_args(const Octets& data, bool reduced = false);
Octets write_results(std::uint32_t count);
Octets call_message(std::uint32_t xid, std::uint32_t program, std::uint32_t version, std::uint32_t procedure,
                    const Octets& args, std::optional<rpcrdma::OpaqueAuth> cred = {});
Octets reply_message(std::uint32_t xid, const Octets& results);

// TcpEnd is an RPC program at one end of a TCP connection: it keeps the records that came.
struct TcpEnd {
  TcpEnd(boost::asio::ip::tcp::socket socket, rpcrdma::BufferPool& pool);
  ~TcpEnd();
  void send(const Octets& message);

  std::shared_ptr<onc_tcp::Stream> stream;
  std::vector<Octets> records;
  std::optional<std::string> ended;
  std::function<void(TcpEnd&, const Octets&)> on_record;
};

struct World : ::testing::Test {
  World();
  ~World() override;
  // Moves everything until done() holds; false after ten seconds.
  bool run(const std::function<bool()>& done);
  // Everything that can happen without waiting.
  void settle();
  std::unique_ptr<verbs::Device> open_device();

  boost::asio::io_context io{1};
  std::vector<std::function<std::size_t(TimePoint)>> engines;
  std::unique_ptr<verbs::Device> tcp_device = open_device();  // of the pool that TCP ends receive into
  std::unique_ptr<verbs::Pd> tcp_pd;
  std::unique_ptr<rpcrdma::BufferPool> tcp_pool;
};

}  // namespace weft::gateway::testing
