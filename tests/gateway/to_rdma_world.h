#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "apps/gateway/to_rdma.h"
#include "base/time.h"
#include "nfsulb/bindings.h"
#include "nfsulb/programs.h"
#include "rpcrdma/rpc_message.h"
#include "rpcrdma/server.h"
#include "rpcrdma/testing/protocol_under_test.h"
#include "tests/gateway/world.h"

namespace weft::gateway::testing {

// An RDMA server, the gateway in front of it, and clients over TCP.
struct ToRdmaTest : World, rpcrdma::Service {
  ~ToRdmaTest() override {
    clients.clear();
    gateway.reset();
    calls.clear();
    server.reset();
  }
  void SetUp() override {
    sockaddr_storage any{};
    any.ss_family = AF_INET;
    reinterpret_cast<sockaddr_in&>(any).sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const rpcrdma::ServedProgram programs[] = {
        {.binding = nfsulb::find_binding(nfsulb::kNfsProgram, nfsulb::kNfsV3), .service = this, .takes_gss = true}};
    // Calls wait here for the gateway's resources, not for the server's.
    const rpcrdma::ServerConfig rpc{.reverse_credits = 4, .max_buffered_per_connection = 64 << 20};
    server =
        std::move(rpcrdma::Server::listen(*server_device, any, programs, rpcrdma::testing::with_protocol(rpc)).value());
    config.listen = boost::asio::ip::tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0);
    config.server = server->local_addr();
    config.stream.record.max_record = 4 << 20;
    config.rpc = rpcrdma::testing::with_protocol(config.rpc);
    start_gateway();
    engines.push_back([this](TimePoint now) { return server ? server->process(now) : 0; });
    engines.push_back([this](TimePoint now) { return gateway ? gateway->process(frozen.value_or(now) + skew) : 0; });
  }
  // A new one, of `config`, in place of that before.
  void start_gateway() {
    gateway.reset();
    auto made = ToRdma::start(config, *gateway_device, io);
    ASSERT_TRUE(made.ok()) << made.status();
    gateway = std::move(*made);
  }
  void on_call(rpcrdma::ServedCall call) override {
    if (answer) {
      server->reply(call.id, answer(call));
    } else {
      calls.push_back(std::move(call));
    }
  }
  // from: which of the addresses of loopback the client has.
  TcpEnd& connect(const char* from = "127.0.0.1") {
    boost::asio::ip::tcp::socket socket(io, boost::asio::ip::tcp::v4());
    socket.bind(boost::asio::ip::tcp::endpoint(boost::asio::ip::make_address(from), 0));
    socket.connect(gateway->local_endpoint());
    clients.push_back(std::make_unique<TcpEnd>(std::move(socket), *tcp_pool));
    return *clients.back();
  }
  // The record that answers a Call.
  Octets ask(TcpEnd& client, const Octets& message) {
    const std::size_t before = client.records.size();
    client.send(message);
    EXPECT_TRUE(run([&] { return client.records.size() > before || client.ended; }));
    return client.records.size() > before ? client.records.back() : Octets();
  }
  static Octets nfs_call(std::uint32_t xid, std::uint32_t procedure, const Octets& args) {
    return call_message(xid, nfsulb::kNfsProgram, nfsulb::kNfsV3, procedure, args);
  }
  static Octets refusal(std::uint32_t xid, rpcrdma::AcceptStat stat, std::uint32_t low = 0, std::uint32_t high = 0) {
    rpcrdma::ReplyHeader header;
    header.xid = xid;
    header.accept = stat;
    header.low = low;
    header.high = high;
    Octets out;
    rpcrdma::xdr::XdrWriter writer(out);
    rpcrdma::emit_reply(writer, header);
    return out;
  }

  std::unique_ptr<verbs::Device> server_device = open_device(), gateway_device = open_device();
  std::unique_ptr<rpcrdma::Server> server;
  std::function<rpcrdma::ServedReply(const rpcrdma::ServedCall&)> answer;
  std::deque<rpcrdma::ServedCall> calls;
  ToRdmaConfig config;
  std::unique_ptr<ToRdma> gateway;
  std::optional<TimePoint> frozen;  // the gateway's clock, which then moves by `skew` alone
  std::chrono::milliseconds skew{0};
  std::vector<std::unique_ptr<TcpEnd>> clients;
};

}  // namespace weft::gateway::testing
