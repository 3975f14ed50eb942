#include "apps/gateway/to_tcp.h"

#include <algorithm>
#include <list>

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
    config.server = acceptor.local_endpoint();
    config.listen.ss_family = AF_INET;
    config.stream.record.max_record = 4 << 20;
    config.rpc.max_buffered = 32 << 20;
    start_gateway();
    engines.push_back(
        [this](verbs::TimePoint now) { return gateway ? gateway->process(frozen.value_or(now) + skew) : 0; });
    engines.push_back([this](verbs::TimePoint now) {
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
    acceptor.async_accept([this](boost::system::error_code error, tcp::socket socket) {
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
    clients.push_back(std::move(rpcrdma::Client::connect(*client_device, addr, config).value()));
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
  tcp::acceptor acceptor;
  std::vector<std::uint16_t> from_ports;  // of the gateway's connections
  std::vector<std::unique_ptr<TcpEnd>> servers;
  std::function<void(TcpEnd&, const Octets&)> answer;
  ToTcpConfig config;
  std::unique_ptr<ToTcp> gateway;
  std::optional<verbs::TimePoint> frozen;  // the gateway's clock, which then moves by `skew` alone
  std::chrono::seconds skew{0};
  std::vector<std::unique_ptr<rpcrdma::Client>> clients;
};

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
    spec.result_items = rpcrdma::MutBytes(room);
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

// Serves its server's Calls, as a client of NFSv4.1 does, and keeps them.
struct Callbacks : rpcrdma::Service {
  void on_call(rpcrdma::ServedCall call) override {
    Octets message(call.header.begin(), call.header.end());
    message.insert(message.end(), call.args.begin(), call.args.end());
    messages.push_back(std::move(message));
    ids.push_back(call.id);
    if (answer) client->reply(call.id, answer());
  }

  rpcrdma::Client* client = nullptr;
  std::function<rpcrdma::ServedReply()> answer;
  std::vector<Octets> messages;
  std::vector<rpcrdma::CallId> ids;
};

struct CallbacksToRdmaTest : ToTcpTest {
  ~CallbacksToRdmaTest() override { clients.clear(); }
  // A client that has called once, so that there is a TCP connection to be called back on.
  TcpEnd& open(std::uint32_t credits = 8) {
    answer = [](TcpEnd& end, const Octets& call) {
      if (call[7] == 0) end.send(reply_message(xid_of(call), {}));
    };
    rpcrdma::ClientConfig config;
    config.reverse_programs = programs;
    config.reverse_credits = credits;
    callbacks.client = &connect(config);
    const auto ended = call(*callbacks.client, kNull, {});
    EXPECT_TRUE(run([&] { return ended->has_value(); }));
    return *servers.at(0);
  }
  static Octets callback(std::uint32_t xid, const Octets& args = {}) {
    return call_message(xid, nfsulb::kNfs4CallbackProgram, 1, 1, args);
  }
  // The records that came but the client's own Call.
  static std::vector<Octets> replies(const TcpEnd& server) {
    return {server.records.begin() + 1, server.records.end()};
  }

  Callbacks callbacks;
  const rpcrdma::Program programs[1] = {{nfsulb::find_binding(nfsulb::kNfs4CallbackProgram, 1), &callbacks}};
};

TEST_F(CallbacksToRdmaTest, ACallOfTheServerReachesItsClientAndIsAnswered) {
  RecordProperty("proves", "U1-6.5.2-01 U1-6.5.2-05 R1-7.3.1-01");
  TcpEnd& server = open();
  EXPECT_TRUE(callbacks.messages.empty());
  const Octets results = counted(40);
  callbacks.answer = [&] {
    rpcrdma::ServedReply reply;
    reply.results = results;
    reply.verf = {1, {9, 9, 9, 9}};
    return reply;
  };
  const Octets message = callback(0xabcd1234, counted(200));
  server.send(message);
  ASSERT_TRUE(run([&] { return server.records.size() == 2; }));
  ASSERT_EQ(callbacks.messages.size(), 1u);
  EXPECT_EQ(callbacks.messages[0], message);
  Octets expected;
  rpcrdma::xdr::XdrWriter out(expected);
  rpcrdma::emit_reply(out, {.xid = 0xabcd1234, .verf = {1, {9, 9, 9, 9}}});
  out.raw(results);
  EXPECT_EQ(server.records[1], expected);
}

TEST_F(CallbacksToRdmaTest, CallsBothWaysUnderOneXid) {
  TcpEnd& server = open();
  callbacks.answer = [] { return rpcrdma::ServedReply{}; };
  std::vector<Octets> forward;
  server.on_record = [&](TcpEnd&, const Octets& record) {
    if (record[7] == 0) forward.push_back(record);
  };
  rpcrdma::CallSpec spec;
  spec.xid = 0x77;
  const auto ended = call(*callbacks.client, kNull, {}, spec);
  ASSERT_TRUE(run([&] { return forward.size() == 1; }));
  server.send(callback(0x77));
  ASSERT_TRUE(run([&] { return callbacks.messages.size() == 1 && server.records.size() == 3; }));
  EXPECT_EQ(server.records[2], reply_message(0x77, {}));
  EXPECT_FALSE(ended->has_value());
  server.send(reply_message(0x77, {}));
  ASSERT_TRUE(run([&] { return ended->has_value(); }));
  EXPECT_EQ((*ended)->status, CallStatus::kSuccess);
}

// More wait here and, when many do, the server is not read.
TEST_F(CallbacksToRdmaTest, NoMoreAreUnderWayThanTheClientGranted) {
  TcpEnd& server = open(2);
  callbacks.answer = [] { return rpcrdma::ServedReply{}; };
  server.send(callback(1));  // until its Reply there is one credit
  ASSERT_TRUE(run([&] { return server.records.size() == 2; }));
  callbacks.answer = nullptr;
  constexpr std::uint32_t kNum = 40;
  for (std::uint32_t i = 0; i < kNum; ++i) server.send(callback(100 + i));
  ASSERT_TRUE(run([&] { return callbacks.messages.size() == 3; }));
  settle();
  EXPECT_EQ(callbacks.messages.size(), 3u);
  callbacks.answer = [] { return rpcrdma::ServedReply{}; };
  for (std::size_t i = 1; i < 3; ++i) callbacks.client->reply(callbacks.ids[i], {});
  ASSERT_TRUE(run([&] { return server.records.size() == 2 + kNum; }));
  const auto ended = call(*callbacks.client, kNull, {});
  EXPECT_TRUE(run([&] { return ended->has_value(); }));
}

TEST_F(CallbacksToRdmaTest, AServerThatCallsTooMuchIsNotRead) {
  TcpEnd& server = open(2);
  const Octets args = counted(3000);
  for (std::uint32_t i = 0; i < 5000; ++i) server.send(callback(i, args));
  ASSERT_TRUE(run([&] { return callbacks.messages.size() == 1; }));
  settle();
  EXPECT_GT(server.stream->queued(), 0u);
  EXPECT_EQ(callbacks.messages.size(), 1u);
  clients.clear();
  EXPECT_TRUE(run([&] { return server.ended.has_value(); }));
}

TEST_F(CallbacksToRdmaTest, WhatDoesNotFitIsRefusedAndTheRestGoesOn) {
  RecordProperty("proves", "U1-6.5.2-05");
  TcpEnd& server = open();
  callbacks.answer = [] { return rpcrdma::ServedReply{}; };
  server.send(callback(1, counted(5000)));
  ASSERT_TRUE(run([&] { return server.records.size() == 2; }));
  Octets refusal = reply_message(1, {});
  refusal.back() = 5;  // SYSTEM_ERR
  EXPECT_EQ(server.records[1], refusal);
  EXPECT_TRUE(callbacks.messages.empty());
  server.send(callback(2));
  ASSERT_TRUE(run([&] { return server.records.size() == 3; }));
  EXPECT_EQ(server.records[2], reply_message(2, {}));
}

// A client that answers none is not cut off from its server.
TEST_F(CallbacksToRdmaTest, UnansweredCallsEndWithTheirClient) {
  TcpEnd& server = open();
  for (std::uint32_t i = 0; i < 3; ++i) server.send(callback(i));
  server.send(callback(0));  // again
  ASSERT_TRUE(run([&] { return callbacks.messages.size() == 1; }));
  const auto ended = call(*callbacks.client, kNull, {});
  ASSERT_TRUE(run([&] { return ended->has_value(); }));
  EXPECT_EQ(server.records.size(), 2u);
  clients.clear();
  ASSERT_TRUE(run([&] { return server.ended.has_value(); }));
}

TEST_F(CallbacksToRdmaTest, OpenCallsAtTheGatewaysEnd) {
  TcpEnd& server = open();
  for (std::uint32_t i = 0; i < 12; ++i) server.send(callback(i, counted(2000)));
  ASSERT_TRUE(run([&] { return callbacks.messages.size() == 1; }));
  gateway.reset();
  ASSERT_TRUE(run([&] { return server.ended.has_value(); }));
}

TEST_F(CallbacksToRdmaTest, MalformedCallsAreAnsweredHere) {
  TcpEnd& server = open();
  Octets message = callback(1);
  message[11] = 3;  // rpcvers
  server.send(message);
  message = callback(2);
  message.resize(30);
  server.send(message);
  ASSERT_TRUE(run([&] { return server.records.size() == 3; }));
  EXPECT_EQ(server.records[1][11], 1);     // MSG_DENIED
  EXPECT_EQ(server.records[2].back(), 4);  // GARBAGE_ARGS
  EXPECT_TRUE(callbacks.messages.empty());
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
    spec.items = rpcrdma::ArgumentItem{args.size(), rpcrdma::ConstBytes(data)};
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

// Calls that must not run twice, and a server that does not answer before it is told to.
struct LostClientTest : ToTcpTest {
  std::shared_ptr<std::optional<Ended>> remove(std::uint32_t version = nfsulb::kNfsV3, std::uint32_t xid = kXid) {
    rpcrdma::xdr::XdrWriter out(args);
    args.clear();
    out.opaque(Octets{1, 2, 3, 4});
    out.string("name");
    rpcrdma::CallSpec spec;
    spec.xid = xid;
    return call(connect(), kRemove, args, spec, version);
  }
  // How often it ran, over all connections.
  std::size_t num_removes() const {
    std::size_t num = 0;
    for (const auto& server : servers) {
      num += static_cast<std::size_t>(
          std::ranges::count_if(server->records, [](const Octets& call) { return xid_of(call) == kXid; }));
    }
    return num;
  }
  void lose_clients() {
    clients.clear();
    settle();
  }

  static constexpr std::uint32_t kRemove = 12, kXid = 0x5eed0001;
  Octets args;
};

TEST_F(LostClientTest, ARemoveThatIsSentAgainRunsOnceAndGetsTheFirstAnswer) {
  remove();
  ASSERT_TRUE(run([&] { return num_removes() == 1; }));
  lose_clients();
  const auto again = remove();
  ASSERT_TRUE(run([&] { return clients[0]->state() == rpcrdma::Client::State::kReady; }));
  settle();
  EXPECT_FALSE(servers.at(0)->ended.has_value());
  servers[0]->send(reply_message(kXid, {0, 0, 0, 0, 1, 2, 3, 4}));
  ASSERT_TRUE(run([&] { return again->has_value(); }));
  EXPECT_EQ((*again)->status, CallStatus::kSuccess);
  EXPECT_EQ((*again)->results, (Octets{0, 0, 0, 0, 1, 2, 3, 4}));
  EXPECT_EQ(num_removes(), 1u);
  // Nothing else is awaited from there.
  EXPECT_TRUE(run([&] { return servers[0]->ended.has_value(); }));
  lose_clients();
  const auto late = remove();
  ASSERT_TRUE(run([&] { return late->has_value(); }));
  EXPECT_EQ((*late)->results, (*again)->results);
  EXPECT_EQ(num_removes(), 1u);
}

TEST_F(LostClientTest, AnAnswerIsNotAwaitedForEver) {
  remove();
  ASSERT_TRUE(run([&] { return num_removes() == 1; }));
  lose_clients();
  const auto waiting = remove();
  ASSERT_TRUE(run([&] { return clients[0]->state() == rpcrdma::Client::State::kReady; }));
  settle();
  EXPECT_FALSE(waiting->has_value());
  skew = std::chrono::seconds(31);
  ASSERT_TRUE(run([&] { return waiting->has_value() && servers.at(0)->ended.has_value(); }));
  EXPECT_EQ((*waiting)->status, CallStatus::kDisconnected);
  answer = [](TcpEnd& end, const Octets& call) { end.send(reply_message(xid_of(call), {})); };
  const auto again = remove();
  ASSERT_TRUE(run([&] { return again->has_value(); }));
  EXPECT_EQ((*again)->status, CallStatus::kSuccess);
  EXPECT_EQ(num_removes(), 2u);
}

// Whether it ran nobody knows; the server may have a cache of its own.
TEST_F(LostClientTest, WhereTheServersConnectionWasLostTheCallIsPassedOnAgain) {
  const auto first = remove();
  ASSERT_TRUE(run([&] { return num_removes() == 1; }));
  servers.clear();
  ASSERT_TRUE(run([&] { return first->has_value(); }));
  EXPECT_EQ((*first)->status, CallStatus::kDisconnected);
  answer = [](TcpEnd& end, const Octets& call) { end.send(reply_message(xid_of(call), {})); };
  const auto again = remove();
  ASSERT_TRUE(run([&] { return again->has_value(); }));
  EXPECT_EQ((*again)->status, CallStatus::kSuccess);
  EXPECT_EQ(num_removes(), 1u);
}

TEST_F(LostClientTest, AreBoundedInNumber) {
  for (std::size_t i = 0; i <= 64; ++i) {
    remove(nfsulb::kNfsV3, static_cast<std::uint32_t>(1000 + i));
    ASSERT_TRUE(run([&] { return servers.size() == i + 1 && servers[i]->records.size() == 1; })) << i;
    EXPECT_FALSE(servers[0]->ended.has_value());
    lose_clients();
  }
  ASSERT_TRUE(run([&] { return servers[0]->ended.has_value(); }));
  EXPECT_FALSE(servers[1]->ended.has_value());
}

TEST_F(LostClientTest, OfNfs4NothingIsKept) {
  remove(nfsulb::kNfsV4);
  ASSERT_TRUE(run([&] { return num_removes() == 1; }));
  lose_clients();
  EXPECT_TRUE(run([&] { return servers.at(0)->ended.has_value(); }));
}

TEST_F(ToTcpTest, WithoutAServerTheClientIsTold) {
  acceptor.close();
  const auto ended = call(connect(), kNull, {});
  ASSERT_TRUE(run([&] { return ended->has_value(); }));
  EXPECT_EQ((*ended)->status, CallStatus::kDisconnected);
}

// Whoever reaches the gateway must not look like root to the server.
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
