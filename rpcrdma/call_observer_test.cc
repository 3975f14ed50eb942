// The observer of Calls, and the counts of a Server.
#include "rpcrdma/call_observer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "rpcrdma/server.h"
#include "rpcrdma/testing/fake_device.h"
#include "rpcrdma/testing/responder.h"
#include "rpcrdma/testing/vectors.h"

namespace weft::rpcrdma::testing {
namespace {

using ::testing::ElementsAre;

struct Recorder : CallObserver {
  void on_connection(ConnectionId connection, const std::string& client) override {
    connections.emplace_back(connection.value, client);
  }
  std::uint64_t on_arrival() override { return ++arrivals; }
  void on_answer(const AnsweredCall& call) override { answers.push_back(call); }
  void on_end(const ConnectionStatistics& last) override { ends.push_back(last); }

  std::vector<CallOutcome> outcomes() const {
    std::vector<CallOutcome> out;
    for (const AnsweredCall& answer : answers) out.push_back(answer.outcome);
    return out;
  }

  std::vector<std::pair<std::uint32_t, std::string>> connections;
  std::uint64_t arrivals = 0;
  std::vector<AnsweredCall> answers;
  std::vector<ConnectionStatistics> ends;
};

struct CallObserverTest : ResponderTest {
  void open_observed(ResponderEnd::Options options = {}) {
    open(options);
    end->responder->observe(&recorder);
  }
  Recorder recorder;
};

TEST_F(CallObserverTest, AnAnswerCarriesTheNumbersOfItsCallAndTheMarkOfItsArrival) {
  open_observed();
  call(kNull);
  call(kRead);
  EXPECT_EQ(recorder.arrivals, 2u);
  EXPECT_TRUE(recorder.answers.empty());
  const ServedCallId first = end->service.calls[0].id;
  answer({});  // of the READ
  end->responder->reply(first, {});
  end->pump();
  ASSERT_EQ(recorder.answers.size(), 2u);
  EXPECT_EQ(recorder.answers[0].mark, 2u);
  EXPECT_EQ(recorder.answers[1].mark, 1u);
  EXPECT_TRUE(recorder.answers[0].is_served);
  EXPECT_EQ(recorder.answers[0].program, kTestProgram);
  EXPECT_EQ(recorder.answers[0].version, kTestVersion);
  EXPECT_EQ(recorder.answers[0].procedure, kRead);
  EXPECT_EQ(recorder.answers[1].procedure, kNull);
  EXPECT_THAT(recorder.outcomes(), ElementsAre(CallOutcome::kSuccess, CallOutcome::kSuccess));
}

TEST_F(CallObserverTest, EachKindOfAnswerHasItsOutcome) {
  open_observed();
  const auto with = [this](const CallHeader& rpc) {
    Octets payload;
    xdr::XdrWriter out(payload);
    emit_call(out, rpc);
    call(call_header(), payload);
  };
  with({5, 200000, 1, 0, {}, {}});
  with({5, kTestProgram, 4, 0, {}, {}});
  with({5, kTestProgram, 3, 0, {6, {1, 2, 3, 4}}, {}});
  Octets payload = rpc_call(kNull);
  payload[11] = 3;
  call(call_header(), payload);
  EXPECT_FALSE(recorder.answers.at(0).is_served);
  EXPECT_THAT(recorder.outcomes(), ElementsAre(CallOutcome::kProgUnavail, CallOutcome::kProgMismatch,
                                               CallOutcome::kAuthError, CallOutcome::kRpcMismatch));
  recorder.answers.clear();
  using Accept = ServedReply::Accept;
  for (const Accept accept : {Accept::kProcUnavail, Accept::kGarbageArgs, Accept::kSystemErr}) {
    call(kNull);
    ServedReply reply;
    reply.accept = accept;
    answer(std::move(reply));
  }
  EXPECT_THAT(recorder.outcomes(),
              ElementsAre(CallOutcome::kProcUnavail, CallOutcome::kGarbageArgs, CallOutcome::kSystemErr));
}

TEST_F(CallObserverTest, TransportErrorsAreAnswersToo) {
  open_observed();
  for (const auto& vector : load_vectors('M')) {
    if (vector.to != "responder") continue;
    const std::size_t before = recorder.answers.size();
    ASSERT_TRUE(end->qp.inject(vector.octets)) << vector.id;
    end->pump();
    EXPECT_EQ(recorder.answers.size() - before, vector.expect == "DISCARD" ? 0u : 1u) << vector.id;
  }
  EXPECT_THAT(recorder.outcomes(), ::testing::Contains(CallOutcome::kErrVers));
  EXPECT_THAT(recorder.outcomes(), ::testing::Contains(CallOutcome::kErrChunk));
}

// A gateway passes the header of a Reply on.
TEST_F(CallObserverTest, AReplyThatIsPassedOnHasTheOutcomeOfItsHeader) {
  open_observed();
  call(kNull);
  ServedReply reply;
  xdr::XdrWriter out(reply.header);
  ReplyHeader denied;
  denied.xid = xid;
  denied.denied = true;
  denied.reject = RejectStat::kAuthError;
  denied.auth = AuthStat::kTooWeak;
  emit_reply(out, denied);
  answer(std::move(reply));
  EXPECT_THAT(recorder.outcomes(), ElementsAre(CallOutcome::kAuthError));
}

struct ServerStatisticsTest : ::testing::Test {
  ServerStatisticsTest() {
    device.have_shared_receives();
    service.answer = [this](ServedCall& call) { server->reply(call.id, {}); };
  }
  ~ServerStatisticsTest() override {
    service.calls.clear();
    server.reset();
  }
  void open(const ServerConfig& config = {}) {
    auto made = Server::listen(device, sockaddr_storage{}, programs, config);
    ASSERT_TRUE(made.ok()) << made.error().message;
    server = std::move(*made);
    server->observe(recorder);
  }
  void run() {
    for (int i = 0; i < 5; ++i) server->process(at(1));
  }
  void connect() {
    device.ask();
    run();
  }
  std::uint64_t ended(EndReason reason) const { return server->statistics().ended[static_cast<std::size_t>(reason)]; }

  FakeMemory memory;
  FakeDevice device{memory};
  TestService service;
  Recorder recorder;
  std::vector<ServedProgram> programs{{&test_binding(), &service}};
  std::unique_ptr<Server> server;
};

TEST_F(ServerStatisticsTest, OpenConnectionsAreListedWithTheirCalls) {
  open();
  connect();
  service.answer = nullptr;
  ASSERT_TRUE(device.qp().inject(load_vector("V01").octets));
  run();
  const ServerStatistics now = server->statistics();
  EXPECT_EQ(now.opened, 1u);
  ASSERT_EQ(now.connections.size(), 1u);
  EXPECT_EQ(now.connections[0].under_way, 1u);
  EXPECT_GT(now.connections[0].credits, 0u);
  EXPECT_EQ(now.connections[0].calls.calls_served, 1u);
  ASSERT_EQ(recorder.connections.size(), 1u);
  EXPECT_EQ(recorder.connections[0].second, now.connections[0].client);
}

TEST_F(ServerStatisticsTest, EndedConnectionsAreSummedAndTheirReasonsCounted) {
  open();
  connect();
  ASSERT_TRUE(device.qp().inject(load_vector("V01").octets));
  run();
  device.break_connection("the peer closed the connection", 0);
  run();
  EXPECT_EQ(ended(EndReason::kClient), 1u);
  for (const auto& [error, reason] :
       {std::pair{EPROTO, EndReason::kProtocol}, {ECONNRESET, EndReason::kLost}, {ETIMEDOUT, EndReason::kTimeout}}) {
    connect();
    device.break_connection("it broke", error);
    run();
    EXPECT_EQ(ended(reason), 1u) << error;
  }
  connect();
  device.qp().fail_post_send = true;
  ASSERT_TRUE(device.qp().inject(load_vector("V01").octets));
  run();
  EXPECT_EQ(ended(EndReason::kFailed), 1u);
  const ServerStatistics now = server->statistics();
  EXPECT_EQ(now.opened, 5u);
  EXPECT_TRUE(now.connections.empty());
  EXPECT_EQ(now.ended_calls.calls_served, 2u);
  EXPECT_EQ(now.ended_messages.sends_tx, server->counters().sends_tx);
  ASSERT_EQ(recorder.ends.size(), 5u);
  EXPECT_EQ(recorder.ends[0].calls.calls_served, 1u);
  EXPECT_EQ(recorder.ends[0].connection.value, recorder.connections[0].first);
}

TEST_F(ServerStatisticsTest, AConnectionThatGivesWayAndOneThatTheProgramEndsAreToldApart) {
  open({.max_connections = 1, .max_connections_per_client = 1});
  connect();
  connect();
  EXPECT_EQ(ended(EndReason::kGaveWay), 1u);
  server->disconnect({recorder.connections.back().first});
  run();
  EXPECT_EQ(ended(EndReason::kProgram), 1u);
}

TEST_F(ServerStatisticsTest, RefusedConnectionsAreCounted) {
  open({.admits = [](const sockaddr_storage&) { return false; }});
  connect();
  EXPECT_EQ(server->statistics().not_admitted, 1u);
  server.reset();
  open();
  device.fail_cq = true;
  connect();
  EXPECT_EQ(server->statistics().not_accepted, 1u);
  EXPECT_EQ(server->statistics().opened, 0u);
  EXPECT_TRUE(recorder.connections.empty());
}

TEST(ResponderCounters, SumsEveryCount) {
  ResponderCounters sum;
  sum.calls_served = 1;
  sum.duplicate_requests = 2;
  ResponderCounters other = sum;
  other.discarded = 3;
  sum += other;
  EXPECT_EQ(sum.calls_served, 2u);
  EXPECT_EQ(sum.duplicate_requests, 4u);
  EXPECT_EQ(sum.discarded, 3u);
}

}  // namespace
}  // namespace weft::rpcrdma::testing
