#include "apps/gateway/to_tcp.h"

#include "nfsulb/bindings.h"
#include "nfsulb/programs.h"
#include "rpcrdma/client.h"
#include "rpcrdma/rpc_message.h"
#include "rpcrdma/testing/gss.h"
#include "tests/gateway/world.h"

namespace weft::gateway::testing {
namespace {

using boost::asio::ip::tcp;
using rpcrdma::CallStatus;

// A TCP server, the gateway in front of it, and clients over RDMA.
struct ToTcpTest : World {
  ToTcpTest() : acceptor(io, tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0)) { accept(); }
  ~ToTcpTest() override {
    clients.clear();
    gateway.reset();
    servers.clear();
    acceptor.close();
  }
  void SetUp() override {
    ToTcpConfig config{.listen = {}, .server = acceptor.local_endpoint(), .rpc = {}, .stream = {.max_record = 4 << 20}};
    config.listen.ss_family = AF_INET;
    config.rpc.max_buffered = 32 << 20;
    auto made = ToTcp::start(config, *gateway_device, io);
    ASSERT_TRUE(made.ok()) << made.status();
    gateway = std::move(*made);
    engines.push_back([this](verbs::TimePoint now) { return gateway ? gateway->process(now) : 0; });
    engines.push_back([this](verbs::TimePoint now) {
      std::size_t moved = 0;
      for (auto& client : clients) moved += client->process(now);
      return moved;
    });
  }
  void accept() {
    acceptor.async_accept([this](boost::system::error_code error, tcp::socket socket) {
      if (error) return;
      servers.push_back(std::make_unique<TcpEnd>(std::move(socket), *tcp_pool));
      servers.back()->on_record = answer;
      accept();
    });
  }
  rpcrdma::Client& connect() {
    sockaddr_storage addr = gateway->local_addr();
    reinterpret_cast<sockaddr_in&>(addr).sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    clients.push_back(std::move(rpcrdma::Client::connect(*client_device, addr, {}).value()));
    return *clients.back();
  }
  // How a Call of NFS version 3 ended.
  struct Ended {
    CallStatus status = CallStatus::kLocalError;
    std::uint32_t xid = 0;
    Octets results;
    std::optional<std::size_t> item_len;
  };
  std::shared_ptr<std::optional<Ended>> call(rpcrdma::Client& client, std::uint32_t procedure, const Octets& args,
                                             rpcrdma::CallSpec spec = {}) {
    auto ended = std::make_shared<std::optional<Ended>>();
    spec.program = nfsulb::kNfsProgram;
    spec.version = nfsulb::kNfsV3;
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
  tcp::acceptor acceptor;
  std::vector<std::unique_ptr<TcpEnd>> servers;
  std::function<void(TcpEnd&, const Octets&)> answer;
  std::unique_ptr<ToTcp> gateway;
  std::vector<std::unique_ptr<rpcrdma::Client>> clients;
};

TEST_F(ToTcpTest, ACallArrivesAsItWasSent) {
  answer = [](TcpEnd& end, const Octets& call) { end.send(reply_message(xid_of(call), {})); };
  const auto ended = call(connect(), kNull, {});
  ASSERT_TRUE(run([&] { return ended->has_value(); }));
  EXPECT_EQ((*ended)->status, CallStatus::kSuccess);
  ASSERT_EQ(servers.size(), 1u);
  const Octets& got = servers[0]->records.at(0);
  EXPECT_EQ(got, call_message(xid_of(got), nfsulb::kNfsProgram, nfsulb::kNfsV3, kNull, {}));
}

TEST_F(ToTcpTest, DataReadArePlacedInTheClientsMemory) {
  for (const std::size_t len : {0ul, 1ul, 3ul, 100000ul, 100001ul}) {
    const Octets data = counted(len);
    answer = [&](TcpEnd& end, const Octets& call) { end.send(reply_message(xid_of(call), read_results(data))); };
    if (!servers.empty()) servers[0]->on_record = answer;
    rpcrdma::Client& client = clients.empty() ? connect() : *clients[0];
    Octets memory(200000);
    rpcrdma::CallSpec spec;
    spec.result_items = rpcrdma::ScatteredBytes(rpcrdma::MutBytes(memory));
    const Octets args = read_args(200000);
    const auto ended = call(client, kRead, args, spec);
    ASSERT_TRUE(run([&] { return ended->has_value(); }));
    EXPECT_EQ((*ended)->status, CallStatus::kSuccess);
    ASSERT_EQ((*ended)->item_len, len);
    EXPECT_TRUE(std::equal(data.begin(), data.end(), memory.begin()));
    // Without the data and their roundup.
    Octets without = read_results(data);
    without.resize(20);
    EXPECT_EQ((*ended)->results, without);
  }
}

TEST_F(ToTcpTest, WhatGssHasWrappedPassesWhole) {
  cred = rpcrdma::testing::gss_cred(rpcrdma::testing::GssService::kIntegrity);
  const Octets wrapped = counted(100000);
  answer = [&](TcpEnd& end, const Octets& call) { end.send(reply_message(xid_of(call), wrapped)); };
  rpcrdma::CallSpec spec;
  spec.max_results = wrapped.size();
  const auto ended = call(connect(), kRead, wrapped, spec);
  ASSERT_TRUE(run([&] { return ended->has_value(); }));
  EXPECT_EQ((*ended)->status, CallStatus::kSuccess);
  EXPECT_EQ((*ended)->results, wrapped);
  const Octets& got = servers[0]->records.at(0);
  EXPECT_EQ(got, call_message(xid_of(got), nfsulb::kNfsProgram, nfsulb::kNfsV3, kRead, wrapped, cred));
}

TEST_F(ToTcpTest, ARefusedReadHasNoItem) {
  const Octets refusal = {0, 0, 0, 70, 0, 0, 0, 0};  // NFS3ERR_STALE, no attributes
  answer = [&](TcpEnd& end, const Octets& call) { end.send(reply_message(xid_of(call), refusal)); };
  Octets memory(200000);
  rpcrdma::CallSpec spec;
  spec.result_items = rpcrdma::ScatteredBytes(rpcrdma::MutBytes(memory));
  const Octets args = read_args(200000);
  const auto ended = call(connect(), kRead, args, spec);
  ASSERT_TRUE(run([&] { return ended->has_value(); }));
  EXPECT_EQ((*ended)->results, refusal);
  EXPECT_EQ((*ended)->item_len, 0u);
}

TEST_F(ToTcpTest, DataToWriteArePutBackIntoTheirCall) {
  answer = [](TcpEnd& end, const Octets& call) { end.send(reply_message(xid_of(call), write_results(5))); };
  rpcrdma::Client& client = connect();
  for (const std::size_t len : {3ul, 100000ul, 100003ul}) {
    const Octets data = counted(len), args = write_args(data, true);
    rpcrdma::CallSpec spec;
    spec.items = rpcrdma::ArgumentItem{args.size(), rpcrdma::ConstBytes(data)};
    const auto ended = call(client, kWrite, args, spec);
    ASSERT_TRUE(run([&] { return ended->has_value(); }));
    EXPECT_EQ((*ended)->status, CallStatus::kSuccess);
    const Octets& got = servers.at(0)->records.back();
    EXPECT_EQ(got, call_message(xid_of(got), nfsulb::kNfsProgram, nfsulb::kNfsV3, kWrite, write_args(data)));
  }
}

TEST_F(ToTcpTest, RepliesComeInAnyOrderAndLongOnesToo) {
  rpcrdma::Client& client = connect();
  answer = [](TcpEnd& end, const Octets& call) { end.send(reply_message(xid_of(call), {})); };
  const auto grant = call(client, kNull, {});  // until its Reply there is one credit
  ASSERT_TRUE(run([&] { return grant->has_value(); }));
  std::vector<Octets> calls;
  servers.at(0)->on_record = [&](TcpEnd&, const Octets& call) { calls.push_back(call); };
  rpcrdma::CallSpec spec;
  spec.max_results = 60000;
  const auto first = call(client, kNull, {}, spec), second = call(client, kNull, {}, spec);
  ASSERT_TRUE(run([&] { return calls.size() == 2; }));
  const Octets large = counted(50000);
  servers[0]->send(reply_message(xid_of(calls[1]), large));
  ASSERT_TRUE(run([&] { return second->has_value(); }));
  EXPECT_EQ((*second)->results, large);
  EXPECT_FALSE(first->has_value());
  servers[0]->send(reply_message(xid_of(calls[0]), {}));
  ASSERT_TRUE(run([&] { return first->has_value(); }));
  EXPECT_TRUE((*first)->results.empty());
}

TEST_F(ToTcpTest, EveryClientHasAConnectionOfItsOwn) {
  answer = [](TcpEnd& end, const Octets& call) { end.send(reply_message(xid_of(call), {})); };
  rpcrdma::Client& one = connect();
  rpcrdma::Client& two = connect();
  const auto first = call(one, kNull, {}), second = call(two, kNull, {}), third = call(one, kNull, {});
  ASSERT_TRUE(run([&] { return first->has_value() && second->has_value() && third->has_value(); }));
  ASSERT_EQ(servers.size(), 2u);
  EXPECT_EQ(servers[0]->records.size() + servers[1]->records.size(), 3u);
  EXPECT_EQ(std::max(servers[0]->records.size(), servers[1]->records.size()), 2u);
}

TEST_F(ToTcpTest, WhereTheServerVanishesTheClientIsTold) {
  answer = [](TcpEnd&, const Octets&) {};
  rpcrdma::Client& client = connect();
  const auto ended = call(client, kNull, {});
  ASSERT_TRUE(run([&] { return !servers.empty() && !servers[0]->records.empty(); }));
  servers.clear();
  ASSERT_TRUE(run([&] { return ended->has_value(); }));
  EXPECT_EQ((*ended)->status, CallStatus::kDisconnected);
  ASSERT_TRUE(run([&] { return client.state() == rpcrdma::Client::State::kClosed; }));
}

TEST_F(ToTcpTest, WhereTheClientVanishesTheServerIsTold) {
  answer = [](TcpEnd&, const Octets&) {};
  const auto ended = call(connect(), kNull, {});
  ASSERT_TRUE(run([&] { return !servers.empty() && !servers[0]->records.empty(); }));
  clients.clear();
  ASSERT_TRUE(run([&] { return servers[0]->ended.has_value(); }));
}

TEST_F(ToTcpTest, WithoutAServerTheClientIsTold) {
  acceptor.close();
  const auto ended = call(connect(), kNull, {});
  ASSERT_TRUE(run([&] { return ended->has_value(); }));
  EXPECT_EQ((*ended)->status, CallStatus::kDisconnected);
}

TEST_F(ToTcpTest, WhatIsNoReplyEndsBoth) {
  answer = [](TcpEnd& end, const Octets& call) {
    Octets broken = reply_message(xid_of(call), {});
    broken[7] = 9;  // msg_type
    end.send(broken);
  };
  const auto ended = call(connect(), kNull, {});
  ASSERT_TRUE(run([&] { return ended->has_value() && servers[0]->ended.has_value(); }));
  EXPECT_EQ((*ended)->status, CallStatus::kDisconnected);
}

TEST_F(ToTcpTest, RepliesToNobodyAreDropped) {
  answer = [](TcpEnd& end, const Octets& call) {
    end.send(reply_message(xid_of(call) + 1, {}));
    end.send(reply_message(xid_of(call), {}));
    end.send(reply_message(xid_of(call), {}));
  };
  rpcrdma::Client& client = connect();
  const auto ended = call(client, kNull, {});
  ASSERT_TRUE(run([&] { return ended->has_value(); }));
  EXPECT_EQ((*ended)->status, CallStatus::kSuccess);
  settle();
  EXPECT_EQ(client.state(), rpcrdma::Client::State::kReady);
}

}  // namespace
}  // namespace weft::gateway::testing
