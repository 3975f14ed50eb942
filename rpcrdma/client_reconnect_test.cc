// A Client connects again after a loss. Its Calls go on over the next connection, until it gives up.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "rpcrdma/testing/client_life.h"

namespace weft::rpcrdma::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST_F(ClientLifeTest, CallsGoOnOverTheNextConnection) {
  RecordProperty("proves", "R1-5.5.5-01 U1-6.7.2-04 R1-4.3.2-13 R1-4.3.3-02 R1-7.2.2-02");
  const auto large = emit_private_data({false, 4096, 4096});
  device.private_data = {large.begin(), large.end()};
  max_results = 2000;  // more than the Replies of a peer that says nothing may have
  open_with_credits();
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
  open_and_call();
  device.on_connect = [] { return Answer::kRefuse; };
  device.break_connection();
  run(0);
  expect_turns_at({100, 300, 700});
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
  expect_turns_at({100, 300, 700, 1100, 1500, 1900});
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
  open_and_call();
  std::vector<int> lost;
  int ms = 0;
  while (client->state() != State::kClosed && ms < 5000) {
    if (client->state() == State::kReady) {
      device.break_connection();
      lost.push_back(ms);
    }
    ms = run_to_next_attempt(ms);
  }
  EXPECT_THAT(lost, ElementsAre(0, 100, 300, 700));
  EXPECT_THAT(ended, ElementsAre(Pair(0, CallStatus::kDisconnected)));
}

// The policy's time and number of attempts allow many more.
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

// A network that damages an octet a day causes a violation now and then. The client does not give up for that.
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

// A discarded Reply is no answer: neither delays nor time begin anew.
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
    ms = run_to_next_attempt(ms);
  }
  EXPECT_EQ(device.num_attempts(), 4u);
  EXPECT_EQ(client->replies().accepted, 0u);
  EXPECT_EQ(client->replies().discarded, 4u);
  EXPECT_STREQ(client->replies().last_discard, "returned Write list is not the provided one");
}

// No other message answers what it discards. It need not wait for a time-out to know that the server is broken.
TEST_F(ClientLifeTest, AServerWhoseRepliesAreDiscardedIsGivenUpOnAtOnce) {
  open({.max_discards = 0, .reconnect = kReconnect});
  call();
  int ms = 0;
  run(ms);
  while (client->state() != State::kClosed && ms < 60000) {
    if (client->state() == State::kReady) {
      v1::Header header = sent(0);
      header.lists.write_list.front().front().length = 9004;
      ASSERT_TRUE(device.qp().inject(message(header, rpc_reply(header.xid))));
      run(ms);
    }
    ms = run_to_next_attempt(ms);
  }
  EXPECT_EQ(device.num_attempts(), 3u);
  EXPECT_LE(ms, 1000) << "the delays between the attempts";
  expect_closed("its last message was discarded: returned Write list is not the provided one; given up");
  EXPECT_THAT(ended, ElementsAre(Pair(0, CallStatus::kDisconnected)));
}

TEST_F(ClientLifeTest, MoreDiscardedMessagesInARowThanTheLimitEndTheConnection) {
  open_and_call({.max_discards = 5, .reconnect = kReconnect});
  const auto discard = [&](int num) {
    for (int i = 0; i < num; ++i) {
      ASSERT_TRUE(device.qp().inject(Octets(12)));
      run(0);
    }
  };
  discard(5);
  EXPECT_EQ(client->state(), State::kReady);
  answer(0, 0);
  discard(5);
  EXPECT_EQ(client->state(), State::kReady) << "a good Reply came between";
  discard(1);
  EXPECT_EQ(client->state(), State::kConnecting);
  EXPECT_THAT(client->error(), HasSubstr("the peer answers no Call: its last message was discarded"));
}

// A server cannot know that this client takes no Calls.
TEST_F(ClientLifeTest, ACallOfTheServerEndsNothing) {
  open_and_call({.max_discards = 0, .reconnect = kReconnect});
  Octets call;
  xdr::XdrWriter out(call);
  emit_call(out, {99, kTestProgram, kTestVersion, kNull, {}, {}});
  v1::Header header;
  header.xid = 99;
  const auto inject = [&] {
    ASSERT_TRUE(device.qp().inject(message(header, call)));
    run(0);
  };
  for (int i = 0; i < 16; ++i) inject();
  EXPECT_EQ(client->state(), State::kReady);
  EXPECT_STREQ(client->replies().last_discard, "a Call reached a requester");
  inject();
  EXPECT_EQ(client->state(), State::kConnecting);
}

// A second Reply to a Call is discarded, and its connection goes on, unless nothing else comes.
TEST_F(ClientLifeTest, AReplyToACallThatWasAnsweredEndsNothing) {
  open_and_call({.max_discards = 0, .reconnect = kReconnect});
  answer(0, 0);
  for (int i = 0; i < 16; ++i) answer(0, 0);
  EXPECT_EQ(client->state(), State::kReady);
  EXPECT_STREQ(client->replies().last_discard, "no Call that waits has its XID");
  EXPECT_EQ(lines.num_with("a Reply was discarded: no Call that waits has its XID"), 16u);
  call();
  run(0);
  answer(1, 0);
  EXPECT_THAT(ended, ElementsAre(Pair(0, CallStatus::kSuccess), Pair(1, CallStatus::kSuccess)));
  for (int i = 0; i < 16; ++i) answer(1, 0);
  EXPECT_EQ(client->state(), State::kReady) << "a good Reply came between";
  answer(1, 0);
  EXPECT_EQ(client->state(), State::kConnecting);
  EXPECT_THAT(client->error(), HasSubstr("the peer answers no Call: its last message was discarded: no Call that"));
}

// It may be the Reply that a Call waits for, so nobody waits until that Call's time is over.
TEST_F(ClientLifeTest, AReplyWithAnXidOfNoCallEndsTheConnection) {
  open_and_call({.max_discards = 0, .reconnect = kReconnect});
  auto call = device.qp().sent.at(0);
  call[0] ^= 0xff;
  ASSERT_TRUE(device.qp().inject(plain_reply(call, 8)));
  run(0);
  EXPECT_EQ(client->state(), State::kConnecting);
}

TEST_F(ClientLifeTest, RepliesAreCounted) {
  open_with_credits();
  ASSERT_TRUE(device.qp().inject(plain_reply(device.qp().sent.at(0), 8)));
  ASSERT_TRUE(device.qp().inject(Octets(12)));
  run(1);
  EXPECT_EQ(client->replies().accepted, 1u);
  EXPECT_EQ(client->replies().discarded, 2u);
  EXPECT_THAT(client->replies().last_discard, HasSubstr("too short"));
}

TEST_F(ClientLifeTest, AConnectionThatWasOfUseBeginsTheDelaysAnew) {
  open_and_call();
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
  open_and_call();
  v1::Header error;
  error.xid = sent(0).xid;
  error.credit = 1;
  error.proc = v1::Proc::kError;
  error.err = v1::Err::kChunk;
  ASSERT_TRUE(device.qp().inject(message(error, {})));
  device.break_connection();
  run(0);
  EXPECT_THAT(ended, ElementsAre(Pair(0, CallStatus::kTransportError)));
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

TEST_F(ClientLifeTest, ADiscardedReplyIsAskedForOnAnotherConnection) {
  RecordProperty("proves", "R1-5.5-03");
  ReconnectPolicy policy = kReconnect;
  policy.retransmit_after = milliseconds(500);
  open_and_call({.reconnect = policy});
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

}  // namespace
}  // namespace weft::rpcrdma::testing
