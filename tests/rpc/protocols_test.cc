// Which protocol a connection has, for every pair of a client and a server, over soft RNICs.
#include <gmock/gmock.h>

#include "tests/rpc/world.h"

namespace weft::rpcrdma::testing {
namespace {

using ::testing::HasSubstr;

struct ProtocolsTest : World {
  struct Outcome {
    CallStatus status = CallStatus::kTimeout;
    std::string text;
  };
  Outcome call(Client& client, const CallSpec& spec) {
    Outcome outcome;
    const auto called = client.call(spec, [&](const Reply& reply) { outcome = {reply.status, reply.text}; });
    EXPECT_TRUE(called.ok());
    run_until([&] { return client.num_outstanding() == 0; });
    return outcome;
  }
};

TEST_F(ProtocolsTest, EveryPairAgreesOrSaysWhy) {
  using Protocols = std::vector<Protocol>;
  for (const Protocols& served :
       {Protocols{Protocol::k1}, Protocols{Protocol::k2Cel05}, Protocols{Protocol::k1, Protocol::k2Cel05},
        Protocols{Protocol::k2Cel05, Protocol::k1}}) {
    for (const Protocol wanted : {Protocol::k1, Protocol::k2Cel05}) {
      server.reset();
      listen({.protocols = served});
      auto client = connect({.protocols = {wanted}});
      clients = {client.get()};
      run_until_ready(*client);
      const Octets data = pattern(20000);
      const Octets args = write_args(data.size());
      const Outcome outcome = call(*client, write_call(args, data));
      if (std::ranges::find(served, wanted) != served.end()) {
        EXPECT_EQ(outcome.status, CallStatus::kSuccess) << outcome.text;
        EXPECT_EQ(file.data, data);
      } else {
        const std::string only = served[0] == Protocol::k1 ? "1" : "2";
        EXPECT_EQ(outcome.status, CallStatus::kVersMismatch);
        EXPECT_EQ(outcome.text, "ERR_VERS: the peer speaks RPC-over-RDMA version " + only +
                                    "; ClientConfig::protocols has the versions of this end");
      }
      file.data.clear();
    }
  }
}

// Clients of both versions at once: each connection has its own.
TEST_F(ProtocolsTest, OneServerHasClientsOfBoth) {
  listen({.protocols = {Protocol::k1, Protocol::k2Cel05}});
  auto one = connect({.protocols = {Protocol::k1}});
  auto two = connect({.protocols = {Protocol::k2Cel05}});
  clients = {one.get(), two.get()};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(call(*one, null_call()).status, CallStatus::kSuccess);
    EXPECT_EQ(call(*two, null_call()).status, CallStatus::kSuccess);
  }
}

// R2-7.2.2-1: the reverse direction is required of every client.
TEST_F(ProtocolsTest, AClientWithoutProgramsAnswersItsServer) {
  listen({.protocols = {Protocol::k1, Protocol::k2Cel05}, .reverse_credits = 2});
  auto client = connect({.protocols = {Protocol::k2Cel05}});
  clients = {client.get()};
  std::vector<CallStatus> ended;
  file.hold = true;
  ASSERT_TRUE(client->call(null_call(), [](const Reply&) {}).ok());
  run_until([&] { return !file.held.empty(); });
  const ConnectionId to = file.held[0].connection;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(server->call(to, null_call(), [&](const Reply& reply) { ended.push_back(reply.status); }).ok());
  }
  run_until([&] { return ended.size() == 3; });
  EXPECT_EQ(ended, std::vector(3, CallStatus::kProgUnavail));
  file.answer_held();
  run_until([&] { return client->num_outstanding() == 0; });
}

// The Receives of a server are as long as the default of each protocol that it speaks (R2-3.3-1).
TEST_F(ProtocolsTest, ASmallInlineThresholdIsRaised) {
  listen({.inline_threshold = 1024, .protocols = {Protocol::k2Cel05}});
  auto client = connect({.inline_threshold = 1024, .protocols = {Protocol::k2Cel05}});
  clients = {client.get()};
  expect_null_works(*client);
  const Octets data = pattern(3500);
  const Octets args = write_args(data.size());
  EXPECT_EQ(call(*client, write_call(args, data)).status, CallStatus::kSuccess);
  EXPECT_EQ(server->counters().reads_tx, 0u);
  EXPECT_EQ(file.data, data);
}

TEST_F(ProtocolsTest, AServerNeedsOne) {
  EXPECT_FALSE(Server::listen(*server_device, loopback(0), programs, {.protocols = {}}).ok());
}

// The rule about a short first message is for clients (R2-8-3).
TEST_F(ProtocolsTest, AServersFirstCallMayBeLong) {
  listen({.protocols = {Protocol::k2Cel05}, .reverse_credits = 2});
  auto client = connect({.protocols = {Protocol::k2Cel05}});
  clients = {client.get()};
  file.hold = true;
  ASSERT_TRUE(client->call(null_call(), [](const Reply&) {}).ok());
  run_until([&] { return !file.held.empty(); });
  const Octets args = pattern(2000);
  CallSpec spec = null_call();
  spec.args = args;
  std::vector<CallStatus> ended;
  const std::uint64_t sends = server->counters().sends_tx;
  ASSERT_TRUE(
      server->call(file.held[0].connection, spec, [&](const Reply& reply) { ended.push_back(reply.status); }).ok());
  run_until([&] { return !ended.empty(); });
  EXPECT_EQ(ended[0], CallStatus::kProgUnavail);
  EXPECT_EQ(server->counters().sends_tx, sends + 1);
  file.answer_held();
  run_until([&] { return client->num_outstanding() == 0; });
}

// A Call whose Reply did not fit has run. cel05 asks again under the same XID, and a server that keeps Replies answers
// without running it again.
TEST_F(ProtocolsTest, AReplyThatDidNotFitComesFromTheDuplicateRequestCache) {
  static constexpr Binding kUnpredictable{.program = kTestProgram,
                                          .version = kTestVersion,
                                          .bound_reply = [](std::uint32_t, ConstBytes, std::span<const std::size_t>,
                                                            const ReplyLimits&, ReplyBound& bound) {
                                            bound.rest = 100;
                                            bound.may_retry = true;
                                            return Walked::kWhole;
                                          }};
  for (const bool keeps_replies : {true, false}) {
    server.reset();
    for (ServedProgram& program : programs) program.keeps_replies = keeps_replies;
    listen({.protocols = {Protocol::k2Cel05}});
    auto client = connect({.protocols = {Protocol::k2Cel05}});
    clients = {client.get()};
    expect_null_works(*client);
    const std::size_t before = file.num_calls;
    CallSpec spec = call_of(kUnpredictable, kReaddir);
    spec.max_results = 100;
    Octets results;
    bool done = false;
    const auto called = client->call(spec, [&](const Reply& reply) {
      EXPECT_EQ(reply.status, CallStatus::kSuccess) << reply.text;
      results.assign(reply.results.begin(), reply.results.end());
      done = true;
    });
    ASSERT_TRUE(called.ok());
    run_until([&] { return done; });
    EXPECT_EQ(results, pattern(file.listing));
    EXPECT_EQ(file.num_calls, before + (keeps_replies ? 1 : 2));
    clients.clear();
  }
}

// A server that is alive answers the NULL Call, and nothing else happens.
TEST_F(ProtocolsTest, AnIdleConnectionIsAskedForASignOfLife) {
  RecordProperty("proves", "U2-3.3.1-4");
  for (const Protocol protocol : {Protocol::k2Cel05, Protocol::k2Wg07}) {
    server.reset();
    listen({.protocols = {protocol}});
    ClientConfig config;
    config.protocols = {protocol};
    config.reserve_credit = true;
    config.health_check = {
        .after = std::chrono::milliseconds(5), .answer = std::chrono::milliseconds(5000), .when_idle = true};
    auto client = connect(config);
    clients = {client.get()};
    expect_null_works(*client);
    const std::size_t before = file.num_calls;
    run_until([&] { return file.num_calls >= before + 2; });
    EXPECT_EQ(client->state(), Client::State::kReady);
    EXPECT_EQ(client->num_connections(), 1u);
    clients.clear();
  }
}

TEST(Protocols, HaveNames) {
  for (const Protocol protocol : {Protocol::k1, Protocol::k2Cel05}) {
    EXPECT_EQ(parse_protocol(protocol_str(protocol)), protocol);
  }
  EXPECT_EQ(protocol_str(Protocol::k1), "1");
  EXPECT_EQ(protocol_str(Protocol::k2Cel05), "2-cel05");
  EXPECT_FALSE(parse_protocol("2"));
  EXPECT_FALSE(parse_protocol(""));
}

}  // namespace
}  // namespace weft::rpcrdma::testing
