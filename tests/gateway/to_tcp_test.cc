// RPC over RDMA in, RPC over TCP out.
#include <algorithm>
#include <list>

#include "rpcrdma/testing/gss.h"
#include "tests/gateway/to_tcp_world.h"

namespace weft::gateway::testing {
namespace {

using boost::asio::ip::tcp;
using rpcrdma::CallStatus;

// Replies that are under way to a client which takes nothing are in Buffers of the gateway's own pool.
TEST_F(ToTcpTest, EndsWhileRepliesAreUnderWay) {
  constexpr std::size_t kLen = 1 << 20, kCalls = 16;
  config.rpc.max_buffered = 256 << 20;
  config.rpc.max_buffered_per_connection = 64 << 20;
  start_gateway();
  rpcrdma::Client& client = connect();
  // Until its first Reply a client may make one Call at a time.
  answer = [](TcpEnd& end, const Octets& call) { end.send(reply_message(xid_of(call), {})); };
  const auto first = call(client, kNull, {});
  ASSERT_TRUE(run([&] { return first->has_value(); }));
  servers[0]->on_record = nullptr;
  servers[0]->records.clear();
  const Octets args = read_args(kLen);
  std::vector<Octets> rooms(kCalls, Octets(kLen));
  for (Octets& room : rooms) {
    rpcrdma::CallSpec spec;
    spec.result_items = MutBytes(room);
    call(client, kRead, args, spec);
  }
  ASSERT_TRUE(run([&] { return servers[0]->records.size() >= kCalls / 2; }));
  engines.pop_back();  // the clients': they read nothing from here on
  const Octets results = read_results(counted(kLen));
  for (const Octets& record : servers[0]->records) servers[0]->send(reply_message(xid_of(record), results));
  settle();
  gateway.reset();
  EXPECT_EQ(clients.size(), 1u);
}

// The program's loop sleeps until the next deadline.
TEST_F(ToTcpTest, TheServersConnectionsAreLookedAtInTime) {
  frozen = std::chrono::steady_clock::now();
  start_gateway();
  settle();
  EXPECT_EQ(gateway->next_timeout(), gateway_device->next_timeout());
  answer = [](TcpEnd& end, const Octets& call) { end.send(reply_message(xid_of(call), {})); };
  const auto ended = call(connect(), kNull, {});
  ASSERT_TRUE(run([&] { return ended->has_value(); }));
  settle();
  EXPECT_EQ(gateway->next_timeout(), *frozen + ToTcp::kCheckEvery);
  skew = std::chrono::seconds(1);
  settle();
  EXPECT_EQ(gateway->next_timeout(), *frozen + 2 * ToTcp::kCheckEvery);
}

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
    spec.result_items = rpcrdma::ScatteredBytes(MutBytes(memory));
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
  spec.result_items = rpcrdma::ScatteredBytes(MutBytes(memory));
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
    spec.items = rpcrdma::ArgumentItem{args.size(), ConstBytes(data)};
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

TEST_F(ToTcpTest, SilentClientsKeepNoOtherOut) {
  config.rpc.max_connections = 4;
  config.rpc.max_connections_per_client = 3;
  start_gateway();
  answer = [](TcpEnd& end, const Octets& call) { end.send(reply_message(xid_of(call), {})); };
  for (std::size_t i = 0; i < 20; ++i) {
    connect();
    ASSERT_TRUE(run([&] { return clients[i]->state() == rpcrdma::Client::State::kReady; })) << i;
  }
  const auto is_ready = [](const auto& client) { return client->state() == rpcrdma::Client::State::kReady; };
  ASSERT_TRUE(run([&] { return std::ranges::count_if(clients, is_ready) <= 3; }));
  EXPECT_TRUE(servers.empty()) << "the server hears of clients that call";
  const auto ended = call(connect(), kNull, {});
  ASSERT_TRUE(run([&] { return ended->has_value(); }));
  EXPECT_EQ((*ended)->status, CallStatus::kSuccess);
}

// Its Calls wait in the gateway, as many as a client may have there; another client's are served.
TEST_F(ToTcpTest, AConnectionThatTheServerDoesNotReadHoldsUpNoOtherClient) {
  constexpr std::size_t kLen = 1 << 20, kCalls = 32;
  config.rpc.max_buffered_per_connection = 8 << 20;
  start_gateway();
  answer = [](TcpEnd& end, const Octets& call) {
    const bool is_null = call[23] == kNull;
    end.send(reply_message(xid_of(call), is_null ? Octets() : write_results(kLen)));
  };
  rpcrdma::Client& greedy = connect();
  const auto first = call(greedy, kNull, {});
  ASSERT_TRUE(run([&] { return first->has_value(); }));
  servers[0]->stream->pause();
  const Octets data = counted(kLen), args = write_args(data, true);
  std::vector<std::shared_ptr<std::optional<Ended>>> writes;
  for (std::size_t i = 0; i < kCalls; ++i) {
    rpcrdma::CallSpec spec;
    spec.items = rpcrdma::ArgumentItem{args.size(), ConstBytes(data)};
    writes.push_back(call(greedy, kWrite, args, spec));
  }
  settle();
  EXPECT_GT(std::ranges::count(writes, false, [](const auto& ended) { return ended->has_value(); }), 8);
  const auto ended = call(connect(), kNull, {});
  ASSERT_TRUE(run([&] { return ended->has_value(); }));
  EXPECT_EQ((*ended)->status, CallStatus::kSuccess);
  servers[0]->stream->resume();
  ASSERT_TRUE(run([&] { return std::ranges::all_of(writes, [](const auto& write) { return write->has_value(); }); }));
  for (const auto& write : writes) EXPECT_EQ((*write)->status, CallStatus::kSuccess);
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

// No client of the gateway may look like root to the server.
TEST_F(ToTcpTest, PortsBelow1024AreTakenOnlyWhereTheyAreAskedFor) {
  answer = [](TcpEnd& end, const Octets& call) { end.send(reply_message(xid_of(call), {})); };
  tcp::socket probe(io, tcp::v4());
  boost::system::error_code denied;
  probe.bind(tcp::endpoint(boost::asio::ip::address_v4::loopback(), 1023), denied);
  const bool is_allowed = denied != boost::asio::error::access_denied;
  for (const bool reserved : {false, true}) {
    clients.clear();
    config.reserved_port = reserved;
    start_gateway();
    const auto ended = call(connect(), kNull, {});
    ASSERT_TRUE(run([&] { return ended->has_value(); }));
    EXPECT_EQ((*ended)->status, CallStatus::kSuccess);
    EXPECT_EQ(from_ports.back() < 1024, reserved && is_allowed) << from_ports.back();
  }
}

// A server that takes no more connections: its backlog is full, and nothing answers a SYN.
struct DeafServerTest : ToTcpTest {
  void SetUp() override {
    acceptor.close();
    acceptor.open(tcp::v4());
    acceptor.bind(tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0));
    acceptor.listen(0);
    do {
      ASSERT_LT(callers.size(), 64u) << "the backlog takes any number";
      callers.emplace_back(io).async_connect(acceptor.local_endpoint(),
                                             [this](boost::system::error_code error) { connected += !error; });
      settle();
    } while (connected == callers.size());
    ToTcpTest::SetUp();
  }
  ~DeafServerTest() override {
    clients.clear();
    gateway.reset();
    callers.clear();
    acceptor.close();
    settle();
  }

  std::list<tcp::socket> callers;
  std::size_t connected = 0;
};

TEST_F(DeafServerTest, AConnectHasADeadlineAndTheClientIsTold) {
  frozen = std::chrono::steady_clock::now();
  config.connect_timeout = ToTcp::kCheckEvery / 2;  // nothing else is due as soon
  start_gateway();
  const auto ended = call(connect(), kNull, {});
  ASSERT_TRUE(run([&] { return clients[0]->state() == rpcrdma::Client::State::kReady; }));
  settle();
  EXPECT_FALSE(ended->has_value());
  EXPECT_EQ(gateway->next_timeout(), *frozen + config.connect_timeout);
  skew = std::chrono::seconds(1);
  ASSERT_TRUE(run([&] { return ended->has_value(); }));
  EXPECT_EQ((*ended)->status, CallStatus::kDisconnected);
  // The gateway gives its socket back, too, and serves the client once the server listens again.
  callers.clear();
  acceptor.close();
  acceptor.open(tcp::v4());
  acceptor.set_option(tcp::acceptor::reuse_address(true));
  acceptor.bind(config.server);
  acceptor.listen();
  accept();
  answer = [](TcpEnd& end, const Octets& call) { end.send(reply_message(xid_of(call), {})); };
  const auto again = call(connect(), kNull, {});
  ASSERT_TRUE(run([&] { return again->has_value(); }));
  EXPECT_EQ((*again)->status, CallStatus::kSuccess);
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
