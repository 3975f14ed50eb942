#include "apps/gateway/to_rdma.h"

#include <algorithm>
#include <vector>

#include "nfsulb/bindings.h"
#include "nfsulb/programs.h"
#include "rpcrdma/known_servers.h"
#include "rpcrdma/rpc_message.h"
#include "rpcrdma/server.h"
#include "rpcrdma/testing/gss.h"
#include "tests/gateway/to_rdma_world.h"

namespace weft::gateway::testing {
namespace {

TEST_F(ToRdmaTest, ACallArrivesAsItWasSent) {
  const Octets message = nfs_call(0x1234, kNull, {});
  Octets header;
  answer = [&](const rpcrdma::ServedCall& call) {
    header.assign(call.header.begin(), call.header.end());
    return rpcrdma::ServedReply{};
  };
  EXPECT_EQ(ask(connect(), message), reply_message(0x1234, {}));
  EXPECT_EQ(header, message);
}

TEST_F(ToRdmaTest, AClientThatIsNotAdmittedIsClosed) {
  config.admits = [](const sockaddr_storage& peer) {
    return reinterpret_cast<const sockaddr_in&>(peer).sin_addr.s_addr != htonl(INADDR_LOOPBACK + 8);
  };
  start_gateway();
  answer = [](const rpcrdma::ServedCall&) { return rpcrdma::ServedReply{}; };
  TcpEnd& refused = connect("127.0.0.9");
  ASSERT_TRUE(run([&] { return refused.ended.has_value(); }));
  EXPECT_EQ(server->num_connections(), 0u);
  EXPECT_EQ(ask(connect(), nfs_call(1, kNull, {})), reply_message(1, {}));
}

TEST_F(ToRdmaTest, OfManyCallsThatCameAtOnceItTakesAFewOfEachClient) {
  constexpr std::size_t kClients = 40, kCalls = 60;
  config.has_metrics = true;  // they name the address of a client
  start_gateway();
  answer = [](const rpcrdma::ServedCall&) { return rpcrdma::ServedReply{}; };
  std::vector<TcpEnd*> floods;
  for (std::size_t i = 0; i < kClients; ++i) ask(*floods.emplace_back(&connect()), nfs_call(1, kNull, {}));
  TcpEnd& other = connect("127.0.0.9");
  ask(other, nfs_call(1, kNull, {}));
  for (TcpEnd* flood : floods) {
    for (std::uint32_t i = 0; i < kCalls; ++i) flood->send(nfs_call(100 + i, kNull, {}));
  }
  other.send(nfs_call(2, kNull, {}));
  io.restart();
  while (io.poll() > 0) continue;  // the Calls come, and the gateway has no turn
  gateway->process(std::chrono::steady_clock::now());
  std::size_t sum = 0, of_other = 0;
  const auto snapshot = gateway->snapshot();
  for (const rpcrdma::ConnectionStatistics& one : snapshot.server.connections) {
    EXPECT_LE(one.under_way, ToRdma::kRecordsPerTurn);
    sum += one.under_way;
    if (one.client == "127.0.0.9") of_other = one.under_way;
  }
  EXPECT_EQ(of_other, 1u) << "its address has the second turn";
  EXPECT_GE(sum, ToRdma::kRecordsPerProcess);
  EXPECT_LT(sum, ToRdma::kRecordsPerProcess + ToRdma::kRecordsPerTurn);
  EXPECT_TRUE(run([&] {
    return std::ranges::all_of(floods, [](const TcpEnd* flood) { return flood->records.size() == kCalls + 1; });
  })) << "and all have their turns";
}

// The clock of the gateway goes on by two seconds behind its first question for a version, before the server's answer.
struct ALateFirstAnswer : ToRdmaTest, rpcrdma::LinkObserver {
  ~ALateFirstAnswer() override {
    clients.clear();
    gateway.reset();
  }
  void SetUp() override {
    ToRdmaTest::SetUp();
    if (has_newer) config.rpc.protocols.push_back(rpcrdma::Protocol::k1);
    config.rpc.known_servers = &known;
    config.rpc.observer = this;
    start_gateway();
    engines.push_back([this](TimePoint now) -> std::size_t {
      if (!std::exchange(is_asked, false)) return 0;
      skew += std::chrono::seconds(2);
      return gateway->process(now + skew);
    });
  }
  void on_message(const rpcrdma::ObservedLink& link, const rpcrdma::LinkMessage& message) override {
    is_asked = is_asked || (link.id == 1 && message.direction == rpcrdma::LinkMessage::Direction::kSent);
  }
  using ToRdmaTest::on_end;
  void on_end(const rpcrdma::ObservedLink& /*link*/, std::string_view /*why*/) override { ++num_ended; }

  const bool has_newer = rpcrdma::testing::protocol_under_test() != rpcrdma::Protocol::k1;  // version 1 asks nothing
  rpcrdma::KnownServers known;
  bool is_asked = false;
  std::size_t num_ended = 0;
};

// The gateway then speaks version 1, and the server refuses it. The client of TCP hears nothing of that.
TEST_F(ALateFirstAnswer, FailsNoCallOfAServerWithoutVersion1) {
  answer = [](const rpcrdma::ServedCall&) { return rpcrdma::ServedReply{}; };
  TcpEnd& client = connect();
  EXPECT_EQ(ask(client, nfs_call(1, kNull, {})), reply_message(1, {}));
  EXPECT_EQ(ask(client, nfs_call(2, kNull, {})), reply_message(2, {}));
  EXPECT_EQ(num_ended, has_newer ? 2u : 0u);
}

TEST_F(ToRdmaTest, DataReadArePutBackIntoTheirReply) {
  TcpEnd& client = connect();
  for (const std::uint32_t len : {0u, 1u, 3u, 5000u, 100000u, 100001u}) {
    const Octets data = counted(len);
    std::optional<std::size_t> capacity;
    answer = [&](const rpcrdma::ServedCall& call) {
      capacity = call.result_item_capacity();
      rpcrdma::ServedReply reply;
      reply.results = read_results(data);
      reply.results.resize(20);
      rpcrdma::Buffer buffer = server->buffers().take(std::max<std::size_t>(len, 1));
      std::copy(data.begin(), data.end(), buffer.octets().begin());
      reply.add_item(std::move(buffer), len);
      return reply;
    };
    EXPECT_EQ(ask(client, nfs_call(len + 1, kRead, read_args(200000))), reply_message(len + 1, read_results(data)));
    EXPECT_EQ(capacity, 200000u) << "offered by Write chunk";
  }
}

TEST_F(ToRdmaTest, DataToWriteArePlaced) {
  TcpEnd& client = connect();
  for (const std::uint32_t len : {3u, 100000u, 100003u}) {
    const Octets data = counted(len);
    Octets args, item;
    answer = [&](const rpcrdma::ServedCall& call) {
      args.assign(call.args.begin(), call.args.end());
      if (!call.items.empty()) item.assign(call.items[0].data.octets().begin(), call.items[0].data.octets().end());
      rpcrdma::ServedReply reply;
      reply.results = write_results(len);
      return reply;
    };
    EXPECT_EQ(ask(client, nfs_call(len, kWrite, write_args(data))), reply_message(len, write_results(len)));
    const bool placed = len > 4096;
    EXPECT_EQ(args, write_args(data, placed));
    if (placed) {
      EXPECT_EQ(item, data);
    }
  }
}

TEST_F(ToRdmaTest, MemoryThatNobodyUsesGoesBack) {
  frozen = std::chrono::steady_clock::now();
  answer = [](const rpcrdma::ServedCall&) {
    rpcrdma::ServedReply reply;
    reply.results = write_results(1 << 20);
    return reply;
  };
  ask(connect(), nfs_call(1, kWrite, write_args(counted(1 << 20))));
  clients.clear();
  settle();
  EXPECT_GT(gateway->registered(), 1u << 20) << "the next WRITE finds it";
  for (int i = 0; i < 3; ++i) {
    EXPECT_LE(gateway->next_timeout(), *frozen + skew + ToRdma::kTrimEvery) << i;
    skew += ToRdma::kTrimEvery;
    settle();
    if (gateway->registered() == 0) break;
  }
  EXPECT_EQ(gateway->registered(), 0u);
}

TEST_F(ToRdmaTest, WhatGssHasWrappedPassesWhole) {
  const rpcrdma::OpaqueAuth cred = rpcrdma::testing::gss_cred(rpcrdma::testing::GssService::kPrivacy);
  const Octets wrapped = counted(100000);
  bool is_whole = false;
  answer = [&](const rpcrdma::ServedCall& call) {
    is_whole = call.items.empty() && call.result_capacities.empty() && std::ranges::equal(call.args, wrapped) &&
               std::ranges::equal(call.cred.body, cred.body);
    rpcrdma::ServedReply reply;
    reply.results = wrapped;
    return reply;
  };
  const Octets message = call_message(5, nfsulb::kNfsProgram, nfsulb::kNfsV3, kRead, wrapped, cred);
  EXPECT_EQ(ask(connect(), message), reply_message(5, wrapped));
  EXPECT_TRUE(is_whole);
}

TEST_F(ToRdmaTest, WhatHasNoBindingIsRefusedHere) {
  TcpEnd& client = connect();
  EXPECT_EQ(ask(client, call_message(1, 200000, 1, 0, {})), refusal(1, rpcrdma::AcceptStat::kProgUnavail));
  EXPECT_EQ(ask(client, call_message(2, nfsulb::kNfsProgram, 9, 0, {})),
            refusal(2, rpcrdma::AcceptStat::kProgMismatch, nfsulb::kNfsV2, nfsulb::kNfsV4));
  EXPECT_TRUE(calls.empty());
}

TEST_F(ToRdmaTest, TheServersOwnRefusalsPass) {
  EXPECT_EQ(ask(connect(), call_message(3, nfsulb::kMountProgram, nfsulb::kMountV3, 0, {})),
            refusal(3, rpcrdma::AcceptStat::kProgUnavail));
}

TEST_F(ToRdmaTest, CountsOfAnySizeAreHeldToWhatThereIs) {
  answer = [](const rpcrdma::ServedCall&) {
    rpcrdma::ServedReply reply;
    reply.results = {0, 0, 0, 70, 0, 0, 0, 0};
    return reply;
  };
  EXPECT_EQ(ask(connect(), nfs_call(4, kRead, read_args(0xffffffff))), reply_message(4, {0, 0, 0, 70, 0, 0, 0, 0}));
}

// The longest that a system has is longer than a message inline; it comes in the Reply chunk.
TEST_F(ToRdmaTest, TextsOfLinksComeWithoutAWriteChunk) {
  constexpr std::uint32_t kReadlink = 5;
  const Octets text = counted(4095);
  Octets results;
  rpcrdma::xdr::XdrWriter out(results);
  out.u32(0);
  out.u32(0);  // no attributes
  out.opaque(text);
  std::optional<std::size_t> capacity;
  answer = [&](const rpcrdma::ServedCall& call) {
    capacity = call.result_item_capacity();
    rpcrdma::ServedReply reply;
    reply.results = results;
    return reply;
  };
  EXPECT_EQ(ask(connect(), nfs_call(5, kReadlink, {0, 0, 0, 4, 1, 2, 3, 4})), reply_message(5, results));
  EXPECT_FALSE(capacity);
}

// Linux's server leaves the directory's attributes and the verifier out of its count.
TEST_F(ToRdmaTest, AListingMayBeLongerThanItsCount) {
  constexpr std::uint32_t kMaxcount = 65536;
  Octets args = {0, 0, 0, 4, 1, 2, 3, 4};
  rpcrdma::xdr::XdrWriter out(args);
  out.zeros(16);
  out.u32(8192);
  out.u32(kMaxcount);
  Octets results;
  std::vector<std::uint32_t> xids;
  answer = [&](const rpcrdma::ServedCall& call) {
    xids.push_back(call.xid);
    rpcrdma::ServedReply reply;
    reply.results = results;
    return reply;
  };
  TcpEnd& client = connect();
  results = counted(4 + kMaxcount + 104);
  EXPECT_EQ(ask(client, nfs_call(5, kReaddirplus, args)), reply_message(5, results));
  EXPECT_EQ(xids, std::vector<std::uint32_t>{5}) << "there was room";
  // More than any server is known to send: asked for again, and the client hears nothing of that.
  xids.clear();
  results = counted(4 + kMaxcount + 1000);
  EXPECT_EQ(ask(client, nfs_call(6, kReaddirplus, args)), reply_message(6, results));
  // R2-7.2.4-23: version 2 keeps the XID, and tells the length that the Reply needs. W2-6.6.4-1: with continuation no
  // Reply is too long.
  const std::size_t num_sent = rpcrdma::testing::has_continuation() ? 1 : 2;
  ASSERT_EQ(xids.size(), num_sent);
  EXPECT_EQ(xids[0], 6u);
  const bool is_version_1 = rpcrdma::testing::protocol_under_test() == rpcrdma::Protocol::k1;
  EXPECT_EQ(xids.back() != 6u, is_version_1);
  // Once: then the client is told that it failed.
  xids.clear();
  results = counted(3 * kMaxcount);
  EXPECT_EQ(ask(client, nfs_call(7, kReaddirplus, args)),
            is_version_1 ? refusal(7, rpcrdma::AcceptStat::kSystemErr) : reply_message(7, results));
  EXPECT_EQ(xids.size(), num_sent);
  results.clear();
  EXPECT_EQ(ask(client, nfs_call(8, kNull, {})), reply_message(8, {})) << "and goes on";
}

// Of 28 MiB that an address may have for Replies, one client may have half beyond what every client may have: three
// results of the largest size and their headers.
TEST_F(ToRdmaTest, ACallWaitsForABufferForItsResult) {
  constexpr std::uint32_t kCalls = 20;
  const Octets refusal = {0, 0, 0, 70, 0, 0, 0, 0};
  TcpEnd& client = connect();
  client.send(nfs_call(100, kNull, {}));  // until its Reply there is one credit
  ASSERT_TRUE(run([&] { return calls.size() == 1; }));
  server->reply(calls[0].id, {});
  calls.clear();
  ASSERT_TRUE(run([&] { return client.records.size() == 1; }));
  for (std::uint32_t xid = 1; xid <= kCalls; ++xid) client.send(nfs_call(xid, kRead, read_args(4 << 20)));
  ASSERT_TRUE(run([&] { return calls.size() == 3; }));
  settle();
  EXPECT_EQ(calls.size(), 3u);
  ASSERT_TRUE(run([&] {
    if (!calls.empty()) {
      rpcrdma::ServedReply reply;
      reply.results = refusal;
      server->reply(calls[0].id, std::move(reply));
      calls.pop_front();
    }
    return client.records.size() == 1 + kCalls;
  }));
  for (std::uint32_t xid = 1; xid <= kCalls; ++xid) EXPECT_EQ(client.records[xid], reply_message(xid, refusal));
}

// The neighbours wait for room.
TEST_F(ToRdmaTest, AnAnswerOfTheGatewaysOwnWaitsForNoLargerReply) {
  TcpEnd& client = connect();
  client.send(nfs_call(1, kRead, read_args(1 << 20)));
  ASSERT_TRUE(run([&] { return calls.size() == 1; }));
  for (int i = 0; i < 10; ++i) connect().send(nfs_call(1, kRead, read_args(4 << 20)));
  settle();
  ASSERT_LT(calls.size(), 11u) << "all have room";
  EXPECT_EQ(ask(client, call_message(2, 200000, 1, 0, {})), refusal(2, rpcrdma::AcceptStat::kProgUnavail));
}

// Clients over TCP repeat a Call that takes long.
TEST_F(ToRdmaTest, ARepeatedCallHasOneAnswer) {
  TcpEnd& client = connect();
  answer = [](const rpcrdma::ServedCall&) { return rpcrdma::ServedReply{}; };
  EXPECT_EQ(ask(client, nfs_call(1, kNull, {})), reply_message(1, {}));
  answer = nullptr;
  client.records.clear();
  client.send(nfs_call(7, kNull, {}));
  ASSERT_TRUE(run([&] { return calls.size() == 1; }));
  client.send(nfs_call(7, kNull, {}));
  client.send(nfs_call(8, kNull, {}));
  ASSERT_TRUE(run([&] { return calls.size() == 2; }));
  for (const rpcrdma::ServedCall& call : calls) server->reply(call.id, {});
  ASSERT_TRUE(run([&] { return client.records.size() == 2; }));
  settle();
  EXPECT_EQ(client.records, (std::vector{reply_message(7, {}), reply_message(8, {})}));
}

TEST_F(ToRdmaTest, WhatIsNoCallEndsItsClientAlone) {
  answer = [](const rpcrdma::ServedCall&) { return rpcrdma::ServedReply{}; };
  TcpEnd& bad = connect();
  TcpEnd& good = connect();
  bad.send(reply_message(1, {}));
  ASSERT_TRUE(run([&] { return bad.ended.has_value(); }));
  EXPECT_EQ(ask(good, nfs_call(5, kNull, {})), reply_message(5, {}));
}

TEST_F(ToRdmaTest, WhereTheServerVanishesTheClientIsTold) {
  TcpEnd& client = connect();
  client.send(nfs_call(6, kNull, {}));
  ASSERT_TRUE(run([&] { return calls.size() == 1; }));
  calls.clear();
  server.reset();
  ASSERT_TRUE(run([&] { return client.ended.has_value(); }));
}

TEST_F(ToRdmaTest, WhereTheClientVanishesTheServerIsTold) {
  connect().send(nfs_call(7, kWrite, write_args(counted(100000))));
  ASSERT_TRUE(run([&] { return calls.size() == 1 && server->num_connections() == 1; }));
  clients.clear();
  ASSERT_TRUE(run([&] { return server->num_connections() == 0; }));
}

TEST_F(ToRdmaTest, ManyCallsAtOnceAllEnd) {
  answer = [](const rpcrdma::ServedCall&) { return rpcrdma::ServedReply{}; };
  TcpEnd& client = connect();
  constexpr std::uint32_t kCalls = 1000;  // far more than the credits
  for (std::uint32_t xid = 1; xid <= kCalls; ++xid) client.send(nfs_call(xid, kNull, {}));
  ASSERT_TRUE(run([&] { return client.records.size() == kCalls; })) << client.records.size();
  for (std::uint32_t xid = 1; xid <= kCalls; ++xid) EXPECT_EQ(client.records[xid - 1], reply_message(xid, {}));
}

// A server that answers nothing: a client is read as far as two times the credits.
TEST_F(ToRdmaTest, CallsAheadOfTheServerAreBounded) {
  TcpEnd& client = connect();
  for (std::uint32_t xid = 1; xid <= 1000; ++xid) client.send(nfs_call(xid, kNull, {}));
  ASSERT_TRUE(run([&] { return !calls.empty(); }));
  settle();
  EXPECT_EQ(gateway->summary(), "1 client, 64 calls; items placed directly: 0");
}

// The program's loop sleeps until the next deadline.
struct ToRdmaDeadlines : ToRdmaTest {
  void SetUp() override {
    frozen = std::chrono::steady_clock::now();
    ToRdmaTest::SetUp();
  }
  std::optional<TimePoint> in(std::chrono::milliseconds time) const { return *frozen + time; }
};

TEST_F(ToRdmaDeadlines, ClientsAreLookedAtInTime) {
  settle();
  EXPECT_EQ(gateway->next_timeout(), gateway_device->next_timeout());
  connect();
  settle();
  EXPECT_EQ(gateway->next_timeout(), in(ToRdma::kCheckEvery));
  skew = ToRdma::kCheckEvery;
  settle();
  EXPECT_EQ(gateway->next_timeout(), in(2 * ToRdma::kCheckEvery));
}

TEST_F(ToRdmaDeadlines, CallsEndInTime) {
  config.rpc.call_timeout = ToRdma::kCheckEvery / 4;
  start_gateway();
  TcpEnd& client = connect();
  client.send(nfs_call(1, kNull, {}));
  ASSERT_TRUE(run([&] { return calls.size() == 1; }));
  settle();
  EXPECT_EQ(gateway->next_timeout(), in(config.rpc.call_timeout));
  skew = config.rpc.call_timeout;
  EXPECT_TRUE(run([&] { return client.ended.has_value(); }));
}

// The end of a client is seen by its socket, behind the gateway's turn.
TEST_F(ToRdmaDeadlines, WhatHasEndedIsForgottenAtOnce) {
  connect();
  settle();
  clients.clear();
  for (int i = 0; i < 100 && gateway->next_timeout() != TimePoint{}; ++i) {
    io.restart();
    io.poll();
  }
  EXPECT_EQ(gateway->next_timeout(), TimePoint{});
  settle();
  EXPECT_EQ(gateway->next_timeout(), gateway_device->next_timeout());
}

// A connection to a server that does not close it, of a client that has gone.
TEST_F(ToRdmaDeadlines, TheDeviceIsLookedAfterInTime) {
  answer = [](const rpcrdma::ServedCall&) { return rpcrdma::ServedReply{}; };
  ask(connect(), nfs_call(1, kNull, {}));
  engines.erase(engines.begin());  // the server's
  clients.clear();
  settle();
  for (int i = 0; i < 3 && gateway->registered() != 0; ++i) {
    skew += ToRdma::kTrimEvery;
    settle();
  }
  ASSERT_TRUE(gateway_device->next_timeout().has_value());
  EXPECT_EQ(gateway->next_timeout(), gateway_device->next_timeout());
}

struct RestingClient : ToRdmaDeadlines {
  void SetUp() override {
    ToRdmaDeadlines::SetUp();
    answer = [](const rpcrdma::ServedCall&) { return rpcrdma::ServedReply{}; };
  }
  // The number of the server's connections after the clients have rested.
  std::size_t num_after_rest() {
    skew += config.rest;
    settle();
    return server->num_connections();
  }
};

TEST_F(RestingClient, LeavesTheServerUntilItsNextCall) {
  TcpEnd& client = connect();
  for (std::uint32_t xid = 1; xid <= 3; ++xid) {
    ASSERT_EQ(ask(client, nfs_call(xid, kNull, {})), reply_message(xid, {}));
    EXPECT_EQ(server->num_connections(), 1u);
    skew += config.rest - ToRdma::kCheckEvery;
    settle();
    EXPECT_EQ(server->num_connections(), 1u) << "before its time";
    EXPECT_EQ(num_after_rest(), 0u);
    EXPECT_FALSE(client.ended);
  }
  const auto snapshot = gateway->snapshot();
  ASSERT_EQ(snapshot.server.connections.size(), 1u);
  EXPECT_GE(snapshot.server.connections[0].messages.sends_tx, 3u) << "of all three connections";
}

TEST_F(RestingClient, LeavesAmongAFewAtATime) {
  constexpr std::size_t kNum = ToRdma::kLeavingPerCheck + 10;
  for (std::size_t i = 0; i < kNum; ++i) ASSERT_FALSE(ask(connect(), nfs_call(1, kNull, {})).empty());
  ASSERT_EQ(server->num_connections(), kNum);
  EXPECT_EQ(num_after_rest(), kNum - ToRdma::kLeavingPerCheck);
  skew += ToRdma::kCheckEvery;
  settle();
  EXPECT_EQ(server->num_connections(), 0u);
}

TEST_F(RestingClient, StaysWhileACallIsUnderWay) {
  answer = nullptr;
  TcpEnd& client = connect();
  client.send(nfs_call(1, kNull, {}));
  ASSERT_TRUE(run([&] { return calls.size() == 1; }));
  EXPECT_EQ(num_after_rest(), 1u);
  server->reply(calls[0].id, {});
  EXPECT_TRUE(run([&] { return client.records.size() == 1; }));
}

TEST_F(RestingClient, StaysWhereTheServerMayCallItBack) {
  const Octets call = call_message(1, nfsulb::kNfsProgram, nfsulb::kNfsV4, kNull, {});
  ASSERT_FALSE(ask(connect(), call).empty());
  EXPECT_EQ(num_after_rest(), 1u);
}

}  // namespace
}  // namespace weft::gateway::testing
