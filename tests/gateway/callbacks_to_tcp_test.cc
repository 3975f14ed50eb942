// Calls of a server over RDMA to its client over TCP, as NFSv4.1 has them.
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "nfsulb/programs.h"
#include "rpcrdma/rpc_message.h"
#include "tests/gateway/to_rdma_world.h"

namespace weft::gateway::testing {
namespace {

struct CallbacksToTcpTest : ToRdmaTest {
  // A client that has called once: the server can call back on its connection.
  TcpEnd& open() {
    answer = [this](const rpcrdma::ServedCall& call) {
      connection = call.connection;
      return rpcrdma::ServedReply{};
    };
    TcpEnd& client = connect();
    EXPECT_EQ(ask(client, nfs_call(1, kNull, {})), reply_message(1, {}));
    return client;
  }
  // How a Call of the server ended.
  struct Ended {
    rpcrdma::CallStatus status = rpcrdma::CallStatus::kLocalError;
    Octets message;
  };
  std::shared_ptr<std::optional<Ended>> call_back(std::uint32_t xid, const Octets& args, std::uint32_t program) {
    auto ended = std::make_shared<std::optional<Ended>>();
    rpcrdma::CallSpec spec;
    spec.program = program;
    spec.version = 1;
    spec.procedure = 1;
    spec.cred = &cred;
    spec.args = args;
    spec.xid = xid;
    EXPECT_TRUE(server
                    ->call(connection, spec,
                           [ended](const rpcrdma::Reply& reply) {
                             *ended = Ended{reply.status, Octets(reply.message.begin(), reply.message.end())};
                           })
                    .ok());
    return ended;
  }

  rpcrdma::OpaqueAuth cred =
      rpcrdma::emit_auth_sys({.stamp = 1, .machine_name = "client", .uid = 1000, .gid = 100, .gids = {100}});
  rpcrdma::ConnectionId connection;
};

// The number of the callback program is the client's choice.
TEST_F(CallbacksToTcpTest, ACallOfTheServerReachesItsClientAndIsAnswered) {
  RecordProperty("proves", "U1-6.5.2-01");
  TcpEnd& client = open();
  const Octets args = counted(200);
  for (const std::uint32_t program : {nfsulb::kNfs4CallbackProgram, 0x40001234u, nfsulb::kNfsProgram}) {
    const std::size_t before = client.records.size();
    const auto ended = call_back(0x99, args, program);
    ASSERT_TRUE(run([&] { return client.records.size() > before; }));
    EXPECT_EQ(client.records.back(), call_message(0x99, program, 1, 1, args));
    Octets reply;
    rpcrdma::xdr::XdrWriter out(reply);
    rpcrdma::emit_reply(out, {.xid = 0x99, .verf = {1, {9, 9, 9, 9}}});
    out.raw(counted(40));
    client.send(reply);
    ASSERT_TRUE(run([&] { return ended->has_value(); }));
    EXPECT_EQ((*ended)->status, rpcrdma::CallStatus::kSuccess);
    EXPECT_EQ((*ended)->message, reply);
  }
  EXPECT_EQ(ask(client, nfs_call(2, kNull, {})), reply_message(2, {}));
}

// No time goes by, so the gateway does not look at all clients. The event names the client that has news.
TEST_F(CallbacksToTcpTest, ACallReachesAClientThatRestsWithoutALookAtAll) {
  TcpEnd& client = open();
  frozen = std::chrono::steady_clock::now();
  settle();
  for (std::uint32_t xid = 1; xid <= 3; ++xid) {
    const std::size_t before = client.records.size();
    const auto ended = call_back(xid, {}, nfsulb::kNfs4CallbackProgram);
    ASSERT_TRUE(run([&] { return client.records.size() > before; }));
    client.send(reply_message(xid, {}));
    ASSERT_TRUE(run([&] { return ended->has_value(); }));
  }
  // It may be called back again.
  skew += config.rest;
  settle();
  EXPECT_EQ(server->num_connections(), 1u);
}

TEST_F(CallbacksToTcpTest, CallsBothWaysUnderOneXidAndNoMoreThanGranted) {
  TcpEnd& client = open();
  answer = nullptr;
  client.send(nfs_call(0x100, kNull, {}));
  ASSERT_TRUE(run([&] { return calls.size() == 1; }));
  client.on_record = [](TcpEnd& end, const Octets& record) {
    if (record[7] == 0) end.send(reply_message(std::uint32_t{record[2]} << 8 | record[3], {}));
  };
  std::vector<std::shared_ptr<std::optional<Ended>>> all;
  for (std::uint32_t i = 0; i < 50; ++i) all.push_back(call_back(0x100 + i, {}, nfsulb::kNfs4CallbackProgram));
  ASSERT_TRUE(run([&] { return std::ranges::all_of(all, [](const auto& one) { return one->has_value(); }); }));
  for (const auto& one : all) EXPECT_EQ((*one)->status, rpcrdma::CallStatus::kSuccess);
  const std::size_t before = client.records.size();
  server->reply(calls[0].id, {});
  ASSERT_TRUE(run([&] { return client.records.size() > before; }));
  EXPECT_EQ(client.records.back(), reply_message(0x100, {}));
}

TEST_F(CallbacksToTcpTest, AReplyTooLongIsTheServersToHear) {
  const std::size_t too_long = rpcrdma::testing::has_continuation() ? 2 << 20 : 5000;
  TcpEnd& client = open();
  client.on_record = [=](TcpEnd& end, const Octets&) { end.send(reply_message(0x99, counted(too_long))); };
  const auto ended = call_back(0x99, {}, nfsulb::kNfs4CallbackProgram);
  ASSERT_TRUE(run([&] { return ended->has_value(); }));
  EXPECT_EQ((*ended)->status, rpcrdma::CallStatus::kTransportError);
  client.on_record = nullptr;
  EXPECT_EQ(ask(client, nfs_call(2, kNull, {})), reply_message(2, {}));
}

TEST_F(CallbacksToTcpTest, WhereTheClientVanishesItsCallsEnd) {
  TcpEnd& client = open();
  const auto ended = call_back(0x99, {}, nfsulb::kNfs4CallbackProgram);
  ASSERT_TRUE(run([&] { return client.records.size() == 2; }));
  clients.clear();
  ASSERT_TRUE(run([&] { return ended->has_value(); }));
  EXPECT_EQ((*ended)->status, rpcrdma::CallStatus::kDisconnected);
}

TEST_F(CallbacksToTcpTest, ASecondReplyEndsTheClient) {
  TcpEnd& client = open();
  client.on_record = [](TcpEnd& end, const Octets&) {
    end.send(reply_message(0x99, {}));
    end.send(reply_message(0x99, {}));
  };
  const auto ended = call_back(0x99, {}, nfsulb::kNfs4CallbackProgram);
  EXPECT_TRUE(run([&] { return ended->has_value() && client.ended.has_value(); }));
  EXPECT_EQ((*ended)->status, rpcrdma::CallStatus::kSuccess);
}

}  // namespace
}  // namespace weft::gateway::testing
