// Clients over RDMA that are gone while their Calls are under way, and come again.
#include <algorithm>

#include "tests/gateway/to_tcp_world.h"

namespace weft::gateway::testing {
namespace {

using rpcrdma::CallStatus;

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

// It is unknown whether the Call ran. The server may have a cache of its own.
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
  config.max_lost = 16;
  start_gateway();
  for (std::size_t i = 0; i <= config.max_lost; ++i) {
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

}  // namespace
}  // namespace weft::gateway::testing
