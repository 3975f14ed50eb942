// How a Client ends: the reasons, the log lines, and the Calls that end with it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <optional>

#include "rpcrdma/testing/client_life.h"

namespace weft::rpcrdma::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST_F(ClientLifeTest, WithoutAPolicyTheEndIsTheEnd) {
  open_and_call({});
  device.break_connection();
  run(1);
  EXPECT_EQ(client->state(), State::kClosed);
  EXPECT_THAT(ended, ElementsAre(Pair(0, CallStatus::kDisconnected)));
  EXPECT_EQ(memory.num_remote(), 0u);
  run(5000);
  EXPECT_EQ(device.num_attempts(), 1u);
}

TEST_F(ClientLifeTest, EndsAndAttemptsHaveTheirLines) {
  open_and_call();
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
  EXPECT_EQ(lines.num_with("given up: could not reconnect in time"), 1u);
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

// A device with threads may pass completions on before the event that carries the reason.
TEST_F(ClientLifeTest, TheReasonOfAnEndIsWaitedForAMoment) {
  open({});
  device.qp().break_connection();
  run(0);
  EXPECT_EQ(client->state(), State::kReady);
  run(999);
  EXPECT_EQ(client->state(), State::kReady);
  device.break_connection("the cable is out");
  run(999);
  expect_closed("the cable is out");
}

TEST_F(ClientLifeTest, TheReasonOfAnEndIsNotWaitedForForEver) {
  open({});
  device.qp().break_connection();
  run(0);
  expect_wakes_at(1000);
  run(1000);
  expect_closed("the connection ended");
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
  expect_closed("no RTR indication");
}

// A removed device makes no connection any more.
TEST_F(ClientLifeTest, ADeviceThatIsGoneIsNotTriedAgain) {
  open_and_call();
  device.remove();
  run(1);
  expect_closed("taken away");
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

TEST_F(ClientLifeTest, WithoutACompletionQueueThereIsNoConnection) {
  device.fail_cq = true;
  const auto made = Client::connect(device, sockaddr_storage{}, {.credits = 8});
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.error().message, HasSubstr("no completion queue"));
  EXPECT_EQ(device.num_attempts(), 0u);
}

TEST_F(ClientLifeTest, DisconnectMeansIt) {
  open_and_call();
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

}  // namespace
}  // namespace weft::rpcrdma::testing
