// Where NFS is found: the ports of a gateway whose ends are given without one. On an address of the loopback network
// that is this process's own, since the ports are the real ones.
#include <unistd.h>

#include <algorithm>

#include "apps/common/address.h"
#include "apps/gateway/to_tcp.h"
#include "apps/gateway/url.h"
#include "base/address.h"
#include "fmt/format.h"
#include "nfsulb/bindings.h"
#include "nfsulb/netid.h"
#include "nfsulb/programs.h"
#include "nfsulb/testing/compound.h"
#include "rpcrdma/client.h"
#include "rpcrdma/testing/protocol_under_test.h"
#include "tests/gateway/world.h"

namespace weft::gateway::testing {
namespace {

using boost::asio::ip::tcp;
using rpcrdma::CallStatus;

struct Ports : World {
  void accept(tcp::acceptor& acceptor) {
    acceptor.async_accept([&](boost::system::error_code error, tcp::socket socket) {
      if (error) return;
      server = std::make_unique<TcpEnd>(std::move(socket), *tcp_pool);
      server->on_record = [](TcpEnd& end, const Octets& call) {
        Octets reply = reply_message(0, Octets(12));
        std::copy_n(call.begin(), 4, reply.begin());
        end.send(reply);
      };
    });
  }
  std::optional<CallStatus> call(rpcrdma::Client& client, std::uint32_t procedure, const Octets& args) {
    rpcrdma::CallSpec spec;
    spec.program = nfsulb::kNfsProgram;
    spec.version = nfsulb::kNfsV4;
    spec.procedure = procedure;
    spec.binding = nfsulb::find_binding(spec.program, spec.version);
    spec.args = args;
    spec.max_results = 200;
    std::optional<CallStatus> status;
    EXPECT_TRUE(client.call(spec, [&](const rpcrdma::Reply& reply) { status = reply.status; }).ok());
    EXPECT_TRUE(run([&] { return status.has_value(); }));
    return status;
  }

  std::unique_ptr<TcpEnd> server;
};

TEST_F(Ports, Nfs4IsServedOnTheWellKnownPortAndNobodyIsAskedForIt) {
  RecordProperty("proves", rpcrdma::testing::rows("R1-6-01 U1-6.3-01 U1-6.3-02 U1-6.3-03",
                                                  "R2-9-1 W2-9-1 U2-5.3-1 U2-5.3-2 U2-8-1"));
  const auto pid = static_cast<unsigned>(getpid());
  const std::string host = fmt::format("127.{}.{}.{}", 64 + (pid >> 16) % 64, pid >> 8 & 255, 1 + pid % 254);
  const Url listen = parse_url("rdma://" + host).value();
  const Url connect = parse_url("tcp://" + host).value();
  EXPECT_EQ(listen.where.port, 20049);
  EXPECT_STREQ(nfsulb::kNetidRdma, "rdma");
  EXPECT_STREQ(nfsulb::kNetidRdma6, "rdma6");
  EXPECT_EQ(connect.where.port, 2049);

  // The TCP server of NFSv4. No rpcbind runs here, and nothing below knows of one.
  tcp::acceptor acceptor(io, tcp::endpoint(boost::asio::ip::make_address(connect.where.host), connect.where.port));
  accept(acceptor);
  const auto gateway_device = open_device();
  const auto client_device = open_device();
  ToTcpConfig config{
      .listen = {}, .server = acceptor.local_endpoint(), .rpc = {}, .stream = {.record = {.max_record = 1 << 20}}};
  config.listen = apps::resolve_address(listen.where.host, listen.where.port).value();
  config.rpc.max_buffered = 32 << 20;
  config.rpc = rpcrdma::testing::with_protocol(config.rpc);
  auto gateway = ToTcp::start(config, *gateway_device, io);
  ASSERT_TRUE(gateway.ok()) << gateway.status();
  EXPECT_EQ(address_str((*gateway)->local_addr()), host + ":20049");

  auto client = std::move(
      rpcrdma::Client::connect(*client_device, config.listen, rpcrdma::testing::with_protocol(rpcrdma::ClientConfig{}))
          .value());
  engines.push_back([&](TimePoint now) { return (*gateway)->process(now) + client->process(now); });
  EXPECT_EQ(call(*client, 0, {}), CallStatus::kSuccess);
  using nfsulb::testing::Xdr;
  const Xdr setclientid = Xdr().fixed(8).opaque(12).u32(0x40000000).opaque(3).opaque(20).u32(1);
  const Octets args = nfsulb::testing::compound_args(0, {nfsulb::testing::op(35, setclientid)}).octets();
  EXPECT_EQ(call(*client, 1, args), CallStatus::kSuccess);
  ASSERT_TRUE(server);
  EXPECT_EQ(server->records.size(), 2u);
  // SETCLIENTID names the client's own callback address; it has passed as it was.
  EXPECT_TRUE(std::ranges::equal(std::span(server->records.back()).last(args.size()), args));
  client.reset();
  engines.clear();
  gateway->reset();
  server.reset();
}

}  // namespace
}  // namespace weft::gateway::testing
