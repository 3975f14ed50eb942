// A requester of cel05, whose peer is the test: its messages, credits and thresholds, and the errors that it gets
// (draft-cel-nfsv4-rpcrdma-version-two-05 sections 7.2 and 8).
#include <gmock/gmock.h>

#include <algorithm>

#include "rpcrdma/testing/cel05_requester.h"
#include "rpcrdma/testing/log_lines.h"

namespace weft::rpcrdma::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

// Its Replies have no predictable length.
constexpr Binding kUnpredictable{
    .program = kTestProgram,
    .version = kTestVersion,
    .bound_reply = [](std::uint32_t, ConstBytes, std::span<const std::size_t>, const ReplyLimits&, ReplyBound& bound) {
      bound.rest = 100;
      bound.may_retry = true;
      return Walked::kWhole;
    }};

TEST_F(Cel05RequesterTest, TheFirstMessageIsAloneAndShort) {
  RecordProperty("proves", "R2-8-1 R2-8-3 R2-8.1-2 R2-7.2.2-3");
  open();
  const Octets args = pattern(2000);
  call_of(kNull, args);
  call_of(kNull, args);
  ASSERT_THAT(end->qp.sent, SizeIs(1));
  EXPECT_LE(sent(0).size(), 1024u);
  (void)body_of<cel05::Nomsg>(0);
  deliver(reply_of(0));
  ASSERT_THAT(end->qp.sent, SizeIs(2));
  EXPECT_GT(sent(1).size(), 2000u);
  EXPECT_EQ(body_of<cel05::Msg>(1).direction, cel05::Direction::kCall);
}

// R2-8-1: an error is no answer that unlocks anything.
TEST_F(Cel05RequesterTest, AnErrorLeavesTheFirstThreshold) {
  open();
  const Octets args = pattern(2000);
  call_of(kNull, {});
  refuse(0, {.err = cel05::Err::kSystem});
  call_of(kNull, args);
  (void)body_of<cel05::Nomsg>(1);
}

TEST_F(Cel05RequesterTest, AnErrorGrantsNothingBeforeTheFirstReply) {
  RecordProperty("proves", "R2-8-1");
  open();
  for (int i = 0; i < 4; ++i) call_of(kNull, {});
  refuse(0, {.err = cel05::Err::kSystem});
  EXPECT_THAT(end->qp.sent, SizeIs(2));
  deliver(reply_of(1));
  EXPECT_THAT(end->qp.sent, SizeIs(4));
}

// The chunk lists of the first Call do not fit the first message: a NULL Call opens the connection.
TEST_F(Cel05RequesterTest, ALongFirstCallWaitsForAShortOne) {
  open({.chunks = {.max_segments = 64}});
  std::vector<Octets> rooms(60, Octets(200));
  std::vector<MutBytes> parts(rooms.begin(), rooms.end());
  CallSpec spec;
  spec.procedure = kRead;
  spec.result_items = ScatteredBytes(parts);
  spec.max_results = 4;
  call(spec);
  ASSERT_THAT(end->qp.sent, SizeIs(1));
  EXPECT_LE(sent(0).size(), 1024u);
  EXPECT_THAT(body_of<cel05::Msg>(0).lists.write_list, SizeIs(0));
  deliver(reply_of(0));
  ASSERT_THAT(end->qp.sent, SizeIs(2));
  EXPECT_THAT(body_of<cel05::Msg>(1).lists.write_list.at(0), SizeIs(60));

  open({.chunks = {.max_segments = 64}});
  outcomes.clear();
  call(spec);
  refuse(0, {.err = cel05::Err::kSystem});  // and there it ends
  ASSERT_THAT(outcomes, SizeIs(1));
  EXPECT_EQ(outcomes[0].status, CallStatus::kLocalError);
  EXPECT_THAT(end->qp.sent, SizeIs(1));
}

TEST_F(Cel05RequesterTest, RefusedReadChunksAreGoneInTheSecondTry) {
  RecordProperty("proves", "R2-7.2.4-11 R2-7.2.4-12");
  open();
  get_credits();
  call_write();
  EXPECT_THAT(body_of<cel05::Msg>(1).lists.read_list, SizeIs(1));
  refuse(1, {.err = cel05::Err::kReadChunks});
  ASSERT_THAT(end->qp.sent, SizeIs(3));
  const auto body = body_of<cel05::Nomsg>(2);
  for (const ReadSegment& segment : body.lists.read_list) EXPECT_EQ(segment.position, 0u);
  EXPECT_EQ(header_of(2).xid, header_of(1).xid);
  refuse(2, {.err = cel05::Err::kReadChunks});
  EXPECT_THAT(end->qp.sent, SizeIs(3));
  EXPECT_EQ(outcomes.back().status, CallStatus::kTransportError);
  EXPECT_THAT(outcomes.back().text, HasSubstr("RDMA2_ERR_READ_CHUNKS"));
}

// A Call that goes out once more stands behind later Calls, and its time is over before theirs.
TEST_F(Cel05RequesterTest, TheSecondTryHasTheTimeOfTheFirst) {
  open();
  get_credits();
  call_write();
  run(0);
  call_of(kNull, {});
  run(500);
  deliver(octets_of({.xid = header_of(1).xid, .credit = 8, .body = cel05::Error{.err = cel05::Err::kReadChunks}}), 500);
  ASSERT_THAT(end->qp.sent, SizeIs(4));
  EXPECT_EQ(*end->requester->next_timeout(), at(1000));
  run(1000);
  EXPECT_EQ(outcomes.back().status, CallStatus::kTimeout);
}

TEST_F(Cel05RequesterTest, RefusedWriteChunksAreGoneInTheSecondTry) {
  RecordProperty("proves", "R2-7.2.4-15");
  open();
  get_credits();
  call_read();
  refuse(1, {.err = cel05::Err::kWriteChunks});
  ASSERT_THAT(end->qp.sent, SizeIs(3));
  const auto body = body_of<cel05::Msg>(2);
  EXPECT_THAT(body.lists.write_list, SizeIs(0));
  ASSERT_TRUE(body.lists.reply_chunk);
  EXPECT_GE(total_length(*body.lists.reply_chunk), 8000u);
  refuse(2, {.err = cel05::Err::kWriteChunks});
  EXPECT_EQ(outcomes.back().status, CallStatus::kTransportError);
}

// An error about chunks that the Call has not is no reason to send it again (U1-6.4.2-09).
TEST_F(Cel05RequesterTest, ARefusalOfChunksThatAreNotThereIsFinal) {
  for (const auto err : {cel05::Err::kReadChunks, cel05::Err::kWriteChunks}) {
    open();
    outcomes.clear();
    call_of(kNull, {});
    refuse(0, {.err = err});
    EXPECT_THAT(outcomes, SizeIs(1));
    EXPECT_THAT(end->qp.sent, SizeIs(1));
  }
}

// Every other error is final.
TEST_F(Cel05RequesterTest, OtherErrorsEndTheCall) {
  RecordProperty("proves", "R2-7.2.4-26");
  const std::pair<cel05::Err, bool> errors[] = {
      {cel05::Err::kBadXdr, true},         {cel05::Err::kInvalProc, true},      {cel05::Err::kSegments, true},
      {cel05::Err::kWriteResource, false}, {cel05::Err::kReplyResource, false}, {cel05::Err::kInvalOption, false},
      {cel05::Err::kSystem, false}};
  for (const auto& [err, did_not_run] : errors) {
    outcomes.clear();
    open();
    call_of(kNull, {});
    refuse(0, {.err = err});
    ASSERT_THAT(outcomes, SizeIs(1));
    EXPECT_EQ(outcomes[0].status, CallStatus::kTransportError);
    EXPECT_EQ(outcomes[0].did_not_run, did_not_run) << outcomes[0].text;
    EXPECT_THAT(end->qp.sent, SizeIs(1));
  }
}

// A refusal of the second try does not show that the first one did not run.
TEST_F(Cel05RequesterTest, ASecondTryThatIsRefusedTellsNothingOfTheFirst) {
  for (const bool may_have_run : {false, true}) {
    open();
    get_credits();
    outcomes.clear();
    CallSpec spec = rpcrdma::testing::call_of(kUnpredictable);
    spec.max_results = 100;
    std::optional<bool> did_not_run;
    if (may_have_run) {
      ASSERT_TRUE(end->requester->call(spec, [&](const Reply& reply) { did_not_run = reply.did_not_run; }).ok());
      refuse(1, {.err = cel05::Err::kReplyResource, .arm = {.length_needed = 20000}});
    } else {
      call_write();
      refuse(1, {.err = cel05::Err::kReadChunks});
    }
    ASSERT_THAT(end->qp.sent, SizeIs(3));
    refuse(2, {.err = cel05::Err::kSegments, .arm = {.max_segments = 1}});
    if (!may_have_run) did_not_run = outcomes.at(0).did_not_run;
    EXPECT_EQ(did_not_run, !may_have_run);
  }
}

// R2-8.2-1, R2-8.2-6
TEST_F(Cel05RequesterTest, AVersion1ServerIsNamed) {
  open();
  call_of(kNull, {});
  Octets octets;
  xdr::XdrWriter out(octets);
  for (const std::uint32_t word : {header_of(0).xid, 2u, 99u, 4u, 1u, 1u, 1u}) out.u32(word);
  deliver(octets);
  ASSERT_THAT(outcomes, SizeIs(1));
  EXPECT_EQ(outcomes[0].status, CallStatus::kVersMismatch);
  EXPECT_EQ(end->link->credits().granted, 1u);
}

TEST_F(Cel05RequesterTest, ARefusalOfTheVersionGrantsNothing) {
  RecordProperty("proves", "R2-8.2-6");
  open();
  get_credits();
  call_of(kNull, {});
  Octets octets;
  xdr::XdrWriter out(octets);
  for (const std::uint32_t word : {header_of(1).xid, 2u, 99u, 4u, 1u, 1u, 1u}) out.u32(word);
  deliver(octets);
  ASSERT_THAT(outcomes, SizeIs(2));
  EXPECT_EQ(outcomes[1].status, CallStatus::kVersMismatch);
  EXPECT_EQ(end->link->credits().granted, 8u);
}

TEST_F(Cel05RequesterTest, ACallIsNoReply) {
  RecordProperty("proves", "R2-7.2.2-2");
  open();
  get_credits();
  call_of(kNull, {});
  const std::uint32_t xid = header_of(1).xid;
  Octets rpc;
  xdr::XdrWriter out(rpc);
  emit_call(out, {xid, kTestProgram, kTestVersion, kNull, {}, {}});
  const auto expect_dropped = [this](const Octets& octets) {
    deliver(octets);
    EXPECT_THAT(outcomes, SizeIs(1));
    EXPECT_STREQ(end->requester->counters().last_discard, "a Call reached a requester");
  };
  expect_dropped(octets_of({.xid = xid, .credit = 8, .body = cel05::Msg{}}, rpc));
  deliver(load_v2_vector("S41").octets);  // dropped for another reason
  expect_dropped(octets_of({.xid = xid, .credit = 8, .body = cel05::Nomsg{.lists = {.read_list = {{0, {1, 60, 0}}}}}}));
  deliver(reply_of(1));
  EXPECT_THAT(outcomes, SizeIs(2));
}

// R1-5.3.3-05
TEST_F(Cel05RequesterTest, AReplyIsNotInTheMessageAndInAChunk) {
  open();
  get_credits();
  CallSpec spec;
  spec.max_results = 9000;
  call(spec);
  cel05::Msg body{.direction = cel05::Direction::kReply, .lists = body_of<cel05::Msg>(1).lists};
  ASSERT_TRUE(body.lists.reply_chunk);
  const std::uint32_t xid = header_of(1).xid;
  deliver(octets_of({.xid = xid, .credit = 8, .body = body}, rpc_reply(xid)));
  EXPECT_THAT(outcomes, SizeIs(1));
  EXPECT_EQ(end->requester->counters().replies_discarded, 1u);
  deliver(reply_of(1));
  EXPECT_THAT(outcomes, SizeIs(2));
}

TEST_F(Cel05RequesterTest, AnUnreadableReplyIsDropped) {
  RecordProperty("proves", "R2-7.2.4-29");
  open();
  call_of(kNull, {});
  Octets call_back = reply_of(0);
  call_back[19] = 0;  // rdma_direction
  Octets bad_list = reply_of(0);
  bad_list[27] = 2;
  Octets bad_error =
      octets_of({.xid = header_of(0).xid, .credit = 8, .body = cel05::Error{.err = cel05::Err::kSystem}});
  bad_error[19] = 77;
  for (const Octets& octets : {call_back, bad_list, bad_error}) deliver(octets);
  EXPECT_EQ(end->requester->counters().replies_discarded, 3u);
  EXPECT_THAT(outcomes, SizeIs(0));
  EXPECT_THAT(end->qp.sent, SizeIs(1)) << "a requester answers no Reply";
  deliver(reply_of(0));
  EXPECT_THAT(outcomes, SizeIs(1));
}

// R2-7.2.4-27. The code is one of draft-07: it means the other draft in answer to the first Call, and nothing later.
TEST_F(Cel05RequesterTest, TheOtherDraftsErrorNamesItAtFirst) {
  for (const bool is_first : {true, false}) {
    open();
    outcomes.clear();
    call_of(kNull, {});
    if (!is_first) {
      deliver(reply_of(0));
      call_of(kNull, {});
    }
    const std::size_t last = is_first ? 0 : 1;
    Octets error =
        octets_of({.xid = header_of(last).xid, .credit = 8, .body = cel05::Error{.err = cel05::Err::kSystem}});
    error[19] = 11;
    deliver(error);
    ASSERT_THAT(outcomes, SizeIs(1));
    EXPECT_EQ(outcomes[0].status, is_first ? CallStatus::kVersMismatch : CallStatus::kSuccess);
    EXPECT_EQ(outcomes[0].text, is_first ? "the peer speaks RPC-over-RDMA 2-wg07" : "");
    EXPECT_EQ(end->requester->counters().replies_discarded, is_first ? 0u : 1u);
  }
}

TEST_F(Cel05RequesterTest, AnUnreadableErrorIsDropped) {
  RecordProperty("proves", "R2-7.2.4-27");
  open();
  get_credits();
  call_of(kNull, {});
  Octets unknown = load_v2_vector("S82").octets;
  put_word(unknown, 0, header_of(1).xid);
  Octets without_arm =
      octets_of({.xid = header_of(1).xid, .credit = 8, .body = cel05::Error{.err = cel05::Err::kReadChunks}});
  without_arm.resize(20);
  for (const Octets& octets : {unknown, without_arm}) deliver(octets);
  EXPECT_EQ(end->requester->counters().replies_discarded, 2u);
  EXPECT_THAT(outcomes, SizeIs(1));
  EXPECT_THAT(end->qp.sent, SizeIs(2));
  deliver(reply_of(1));
  EXPECT_THAT(outcomes, SizeIs(2));
}

TEST_F(Cel05RequesterTest, AnUnknownOptionInAReplyIsDropped) {
  RecordProperty("proves", "R2-5.1-4");
  open();
  get_credits();
  call_of(kNull, {});
  Octets option = load_v2_vector("S41").octets;
  deliver(option);
  put_word(option, 0, header_of(1).xid);
  deliver(option);
  EXPECT_THAT(end->qp.sent, SizeIs(2)) << "no RDMA2_ERROR";
  EXPECT_THAT(outcomes, SizeIs(1));
  EXPECT_FALSE(end->endpoint->failure());
  deliver(reply_of(1));
  EXPECT_THAT(outcomes, SizeIs(2));
}

TEST_F(Cel05RequesterTest, EachDirectionHasItsThreshold) {
  RecordProperty("proves", "R2-3.1-1");
  open({.inline_threshold = 8192, .call_threshold = 4096, .reply_threshold = 8192});
  get_credits();
  call_of(kNull, pattern(4096 - kCallHeaders));
  (void)body_of<cel05::Msg>(1);
  EXPECT_THAT(sent(1), SizeIs(4096));
  call_of(kNull, pattern(4096 - kCallHeaders + 4));
  const auto longer = body_of<cel05::Nomsg>(2).lists;
  ASSERT_THAT(longer.read_list, SizeIs(1));
  EXPECT_EQ(longer.read_list[0].position, 0u);
  for (const std::size_t bound : {7000u, 8200u}) {
    CallSpec spec;
    spec.max_results = bound;
    call(spec);
    EXPECT_EQ(body_of<cel05::Msg>(end->qp.sent.size() - 1).lists.reply_chunk.has_value(), bound > 8192) << bound;
  }
}

// The shapes of S06 and S07.
TEST_F(Cel05RequesterTest, AWholeMessageMovesByChunk) {
  RecordProperty("proves", "R2-3.1-3");
  open();
  get_credits();
  const Octets args = pattern(5000 - 40), results = pattern(6000, 2);
  CallSpec spec;
  spec.args = args;
  spec.max_results = results.size();
  call(spec);
  const ChunkListsView lists = body_of<cel05::Nomsg>(1).lists;
  ASSERT_THAT(lists.read_list, SizeIs(1));
  EXPECT_EQ(lists.read_list[0].position, 0u);
  EXPECT_EQ(lists.read_list[0].target.length, 5000u);
  EXPECT_THAT(lists.write_list, SizeIs(0));
  ASSERT_TRUE(lists.reply_chunk);
  Segment target = lists.reply_chunk->at(0);
  const Octets reply = rpc_reply(header_of(1).xid, results);
  std::uint8_t* at = memory.find(target.handle, target.offset, reply.size(), verbs::Access::kRemoteWrite);
  ASSERT_NE(at, nullptr);
  std::ranges::copy(reply, at);
  target.length = static_cast<std::uint32_t>(reply.size());
  deliver(octets_of(
      {.xid = header_of(1).xid,
       .credit = 8,
       .body = cel05::Nomsg{.direction = cel05::Direction::kReply, .lists = {.reply_chunk = SegmentArray{target}}}}));
  ASSERT_THAT(outcomes, SizeIs(2));
  EXPECT_EQ(outcomes[1].status, CallStatus::kSuccess);
  EXPECT_EQ(outcomes[1].results, results);
}

TEST_F(Cel05RequesterTest, CallsUnderWayStayWithinGrantAndRequest) {
  RecordProperty("proves", "R2-7.2.2-10");
  LogLines lines;
  EventLog log(lines.log(), "server");
  open({.credits = 4, .log = &log});
  for (int i = 0; i < 20; ++i) call_of(kNull, {});
  std::size_t num_answers = 0;
  const auto num_open_after = [&](std::uint32_t grant) {
    deliver(reply_of(num_answers++, grant));
    return end->qp.sent.size() - num_answers;
  };
  EXPECT_EQ(num_open_after(99), 4u) << "as many as were asked for";
  EXPECT_EQ(num_open_after(3), 3u);
  EXPECT_EQ(num_open_after(0), 2u);
  EXPECT_EQ(num_open_after(0), 1u);
  EXPECT_EQ(num_open_after(0), 1u) << "a grant of none is one";
  EXPECT_EQ(lines.num_with("a Reply grants no credits"), 3u);
}

// An error of this kind names what the Reply chunk lacked.
TEST_F(Cel05RequesterTest, ACallOfUnknownReplyLengthGoesAgainWithTheRoomThatItNeeds) {
  RecordProperty("proves", "R2-7.2.4-23");
  open();
  get_credits();
  CallSpec spec = rpcrdma::testing::call_of(kUnpredictable);
  spec.max_results = 100;
  ASSERT_TRUE(end->requester->call(spec, [](const Reply&) {}).ok());
  EXPECT_FALSE(body_of<cel05::Msg>(1).lists.reply_chunk);
  refuse(1, {.err = cel05::Err::kReplyResource, .arm = {.length_needed = 20000}});
  ASSERT_THAT(end->qp.sent, SizeIs(3));
  EXPECT_EQ(header_of(2).xid, header_of(1).xid);
  const auto again = body_of<cel05::Msg>(2).lists;
  ASSERT_TRUE(again.reply_chunk);
  EXPECT_GE(total_length(*again.reply_chunk), 20000u);
}

}  // namespace
}  // namespace weft::rpcrdma::testing
