// The chunks that a requester of wg07 offers, and what it makes of refusals (draft-ietf-nfsv4-rpcrdma-version-two-07
// sections 4.5, 6.5 and 7). The peer is the test.
#include <gmock/gmock.h>

#include "rpcrdma/testing/wg07_requester.h"

namespace weft::rpcrdma::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

struct Wg07ChunksTest : Wg07RequesterTest {
  void call_write(std::size_t len) { call_with_pieces(1, len); }
  void call_read(std::size_t len, std::size_t max_results = 4) {
    room_.assign(len, 0);
    CallSpec spec;
    spec.procedure = kRead;
    spec.result_items = MutBytes(room_);
    spec.max_results = max_results;
    call(spec);
  }
  void refuse(std::size_t i, const wg07::Error& error) { deliver(wg07_octets(xid_of(i), kManyCredits, error)); }
  // Of any message of a Call.
  std::vector<ReadSegment> read_list_of(std::size_t i) {
    const Wg07Message sent = message(i);
    if (sent.is<wg07::CallMiddle>()) return {};
    return sent.is<wg07::CallExternal>() ? sent.body<wg07::CallExternal>().lists.read_list
                                         : sent.body<wg07::CallInline>().lists.read_list;
  }
  // The answer to a Call with one Write chunk, which stays unused.
  void answer_unused(std::size_t i = 0) {
    wg07::ReplyInline body{.lists = {.write_list = message(i).body<wg07::CallInline>().lists.write_list}};
    for (Segment& segment : body.lists.write_list.at(0)) segment.length = 0;
    deliver(wg07_octets(xid_of(i), kManyCredits, body, rpc_reply(xid_of(i), {0, 0, 0, 0})));
  }

  Octets room_;
};

TEST_F(Wg07ChunksTest, TheItemOfACallIsOneReadChunkAtItsPosition) {
  RecordProperty("proves", "W2-4.5.1-1 W2-4.5.3.1-1 W2-4.5.3.1-2 W2-6.6.1-1");
  open();
  settle();
  for (const std::size_t len : {20000u, 20001u, 20002u, 20003u}) {
    end->qp.sent.clear();
    call_write(len);
    ASSERT_THAT(end->qp.sent, SizeIs(1));
    const auto& list = message(0).body<wg07::CallInline>().lists.read_list;
    ASSERT_THAT(list, SizeIs(1));
    EXPECT_EQ(list[0].position, kCallHeader + write_position());
    EXPECT_EQ(list[0].target.length, len) << "without roundup";
    // The length word is the last of the arguments, and nothing stands behind it.
    const Octets payload = message(0).payload;
    EXPECT_EQ(part_of(payload, kCallHeader, payload.size()), args_);
    xdr::XdrReader in(ConstBytes(payload).last(4));
    std::uint32_t word = 0;
    EXPECT_TRUE(in.u32(word));
    EXPECT_EQ(word, len);
    answer(xid_of(0));
  }
}

TEST_F(Wg07ChunksTest, SegmentsHaveAnyLength) {
  RecordProperty("proves", "W2-4.4.1-1");
  open();
  settle();
  call_with_pieces(2, 10001);
  const auto& list = message(0).body<wg07::CallInline>().lists.read_list;
  ASSERT_THAT(list, SizeIs(2));
  for (const ReadSegment& segment : list) {
    EXPECT_EQ(segment.position, kCallHeader + write_position());
    EXPECT_EQ(segment.target.length, 10001u);
  }
}

TEST_F(Wg07ChunksTest, WhatIsNotEligibleIsNotReduced) {
  RecordProperty("proves", "W2-4.4.2-1");
  open();
  settle();
  for (const std::size_t len : {100u, 3000u, 20000u}) {
    end->qp.sent.clear();
    const Octets args = pattern(len);
    call_of(args);
    for (std::size_t i = 0; i < end->qp.sent.size(); ++i) EXPECT_THAT(read_list_of(i), IsEmpty());
    answer(xid_of(0));
  }
  EXPECT_THAT(outcomes, SizeIs(3));
}

TEST_F(Wg07ChunksTest, AWriteChunkIsAsLongAsTheLargestResult) {
  RecordProperty("proves", "W2-4.5.2-1 W2-4.5.2.4-1");
  open();
  settle();
  for (const std::size_t len : {17000u, 17001u, 17003u}) {
    end->qp.sent.clear();
    call_read(len);
    const auto& list = message(0).body<wg07::CallInline>().lists.write_list;
    ASSERT_THAT(list, SizeIs(1));
    EXPECT_EQ(total_length(list[0]), len);
    answer_unused();
  }
}

TEST_F(Wg07ChunksTest, AReplyChunkIsOfferedWhereMessagesMayNotBeEnough) {
  RecordProperty("proves", "W2-4.5.2.2-1 W2-A.2-1");
  open();
  settle();
  call_of({}, 3000);
  EXPECT_FALSE(message(0).body<wg07::CallInline>().lists.reply_chunk);
  call_of({}, 6000);
  EXPECT_FALSE(message(1).body<wg07::CallInline>().lists.reply_chunk) << "Continuation";
  call_of({}, 100000);
  const auto chunk = message(2).body<wg07::CallInline>().lists.reply_chunk;
  ASSERT_TRUE(chunk);
  EXPECT_GE(total_length(*chunk), 100000u);
}

// The Call's memory can be reached until the Reply has come, and not any more in the callback.
TEST_F(Wg07ChunksTest, ChunkMemoryIsThePeersUntilTheReply) {
  RecordProperty("proves", "W2-4.5.1.3-1 W2-4-1 W2-11.1.3-1");
  for (const bool windows : {false, true}) {
    open({.windows = windows});
    settle();
    EXPECT_EQ(memory.num_remote(), 0u) << "nothing is registered before it is needed";
    call_write(20000);
    call_read(30000);
    run(500);
    EXPECT_EQ(memory.num_remote(), 2u);
    answer(xid_of(0));
    run();
    ASSERT_THAT(outcomes, SizeIs(1));
    EXPECT_EQ(outcomes[0].remote_regions, 1u) << "of the other Call";
    EXPECT_EQ(memory.num_remote(), 1u);
    answer_unused(1);
    run();
    ASSERT_THAT(outcomes, SizeIs(2));
    EXPECT_EQ(outcomes[1].remote_regions, 0u);
    EXPECT_THAT(end->qp.rdma, IsEmpty()) << "a requester reads and writes nothing remotely";
  }
}

TEST_F(Wg07ChunksTest, AHandleIsNamedWhereTheReplyMayInvalidateIt) {
  RecordProperty("proves", "W2-6.5-1");
  for (const bool windows : {false, true}) {
    open({.windows = windows});
    settle();
    call_write(20000);
    const auto body = message(0).body<wg07::CallInline>();
    EXPECT_EQ(body.inv_handle, windows ? body.lists.read_list.at(0).target.handle : 0u);
    answer(xid_of(0));
    call_of({});
    EXPECT_EQ(message(1).body<wg07::CallInline>().inv_handle, 0u) << "nothing to invalidate";
    answer(xid_of(1));
  }
}

TEST_F(Wg07ChunksTest, AnotherHandleThanTheNamedOneEndsTheConnection) {
  RecordProperty("proves", "W2-6.5-2");
  for (const bool is_named : {true, false}) {
    open({.windows = true});
    settle();
    call_with_pieces(2, 10000);
    const auto body = message(0).body<wg07::CallInline>();
    ASSERT_THAT(body.lists.read_list, SizeIs(2));
    const auto& list = body.lists.read_list;
    const std::uint32_t other = list[list[0].target.handle == body.inv_handle ? 1 : 0].target.handle;
    const Octets reply = wg07_octets(xid_of(0), kManyCredits, wg07::ReplyInline{}, rpc_reply(xid_of(0)));
    ASSERT_TRUE(end->qp.inject(reply, is_named ? body.inv_handle : other));
    run();
    EXPECT_EQ(end->endpoint->failure().has_value(), !is_named);
  }
}

// The Reply of the second Call stands inside the parts of the first one's, and is refused.
TEST_F(Wg07ChunksTest, ARefusedReplyMayInvalidateTheHandleOfItsOwnCall) {
  RecordProperty("proves", "W2-6.5-3");
  for (const bool is_own : {true, false}) {
    open({.chunks = {.max_continued_reply = 16 << 10}, .windows = true});
    settle();
    call_of({}, 12000);
    call_write(20000);
    call_write(20000);
    const Octets whole = rpc_reply(xid_of(0), pattern(8000));
    deliver(wg07_octets(xid_of(0), kManyCredits, wg07::ReplyMiddle{4000}, part_of(whole, 0, 4000)));
    const std::uint32_t handle = message(is_own ? 1 : 2).body<wg07::CallInline>().inv_handle;
    ASSERT_NE(handle, 0u);
    ASSERT_TRUE(
        end->qp.inject(wg07_octets(xid_of(1), kManyCredits, wg07::ReplyInline{}, rpc_reply(xid_of(1))), handle));
    run();
    EXPECT_EQ(end->endpoint->failure().has_value(), !is_own);
  }
}

TEST_F(Wg07ChunksTest, MemoryThatCannotBeInvalidatedEndsTheConnectionBeforeTheCall) {
  RecordProperty("proves", "W2-7.4-1");
  open({.windows = true});
  settle();
  call_with_pieces(2, 10000);
  memory.faults.fail_invalidations = true;
  answer(xid_of(0));
  run(5);
  EXPECT_TRUE(end->endpoint->failure());
  EXPECT_THAT(outcomes, IsEmpty());
  end->requester->on_closed("closed");
  EXPECT_EQ(memory.num_remote(), 0u);
  run(5);
  ASSERT_THAT(outcomes, SizeIs(1));
  EXPECT_EQ(outcomes[0].status, CallStatus::kDisconnected);
}

TEST_F(Wg07ChunksTest, RefusedReadChunksAreGoneInTheSecondTry) {
  RecordProperty("proves", "W2-7.3.1-2");
  open();
  settle();
  for (const std::size_t len : {20000u, 30000u}) {
    outcomes.clear();
    end->qp.sent.clear();
    call_write(len);
    ASSERT_THAT(end->qp.sent, SizeIs(1));
    EXPECT_THAT(message(0).body<wg07::CallInline>().lists.read_list, SizeIs(1));
    refuse(0, {.err = wg07::Err::kReadChunks});
    ASSERT_THAT(outcomes, IsEmpty());
    const std::size_t last = end->qp.sent.size() - 1;
    ASSERT_GT(last, 0u) << "again";
    EXPECT_THAT(read_list_of(last), IsEmpty());
    refuse(last, {.err = wg07::Err::kReadChunks});
    ASSERT_THAT(outcomes, SizeIs(1));
    EXPECT_EQ(outcomes[0].status, CallStatus::kTransportError);
    EXPECT_THAT(end->qp.sent, SizeIs(last + 1));
  }
}

TEST_F(Wg07ChunksTest, SystemErrorsEndTheCallForGood) {
  RecordProperty("proves", "W2-7.4.1-2");
  open();
  settle();
  call_write(20000);
  refuse(0, {.err = wg07::Err::kSystem});
  run(100);
  ASSERT_THAT(outcomes, SizeIs(1));
  EXPECT_EQ(outcomes[0].status, CallStatus::kTransportError);
  EXPECT_THAT(end->qp.sent, SizeIs(1)) << "not again";
  EXPECT_EQ(memory.num_remote(), 0u);
}

// A peer that takes no parts gets none again. A Call that is too long for a message goes by chunks then.
TEST_F(Wg07ChunksTest, AHeaderTypeThatWasRefusedIsNotSentAgain) {
  RecordProperty("proves", "W2-7.1.3-2");
  open();
  settle();
  const Octets args = pattern(6000);
  call_of(args);
  ASSERT_THAT(end->qp.sent, SizeIs(2));
  EXPECT_TRUE(message(0).is<wg07::CallMiddle>());
  refuse(0, {.err = wg07::Err::kInvalHtype});
  ASSERT_THAT(outcomes, SizeIs(1));
  EXPECT_EQ(outcomes[0].status, CallStatus::kTransportError);
  end->qp.sent.clear();
  call_of(args);
  ASSERT_THAT(end->qp.sent, SizeIs(1));
  EXPECT_TRUE(message(0).is<wg07::CallExternal>());
  refuse(0, {.err = wg07::Err::kInvalHtype});
  call_of(args);
  run();
  ASSERT_THAT(outcomes, SizeIs(3));
  EXPECT_EQ(outcomes[2].status, CallStatus::kLocalError);
  EXPECT_THAT(outcomes[2].text, HasSubstr("refused such a message"));
  call_of({});
  ASSERT_THAT(end->qp.sent, SizeIs(2)) << "short Calls go on";
  refuse(1, {.err = wg07::Err::kInvalHtype});
  call_of({});
  run();
  ASSERT_THAT(outcomes, SizeIs(5));
  EXPECT_EQ(outcomes[4].status, CallStatus::kLocalError);
  EXPECT_THAT(end->qp.sent, SizeIs(2));
  // Another connection has another peer.
  open();
  settle();
  call_of(args);
  EXPECT_TRUE(message(0).is<wg07::CallMiddle>());
}

TEST_F(Wg07ChunksTest, AVersionThatWasRefusedIsNotSentAgain) {
  RecordProperty("proves", "W2-7.1.2-2");
  open();
  settle();
  call_of({});
  refuse(0, {.err = wg07::Err::kVersMismatch});
  const Octets args = pattern(6000);
  call_of({});
  call_of(args);
  run();
  ASSERT_THAT(outcomes, SizeIs(3));
  EXPECT_EQ(outcomes[0].status, CallStatus::kTransportError);
  EXPECT_EQ(outcomes[1].status, CallStatus::kLocalError);
  EXPECT_EQ(outcomes[2].status, CallStatus::kLocalError);
  EXPECT_THAT(end->qp.sent, SizeIs(1));
}

// Ten parts with one credit after another.
TEST_F(Wg07ChunksTest, EachPartTakesACredit) {
  RecordProperty("proves", "W2-4.2.1-1 W2-4.2.1.1-1 W2-4.2.1.1-2 W2-6.6.2-2");
  open({.chunks = {.max_continued_call = 64 << 10}});
  settle(2);
  const Octets args = pattern(38000);
  call_of(args);
  for (std::uint32_t num = 1; num < 10; ++num) {
    ASSERT_THAT(end->qp.sent, SizeIs(num));
    EXPECT_TRUE(message(num - 1).is<wg07::CallMiddle>());
    deliver(wg07_octets(0, num + 1, wg07::Grant{}));  // no news
    ASSERT_THAT(end->qp.sent, SizeIs(num)) << "it waits";
    deliver(wg07_octets(5, num + 2, wg07::Grant{}));
  }
  ASSERT_THAT(end->qp.sent, SizeIs(10));
  EXPECT_TRUE(message(9).is<wg07::CallInline>());
  EXPECT_EQ(part_of(joined(end->qp.sent), kCallHeader, kCallHeader + args.size()), args);
}

// The word of one Reply, as a number of messages and as a number of Calls under way.
TEST_F(Wg07ChunksTest, TheRuleOfCreditsIsTheProfiles) {
  RecordProperty("proves", "W2-4.2.1-12");
  open();
  settle(3);
  for (int i = 0; i < 5; ++i) call_of({});
  EXPECT_THAT(end->qp.sent, SizeIs(2)) << "messages two and three";
  answer(xid_of(0), 3);
  EXPECT_THAT(end->qp.sent, SizeIs(2));
  RequesterTest::open({.protocol = Protocol::k1});
  for (int i = 0; i < 6; ++i) call_of({});
  deliver(reply_to(0, 3));
  EXPECT_THAT(end->qp.sent, SizeIs(4));
  deliver(reply_to(1, 3));
  EXPECT_THAT(end->qp.sent, SizeIs(5));
}

}  // namespace
}  // namespace weft::rpcrdma::testing
