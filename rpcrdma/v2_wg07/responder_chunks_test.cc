// The treatment of the chunks of a Call by a responder of wg07, and the errors that it sends
// (draft-ietf-nfsv4-rpcrdma-version-two-07 sections 4.5, 6.6 and 7). The peer is the test.
#include <gmock/gmock.h>

#include "rpcrdma/testing/gss.h"
#include "rpcrdma/testing/wg07_responder.h"

namespace weft::rpcrdma::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

struct Wg07ResponderChunksTest : Wg07ResponderTest {
  // The segments of a Read chunk of a WRITE, over octets that the test keeps.
  std::vector<ReadSegment> read_chunk(const std::vector<Octets>& parts) {
    std::vector<ReadSegment> list;
    for (const Octets& part : parts) {
      list.push_back({static_cast<std::uint32_t>(kCallHeader + write_position()), readable(rooms.emplace_back(part))});
    }
    return list;
  }
  // A Reply whose results are so long.
  void answer_long(std::size_t len) {
    ServedReply reply;
    reply.results = pattern(len);
    answer(std::move(reply));
  }
  void answer_item(std::size_t len) {
    Octets word;
    xdr::XdrWriter(word).u32(static_cast<std::uint32_t>(len));
    answer(item_reply(pattern(len), word));
  }
  // The error that answers the Call, and nothing else does.
  template <typename Body>
  wg07::Error refused(const Body& body, const Octets& payload = {}) {
    end->qp.sent.clear();
    end->service.calls.clear();
    deliver(body, payload);
    EXPECT_THAT(end->service.calls, IsEmpty());
    EXPECT_THAT(end->qp.sent, SizeIs(1));
    EXPECT_THAT(end->qp.rdma, IsEmpty()) << "nothing was read";
    EXPECT_EQ(last_sent().header.xid, 5u);
    return error();
  }
};

TEST_F(Wg07ResponderChunksTest, SegmentsMayHaveAnyLength) {
  RecordProperty("proves", "W2-4.4.1-1");
  const Octets data = pattern(1024);
  for (const std::size_t first : {1000u, 999u, 1u}) {
    open();
    const wg07::CallInline body{
        .lists = {.read_list = read_chunk({part_of(data, 0, first), part_of(data, first, data.size())})}};
    deliver(body, rpc_call(kWrite, write_args(data.size())));
    ASSERT_THAT(end->service.calls, SizeIs(1)) << first;
    ASSERT_THAT(end->service.calls[0].items, SizeIs(1));
    EXPECT_EQ(copy_of(end->service.calls[0].items[0].data.octets()), data);
    answer({});
  }
}

TEST_F(Wg07ResponderChunksTest, AShortCallMayComeThroughTheCallChunk) {
  RecordProperty("proves", "W2-4.5.1.2-1 W2-6.6.3-2");
  open();
  Octets whole = rpc_call(kNull, pattern(8));
  deliver(wg07::CallExternal{.lists = {.call_chunk = {readable(whole)}}}, {});
  ASSERT_THAT(end->service.args, SizeIs(1));
  EXPECT_EQ(end->service.args[0], pattern(8));
  answer({});
  EXPECT_TRUE(last_sent().is<wg07::ReplyInline>());
}

TEST_F(Wg07ResponderChunksTest, TheXidsOfBothHeadersAreOne) {
  RecordProperty("proves", "W2-6.3.5-2 W2-7.2-1");
  open();
  Octets whole = rpc_call(kNull, {}, 6);
  deliver(wg07::CallExternal{.lists = {.call_chunk = {readable(whole)}}}, {}, 5);
  ASSERT_THAT(end->qp.sent, SizeIs(1));
  EXPECT_EQ(error().err, wg07::Err::kBadXdr);
  EXPECT_EQ(last_sent().header.xid, 5u);
  deliver(wg07::CallInline{}, rpc_call(kNull, {}, 6), 5);
  ASSERT_THAT(end->qp.sent, SizeIs(2));
  EXPECT_EQ(error().err, wg07::Err::kBadXdr);
  // A header that ends within an object.
  const Octets call = wg07_octets(5, kManyCredits, wg07::CallInline{}, rpc_call(kNull));
  deliver(part_of(call, 0, 28));
  ASSERT_THAT(end->qp.sent, SizeIs(3));
  EXPECT_EQ(error().err, wg07::Err::kBadXdr);
  EXPECT_THAT(end->service.calls, IsEmpty());
  expect_alive(7);
}

TEST_F(Wg07ResponderChunksTest, APositionIsAMultipleOfFour) {
  RecordProperty("proves", "W2-4.5.1-2");
  open();
  for (const std::uint32_t position : {70u, 71u, 73u}) {
    wg07::CallInline body{.lists = {.read_list = read_chunk({pattern(1024)})}};
    body.lists.read_list[0].position = position;
    EXPECT_EQ(refused(body, rpc_call(kWrite, write_args(1024))).err, wg07::Err::kBadXdr) << position;
  }
}

TEST_F(Wg07ResponderChunksTest, ArgumentsThatDoNotAgreeWithTheirChunkAreGarbage) {
  RecordProperty("proves", "W2-7.2-2 W2-A.1-1");
  open();
  const auto accept_stat = [&] {
    EXPECT_TRUE(last_sent().is<wg07::ReplyInline>()) << "no error of the transport";
    const Octets payload = last_sent().payload;
    xdr::XdrReader in(payload);
    ReplyHeader rpc;
    EXPECT_TRUE(parse_reply(in, rpc));
    return rpc.accept;
  };
  const Octets args = write_args(1024);
  deliver(wg07::CallInline{.lists = {.read_list = read_chunk({pattern(1024)})}},
          rpc_call(kWrite, part_of(args, 0, args.size() - 8)));
  ASSERT_THAT(end->qp.sent, SizeIs(1));
  EXPECT_EQ(accept_stat(), AcceptStat::kGarbageArgs);
  // A chunk of an argument that is not eligible.
  deliver(wg07::CallInline{.lists = {.read_list = read_chunk({pattern(1024)})}}, rpc_call(kReaddir, args));
  ASSERT_THAT(end->qp.sent, SizeIs(2));
  EXPECT_EQ(accept_stat(), AcceptStat::kGarbageArgs);
  EXPECT_THAT(end->service.calls, IsEmpty());
  EXPECT_THAT(end->qp.rdma, IsEmpty());
}

TEST_F(Wg07ResponderChunksTest, AChunkOfAGibibyteIsNotPulled) {
  RecordProperty("proves", "W2-4.5-1 W2-11.1.4-1");
  open();
  constexpr std::uint32_t kGibibyte = 1 << 30;
  wg07::CallInline body{.lists = {.read_list = read_chunk({Octets(4)})}};
  body.lists.read_list[0].target.length = kGibibyte;
  deliver(body, rpc_call(kWrite, write_args(kGibibyte)));
  ASSERT_THAT(end->qp.sent, SizeIs(1));
  EXPECT_THAT(end->service.calls, IsEmpty());
  EXPECT_THAT(end->qp.rdma, IsEmpty());
  EXPECT_EQ(end->budget.used(), 0u);
  expect_alive(6);
}

TEST_F(Wg07ResponderChunksTest, AResultFillsItsSegmentsInOrder) {
  RecordProperty("proves", "W2-4.5.2.1-2 W2-4.5.2.4-2");
  for (const std::size_t len : {5u, 1234u, 2048u, 3001u, 4093u}) {
    open();
    Octets first(2048, 0xa5), second(2048, 0xa5);
    const wg07::CallInline body{.lists = {.write_list = {{writable(first), writable(second)}}}};
    deliver(body, rpc_call(kRead));
    answer_item(len);
    ASSERT_THAT(end->qp.sent, SizeIs(1));
    SegmentArray expected = body.lists.write_list[0];
    expected[0].length = static_cast<std::uint32_t>(std::min<std::size_t>(len, 2048));
    expected[1].length = static_cast<std::uint32_t>(len) - expected[0].length;
    EXPECT_THAT(last_sent().body<wg07::ReplyInline>().lists.write_list, ElementsAre(expected));
    first.insert(first.end(), second.begin(), second.end());
    Octets wanted = pattern(len);
    wanted.resize(4096, 0xa5);
    EXPECT_EQ(first, wanted) << "no roundup";
  }
}

TEST_F(Wg07ResponderChunksTest, ChunksWithoutAResultComeBackUnused) {
  RecordProperty("proves", "W2-4.5.2-2 W2-4.5.2.1-1");
  open();
  const wg07::CallInline body{.lists = {.write_list = {{}, {writable(100), writable(200)}}}};
  deliver(body, rpc_call(kReaddir));
  answer({});
  SegmentArray unused = body.lists.write_list[1];
  for (Segment& segment : unused) segment.length = 0;
  EXPECT_THAT(last_sent().body<wg07::ReplyInline>().lists.write_list, ElementsAre(SegmentArray{}, unused));
  EXPECT_THAT(end->qp.rdma, IsEmpty());
  deliver(wg07::CallInline{}, rpc_call(kReaddir, {}, 6), 6);
  answer({});
  EXPECT_THAT(last_sent().body<wg07::ReplyInline>().lists.write_list, IsEmpty());
}

TEST_F(Wg07ResponderChunksTest, ALongReplyUsesTheReplyChunkIfItFits) {
  RecordProperty("proves", "W2-6.6.3-3 W2-6.6.4-1 W2-C.5-1");
  open();
  Octets room(8192 + 24);
  wg07::CallInline body{.lists = {.reply_chunk = SegmentArray{writable(room)}}};
  deliver(body, rpc_call(kReaddir));
  answer_long(8192);
  ASSERT_THAT(end->qp.sent, SizeIs(1));
  EXPECT_EQ(total_length(*last_sent().body<wg07::ReplyExternal>().lists.reply_chunk), room.size());
  EXPECT_EQ(room, rpc_reply(5, pattern(8192)));
  // One that is too short is as good as none.
  open();
  body.lists.reply_chunk = SegmentArray{writable(1000)};
  deliver(body, rpc_call(kReaddir));
  answer_long(8192);
  ASSERT_THAT(end->qp.sent, SizeIs(3));
  EXPECT_TRUE(wg07_parse(end->qp.sent[0]).is<wg07::ReplyMiddle>());
  EXPECT_TRUE(last_sent().is<wg07::ReplyInline>());
  EXPECT_EQ(joined(end->qp.sent), rpc_reply(5, pattern(8192)));
  // So is a Write chunk.
  open();
  deliver(wg07::CallInline{.lists = {.write_list = {{writable(8000)}}}}, rpc_call(kRead));
  answer_item(8192);
  EXPECT_THAT(end->qp.sent, SizeIs(3));
  EXPECT_THAT(end->qp.rdma, IsEmpty());
}

TEST_F(Wg07ResponderChunksTest, WhatFitsNowhereIsRefusedWithItsLength) {
  RecordProperty("proves", "W2-6.6.4-2 W2-7.3.4-1 W2-7.3.5-1");
  open();
  deliver(wg07::CallInline{.lists = {.write_list = {{writable(1000)}}}}, rpc_call(kRead));
  answer_item(kMaxContinued);
  ASSERT_THAT(end->qp.sent, SizeIs(1));
  EXPECT_EQ(error().err, wg07::Err::kWriteResource);
  EXPECT_EQ(error().arm.chunk_index, 1u);
  EXPECT_EQ(error().arm.length_needed, kMaxContinued);
  // More than parts may have, and than the Reply chunk has.
  deliver(wg07::CallInline{.lists = {.reply_chunk = SegmentArray{writable(1000)}}}, rpc_call(kReaddir, {}, 6), 6);
  answer_long(kMaxContinued);
  ASSERT_THAT(end->qp.sent, SizeIs(2));
  EXPECT_EQ(error().err, wg07::Err::kReplyResource);
  EXPECT_EQ(error().arm.length_needed, kMaxContinued + 24);
  EXPECT_THAT(end->qp.rdma, IsEmpty());
}

TEST_F(Wg07ResponderChunksTest, ListsBeyondTheLimitsAreNamed) {
  RecordProperty("proves", "W2-7.3.1-1 W2-7.3.2-1 W2-7.3.3-1");
  open({.max_segments = 4, .max_read_chunks = 2, .max_write_chunks = 1});
  const Segment any{7, 4, 0};
  wg07::CallInline reads;
  for (const std::uint32_t position : {40u, 44u, 48u}) reads.lists.read_list.push_back({position, any});
  wg07::Error error = refused(reads, rpc_call(kWrite));
  EXPECT_EQ(error.err, wg07::Err::kReadChunks);
  EXPECT_EQ(error.arm.max_chunks, 2u);
  error = refused(wg07::CallInline{.lists = {.write_list = {{any}, {any}}}}, rpc_call(kRead));
  EXPECT_EQ(error.err, wg07::Err::kWriteChunks);
  EXPECT_EQ(error.arm.max_chunks, 1u);
  const SegmentArray too_many(5, any);
  const auto reads_of = [&](std::size_t num) { return std::vector(num, ReadSegment{40, any}); };
  for (const ChunkListsView& lists : {ChunkListsView{.read_list = reads_of(5)},
                                      ChunkListsView{.write_list = {too_many}}, ChunkListsView{.reply_chunk = too_many},
                                      ChunkListsView{.read_list = reads_of(3), .write_list = {SegmentArray(2, any)}}}) {
    error = refused(wg07::CallInline{.lists = lists}, rpc_call(kRead));
    EXPECT_EQ(error.err, wg07::Err::kSegments);
    EXPECT_EQ(error.arm.max_segments, 4u);
  }
  expect_alive(6);
}

TEST_F(Wg07ResponderChunksTest, AnEndThatTakesNoChunksSaysSo) {
  RecordProperty("proves", "W2-7.3.1-1 W2-7.3.2-1");
  open({.max_segments = 0, .max_read_chunks = 0, .max_write_chunks = 0});
  const Segment any{7, 4, 0};
  wg07::Error error = refused(wg07::CallInline{.lists = {.read_list = {{40, any}}}}, rpc_call(kWrite));
  EXPECT_EQ(error.err, wg07::Err::kReadChunks);
  EXPECT_EQ(error.arm.max_chunks, 0u);
  error = refused(wg07::CallInline{.lists = {.write_list = {{any}}}}, rpc_call(kRead));
  EXPECT_EQ(error.err, wg07::Err::kWriteChunks);
  EXPECT_EQ(error.arm.max_chunks, 0u);
  expect_alive(6);
}

TEST_F(Wg07ResponderChunksTest, AnErrorHasTheXidTheVersionAndTheCredits) {
  RecordProperty("proves", "W2-7-2 W2-7.1.1-1");
  open();
  std::uint32_t num_received = 1;  // open()
  for (const std::uint32_t version : {1u, 2u, 3u}) {
    const std::uint32_t xid = 0x700 + version;
    Octets octets = wg07_octets(xid, kManyCredits, wg07::CallInline{}, rpc_call(kNull, {}, xid));
    put_word(octets, 4, version);
    if (version == 2) put_word(octets, 12, 99);
    end->qp.sent.clear();
    deliver(octets);
    ++num_received;
    ASSERT_THAT(end->qp.sent, SizeIs(1));
    const Wg07Message sent = last_sent();
    EXPECT_EQ(sent.header.xid, xid);
    EXPECT_EQ(sent.header.vers, version);
    EXPECT_EQ(sent.header.credit, num_received + ResponderEnd::Options{}.credits);
    EXPECT_EQ(error().err, version == 2 ? wg07::Err::kInvalHtype : wg07::Err::kVersMismatch);
    EXPECT_THAT(end->service.calls, IsEmpty());
  }
}

TEST_F(Wg07ResponderChunksTest, AServerWithoutVersion2NamesItsRange) {
  RecordProperty("proves", "W2-4.3.2-1");
  ResponderTest::open({.protocols = {Protocol::k1}});
  deliver(wg07::CallInline{}, rpc_call(kNull, {}, 0x00c0ffee), 0x00c0ffee);
  EXPECT_THAT(end->service.calls, IsEmpty());
  EXPECT_THAT(end->qp.sent, ElementsAre(load_v2_vector("S60").octets));
}

TEST_F(Wg07ResponderChunksTest, TheNamedHandleIsInvalidatedByTheLastMessage) {
  RecordProperty("proves", "W2-6.5-2 W2-6.5-3");
  for (const bool can_invalidate : {true, false}) {
    open({.can_invalidate = can_invalidate});
    wg07::CallInline body{.lists = {.write_list = {{writable(4096)}, {writable(8192)}}}};
    body.inv_handle = body.lists.write_list[1][0].handle;
    const std::vector<std::uint32_t> named(can_invalidate ? 1 : 0, body.inv_handle);
    deliver(body, rpc_call(kRead));
    answer({});
    EXPECT_EQ(end->qp.remote_invalidations, named);
    // A Reply in three messages.
    end->qp.sent.clear();
    end->qp.remote_invalidations.clear();
    end->qp.hold_completions = true;
    deliver(body, rpc_call(kReaddir, {}, 6), 6);
    ServedReply reply;
    reply.results = pattern(10000);
    EXPECT_TRUE(end->responder->reply(end->service.calls.back().id, std::move(reply)));
    EXPECT_LE(end->qp.remote_invalidations.size(), end->qp.sent.size() < 3 ? 0u : 1u);
    end->qp.release();
    end->qp.hold_completions = false;
    end->pump();
    ASSERT_THAT(end->qp.sent, SizeIs(3));
    EXPECT_EQ(end->qp.remote_invalidations, named) << "once";
    // None is named, and an error invalidates nothing.
    deliver(wg07::CallInline{.lists = body.lists}, rpc_call(kRead, {}, 7), 7);
    answer({});
    deliver(body, rpc_call(kRead, {}, 9), 8);
    EXPECT_EQ(error().err, wg07::Err::kBadXdr);
    EXPECT_EQ(end->qp.remote_invalidations, named);
  }
}

TEST_F(Wg07ResponderChunksTest, AnAnswerThatCannotBeSentEndsTheConnection) {
  RecordProperty("proves", "W2-7.4-2");
  for (const bool is_error : {false, true}) {
    open();
    if (!is_error) deliver_null(5);
    end->qp.fail_post_send = true;
    if (is_error) {
      deliver(wg07::CallInline{}, rpc_call(kNull, {}, 6), 5);
    } else {
      end->responder->reply(end->service.calls.back().id, {});
    }
    EXPECT_TRUE(end->endpoint->failure());
    EXPECT_THAT(end->qp.sent, IsEmpty());
  }
}

TEST_F(Wg07ResponderChunksTest, WhatIsProtectedIsNotReduced) {
  RecordProperty("proves", "W2-11.2.2.3-1");
  const OpaqueAuth cred = gss_cred(GssService::kIntegrity);
  const auto call_under_gss = [&](const wg07::CallInline& body) {
    Octets octets;
    xdr::XdrWriter out(octets);
    emit_call(out, {5, kTestProgram, kTestVersion, kRead, cred, {}});
    deliver(body, octets);
  };
  open();
  for (ServedProgram& program : end->programs) program.takes_gss = true;
  Octets room(4096, 0xa5);
  call_under_gss({.lists = {.write_list = {{writable(room)}}}});
  ASSERT_THAT(end->service.calls, SizeIs(1));
  EXPECT_THAT(end->service.calls[0].result_capacities, IsEmpty());
  answer_item(1000);
  EXPECT_THAT(end->qp.rdma, IsEmpty());
  EXPECT_EQ(room, Octets(4096, 0xa5));
  EXPECT_GT(last_sent().payload.size(), 1000u);
}

// The server begins to serve without properties, and echoes the XID of a message about them in its error.
TEST_F(Wg07ResponderChunksTest, PropertiesAreNoConditionAndHaveAnyXid) {
  RecordProperty("proves", "W2-6.3.4-3");
  open();
  expect_alive(6);
  end->link->exchange_properties({}, {});
  end->qp.sent.clear();
  deliver(wg07::ConnpropFinal{}, {}, 0xdead);
  ASSERT_THAT(end->qp.sent, SizeIs(1));
  EXPECT_TRUE(last_sent().is<wg07::ConnpropFinal>());
  deliver(wg07::ConnpropFinal{}, {}, 0xbeef);
  EXPECT_EQ(error().err, wg07::Err::kInvalCont);
  EXPECT_EQ(last_sent().header.xid, 0xbeefu);
  expect_alive(7);
}

}  // namespace
}  // namespace weft::rpcrdma::testing
