// How Calls end other than by their Reply: cancelled, out of time, with the requester; and the credits that they hold.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rpcrdma/requester.h"
#include "rpcrdma/testing/engines.h"

namespace weft::rpcrdma::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;

struct CallLifeTest : ::testing::Test {
  void open(RequesterEnd::Options options = {}) { end = std::make_unique<RequesterEnd>(memory, options); }

  // A Call that offers memory for a result; it is number `calls.size()`.
  CallId call(std::function<void(CallSpec&)> change = {}) {
    CallSpec spec = call_of(test_binding(), kRead);
    spec.result_items = room;
    if (change) change(spec);
    const std::size_t number = num_calls++;
    const auto called = end->requester->call(spec, [this, number](const Reply& reply) {
      ended.emplace_back(number, reply.status);
      remote_at_end.push_back(memory.num_remote());
    });
    EXPECT_TRUE(called.ok()) << called.error().message;
    return called.value();
  }
  void run(int ms) {
    end->pump();
    end->requester->on_time(at(ms));
  }
  // The peer answers the Send number i, granting `credits`.
  void answer(std::size_t i, std::uint32_t credits, int ms) {
    ASSERT_TRUE(end->qp.inject(plain_reply(end->qp.sent.at(i), credits)));
    run(ms);
  }
  // From the one credit of the beginning to `credits`; nothing is under way then.
  void settle(std::uint32_t credits) {
    call();
    run(0);
    answer(0, credits, 0);
    ASSERT_EQ(ended.size(), 1u);
    ended.clear();
    remote_at_end.clear();
    num_calls = 0;
  }

  FakeMemory memory;
  Octets room = Octets(9000);
  std::size_t num_calls = 0;
  std::vector<std::pair<std::size_t, CallStatus>> ended;
  std::vector<std::size_t> remote_at_end;
  std::unique_ptr<RequesterEnd> end;
};

TEST_F(CallLifeTest, ACancelledCallIsFencedBeforeCancelReturns) {
  RecordProperty("proves", "R1-5.4.1-01 R1-10.1.3-02");
  open();
  settle(4);
  const CallId handle = call();
  EXPECT_EQ(memory.num_remote(), 1u);
  EXPECT_TRUE(end->requester->cancel(handle));
  EXPECT_EQ(memory.num_remote(), 0u);
  EXPECT_TRUE(ended.empty());  // never from cancel
  EXPECT_FALSE(end->requester->cancel(handle));
  run(1);
  EXPECT_THAT(ended, ElementsAre(std::pair{std::size_t{0}, CallStatus::kCancelled}));
  EXPECT_FALSE(end->requester->cancel(handle));
  run(5000);
  EXPECT_EQ(ended.size(), 1u);
}

TEST_F(CallLifeTest, ALateReplyToACancelledCallIsDropped) {
  open();
  settle(2);
  const CallId handle = call();
  run(0);
  end->requester->cancel(handle);
  run(0);
  const auto discarded = end->requester->counters().replies_discarded;
  call();
  call();  // waits: the server still counts the cancelled one
  run(0);
  EXPECT_EQ(end->qp.sent.size(), 3u);
  answer(1, 2, 1);
  EXPECT_EQ(end->requester->counters().replies_discarded, discarded + 1);
  EXPECT_EQ(ended.size(), 1u);
  EXPECT_EQ(end->qp.sent.size(), 4u);
  // No Call has its XID any more.
  EXPECT_FALSE(end->endpoint->failure());
}

TEST_F(CallLifeTest, CancelledBeforeItWasSent) {
  open();
  const CallId first = call();
  const CallId waiting = call();
  run(0);
  EXPECT_TRUE(end->requester->cancel(waiting));
  run(0);
  EXPECT_THAT(ended, ElementsAre(std::pair{std::size_t{1}, CallStatus::kCancelled}));
  answer(0, 4, 1);
  EXPECT_EQ(end->qp.sent.size(), 1u);  // it never goes out
  EXPECT_FALSE(end->requester->cancel(first));
}

TEST_F(CallLifeTest, CancellingEverythingDoesNotEndTheConnectionUntilTimeIsUp) {
  open();
  settle(2);
  const CallId first = call();
  const CallId second = call();
  run(0);
  end->requester->cancel(first);
  end->requester->cancel(second);
  call();
  run(999);
  EXPECT_FALSE(end->endpoint->failure());
  EXPECT_EQ(end->requester->next_timeout(), at(1000));
  run(1000);
  EXPECT_TRUE(end->endpoint->failure());
}

TEST_F(CallLifeTest, CallbacksMayCancel) {
  open();
  settle(4);
  const CallId victim = call();
  bool cancelled = false;
  CallSpec spec;
  spec.program = kTestProgram;
  spec.version = kTestVersion;
  ASSERT_TRUE(end->requester->call(spec, [&](const Reply&) { cancelled = end->requester->cancel(victim); }).ok());
  run(0);
  answer(2, 4, 0);
  EXPECT_TRUE(cancelled);
  EXPECT_THAT(ended, ElementsAre(std::pair{std::size_t{0}, CallStatus::kCancelled}));
}

TEST_F(CallLifeTest, EachCallHasItsOwnTime) {
  open();
  settle(8);
  call();
  call([](CallSpec& spec) { spec.timeout = milliseconds(5000); });
  call([](CallSpec& spec) { spec.timeout = milliseconds(10); });
  call([](CallSpec& spec) { spec.timeout = milliseconds(200); });
  run(0);
  EXPECT_EQ(end->requester->next_timeout(), at(10));
  run(9);
  EXPECT_TRUE(ended.empty());
  run(10);
  EXPECT_THAT(ended, ElementsAre(std::pair{std::size_t{2}, CallStatus::kTimeout}));
  EXPECT_EQ(end->requester->next_timeout(), at(200));
  run(1000);
  EXPECT_EQ(ended.size(), 3u);
  EXPECT_EQ(end->requester->next_timeout(), at(5000));
  run(5000);
  ASSERT_EQ(ended.size(), 4u);
  EXPECT_EQ(ended.back(), (std::pair{std::size_t{1}, CallStatus::kTimeout}));
  for (const std::size_t remote : remote_at_end) EXPECT_LE(remote, 3u);
  EXPECT_EQ(memory.num_remote(), 0u);
}

TEST_F(CallLifeTest, TheEndOfTheRequesterEndsEveryCallOnce) {
  open();
  settle(2);
  for (int i = 0; i < 5; ++i) call();
  run(0);
  const CallId cancelled = call();
  end->requester->cancel(cancelled);
  end.reset();
  ASSERT_EQ(ended.size(), 6u);
  EXPECT_EQ(ended[0], (std::pair{std::size_t{5}, CallStatus::kCancelled}));
  for (std::size_t i = 1; i < 6; ++i) {
    EXPECT_EQ(ended[i], (std::pair{i - 1, CallStatus::kDisconnected}));
  }
  for (const std::size_t remote : remote_at_end) EXPECT_EQ(remote, 0u);
}

TEST_F(CallLifeTest, NothingCanBeCalledWhileTheRequesterEnds) {
  open();
  bool refused = false;
  CallSpec spec;
  ASSERT_TRUE(
      end->requester->call(spec, [&](const Reply&) { refused = !end->requester->call(CallSpec{}, nullptr).ok(); })
          .ok());
  run(0);
  Requester& requester = *end->requester;
  requester.on_closed("gone");
  requester.on_time(at(0));
  EXPECT_TRUE(refused);
}

TEST_F(CallLifeTest, OneCreditIsKeptForHealthChecks) {
  RecordProperty("proves", "U1-6.7.2-01");
  open({.reserve_credit = true});
  settle(3);
  for (int i = 0; i < 4; ++i) call();
  run(0);
  EXPECT_EQ(end->qp.sent.size(), 1u + 2);
  call([](CallSpec& spec) {
    spec.is_health_check = true;
    spec.procedure = kNull;
    spec.timeout = milliseconds(50);
  });
  run(0);
  EXPECT_EQ(end->qp.sent.size(), 1u + 3);
  run(50);
  EXPECT_THAT(ended, ElementsAre(std::pair{std::size_t{4}, CallStatus::kTimeout}));
  // A second one waits like any other, but before them.
  call([](CallSpec& spec) { spec.is_health_check = true; });
  run(51);
  EXPECT_EQ(end->qp.sent.size(), 1u + 3);
  answer(1, 3, 52);
  ASSERT_EQ(end->qp.sent.size(), 1u + 4);
  EXPECT_EQ(ended.back().first, 0u);
  answer(4, 3, 53);
  EXPECT_EQ(ended.back().first, 5u);
}

TEST_F(CallLifeTest, WithOneCreditNoneIsKept) {
  open({.reserve_credit = true});
  call();
  call();
  run(0);
  EXPECT_EQ(end->qp.sent.size(), 1u);
  answer(0, 1, 0);
  EXPECT_EQ(end->qp.sent.size(), 2u);
}

}  // namespace
}  // namespace weft::rpcrdma::testing
