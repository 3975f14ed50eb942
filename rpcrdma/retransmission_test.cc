// Calls that outlive their connection, with the requester: they go out again on the next one, under the same XID.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <list>

#include "rpcrdma/requester.h"
#include "rpcrdma/testing/engines.h"

namespace weft::rpcrdma::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::Pair;

// A connection on fake verbs whose peer is the test.
struct Line : FakeEnd {
  Line(FakeMemory& memory, std::uint32_t credits) : FakeEnd(memory) {
    Endpoint::Config shape;
    shape.num_receives = credits + 2;
    shape.num_sends = credits;
    shape.receive_len = shape.send_len = 4096;
    shape.max_send_wr = credits + 4;
    make_endpoint(shape, Link::End::kClient);
    EXPECT_TRUE(endpoint->attach(qp).ok());
  }
  v1::Header header(std::size_t i) const { return parse(qp.sent.at(i)); }
};

struct RetransmissionTest : ::testing::Test {
  static constexpr std::uint32_t kCredits = 8;

  ~RetransmissionTest() override { requester.reset(); }

  void open(Requester::Config config = {}) {
    config.credits = kCredits;
    config.retransmits = true;
    lines.emplace_back(memory, kCredits);
    requester = std::make_unique<Requester>(pd, *line().link, config, 0x11110000);
    requester->start(4096, 4096);
  }
  Line& line() { return lines.back(); }
  // The connection ends, and another begins with these thresholds.
  void lose() {
    line().qp.break_connection();
    pump();
    requester->suspend("gone");
    line().endpoint->detach();
  }
  void begin_anew(std::size_t call_threshold = 4096, std::size_t reply_threshold = 4096) {
    lines.emplace_back(memory, kCredits);
    requester->resume(*line().link);
    requester->start(call_threshold, reply_threshold);
  }
  void pump() { line().pump(); }
  void run(int ms) {
    pump();
    requester->on_time(at(ms));
  }

  CallId call(std::function<void(CallSpec&)> change = {}) {
    CallSpec spec = call_of(test_binding(), kRead);
    spec.result_items = room;
    if (change) change(spec);
    const std::size_t number = num_calls++;
    const auto called =
        requester->call(spec, [this, number](const Reply& reply) { ended.emplace_back(number, reply.status); });
    EXPECT_TRUE(called.ok()) << called.error().message;
    return called.value();
  }
  // The peer answers the Send number i of this connection.
  void answer(std::size_t i, std::uint32_t credits, int ms) {
    ASSERT_TRUE(line().qp.inject(plain_reply(line().qp.sent.at(i), credits)));
    run(ms);
  }
  void answer_err_chunk(std::size_t i, int ms) {
    v1::Header header;
    header.xid = line().header(i).xid;
    header.credit = kCredits;
    header.proc = v1::Proc::kError;
    header.err = v1::Err::kChunk;
    ASSERT_TRUE(line().qp.inject(message(header, {})));
    run(ms);
  }
  // `num` Calls of which all are under way.
  void call_many(std::size_t num) {
    call();
    run(0);
    answer(0, kCredits, 0);
    ended.clear();
    num_calls = 0;
    for (std::size_t i = 0; i < num; ++i) call();
    run(0);
    ASSERT_EQ(line().qp.sent.size(), 1 + num);
  }

  FakeMemory memory;
  FakePd pd{memory};
  Octets room = Octets(9000);
  std::list<Line> lines;
  std::unique_ptr<Requester> requester;
  std::size_t num_calls = 0;
  std::vector<std::pair<std::size_t, CallStatus>> ended;
};

TEST_F(RetransmissionTest, CallsGoOutAgainInOrderUnderTheirXids) {
  RecordProperty("proves", "R1-5.5.5-01 U1-6.7.2-04 R1-4.3.3-02");
  open();
  call_many(8);
  call();  // waits for a credit
  std::vector<std::uint32_t> xids;
  for (std::size_t i = 1; i <= 8; ++i) xids.push_back(line().header(i).xid);
  lose();
  EXPECT_EQ(memory.num_remote(), 0u);
  run(1);
  EXPECT_TRUE(ended.empty());
  EXPECT_EQ(requester->num_outstanding(), 9u);
  begin_anew();
  EXPECT_EQ(line().qp.sent.size(), 1u);  // one credit, regardless of the last connection
  answer(0, 3, 2);
  EXPECT_EQ(line().qp.sent.size(), 4u);
  for (std::size_t i = 1; i < 9; ++i) answer(i, kCredits, 2);
  ASSERT_EQ(line().qp.sent.size(), 9u);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(line().header(i).xid, xids[i]);
  EXPECT_THAT(xids, ::testing::Not(::testing::Contains(line().header(8).xid)));
  ASSERT_EQ(ended.size(), 9u);
  for (std::size_t i = 0; i < 9; ++i) EXPECT_EQ(ended[i], std::pair(i, CallStatus::kSuccess));
  EXPECT_EQ(memory.num_remote(), 0u);
  EXPECT_EQ(requester->counters().retransmitted, 8u);
}

// A server that refuses a Call may have run it over the connection before.
TEST_F(RetransmissionTest, ARefusalTellsNothingOfTheConnectionBefore) {
  for (const bool is_second : {false, true}) {
    open();
    std::optional<bool> did_not_run;
    ASSERT_TRUE(
        requester->call(call_of(test_binding()), [&](const Reply& reply) { did_not_run = reply.did_not_run; }).ok());
    run(0);
    if (is_second) {
      lose();
      begin_anew();
    }
    v1::Header header = line().header(0);
    header.proc = v1::Proc::kError;
    header.err = v1::Err::kVers;
    header.vers_low = header.vers_high = 3;
    ASSERT_TRUE(line().qp.inject(message(header, {})));
    run(1);
    EXPECT_EQ(did_not_run, !is_second);
    requester.reset();
  }
}

TEST_F(RetransmissionTest, FormsAreChosenAnew) {
  RecordProperty("proves", "R1-4.3.2-13");
  open();
  const Octets args = pattern(2000);
  call([&](CallSpec& spec) {
    spec.procedure = kReaddir;
    spec.args = args;
    spec.result_items = {};
    spec.max_results = 3000;
  });
  run(0);
  EXPECT_EQ(line().header(0).proc, v1::Proc::kMsg);
  EXPECT_EQ(memory.num_remote(), 0u);
  lose();
  begin_anew(1024, 1024);
  ASSERT_EQ(line().qp.sent.size(), 1u);
  EXPECT_EQ(line().header(0).proc, v1::Proc::kNomsg);
  EXPECT_TRUE(line().header(0).lists.reply_chunk);
  EXPECT_EQ(memory.num_remote(), 2u);
  lose();
  begin_anew(4096, 4096);
  EXPECT_EQ(line().header(0).proc, v1::Proc::kMsg);
  EXPECT_EQ(line().header(0).xid, lines.front().header(0).xid);
  EXPECT_EQ(memory.num_remote(), 0u);
  answer(0, 1, 1);
  EXPECT_THAT(ended, ElementsAre(Pair(0, CallStatus::kSuccess)));
}

TEST_F(RetransmissionTest, HandlesOfTheOldConnectionNameNothing) {
  open();
  call();
  run(0);
  const auto before = line().header(0).lists.write_list.at(0).at(0);
  lose();
  EXPECT_EQ(memory.find(before.handle, before.offset, 1, verbs::Access::kRemoteWrite), nullptr);
  begin_anew();
  const auto after = line().header(0).lists.write_list.at(0).at(0);
  EXPECT_EQ(after.offset, before.offset);
  EXPECT_NE(after.handle, before.handle);
  EXPECT_EQ(memory.find(before.handle, before.offset, 1, verbs::Access::kRemoteWrite), nullptr);
}

TEST_F(RetransmissionTest, WhatEndedIsNotSentAgain) {
  RecordProperty("proves", "U1-6.7.2-03 U1-6.4.2-09 U1-6.4.2-10");
  open({.call_timeout = milliseconds(1000)});
  call_many(5);
  const CallId cancelled = call();
  call([](CallSpec& spec) { spec.timeout = milliseconds(10); });
  run(0);
  requester->cancel(cancelled);
  run(10);
  answer_err_chunk(1, 11);
  answer(2, kCredits, 11);
  // RDMA_ERROR came before the disconnect, in the same turn.
  v1::Header error;
  error.xid = line().header(3).xid;
  error.credit = kCredits;
  error.proc = v1::Proc::kError;
  error.err = v1::Err::kChunk;
  ASSERT_TRUE(line().qp.inject(message(error, {})));
  const std::uint32_t fourth = line().header(4).xid;
  lose();
  begin_anew();
  answer(0, kCredits, 12);
  ASSERT_EQ(line().qp.sent.size(), 2u);
  EXPECT_EQ(line().header(0).xid, fourth);
  answer(1, kCredits, 13);
  // A Call that succeeds ends with its Reply. The others end in the next turn.
  EXPECT_THAT(ended, ElementsAre(Pair(5, CallStatus::kCancelled), Pair(6, CallStatus::kTimeout),
                                 Pair(0, CallStatus::kTransportError), Pair(1, CallStatus::kSuccess),
                                 Pair(3, CallStatus::kSuccess), Pair(2, CallStatus::kTransportError),
                                 Pair(4, CallStatus::kSuccess)));
}

TEST_F(RetransmissionTest, BetweenConnectionsCallsEndAsElsewhere) {
  open({.call_timeout = milliseconds(1000)});
  call_many(3);
  const CallId last = call();
  run(0);
  lose();
  EXPECT_EQ(requester->next_timeout(), at(1000));
  EXPECT_TRUE(requester->cancel(last));
  const CallId late = call([](CallSpec& spec) { spec.timeout = milliseconds(50); });
  run(100);
  EXPECT_FALSE(requester->cancel(last));
  run(150);
  EXPECT_FALSE(requester->cancel(late));
  EXPECT_THAT(ended, ElementsAre(Pair(3, CallStatus::kCancelled), Pair(4, CallStatus::kTimeout)));
  run(1000);
  EXPECT_EQ(ended.size(), 5u);
  EXPECT_EQ(requester->num_outstanding(), 0u);
  begin_anew();
  EXPECT_TRUE(line().qp.sent.empty());
}

TEST_F(RetransmissionTest, TheEndOfTheRequesterBetweenConnectionsEndsEveryCall) {
  open();
  call_many(3);
  lose();
  call();
  requester.reset();
  ASSERT_EQ(ended.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(ended[i], std::pair(i, CallStatus::kDisconnected));
}

TEST_F(RetransmissionTest, XidsOfWaitingCallsStayTaken) {
  open();
  call();
  run(0);
  const std::uint32_t xid = line().header(0).xid;
  lose();
  CallSpec spec;
  spec.xid = xid;
  EXPECT_EQ(requester->call(spec, nullptr).error().errno_value, EEXIST);
}

TEST_F(RetransmissionTest, ACallThatFindsTheConnectionOverWaitsForTheNext) {
  open();
  line().qp.fail_post_send = true;
  call();
  run(0);
  EXPECT_TRUE(line().endpoint->failure());
  EXPECT_TRUE(ended.empty());
  EXPECT_EQ(memory.num_remote(), 0u);
  lose();
  begin_anew();
  answer(0, 1, 1);
  EXPECT_THAT(ended, ElementsAre(Pair(0, CallStatus::kSuccess)));
}

TEST_F(RetransmissionTest, ADiscardedReplyLeavesItsCallToTheNextConnection) {
  RecordProperty("proves", "R1-5.5-03");
  open({.call_timeout = milliseconds(60000), .retransmit_after = milliseconds(500)});
  call();
  run(0);
  v1::Header header = line().header(0);
  const std::uint32_t xid = header.xid;
  header.lists.write_list.front().front().length = 9004;  // more than was offered: a bad header
  ASSERT_TRUE(line().qp.inject(message(header, rpc_reply(xid))));
  run(1);
  EXPECT_EQ(requester->counters().replies_discarded, 1u);
  EXPECT_EQ(requester->next_timeout(), at(500));
  run(499);
  EXPECT_FALSE(line().endpoint->failure());
  run(500);
  ASSERT_TRUE(line().endpoint->failure());
  EXPECT_GT(requester->next_timeout(), at(500));
  EXPECT_TRUE(ended.empty());
  lose();
  begin_anew();
  EXPECT_EQ(line().header(0).xid, xid);
  run(501);
  EXPECT_EQ(requester->next_timeout(), at(1001));
  answer(0, 1, 600);
  EXPECT_THAT(ended, ElementsAre(Pair(0, CallStatus::kSuccess)));
  EXPECT_FALSE(requester->next_timeout());
}

TEST_F(RetransmissionTest, TheDeadlineCountsFromTheFirstSending) {
  open({.call_timeout = milliseconds(1200), .retransmit_after = milliseconds(500)});
  call();
  run(0);
  for (const int ms : {500, 1000}) {
    run(ms);
    ASSERT_TRUE(line().endpoint->failure());
    lose();
    begin_anew();
    run(ms);
  }
  EXPECT_EQ(requester->next_timeout(), at(1200));
  run(1200);
  EXPECT_THAT(ended, ElementsAre(Pair(0, CallStatus::kTimeout)));
}

TEST_F(RetransmissionTest, AHealthCheckEndsWithTheConnectionThatItAskedAbout) {
  open({.reserve_credit = true});
  call_many(7);
  call([](CallSpec& spec) { spec.is_health_check = true; });
  call([](CallSpec& spec) { spec.is_health_check = true; });
  run(0);
  ASSERT_EQ(line().qp.sent.size(), 9u);
  lose();
  run(1);
  EXPECT_THAT(ended, ElementsAre(Pair(7, CallStatus::kDisconnected), Pair(8, CallStatus::kDisconnected)));
  EXPECT_EQ(requester->num_outstanding(), 7u);
}

}  // namespace
}  // namespace weft::rpcrdma::testing
