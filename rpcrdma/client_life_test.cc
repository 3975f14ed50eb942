// The life of a Client: connections that end and come again, a server that says nothing, and the Calls through it all.
#include "rpcrdma/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "rpcrdma/connection_setup.h"
#include "rpcrdma/testing/engines.h"
#include "rpcrdma/testing/fake_device.h"
#include "rpcrdma/testing/log_lines.h"

namespace weft::rpcrdma::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using Answer = FakeDevice::Answer;
using State = Client::State;

constexpr ReconnectPolicy kReconnect{
    .max_time = milliseconds(1000), .first_delay = milliseconds(100), .max_delay = milliseconds(400)};

struct ClientLifeTest : ::testing::Test {
  void open(ClientConfig config = {.reconnect = kReconnect}) {
    config.credits = 8;
    config.log = lines.log();
    auto made = Client::connect(device, sockaddr_storage{}, config);
    ASSERT_TRUE(made.ok()) << made.error().message;
    client = std::move(*made);
    run(0);
    ASSERT_EQ(client->state(), State::kReady);
  }
  // The client's turns at this time, until it has nothing more to do.
  void run(int ms) {
    for (int i = 0; i < 100; ++i) {
      if (client->process(at(ms)) == 0 && (!client->next_timeout() || *client->next_timeout() > at(ms))) return;
    }
    ADD_FAILURE() << "the client never comes to rest";
  }
  void call(std::chrono::milliseconds timeout = milliseconds(60000)) {
    CallSpec spec = call_of(test_binding(), kRead);
    spec.result_items = room;
    spec.max_results = max_results;
    spec.timeout = timeout;
    const std::size_t number = num_calls++;
    const auto called = client->call(spec, [this, number](const Reply& reply) {
      ended.emplace_back(number, reply.status);
      remote_at_end.push_back(memory.num_remote());
    });
    ASSERT_TRUE(called.ok()) << called.error().message;
  }
  v1::Header sent(std::size_t i) { return parse(device.qp().sent.at(i)); }
  std::size_t num_sent() { return device.qp().sent.size(); }
  void answer(std::size_t i, int ms, std::uint32_t credits = 8) {
    ASSERT_TRUE(device.qp().inject(plain_reply(device.qp().sent.at(i), credits)));
    run(ms);
  }
  void expect_wakes_at(int ms) {
    ASSERT_TRUE(client->next_timeout());
    EXPECT_EQ(*client->next_timeout(), at(ms));
  }

  LogLines lines;
  FakeMemory memory;
  FakeDevice device{memory};
  Octets room = Octets(9000);
  std::size_t max_results = call_of(test_binding(), kRead).max_results;  // of the Calls from here on
  std::size_t num_calls = 0;
  std::vector<std::pair<std::size_t, CallStatus>> ended;
  std::vector<std::size_t> remote_at_end;
  std::unique_ptr<Client> client;
};

TEST_F(ClientLifeTest, WithoutAPolicyTheEndIsTheEnd) {
  open({});
  call();
  run(0);
  device.break_connection();
  run(1);
  EXPECT_EQ(client->state(), State::kClosed);
  EXPECT_THAT(ended, ElementsAre(Pair(0, CallStatus::kDisconnected)));
  EXPECT_EQ(memory.num_remote(), 0u);
  run(5000);
  EXPECT_EQ(device.num_attempts(), 1u);
}

TEST_F(ClientLifeTest, EndsAndAttemptsHaveTheirLines) {
  open();
  call();
  run(0);
  EXPECT_THAT(lines.all(), IsEmpty());
  device.break_connection("the cable is out", ECONNRESET);
  run(1);
  EXPECT_THAT(lines.all(), ElementsAre(HasSubstr("ended: the cable is out"),
                                       HasSubstr("connecting again in 100 ms; 1 Calls wait for that")));
  EXPECT_THAT(lines.warnings(), IsEmpty());
  lines.clear();
  device.fail_event_channel = true;
  for (int ms = 101; ms < 2000; ms += 100) run(ms);
  ASSERT_EQ(client->state(), State::kClosed);
  EXPECT_GE(lines.num_with("no descriptor"), 3u) << "one for each attempt";
  EXPECT_EQ(lines.num_with("given up: no connection within the time"), 1u);
}

TEST_F(ClientLifeTest, WhatTheClientEndsHasItsLine) {
  open({});
  device.qp().fail_post_send = true;
  call();
  run(0);
  EXPECT_EQ(client->state(), State::kClosed);
  EXPECT_THAT(lines.warnings(), ElementsAre(HasSubstr("cannot post a work request: post_send made to fail")));
}

TEST_F(ClientLifeTest, AnOverflowHasItsLine) {
  open({});
  device.overflow_cq();
  run(1);
  EXPECT_THAT(lines.warnings(), ElementsAre(HasSubstr("the completion queue overflowed")));
}

// Completions of a device with threads may come before the event that says why.
TEST_F(ClientLifeTest, TheReasonOfAnEndIsWaitedForAMoment) {
  open({});
  device.qp().break_connection();
  run(0);
  EXPECT_EQ(client->state(), State::kReady);
  run(999);
  EXPECT_EQ(client->state(), State::kReady);
  device.break_connection("the cable is out");
  run(999);
  EXPECT_EQ(client->state(), State::kClosed);
  EXPECT_THAT(client->error(), HasSubstr("the cable is out"));
}

TEST_F(ClientLifeTest, TheReasonOfAnEndIsNotWaitedForForEver) {
  open({});
  device.qp().break_connection();
  run(0);
  expect_wakes_at(1000);
  run(1000);
  EXPECT_EQ(client->state(), State::kClosed);
  EXPECT_THAT(client->error(), HasSubstr("the connection ended"));
}

// The Receives are flushed before the connection stands.
TEST_F(ClientLifeTest, TheReasonOfAnAttemptThatFailedIsWaitedFor) {
  device.on_connect = [] { return Answer::kNone; };
  auto made = Client::connect(device, sockaddr_storage{}, {.credits = 8});
  ASSERT_TRUE(made.ok());
  client = std::move(*made);
  run(0);
  device.qp().break_connection();
  run(1);
  EXPECT_EQ(client->state(), State::kConnecting);
  device.break_connection("no RTR indication");
  run(2);
  EXPECT_EQ(client->state(), State::kClosed);
  EXPECT_THAT(client->error(), HasSubstr("no RTR indication"));
}

// A device that is gone makes no other connection.
TEST_F(ClientLifeTest, ADeviceThatIsGoneIsNotTriedAgain) {
  open();
  call();
  run(0);
  device.remove();
  run(1);
  EXPECT_EQ(client->state(), State::kClosed);
  EXPECT_THAT(client->error(), HasSubstr("taken away"));
  EXPECT_THAT(ended, ElementsAre(Pair(0, CallStatus::kDisconnected)));
  EXPECT_EQ(memory.num_remote(), 0u);
  run(5000);
  EXPECT_EQ(device.num_attempts(), 1u);
}

TEST_F(ClientLifeTest, TheFirstConnectionIsNotTriedTwice) {
  device.on_connect = [] { return Answer::kRefuse; };
  auto made = Client::connect(device, {}, {.reconnect = kReconnect});
  client = std::move(*made);
  run(0);
  EXPECT_EQ(client->state(), State::kClosed);
  EXPECT_EQ(device.num_attempts(), 1u);
}

TEST_F(ClientLifeTest, CallsGoOnOverTheNextConnection) {
  RecordProperty("proves", "R1-5.5.5-01 U1-6.7.2-04 R1-4.3.2-13 R1-4.3.3-02 R1-7.2.2-02");
  const auto large = emit_private_data({false, 4096, 4096});
  device.private_data = {large.begin(), large.end()};
  max_results = 2000;  // more than the Replies of a peer that says nothing may have
  open();
  call();
  run(0);
  answer(0, 0);
  for (int i = 0; i < 8; ++i) call();
  run(0);
  ASSERT_EQ(num_sent(), 9u);
  std::vector<std::uint32_t> xids;
  for (std::size_t i = 1; i < 9; ++i) xids.push_back(sent(i).xid);
  EXPECT_FALSE(sent(1).lists.reply_chunk);
  device.break_connection("the cable is out");
  run(10);
  EXPECT_EQ(client->state(), State::kConnecting);
  EXPECT_THAT(client->error(), HasSubstr("the cable is out"));
  EXPECT_EQ(memory.num_remote(), 0u);
  EXPECT_FALSE(device.has_connection());
  EXPECT_EQ(client->num_outstanding(), 8u);
  expect_wakes_at(110);
  device.private_data = {};
  call();
  run(110);
  ASSERT_EQ(client->state(), State::kReady);
  EXPECT_EQ(client->num_connections(), 2u);
  EXPECT_EQ(device.qp().num_receives(), 8u + kExtraReceives);
  ASSERT_EQ(num_sent(), 1u);  // one credit
  EXPECT_EQ(sent(0).xid, xids[0]);
  EXPECT_TRUE(sent(0).lists.reply_chunk);
  for (std::size_t i = 0; i < 9; ++i) answer(i, 111);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(sent(i).xid, xids[i]);
  ASSERT_EQ(ended.size(), 10u);
  for (std::size_t i = 0; i < 10; ++i) EXPECT_EQ(ended[i], std::pair(i, CallStatus::kSuccess));
  EXPECT_EQ(memory.num_remote(), 0u);
  EXPECT_EQ(client->counters().sends_tx, 9u + 9);
}

TEST_F(ClientLifeTest, DelaysGrowUntilTimeIsUp) {
  open();
  call();
  run(0);
  device.on_connect = [] { return Answer::kRefuse; };
  device.break_connection();
  run(0);
  for (const int ms : {100, 300, 700}) {
    expect_wakes_at(ms);
    run(ms);
  }
  // 400 ms more would pass a second since the loss.
  EXPECT_EQ(client->state(), State::kClosed);
  EXPECT_EQ(device.num_attempts(), 1u + 3);
  EXPECT_THAT(client->error(), HasSubstr("broken"));
  EXPECT_THAT(client->error(), HasSubstr("refused"));
  EXPECT_THAT(ended, ElementsAre(Pair(0, CallStatus::kDisconnected)));
  EXPECT_THAT(remote_at_end, ElementsAre(0u));
  EXPECT_FALSE(client->call({}, nullptr).ok());
}

TEST_F(ClientLifeTest, DelaysGrowNoFurtherThanTheirMost) {
  ReconnectPolicy policy = kReconnect;
  policy.max_time = milliseconds(2000);
  open({.reconnect = policy});
  device.on_connect = [] { return Answer::kRefuse; };
  device.break_connection();
  run(0);
  for (const int ms : {100, 300, 700, 1100, 1500, 1900}) {
    expect_wakes_at(ms);
    run(ms);
  }
  EXPECT_EQ(client->state(), State::kClosed);
}

TEST_F(ClientLifeTest, AttemptsAreCounted) {
  ReconnectPolicy policy = kReconnect;
  policy.max_attempts = 2;
  open({.reconnect = policy});
  device.on_connect = [] { return Answer::kReject; };
  device.break_connection();
  run(0);
  run(100);
  EXPECT_EQ(client->state(), State::kConnecting);
  run(300);
  EXPECT_EQ(client->state(), State::kClosed);
  EXPECT_EQ(device.num_attempts(), 1u + 2);
}

TEST_F(ClientLifeTest, AnAttemptWithoutAnswerOrMeansIsOneMore) {
  open({.connect_timeout = milliseconds(50), .reconnect = kReconnect});
  device.break_connection();
  run(0);
  device.on_connect = [] { return Answer::kNone; };
  run(100);
  expect_wakes_at(150);
  run(150);
  expect_wakes_at(350);
  device.fail_event_channel = true;
  run(350);
  expect_wakes_at(750);
  device.fail_event_channel = false;
  device.on_connect = [] { return Answer::kAccept; };
  run(750);
  EXPECT_EQ(client->state(), State::kReady);
}

TEST_F(ClientLifeTest, AServerThatEndsEveryConnectionIsNotPressed) {
  open();
  call();
  run(0);
  std::vector<int> lost;
  int ms = 0;
  while (client->state() != State::kClosed && ms < 5000) {
    if (client->state() == State::kReady) {
      device.break_connection();
      lost.push_back(ms);
    }
    run(ms);
    if (client->state() == State::kConnecting) ms = int((*client->next_timeout() - at(0)) / milliseconds(1));
    run(ms);
  }
  EXPECT_THAT(lost, ElementsAre(0, 100, 300, 700));
  EXPECT_THAT(ended, ElementsAre(Pair(0, CallStatus::kDisconnected)));
}

// Time and attempts would allow for many more.
TEST_F(ClientLifeTest, AServerThatBreaksTheProtocolEachTimeIsGivenUpOn) {
  ReconnectPolicy policy = kReconnect;
  policy.max_time = milliseconds(60000);
  open({.reconnect = policy});
  call();
  int ms = 0;
  run(ms);
  while (client->state() == State::kReady && ms < 60000) {
    device.break_connection("received a Terminate", EPROTO);
    run(ms);
    ms += 400;
    run(ms);
  }
  EXPECT_EQ(client->state(), State::kClosed);
  EXPECT_EQ(device.num_attempts(), 3u);
  EXPECT_THAT(client->error(), HasSubstr("received a Terminate; given up"));
  EXPECT_THAT(ended, ElementsAre(Pair(0, CallStatus::kDisconnected)));
}

TEST_F(ClientLifeTest, AServerThatAnswersSomeCallsAndBreaksTheProtocolAtOthersIsGivenUpOn) {
  open();
  call();
  call();
  int ms = 0;
  run(ms);
  while (client->state() == State::kReady && ms < 60000) {
    answer(0, ms);
    call();
    run(ms);
    device.break_connection("received a Terminate", EPROTO);
    run(ms);
    ms += 400;
    run(ms);
  }
  EXPECT_EQ(client->state(), State::kClosed);
  EXPECT_EQ(device.num_attempts(), 12u);
  EXPECT_THAT(client->error(), HasSubstr("given up"));
}

// A violation now and then is no reason: a network that damages an octet a day, say.
TEST_F(ClientLifeTest, ConnectionsThatLastForgiveViolations) {
  open();
  int ms = 0;
  for (int i = 0; i < 20; ++i) {
    ms += 400;
    device.break_connection("bad CRC", EPROTO);
    run(ms);
    ms += 400;
    run(ms);
    ASSERT_EQ(client->state(), State::kReady) << i;
  }
}

// What comes and has to be discarded is no answer: neither delays nor time begin anew.
TEST_F(ClientLifeTest, ADiscardedReplyIsNoReasonToGoOn) {
  open();
  call();
  int ms = 0;
  run(ms);
  while (client->state() != State::kClosed && ms < 60000) {
    if (client->state() == State::kReady) {
      v1::Header header = sent(0);
      header.lists.write_list.front().front().length = 9004;
      ASSERT_TRUE(device.qp().inject(message(header, rpc_reply(header.xid))));
      run(ms);
      device.break_connection();
    }
    run(ms);
    if (client->state() == State::kConnecting) ms = int((*client->next_timeout() - at(0)) / milliseconds(1));
    run(ms);
  }
  EXPECT_EQ(device.num_attempts(), 4u);
  EXPECT_EQ(client->replies().accepted, 0u);
  EXPECT_EQ(client->replies().discarded, 4u);
  EXPECT_STREQ(client->replies().last_discard, "returned Write list is not the provided one");
}

TEST_F(ClientLifeTest, RepliesAreCounted) {
  open();
  call();
  run(0);
  answer(0, 0);
  ASSERT_TRUE(device.qp().inject(plain_reply(device.qp().sent.at(0), 8)));
  ASSERT_TRUE(device.qp().inject(Octets(12)));
  run(1);
  EXPECT_EQ(client->replies().accepted, 1u);
  EXPECT_EQ(client->replies().discarded, 2u);
  EXPECT_THAT(client->replies().last_discard, HasSubstr("too short"));
}

TEST_F(ClientLifeTest, AConnectionThatWasOfUseBeginsTheDelaysAnew) {
  open();
  call();
  run(0);
  for (int i = 1; i < 20; ++i) {
    device.break_connection();
    run(200 * i);
    expect_wakes_at(200 * i + 100);
    run(200 * i + 100);
    answer(0, 200 * i + 100);
    call();
    run(200 * i + 100);
  }
  EXPECT_EQ(client->num_connections(), 20u);
}

TEST_F(ClientLifeTest, AnIdleClientConnectsAgainHoursLater) {
  open();
  device.break_connection();
  run(0);
  run(100);
  ASSERT_EQ(client->state(), State::kReady);
  constexpr int kHour = 3600 * 1000;
  device.break_connection();
  run(kHour);
  expect_wakes_at(kHour + 100);
  run(kHour + 100);
  EXPECT_EQ(client->state(), State::kReady);
}

TEST_F(ClientLifeTest, AnErrorBeforeTheDisconnectEndsTheCall) {
  RecordProperty("proves", "U1-6.7.2-03");
  open();
  call();
  run(0);
  v1::Header error;
  error.xid = sent(0).xid;
  error.credit = 1;
  error.proc = v1::Proc::kError;
  error.err = v1::Err::kChunk;
  ASSERT_TRUE(device.qp().inject(message(error, {})));
  device.break_connection();
  run(0);
  EXPECT_THAT(ended, ElementsAre(Pair(0, CallStatus::kErrChunk)));
  run(100);
  EXPECT_EQ(client->state(), State::kReady);
  EXPECT_EQ(num_sent(), 0u);
}

TEST_F(ClientLifeTest, ACallThatIsGivenUpMeanwhileStaysSo) {
  open();
  call(milliseconds(50));
  run(0);
  device.break_connection();
  run(10);
  expect_wakes_at(50);
  run(50);
  EXPECT_THAT(ended, ElementsAre(Pair(0, CallStatus::kTimeout)));
  run(110);
  EXPECT_EQ(client->state(), State::kReady);
  EXPECT_EQ(num_sent(), 0u);
}

TEST_F(ClientLifeTest, DisconnectMeansIt) {
  open();
  call();
  run(0);
  device.break_connection();
  run(0);
  client->disconnect();
  EXPECT_EQ(client->state(), State::kClosed);
  run(1);
  EXPECT_THAT(ended, ElementsAre(Pair(0, CallStatus::kDisconnected)));
  run(5000);
  EXPECT_EQ(device.num_attempts(), 1u);
}

TEST_F(ClientLifeTest, TheEndOfTheClientEndsEveryCallAtAnyTime) {
  for (const int when : {0, 1, 2}) {
    ended.clear();
    num_calls = 0;
    device.on_connect = [] { return Answer::kAccept; };
    open();
    call();
    call();
    run(0);
    if (when > 0) device.break_connection();
    run(1);
    device.on_connect = [] { return Answer::kNone; };
    if (when > 1) run(101);
    client.reset();
    EXPECT_THAT(ended, ElementsAre(Pair(0, CallStatus::kDisconnected), Pair(1, CallStatus::kDisconnected))) << when;
    EXPECT_EQ(memory.size(), 0u);
  }
}

TEST_F(ClientLifeTest, CallbacksAtItsEndFindAClientThatIsClosed) {
  open();
  const Client& ending = *client;
  std::optional<State> state;
  ASSERT_TRUE(client->call(call_of(test_binding(), kRead), [&](const Reply&) { state = ending.state(); }).ok());
  run(0);
  client.reset();
  EXPECT_EQ(state, State::kClosed);
}

TEST_F(ClientLifeTest, ADiscardedReplyIsAskedForOnAnotherConnection) {
  RecordProperty("proves", "R1-5.5-03");
  ReconnectPolicy policy = kReconnect;
  policy.retransmit_after = milliseconds(500);
  open({.reconnect = policy});
  call();
  run(0);
  v1::Header header = sent(0);
  const std::uint32_t xid = header.xid;
  header.lists.write_list.front().front().length = 9004;
  ASSERT_TRUE(device.qp().inject(message(header, rpc_reply(xid))));
  run(1);
  EXPECT_TRUE(ended.empty());
  expect_wakes_at(500);
  run(500);
  EXPECT_EQ(client->state(), State::kConnecting);
  EXPECT_EQ(memory.num_remote(), 0u);
  run(600);
  ASSERT_EQ(client->state(), State::kReady);
  EXPECT_EQ(sent(0).xid, xid);
  answer(0, 601);
  EXPECT_THAT(ended, ElementsAre(Pair(0, CallStatus::kSuccess)));
}

// As ClientConfig, with a health check after 300 ms for 50 ms.
ClientConfig watched(const ReconnectPolicy& reconnect = {}) {
  return {.reserve_credit = true,
          .reconnect = reconnect,
          .health_check = {.after = milliseconds(300), .answer = milliseconds(50), .when_idle = false}};
}

TEST_F(ClientLifeTest, ASilentServerIsAskedAndLeft) {
  RecordProperty("proves", "U1-6.7.2-01 U1-6.7.2-02");
  open(watched(kReconnect));
  call();
  run(0);
  answer(0, 0);
  for (int i = 0; i < 8; ++i) call();
  run(1000);
  ASSERT_EQ(num_sent(), 1u + 7);  // one credit is kept
  expect_wakes_at(1300);
  run(1300);
  ASSERT_EQ(num_sent(), 1u + 8);
  EXPECT_EQ(payload_of(device.qp().sent.back()).size(), 40u);  // a NULL Call
  EXPECT_TRUE(sent(8).lists.write_list.empty());
  expect_wakes_at(1350);
  run(1349);
  EXPECT_EQ(client->state(), State::kReady);
  run(1350);
  EXPECT_EQ(client->state(), State::kConnecting);
  EXPECT_THAT(client->error(), HasSubstr("health check"));
  run(1450);
  EXPECT_EQ(client->state(), State::kReady);
  for (std::size_t i = 0; i < 8; ++i) answer(i, 1451);
  EXPECT_EQ(ended.size(), 9u);
  EXPECT_EQ(num_sent(), 8u);
}

TEST_F(ClientLifeTest, WithoutReconnectASilentServerIsTheEnd) {
  open(watched());
  call();
  run(0);
  answer(0, 0);
  call();
  run(0);
  run(300);
  run(350);
  EXPECT_EQ(client->state(), State::kClosed);
  EXPECT_THAT(ended, ElementsAre(Pair(0, CallStatus::kSuccess), Pair(1, CallStatus::kDisconnected)));
}

TEST_F(ClientLifeTest, AServerThatAnswersIsWaitedFor) {
  open(watched());
  call();
  run(0);
  answer(0, 0);
  call();
  run(0);
  for (std::size_t i = 1; i < 10; ++i) {
    const int ms = int(i) * 300;
    expect_wakes_at(ms);
    run(ms);
    ASSERT_EQ(num_sent(), 2 + i);
    answer(1 + i, ms);
  }
  EXPECT_EQ(client->state(), State::kReady);
  answer(1, 2701);
  EXPECT_EQ(ended.size(), 2u);
  EXPECT_FALSE(client->next_timeout());
}

// A server that lacks the program, or that refuses the header, is alive too.
TEST_F(ClientLifeTest, ARefusalOfAHealthCheckIsASignOfLife) {
  open(watched());
  call();
  run(0);
  answer(0, 0);
  call();
  run(0);
  for (std::size_t i = 0; i < 6; ++i) {
    const int ms = 300 * static_cast<int>(i + 1);
    expect_wakes_at(ms);
    run(ms);
    ASSERT_EQ(num_sent(), 3 + i);
    v1::Header header;
    header.xid = sent(2 + i).xid;
    header.credit = 8;
    Octets payload;
    if (i % 2 == 0) {
      payload = rpc_reply(header.xid, {}, i % 4 == 0 ? AcceptStat::kProgUnavail : AcceptStat::kSystemErr);
    } else {
      header.proc = v1::Proc::kError;
      header.err = v1::Err::kChunk;
    }
    ASSERT_TRUE(device.qp().inject(message(header, payload)));
    run(ms);
    EXPECT_EQ(client->state(), State::kReady);
  }
  EXPECT_EQ(ended.size(), 1u);
}

// No question went out, so the silence of the server means nothing.
TEST_F(ClientLifeTest, AHealthCheckThatCannotBeSentSaysWhy) {
  open(watched());
  call();
  run(0);
  answer(0, 0);
  call();
  run(0);
  device.qp().fail_post_send = true;
  run(300);
  EXPECT_EQ(client->state(), State::kClosed);
  EXPECT_THAT(client->error(), HasSubstr("post_send made to fail"));
}

TEST_F(ClientLifeTest, AnotherReplyIsASignOfLifeToo) {
  open(watched());
  call();
  run(0);
  answer(0, 0);
  call();
  call();
  run(0);
  run(300);
  ASSERT_EQ(num_sent(), 4u);
  answer(2, 310);
  run(350);
  EXPECT_EQ(client->state(), State::kReady);
  expect_wakes_at(610);
}

TEST_F(ClientLifeTest, WithoutACreditNobodyAsks) {
  open(watched());
  call();  // takes the only credit there is
  run(0);
  EXPECT_EQ(*client->next_timeout(), at(60000));
  run(300);
  run(5000);
  EXPECT_EQ(num_sent(), 1u);
  EXPECT_EQ(client->state(), State::kReady);
}

TEST_F(ClientLifeTest, IdleConnectionsAreAskedWhereThatIsWanted) {
  RecordProperty("proves", "U1-6.7.2-01");
  ClientConfig config = watched();
  open(config);
  call();
  run(0);
  answer(0, 0);
  EXPECT_FALSE(client->next_timeout());
  config.health_check.when_idle = true;
  open(config);
  call();
  run(0);
  answer(0, 0);
  expect_wakes_at(300);
  run(300);
  EXPECT_EQ(num_sent(), 2u);
  run(350);
  EXPECT_EQ(client->state(), State::kClosed);
}

TEST_F(ClientLifeTest, WithoutACompletionQueueThereIsNoConnection) {
  device.fail_cq = true;
  const auto made = Client::connect(device, sockaddr_storage{}, {.credits = 8});
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.error().message, HasSubstr("no completion queue"));
  EXPECT_EQ(device.num_attempts(), 0u);
}

}  // namespace
}  // namespace weft::rpcrdma::testing
