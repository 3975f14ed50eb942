// A requester of cel05, whose peer is the test (draft-cel-nfsv4-rpcrdma-version-two-05 sections 7.2 and 8).
#include <gmock/gmock.h>

#include <algorithm>

#include "rpcrdma/testing/log_lines.h"
#include "rpcrdma/testing/requester.h"
#include "rpcrdma/testing/v2_vectors.h"
#include "rpcrdma/v2_cel05/header.h"
#include "rpcrdma/v2_cel05/properties.h"

namespace weft::rpcrdma::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAreArray;
namespace cel05 = v2_cel05;

struct Cel05RequesterTest : RequesterTest {
  void open(RequesterEnd::Options options = {}) {
    options.protocol = Protocol::k2Cel05;
    RequesterTest::open(options);
  }
  cel05::Header header_of(std::size_t i) {
    cel05::Header header;
    ConstBytes payload;
    EXPECT_EQ(parse_message(sent(i), header, payload), v2::HeaderError::kNone);
    return header;
  }
  template <typename Body>
  Body body_of(std::size_t i) {
    const cel05::Header header = header_of(i);
    const Body* body = std::get_if<Body>(&header.body);
    EXPECT_NE(body, nullptr) << "Send " << i << " has another type";
    return body != nullptr ? *body : Body{};
  }
  Octets octets_of(const cel05::Header& header, const Octets& payload = {}) {
    Octets octets;
    xdr::XdrWriter out(octets);
    emit_header(out, header);
    out.raw(payload);
    return octets;
  }
  // The Reply to Send i, with its lists unused.
  Octets reply_of(std::size_t i, std::uint32_t credit = 8) {
    const cel05::Header call = header_of(i);
    cel05::Msg body{.direction = cel05::Direction::kReply};
    std::visit(
        [&](const auto& sent) {
          if constexpr (requires { sent.lists; }) body.lists = sent.lists;
        },
        call.body);
    body.lists.read_list.clear();
    for (SegmentArray& chunk : body.lists.write_list) {
      for (Segment& segment : chunk) segment.length = 0;
    }
    if (body.lists.reply_chunk) {
      for (Segment& segment : *body.lists.reply_chunk) segment.length = 0;
    }
    return octets_of({.xid = call.xid, .credit = credit, .body = body}, rpc_reply(call.xid));
  }
  void refuse(std::size_t i, const cel05::Error& error) {
    deliver(octets_of({.xid = header_of(i).xid, .credit = 8, .body = error}));
  }
  void call_of(std::uint32_t procedure, const Octets& args) {
    CallSpec spec;
    spec.procedure = procedure;
    spec.args = args;
    call(spec);
  }
  // A WRITE whose data needs a Read chunk, and a READ whose data needs a Write chunk.
  void call_write() {
    CallSpec spec;
    spec.procedure = kWrite;
    spec.args = args_;
    spec.items = ArgumentItem{write_position(), data_};
    call(spec);
  }
  void call_read() {
    CallSpec spec;
    spec.procedure = kRead;
    spec.result_items = room_;
    spec.max_results = 4;
    call(spec);
  }
  void get_credits() {
    call_of(kNull, {});
    deliver(reply_of(0));
  }

  const Octets data_ = pattern(9000);
  const Octets args_ = write_args(data_.size());
  Octets room_ = Octets(8000);
};

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

TEST_F(Cel05RequesterTest, TheLongestChunkMayBeInvalidated) {
  RecordProperty("proves", "R2-7.2.3-1");
  open({.windows = true});
  get_credits();
  Octets room(8000), data(5000);
  CallSpec spec;
  spec.procedure = kRead;
  spec.result_items = room;
  spec.max_results = 4;
  call(spec);
  const auto body = body_of<cel05::Msg>(1);
  ASSERT_THAT(body.lists.write_list, SizeIs(1));
  EXPECT_EQ(body.inv_handle, body.lists.write_list[0][0].handle);
  ASSERT_TRUE(end->qp.inject(reply_of(1), body.inv_handle));
  run();
  EXPECT_EQ(outcomes.size(), 2u);
  EXPECT_FALSE(end->endpoint->failure());
}

TEST_F(Cel05RequesterTest, ARegionIsNeverNamed) {
  RecordProperty("proves", "R2-4-1 R2-7.2.3-2");
  open();
  get_credits();
  call_read();
  EXPECT_EQ(body_of<cel05::Msg>(1).inv_handle, 0u);
}

// R2-7.2.3-4
TEST_F(Cel05RequesterTest, AnotherHandleThanTheNamedOneEndsTheConnection) {
  open({.windows = true});
  get_credits();
  Octets first(8000), second(5000);
  const std::vector<MutBytes> parts{first, second};
  CallSpec spec;
  spec.procedure = kRead;
  spec.result_items = ScatteredBytes(parts);
  spec.max_results = 4;
  call(spec);
  const auto body = body_of<cel05::Msg>(1);
  ASSERT_THAT(body.lists.write_list.at(0), SizeIs(2));
  EXPECT_EQ(body.inv_handle, body.lists.write_list[0][0].handle);
  ASSERT_TRUE(end->qp.inject(reply_of(1), body.lists.write_list[0][1].handle));
  run();
  ASSERT_TRUE(end->endpoint->failure());
  EXPECT_THAT(*end->endpoint->failure(), HasSubstr("not of the Call"));
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
  for (const auto err : {cel05::Err::kBadXdr, cel05::Err::kInvalProc, cel05::Err::kSegments, cel05::Err::kWriteResource,
                         cel05::Err::kReplyResource, cel05::Err::kInvalOption, cel05::Err::kSystem}) {
    outcomes.clear();
    open();
    call_of(kNull, {});
    refuse(0, {.err = err});
    ASSERT_THAT(outcomes, SizeIs(1));
    EXPECT_EQ(outcomes[0].status, CallStatus::kTransportError);
    EXPECT_THAT(end->qp.sent, SizeIs(1));
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

// The handles of a Call's lists.
std::vector<std::uint32_t> handles_in(const ChunkListsView& lists) {
  std::vector<std::uint32_t> handles;
  for (const ReadSegment& segment : lists.read_list) handles.push_back(segment.target.handle);
  for (const SegmentArray& chunk : lists.write_list) {
    for (const Segment& segment : chunk) handles.push_back(segment.handle);
  }
  if (lists.reply_chunk) {
    for (const Segment& segment : *lists.reply_chunk) handles.push_back(segment.handle);
  }
  return handles;
}

// A window is bound for one Call; a region of the engine's lives as long as the engine.
TEST_F(Cel05RequesterTest, TheNamedHandleIsAWindowOfTheCall) {
  RecordProperty("proves", "R2-4-1 R2-7.2.3-1");
  open({.windows = true});
  get_credits();
  const auto expect_window = [this](std::uint32_t inv_handle, const ChunkListsView& lists) {
    EXPECT_THAT(handles_in(lists), Contains(inv_handle));
    for (const std::uint32_t handle : handles_in(lists)) EXPECT_THAT(memory.bound(), Contains(handle));
  };
  call_write();
  call_read();
  for (const std::size_t i : {1u, 2u}) expect_window(body_of<cel05::Msg>(i).inv_handle, body_of<cel05::Msg>(i).lists);
  const Octets args = pattern(6000);
  CallSpec both;
  both.args = args;
  both.max_results = 9000;
  call(both);
  expect_window(body_of<cel05::Nomsg>(3).inv_handle, body_of<cel05::Nomsg>(3).lists);
}

TEST_F(Cel05RequesterTest, WhatAPlainReplyLeavesValidIsInvalidatedHere) {
  RecordProperty("proves", "R2-7.2.3-5");
  open({.windows = true});
  get_credits();
  Octets first(8000), second(5000);
  const std::vector<MutBytes> parts{first, second};
  CallSpec spec;
  spec.procedure = kRead;
  spec.result_items = ScatteredBytes(parts);
  spec.max_results = 4;
  call(spec);
  const std::vector<std::uint32_t> handles = handles_in(body_of<cel05::Msg>(1).lists);
  ASSERT_THAT(handles, SizeIs(2));
  deliver(reply_of(1));
  EXPECT_THAT(end->qp.local_invalidations, UnorderedElementsAreArray(handles));
  ASSERT_THAT(outcomes, SizeIs(2));
  EXPECT_EQ(outcomes[1].remote_regions, 0u) << "when the data was handed up";
}

TEST_F(Cel05RequesterTest, AHandleInAReplyMeansNothing) {
  RecordProperty("proves", "R2-7.2.3-7");
  open({.windows = true});
  get_credits();
  call_read();
  cel05::Msg body{.direction = cel05::Direction::kReply, .inv_handle = 0x5eed, .lists = body_of<cel05::Msg>(1).lists};
  for (Segment& segment : body.lists.write_list.at(0)) segment.length = 0;
  const std::uint32_t xid = header_of(1).xid;
  deliver(octets_of({.xid = xid, .credit = 8, .body = body}, rpc_reply(xid)));
  EXPECT_THAT(outcomes, SizeIs(2));
  EXPECT_FALSE(end->endpoint->failure());
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

// The transport header has 36 octets, the RPC header of a Call 40.
constexpr std::size_t kCallHeaders = 76;

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
  static constexpr Binding kUnpredictable{.program = kTestProgram,
                                          .version = kTestVersion,
                                          .bound_reply = [](std::uint32_t, ConstBytes, std::span<const std::size_t>,
                                                            const ReplyLimits&, ReplyBound& bound) {
                                            bound.rest = 100;
                                            bound.may_retry = true;
                                            return Walked::kWhole;
                                          }};
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

struct Cel05RequesterPropertiesTest : Cel05RequesterTest {
  // A client that tells so many octets of its Receives, behind its first Reply. Its own message is Send 1.
  void open_and_tell(std::uint32_t receive_size) {
    open({.inline_threshold = 16384});
    outcomes.clear();
    end->link->exchange_properties({.send_size = 16384, .receive_size = receive_size}, {});
    get_credits();
    ASSERT_THAT(end->qp.sent, SizeIs(2));
    (void)body_of<cel05::Connprop>(1);
  }
  void hear(const Properties& peer, std::uint32_t credit = 8) {
    deliver(octets_of({.credit = credit, .body = cel05::Connprop{.start = make_propset(peer, cel05::kProperties)}}));
  }
  // The last Call's.
  template <typename Body>
  ChunkListsView lists_of_last() {
    return body_of<Body>(end->qp.sent.size() - 1).lists;
  }
};

TEST_F(Cel05RequesterPropertiesTest, TheSizesOfReceivesAreTheThresholds) {
  RecordProperty("proves", "R2-6.2.1-1 R2-6.2.1-2 R2-6.2.1-3");
  open_and_tell(8192);
  call_of(kNull, pattern(5000));
  EXPECT_THAT(lists_of_last<cel05::Nomsg>().read_list, SizeIs(1)) << "the default";
  hear({.receive_size = 8192});
  call_of(kNull, pattern(5000));
  EXPECT_EQ(lists_of_last<cel05::Msg>(), ChunkListsView{});
  call_of(kNull, pattern(8192 - kCallHeaders));
  EXPECT_EQ(lists_of_last<cel05::Msg>(), ChunkListsView{});
  EXPECT_THAT(end->qp.sent.back(), SizeIs(8192));
  call_of(kNull, pattern(8192 - kCallHeaders + 4));
  EXPECT_THAT(lists_of_last<cel05::Nomsg>().read_list, SizeIs(1));
  for (const std::size_t bound : {6000u, 8200u}) {
    CallSpec spec;
    spec.max_results = bound;
    call(spec);
    EXPECT_EQ(lists_of_last<cel05::Msg>().reply_chunk.has_value(), bound > 8192) << bound;
  }
}

// A server that knows no properties says so with either code, or not at all.
TEST_F(Cel05RequesterPropertiesTest, AServerThatTellsNothingHasTheDefaults) {
  RecordProperty("proves", "R2-3.3-3 R2-6.3-2 R2-6.3.1-3");
  for (const auto err : {std::optional<cel05::Err>(), {cel05::Err::kInvalProc}, {cel05::Err::kInvalOption}}) {
    open_and_tell(16384);
    if (err) deliver(octets_of({.xid = header_of(1).xid, .credit = 8, .body = cel05::Error{.err = *err}}));
    for (const std::size_t len : {4096u, 4100u, 9000u}) call_of(kNull, pattern(len - kCallHeaders));
    ASSERT_THAT(end->qp.sent, SizeIs(5));
    EXPECT_THAT(sent(2), SizeIs(4096));
    for (const std::size_t i : {3u, 4u}) EXPECT_THAT(body_of<cel05::Nomsg>(i).lists.read_list, SizeIs(1));
    const std::uint32_t xid = header_of(2).xid;
    Octets reply = octets_of({.xid = xid, .credit = 8, .body = cel05::Msg{.direction = cel05::Direction::kReply}},
                             rpc_reply(xid, pattern(4096 - 36 - 24)));
    ASSERT_THAT(reply, SizeIs(4096));
    deliver(reply);
    ASSERT_THAT(outcomes, SizeIs(2));
    EXPECT_EQ(outcomes[1].status, CallStatus::kSuccess);
    EXPECT_FALSE(end->endpoint->failure());
  }
}

TEST_F(Cel05RequesterPropertiesTest, MessagesAboutPropertiesGrantNothing) {
  RecordProperty("proves", "R2-7.2.2-9");
  open_and_tell(8192);
  for (const std::uint32_t credit : {0u, 1u, 99u}) {
    hear({.receive_size = 8192}, credit);
    deliver(octets_of({.credit = credit, .body = cel05::Updprop{}}));
    deliver(octets_of({.credit = credit, .body = cel05::Reqprop{}}));
    deliver(octets_of({.credit = credit, .body = cel05::Resprop{}}));
    EXPECT_EQ(end->link->credits().granted, 8u) << credit;
  }
}

}  // namespace
}  // namespace weft::rpcrdma::testing
