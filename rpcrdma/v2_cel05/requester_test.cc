// A requester of cel05, whose peer is the test (draft-cel-nfsv4-rpcrdma-version-two-05 sections 7.2 and 8).
#include <gmock/gmock.h>

#include "rpcrdma/testing/requester.h"
#include "rpcrdma/v2_cel05/header.h"

namespace weft::rpcrdma::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
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

// R2-8-1, R2-8-3, R2-8.1-2
TEST_F(Cel05RequesterTest, TheFirstMessageIsAloneAndShort) {
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

// R2-8-1
TEST_F(Cel05RequesterTest, AnErrorGrantsNothingBeforeTheFirstReply) {
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

// R2-7.2.3-1: the longest chunk.
TEST_F(Cel05RequesterTest, TheLongestChunkMayBeInvalidated) {
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

// R2-7.2.3-2
TEST_F(Cel05RequesterTest, ARegionIsNeverNamed) {
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

// R2-7.2.4-11, R2-7.2.4-12
TEST_F(Cel05RequesterTest, RefusedReadChunksAreGoneInTheSecondTry) {
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
  EXPECT_EQ(outcomes.back().status, CallStatus::kErrChunk);
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

// R2-7.2.4-15
TEST_F(Cel05RequesterTest, RefusedWriteChunksAreGoneInTheSecondTry) {
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
  EXPECT_EQ(outcomes.back().status, CallStatus::kErrChunk);
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

// R2-7.2.4-26: every other error is final.
TEST_F(Cel05RequesterTest, OtherErrorsEndTheCall) {
  for (const auto err : {cel05::Err::kBadXdr, cel05::Err::kInvalProc, cel05::Err::kSegments, cel05::Err::kWriteResource,
                         cel05::Err::kReplyResource, cel05::Err::kInvalOption, cel05::Err::kSystem}) {
    outcomes.clear();
    open();
    call_of(kNull, {});
    refuse(0, {.err = err});
    ASSERT_THAT(outcomes, SizeIs(1));
    EXPECT_EQ(outcomes[0].status, CallStatus::kErrChunk);
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
  EXPECT_EQ(outcomes[0].status, CallStatus::kErrVers);
  EXPECT_EQ(end->link->credits().granted, 1u);
}

// R2-7.2.4-29, R2-7.2.4-27, R2-7.2.2-2
TEST_F(Cel05RequesterTest, AnUnreadableReplyIsDropped) {
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
    EXPECT_EQ(outcomes[0].status, is_first ? CallStatus::kErrVers : CallStatus::kSuccess);
    EXPECT_EQ(outcomes[0].text, is_first ? "the peer speaks RPC-over-RDMA 2-wg07" : "");
    EXPECT_EQ(end->requester->counters().replies_discarded, is_first ? 0u : 1u);
  }
}

}  // namespace
}  // namespace weft::rpcrdma::testing
