// A Client asks a silent server with a NULL Call, and leaves a server that does not answer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rpcrdma/testing/client_life.h"

namespace weft::rpcrdma::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

// After 300 ms of silence the client asks, and waits 50 ms for the answer.
ClientConfig watched(const ReconnectPolicy& reconnect = {}) {
  return {.reserve_credit = true,
          .reconnect = reconnect,
          .health_check = {.after = milliseconds(300), .answer = milliseconds(50), .when_idle = false}};
}

TEST_F(ClientLifeTest, ASilentServerIsAskedAndLeft) {
  RecordProperty("proves", "U1-6.7.2-01 U1-6.7.2-02");
  open_with_credits(watched(kReconnect));
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
  open_with_credits(watched());
  call();
  run(0);
  run(300);
  run(350);
  EXPECT_EQ(client->state(), State::kClosed);
  EXPECT_THAT(ended, ElementsAre(Pair(0, CallStatus::kSuccess), Pair(1, CallStatus::kDisconnected)));
}

TEST_F(ClientLifeTest, AServerThatAnswersIsWaitedFor) {
  open_with_credits(watched());
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
  open_with_credits(watched());
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
  open_with_credits(watched());
  call();
  run(0);
  device.qp().fail_post_send = true;
  run(300);
  expect_closed("post_send made to fail");
}

TEST_F(ClientLifeTest, AnotherReplyIsASignOfLifeToo) {
  open_with_credits(watched());
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
  open_with_credits(config);
  EXPECT_FALSE(client->next_timeout());
  config.health_check.when_idle = true;
  open_with_credits(config);
  expect_wakes_at(300);
  run(300);
  EXPECT_EQ(num_sent(), 2u);
  run(350);
  EXPECT_EQ(client->state(), State::kClosed);
}

}  // namespace
}  // namespace weft::rpcrdma::testing
