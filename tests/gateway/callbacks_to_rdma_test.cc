// Calls of a server over TCP to its client over RDMA, as NFSv4.1 has them.
#include "apps/gateway/backchannel.h"

#include <algorithm>

#include "spdlog/spdlog.h"
#include "tests/gateway/to_tcp_world.h"

namespace weft::gateway::testing {
namespace {

using rpcrdma::CallStatus;
using rpcrdma::testing::has_continuation;

// How many Calls the gateway has under way to a client that granted so many. Where credits count messages the client
// grants its Receives, which are more than the gateway's own limit.
std::size_t most_under_way(std::size_t granted) {
  return has_continuation() ? kCallbackCredits : granted;
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
  std::vector<rpcrdma::ServedCallId> ids;
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
  const rpcrdma::ServedProgram programs[1] = {{nfsulb::find_binding(nfsulb::kNfs4CallbackProgram, 1), &callbacks}};
};

TEST_F(CallbacksToRdmaTest, ACallOfTheServerReachesItsClientAndIsAnswered) {
  RecordProperty("proves", rpcrdma::testing::rows("U1-6.5.2-01 U1-6.5.2-05 R1-7.3.1-01", "U2-5.5.2-1"));
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
  const std::size_t num = 1 + most_under_way(2);
  ASSERT_TRUE(run([&] { return callbacks.messages.size() == num; }));
  settle();
  EXPECT_EQ(callbacks.messages.size(), num);
  callbacks.answer = [] { return rpcrdma::ServedReply{}; };
  for (std::size_t i = 1; i < num; ++i) callbacks.client->reply(callbacks.ids[i], {});
  ASSERT_TRUE(run([&] { return server.records.size() == 2 + kNum; }));
  const auto ended = call(*callbacks.client, kNull, {});
  EXPECT_TRUE(run([&] { return ended->has_value(); }));
}

TEST_F(CallbacksToRdmaTest, AServerThatCallsTooMuchIsNotRead) {
  TcpEnd& server = open(2);
  callbacks.answer = [] { return rpcrdma::ServedReply{}; };
  server.send(callback(1));
  ASSERT_TRUE(run([&] { return server.records.size() == 2; }));
  callbacks.answer = nullptr;
  const Octets args = counted(3000);
  for (std::uint32_t i = 0; i < 5000; ++i) server.send(callback(100 + i, args));
  const std::size_t num = 1 + most_under_way(2);
  ASSERT_TRUE(run([&] { return callbacks.messages.size() == num; }));
  settle();
  EXPECT_GT(server.stream->queued(), 0u);
  EXPECT_EQ(callbacks.messages.size(), num);
  clients.clear();
  EXPECT_TRUE(run([&] { return server.ended.has_value(); }));
}

TEST_F(CallbacksToRdmaTest, WhatDoesNotFitIsRefusedAndTheRestGoesOn) {
  RecordProperty("proves", "U1-6.5.2-05");
  TcpEnd& server = open();
  callbacks.answer = [] { return rpcrdma::ServedReply{}; };
  server.send(callback(1, counted(20000)));
  ASSERT_TRUE(run([&] { return server.records.size() == 2; }));
  Octets refusal = reply_message(1, {});
  refusal.back() = 5;  // SYSTEM_ERR
  EXPECT_EQ(server.records[1], refusal);
  EXPECT_TRUE(callbacks.messages.empty());
  server.send(callback(2));
  ASSERT_TRUE(run([&] { return server.records.size() == 3; }));
  EXPECT_EQ(server.records[2], reply_message(2, {}));
}

TEST_F(CallbacksToRdmaTest, RefusalsCostFewLines) {
  TcpEnd& server = open();
  callbacks.answer = [] { return rpcrdma::ServedReply{}; };
  server.send(callback(1));
  ASSERT_TRUE(run([&] { return server.records.size() == 2; }));
  constexpr std::size_t kNum = 3 * verbs::LogBudget::kBurst;
  ::testing::internal::CaptureStdout();  // spdlog writes there by default
  for (std::uint32_t i = 0; i < kNum; ++i) server.send(callback(100 + i, counted(20000)));
  ASSERT_TRUE(run([&] { return server.records.size() == 2 + kNum; }));
  spdlog::default_logger()->flush();
  const std::string lines = ::testing::internal::GetCapturedStdout();
  // The time that the test takes counts.
  EXPECT_LE(std::ranges::count(lines, '\n'), 2 * verbs::LogBudget::kBurst);
  EXPECT_NE(lines.find("does not fit"), std::string::npos) << lines;
}

// A client that answers none is not cut off from its server.
TEST_F(CallbacksToRdmaTest, UnansweredCallsEndWithTheirClient) {
  TcpEnd& server = open();
  for (std::uint32_t i = 0; i < 3; ++i) server.send(callback(i));
  server.send(callback(0));  // again
  ASSERT_TRUE(run([&] { return callbacks.messages.size() == (has_continuation() ? 3 : 1); }));
  const auto ended = call(*callbacks.client, kNull, {});
  ASSERT_TRUE(run([&] { return ended->has_value(); }));
  EXPECT_EQ(server.records.size(), 2u);
  clients.clear();
  ASSERT_TRUE(run([&] { return server.ended.has_value(); }));
}

// Many clients take no Calls of a server. The Replies to a client's own Calls come on the same TCP connection, behind
// the Calls of the server.
TEST_F(CallbacksToRdmaTest, AClientThatAnswersNoneGetsTheRepliesToItsOwnCalls) {
  TcpEnd& server = open();
  server.on_record = [](TcpEnd& end, const Octets& record) {
    if (record[7] != 0) return;
    for (std::uint32_t i = 0; i < 50; ++i) end.send(callback(0x1000 + i));
    end.send(reply_message(xid_of(record), {}));
  };
  const auto ended = call(*callbacks.client, kNull, {});
  ASSERT_TRUE(run([&] { return ended->has_value(); }));
  EXPECT_EQ((*ended)->status, CallStatus::kSuccess);
  // The first 16 wait for the client, the others have been refused.
  ASSERT_TRUE(run([&] { return server.records.size() == 2 + 50 - 16; }));
  Octets refusal = reply_message(0x1000 + 16, {});
  refusal.back() = 5;  // SYSTEM_ERR
  EXPECT_EQ(server.records[2], refusal);
}

// A Call that was sent may have run. One that never left did not, and the server learns it.
TEST_F(CallbacksToRdmaTest, CallsThatWereNeverSentAreAnsweredInTheEnd) {
  frozen = std::chrono::steady_clock::now();
  TcpEnd& server = open();
  const auto num_sent = static_cast<std::uint32_t>(most_under_way(1));
  for (std::uint32_t i = 0; i < num_sent + 2; ++i) server.send(callback(i));
  ASSERT_TRUE(run([&] { return callbacks.messages.size() == num_sent; }));
  settle();
  EXPECT_EQ(server.records.size(), 1u);
  skew += std::chrono::seconds(61);  // ReverseRequester::Config::call_timeout
  ASSERT_TRUE(run([&] { return server.records.size() == 3; }));
  for (std::uint32_t i = 0; i < 2; ++i) {
    Octets refusal = reply_message(num_sent + i, {});
    refusal.back() = 5;  // SYSTEM_ERR
    EXPECT_EQ(server.records[1 + i], refusal);
  }
  EXPECT_EQ(callbacks.messages.size(), num_sent);
  EXPECT_FALSE(server.ended);
}

TEST_F(CallbacksToRdmaTest, OpenCallsAtTheGatewaysEnd) {
  TcpEnd& server = open();
  for (std::uint32_t i = 0; i < 12; ++i) server.send(callback(i, counted(2000)));
  ASSERT_TRUE(run([&] { return callbacks.messages.size() == most_under_way(1); }));
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

}  // namespace
}  // namespace weft::gateway::testing
