// A server over TCP that calls its client and does not read the answers.
#include <boost/asio/buffer.hpp>

#include "apps/gateway/to_tcp.h"
#include "apps/onc_tcp/record.h"
#include "nfsulb/bindings.h"
#include "nfsulb/programs.h"
#include "rpcrdma/client.h"
#include "rpcrdma/testing/protocol_under_test.h"
#include "tests/gateway/world.h"

namespace weft::gateway::testing {
namespace {

using boost::asio::ip::tcp;

struct HostileServer : World {
  HostileServer() : acceptor(io, tcp::v4()) {
    // With a small receive buffer, answers soon fill it.
    acceptor.set_option(boost::asio::socket_base::receive_buffer_size(4096));
    acceptor.bind(tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0));
    acceptor.listen();
    acceptor.async_accept(server, [](boost::system::error_code) {});
  }
  ~HostileServer() override {
    client.reset();
    gateway.reset();
  }
  void SetUp() override {
    ToTcpConfig config{.listen = {}, .server = acceptor.local_endpoint(), .rpc = {}, .stream = {}};
    config.listen.ss_family = AF_INET;
    reinterpret_cast<sockaddr_in&>(config.listen).sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    config.rpc = rpcrdma::testing::with_protocol(config.rpc);
    auto made = ToTcp::start(config, *gateway_device, io);
    ASSERT_TRUE(made.ok()) << made.status();
    gateway = std::move(*made);
    client = std::move(rpcrdma::Client::connect(*client_device, gateway->local_addr(),
                                                rpcrdma::testing::with_protocol(rpcrdma::ClientConfig{}))
                           .value());
    engines.push_back([this](TimePoint now) { return gateway ? gateway->process(now) : 0; });
    engines.push_back([this](TimePoint now) { return client ? client->process(now) : 0; });
  }

  std::unique_ptr<verbs::Device> gateway_device = open_device(), client_device = open_device();
  tcp::acceptor acceptor;
  tcp::socket server{io};
  std::unique_ptr<ToTcp> gateway;
  std::unique_ptr<rpcrdma::Client> client;
};

TEST_F(HostileServer, CallingWithoutReadingIsBounded) {
  rpcrdma::CallSpec spec;
  spec.program = nfsulb::kNfsProgram;
  spec.version = nfsulb::kNfsV3;
  spec.binding = nfsulb::find_binding(spec.program, spec.version);
  ASSERT_TRUE(client->call(spec, [](const rpcrdma::Reply&) {}).ok());
  ASSERT_TRUE(run([&] { return server.is_open() && server.available() > 0; }));
  server.non_blocking(true);
  // The gateway itself answers Calls of an unknown version of RPC at once.
  Octets wrong = call_message(1, nfsulb::kNfs4CallbackProgram, 1, 1, {}), stream;
  wrong[11] = 3;
  for (int i = 0; i < 10000; ++i) onc_tcp::emit_record(wrong, stream);
  constexpr std::size_t kMost = 256 << 20;
  std::size_t sent = 0;
  for (int idle = 0; idle < 3 && sent < kMost;) {
    boost::system::error_code error;
    const std::size_t at = sent % stream.size();
    const std::size_t n = server.write_some(boost::asio::buffer(stream.data() + at, stream.size() - at), error);
    ASSERT_TRUE(!error || error == boost::asio::error::would_block) << error.message();
    idle = n > 0 ? 0 : idle + 1;
    sent += n;
    settle();
  }
  EXPECT_LT(sent, kMost) << "it is read on and on";
  // It reads, and is read again.
  Octets answers(1 << 20);
  std::size_t more = 0;
  EXPECT_TRUE(run([&] {
    boost::system::error_code error;
    server.read_some(boost::asio::buffer(answers), error);
    const std::size_t at = (sent + more) % stream.size();
    more += server.write_some(boost::asio::buffer(stream.data() + at, stream.size() - at), error);
    return more > (1 << 20);
  }));
}

}  // namespace
}  // namespace weft::gateway::testing
