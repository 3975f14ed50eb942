// The life of a Server's connections on a device of the test's: ends and their reasons, and failures of its own.
#include "rpcrdma/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "rpcrdma/testing/engines.h"
#include "rpcrdma/testing/fake_device.h"
#include "rpcrdma/testing/log_lines.h"
#include "rpcrdma/testing/vectors.h"

namespace weft::rpcrdma::testing {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct ServerLifeTest : ::testing::Test {
  void open(ServerConfig config = {}) {
    config.log = lines.log();
    auto made = Server::listen(device, sockaddr_storage{}, programs, config);
    ASSERT_TRUE(made.ok()) << made.error().message;
    server = std::move(*made);
  }
  void run(int ms) {
    for (int i = 0; i < 5; ++i) server->process(at(ms));
  }
  void connect(int ms = 0) {
    device.ask();
    run(ms);
  }
  ~ServerLifeTest() override {
    service.calls.clear();
    server.reset();
  }

  LogLines lines;
  FakeMemory memory;
  FakeDevice device{memory};
  TestService service;
  std::vector<ServedProgram> programs{{&test_binding(), &service}};
  std::unique_ptr<Server> server;
};

TEST_F(ServerLifeTest, AConnectionThatCannotBeAcceptedHasItsReason) {
  open();
  device.fail_cq = true;
  connect();
  EXPECT_EQ(server->num_connections(), 0u);
  EXPECT_THAT(lines.warnings(),
              ElementsAre(AllOf(HasSubstr("client "), HasSubstr("cannot be accepted: no completion queue"))));
  EXPECT_THAT(service.ends, IsEmpty()) << "none was there";
}

TEST_F(ServerLifeTest, ThePeersReasonReachesTheServices) {
  open();
  connect();
  ASSERT_EQ(server->num_connections(), 1u);
  device.break_connection("the peer sent a Terminate", EPROTO);
  run(1);
  EXPECT_THAT(service.ends, ElementsAre("the peer sent a Terminate"));
  EXPECT_THAT(lines.all(), ElementsAre(HasSubstr("the connection ends: the peer sent a Terminate")));
  EXPECT_THAT(lines.warnings(), IsEmpty()) << "the device has warned of it";
}

// A program that sleeps until the device wakes it would keep the Reply back.
TEST_F(ServerLifeTest, AReplyLeavesInTheTurnThatBroughtItsCall) {
  open();
  connect();
  service.answer = [this](ServedCall& call) { server->reply(call.id, {}); };
  ASSERT_TRUE(device.qp().inject(load_vector("V01").octets));
  std::size_t sent = 0;
  device.on_process = [&] { sent = device.qp().sent.size(); };
  EXPECT_GT(server->process(at(1)), 0u);
  EXPECT_EQ(sent, 1u) << "no turn of the device came after the Reply";
  EXPECT_EQ(server->process(at(1)), 0u);
}

// Completions of a device with threads may come before the event that says why.
TEST_F(ServerLifeTest, ThePeersReasonIsWaitedFor) {
  open();
  connect();
  device.answers_disconnect = false;
  device.qp().break_connection();
  run(1);
  EXPECT_THAT(lines.all(), IsEmpty());
  device.break_connection("the cable is out", ECONNRESET);
  run(2);
  EXPECT_THAT(service.ends, ElementsAre("the cable is out"));
  EXPECT_EQ(lines.all().size(), 1u);
}

TEST_F(ServerLifeTest, ThePeersReasonIsNotWaitedForForEver) {
  open();
  connect();
  device.answers_disconnect = false;
  device.qp().break_connection();
  run(1);
  run(5000);
  EXPECT_THAT(lines.all(), IsEmpty());
  run(5001);
  EXPECT_THAT(lines.warnings(), ElementsAre(HasSubstr("the connection ends: the connection ended")));
  EXPECT_EQ(service.ends.size(), 1u);
}

TEST_F(ServerLifeTest, WhatCannotBePostedEndsTheConnectionWithItsReason) {
  open();
  connect();
  service.answer = [this](ServedCall& call) { server->reply(call.id, {}); };
  device.qp().fail_post_send = true;
  ASSERT_TRUE(device.qp().inject(load_vector("V01").octets));
  run(1);
  EXPECT_THAT(lines.warnings(), ElementsAre(HasSubstr("cannot post a work request: post_send made to fail")));
  EXPECT_THAT(service.ends, ElementsAre(HasSubstr("cannot post a work request")));
}

// A peer may never answer a disconnect.
TEST_F(ServerLifeTest, AReasonOfItsOwnIsToldAtOnce) {
  open();
  connect();
  service.answer = [this](ServedCall& call) { server->reply(call.id, {}); };
  device.answers_disconnect = false;
  device.qp().fail_post_send = true;
  ASSERT_TRUE(device.qp().inject(load_vector("V01").octets));
  run(1);
  EXPECT_THAT(lines.warnings(), ElementsAre(HasSubstr("cannot post a work request: post_send made to fail")));
  EXPECT_EQ(server->num_connections(), 1u);
  run(5001);
  EXPECT_EQ(server->num_connections(), 0u);
  EXPECT_EQ(lines.all().size(), 1u);
}

TEST_F(ServerLifeTest, AReasonOfItsOwnIsNotHiddenByTheEndThatFollows) {
  open();
  connect();
  service.answer = [this](ServedCall& call) {
    server->reply(call.id, {});
    device.break_connection("reset", ECONNRESET);
  };
  device.qp().fail_post_send = true;
  ASSERT_TRUE(device.qp().inject(load_vector("V01").octets));
  run(1);
  EXPECT_THAT(lines.warnings(), ElementsAre(HasSubstr("cannot post a work request: post_send made to fail")));
  EXPECT_THAT(service.ends, ElementsAre(HasSubstr("cannot post a work request")));
}

// The event of the end is taken before the completion that leads to the failure is handled.
TEST_F(ServerLifeTest, AReasonOfItsOwnIsNotHiddenByTheEndOfTheSameTurn) {
  open();
  connect();
  service.answer = [this](ServedCall& call) { server->reply(call.id, {}); };
  device.qp().fail_post_send = true;
  ASSERT_TRUE(device.qp().inject(load_vector("V01").octets));
  device.break_connection("reset", ECONNRESET);
  run(1);
  EXPECT_THAT(lines.warnings(), ElementsAre(HasSubstr("cannot post a work request: post_send made to fail")));
  EXPECT_THAT(service.ends, ElementsAre(HasSubstr("cannot post a work request")));
}

TEST_F(ServerLifeTest, AStalledConnectionEndsWithItsReason) {
  open({.stall_timeout = std::chrono::seconds(30)});
  connect();
  service.answer = [this](ServedCall& call) { server->reply(call.id, {}); };
  device.qp().hold_completions = true;
  ASSERT_TRUE(device.qp().inject(load_vector("V01").octets));
  run(1);
  run(30000);
  EXPECT_THAT(lines.all(), IsEmpty());
  run(30001);
  EXPECT_THAT(lines.warnings(), ElementsAre(HasSubstr("stalled for 30000 ms")));
  EXPECT_THAT(service.ends, ElementsAre(HasSubstr("stalled for 30000 ms")));
}

// Its peer never says goodbye, and the server would wait five seconds for it.
TEST_F(ServerLifeTest, AStalledConnectionWhoseMemoryOthersWaitForGoesAtOnce) {
  open({.inline_threshold = 1024,
        .max_call = 8192,
        .max_item = 1024,
        .max_buffered = 11264,
        .min_buffered_per_connection = 0});
  device.answers_disconnect = false;
  Octets chunk(0x10000);
  const std::uint32_t key = memory.add(
      {.octets = chunk.data(), .len = chunk.size(), .access = verbs::Access::kRemoteRead, .first = std::uint64_t{0}});
  for (std::uint8_t i = 0; i < 2; ++i) {
    connect();
    device.qp().hold_completions = true;
    Octets call = load_vector("V06").octets;
    call[3] = i;  // of the XID
    for (const std::size_t handle : {24u, 48u}) {
      xdr::XdrWriter out(MutBytes(call).subspan(handle, 4));
      out.u32(key);
    }
    ASSERT_TRUE(device.qp().inject(call));
    run(1);
  }
  EXPECT_EQ(server->num_connections(), 2u);
  run(410);
  EXPECT_THAT(lines.warnings(), ElementsAre(HasSubstr("too slowly while others wait")));
  EXPECT_EQ(server->num_connections(), 1u);
}

TEST_F(ServerLifeTest, AnOverflowEndsTheConnectionsOfItsQueueAndTheNextOneIsServed) {
  open();
  connect();
  device.overflow_cq();
  run(1);
  run(2);
  EXPECT_THAT(lines.warnings(), ElementsAre(HasSubstr("the completion queue overflowed")));
  EXPECT_THAT(service.ends, ElementsAre("the completion queue overflowed"));
  service.answer = [this](ServedCall& call) { server->reply(call.id, {}); };
  connect(3);
  ASSERT_EQ(server->num_connections(), 1u);
  ASSERT_TRUE(device.qp().inject(load_vector("V01").octets));
  run(4);
  EXPECT_EQ(service.calls.size(), 1u);
  EXPECT_EQ(server->num_connections(), 1u);
}

// A connection of the queue that overflowed is still on its way out.
TEST_F(ServerLifeTest, ANewConnectionGetsNoQueueThatOverflowed) {
  open();
  connect();
  device.answers_disconnect = false;
  device.overflow_cq();
  run(1);
  connect(2);
  ASSERT_EQ(server->num_connections(), 2u);
  ASSERT_TRUE(device.qp().inject(load_vector("V01").octets));
  run(3);
  EXPECT_EQ(service.calls.size(), 1u);
}

TEST_F(ServerLifeTest, AnOverflowEndsNoConnectionsOfOtherQueues) {
  open({.credits = 1000});
  for (int i = 0; i < 10 && device.num_cqs() < 2; ++i) connect();
  ASSERT_EQ(device.num_cqs(), 2u);
  const std::size_t num = server->num_connections();
  ASSERT_GT(num, 1u);
  device.overflow_cq();
  run(1);
  EXPECT_EQ(service.ends.size(), 1u);
  EXPECT_EQ(server->num_connections(), num - 1);
}

TEST_F(ServerLifeTest, QueuesThatOverflowedAreGivenBack) {
  open();
  for (int i = 0; i < 10; ++i) {
    connect(2 * i);
    ASSERT_EQ(server->num_connections(), 1u);
    EXPECT_EQ(device.num_cqs(), 1u);
    device.overflow_cq();
    run(2 * i + 1);
  }
}

// The Receives of all connections complete in one queue.
struct SharedReceivesLifeTest : ServerLifeTest {
  SharedReceivesLifeTest() { device.have_shared_receives(); }
  // The Call runs if its completion reaches the server.
  void expect_serves(int ms) {
    service.calls.clear();
    ASSERT_TRUE(device.qp().inject(load_vector("V01").octets));
    run(ms);
    EXPECT_EQ(service.calls.size(), 1u);
  }
};

TEST_F(SharedReceivesLifeTest, AnOverflowEndsTheirConnectionsAndTheNextOneIsServed) {
  open();
  for (int i = 0; i < 3; ++i) connect();
  ASSERT_TRUE(server->memory().has_shared_receives);
  expect_serves(1);
  service.calls.clear();
  device.overflow_receive_cq();
  device.answers_disconnect = false;
  run(2);
  EXPECT_EQ(device.num_disconnects(), 3u);
  EXPECT_THAT(lines.warnings(), Each(HasSubstr("the completion queue overflowed")));
  EXPECT_EQ(lines.warnings().size(), 3u);
  connect(3);
  expect_serves(4);
  run(5002);
  EXPECT_THAT(service.ends, ElementsAreArray(std::vector<std::string>(3, "the completion queue overflowed")));
  EXPECT_EQ(server->num_connections(), 1u);
  expect_serves(5003);
}

TEST_F(SharedReceivesLifeTest, QueuesThatOverflowedAreGivenBackWithTheirMemory) {
  open();
  connect();
  const std::size_t registered = memory.size(), num_cqs = device.num_cqs();
  for (int i = 0; i < 10; ++i) {
    device.overflow_receive_cq();
    run(2 * i + 1);
    ASSERT_EQ(server->num_connections(), 0u);
    connect(2 * i + 2);
    ASSERT_EQ(server->num_connections(), 1u);
    EXPECT_EQ(memory.size(), registered);
    EXPECT_EQ(device.num_cqs(), num_cqs);
    expect_serves(2 * i + 2);
  }
}

// A service may read a Call after the end of its connection.
TEST_F(SharedReceivesLifeTest, CallsOutliveTheReceivesThatWereGivenUp) {
  open();
  connect();
  expect_serves(1);
  ASSERT_EQ(service.calls.size(), 1u);
  const Octets header = copy_of(service.calls[0].header);
  device.overflow_receive_cq();
  run(2);
  connect(3);
  ASSERT_EQ(server->num_connections(), 1u);
  EXPECT_EQ(copy_of(service.calls[0].header), header);
}

TEST_F(SharedReceivesLifeTest, WithoutAnotherQueueNewConnectionsAreNotAccepted) {
  open();
  connect();
  device.overflow_receive_cq();
  run(1);
  device.fail_cq = true;
  connect(2);
  EXPECT_EQ(server->num_connections(), 0u);
  EXPECT_THAT(lines.warnings().back(), HasSubstr("cannot be accepted: no completion queue"));
  device.fail_cq = false;
  connect(3);
  ASSERT_EQ(server->num_connections(), 1u);
  expect_serves(4);
}

TEST_F(ServerLifeTest, WhoIsNotAdmittedHasALine) {
  open({.admits = [](const sockaddr_storage&) { return false; }});
  connect();
  EXPECT_THAT(lines.all(), ElementsAre(HasSubstr("rejected: it is not admitted")));
  EXPECT_THAT(lines.warnings(), IsEmpty());
  EXPECT_EQ(server->num_connections(), 0u);
}

// A peer that connects again and again with something to complain of each time.
TEST_F(ServerLifeTest, ConnectionsThatCannotBeAcceptedMeetTheBudget) {
  open();
  device.fail_cq = true;
  for (int i = 0; i < 1000; ++i) device.ask();
  run(0);
  EXPECT_EQ(lines.all().size(), 50u);
}

}  // namespace
}  // namespace weft::rpcrdma::testing
