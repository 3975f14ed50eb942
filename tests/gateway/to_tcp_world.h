#pragma once

#include <gtest/gtest.h>

#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "apps/gateway/to_tcp.h"
#include "base/time.h"
#include "nfsulb/bindings.h"
#include "nfsulb/programs.h"
#include "rpcrdma/client.h"
#include "rpcrdma/rpc_message.h"
#include "rpcrdma/testing/protocol_under_test.h"
#include "tests/gateway/world.h"

namespace weft::gateway::testing {

// A TCP server, the gateway in front of it, and clients over RDMA.
struct ToTcpTest : World {
  ToTcpTest() : acceptor(io, boost::asio::ip::tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0)) { accept(); }
  ~ToTcpTest() override {
    clients.clear();
    gateway.reset();
    servers.clear();
    acceptor.close();
  }
  void SetUp() override {
    config.server = acceptor.local_endpoint();
    config.listen.ss_family = AF_INET;
    config.stream.record.max_record = 4 << 20;
    config.rpc = rpcrdma::testing::with_protocol(rpcrdma::ServerConfig{.max_buffered = 32 << 20});
    start_gateway();
    engines.push_back([this](TimePoint now) { return gateway ? gateway->process(frozen.value_or(now) + skew) : 0; });
    engines.push_back([this](TimePoint now) {
      std::size_t moved = 0;
      for (auto& client : clients) moved += client->process(now);
      return moved;
    });
  }
  // A new one, of `config`, in place of that before.
  void start_gateway() {
    gateway.reset();
    auto made = ToTcp::start(config, *gateway_device, io);
    ASSERT_TRUE(made.ok()) << made.status();
    gateway = std::move(*made);
  }
  void accept() {
    acceptor.async_accept([this](boost::system::error_code error, boost::asio::ip::tcp::socket socket) {
      if (error) return;
      from_ports.push_back(socket.remote_endpoint().port());
      servers.push_back(std::make_unique<TcpEnd>(std::move(socket), *tcp_pool));
      servers.back()->on_record = answer;
      accept();
    });
  }
  rpcrdma::Client& connect(const rpcrdma::ClientConfig& config = {}) {
    sockaddr_storage addr = gateway->local_addr();
    reinterpret_cast<sockaddr_in&>(addr).sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    clients.push_back(
        std::move(rpcrdma::Client::connect(*client_device, addr, rpcrdma::testing::with_protocol(config)).value()));
    return *clients.back();
  }
  // How a Call of NFS version 3 ended.
  struct Ended {
    rpcrdma::CallStatus status = rpcrdma::CallStatus::kLocalError;
    std::uint32_t xid = 0;
    Octets results;
    std::optional<std::size_t> item_len;
  };
  std::shared_ptr<std::optional<Ended>> call(rpcrdma::Client& client, std::uint32_t procedure, const Octets& args,
                                             rpcrdma::CallSpec spec = {}, std::uint32_t version = nfsulb::kNfsV3) {
    auto ended = std::make_shared<std::optional<Ended>>();
    spec.program = nfsulb::kNfsProgram;
    spec.version = version;
    spec.procedure = procedure;
    spec.binding = nfsulb::find_binding(spec.program, spec.version);
    spec.args = args;
    spec.cred = &cred;
    if (spec.max_results == 0) spec.max_results = 200;
    EXPECT_TRUE(
        client
            .call(spec,
                  [ended](const rpcrdma::Reply& reply) {
                    *ended = Ended{reply.status, 0, Octets(reply.results.begin(), reply.results.end()), reply.item_len};
                  })
            .ok());
    return ended;
  }
  static std::uint32_t xid_of(const Octets& message) {
    return std::uint32_t{message[0]} << 24 | std::uint32_t{message[1]} << 16 | std::uint32_t{message[2]} << 8 |
           std::uint32_t{message[3]};
  }

  rpcrdma::OpaqueAuth cred =
      rpcrdma::emit_auth_sys({.stamp = 1, .machine_name = "client", .uid = 1000, .gid = 100, .gids = {100}});
  std::unique_ptr<verbs::Device> gateway_device = open_device(), client_device = open_device();
  boost::asio::ip::tcp::acceptor acceptor;
  std::vector<std::uint16_t> from_ports;  // of the gateway's connections
  std::vector<std::unique_ptr<TcpEnd>> servers;
  std::function<void(TcpEnd&, const Octets&)> answer;
  ToTcpConfig config;
  std::unique_ptr<ToTcp> gateway;
  std::optional<TimePoint> frozen;  // the gateway's clock, which then moves by `skew` alone
  std::chrono::seconds skew{0};
  std::vector<std::unique_ptr<rpcrdma::Client>> clients;
};

}  // namespace weft::gateway::testing
