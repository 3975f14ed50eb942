// The forms of Replies: inline, through Write chunks, through the Reply chunk.
#include "rpcrdma/testing/responder.h"

namespace weft::rpcrdma::testing {
namespace {

struct ResponderReplyTest : ResponderTest {
  // Three items that stay inline, each long enough to be sent from where it stands, with a word before each and behind
  // the last.
  ServedReply three_items(Octets& whole) {
    ServedReply reply;
    for (std::uint8_t i = 0; i < 3; ++i) {
      const Octets item = pattern(2000, i);
      reply.results.insert(reply.results.end(), {i, i, i, i});
      whole.insert(whole.end(), {i, i, i, i});
      Buffer buffer = end->pool.take(item.size());
      std::copy(item.begin(), item.end(), buffer.octets().begin());
      reply.add_item(std::move(buffer), item.size());
      whole.insert(whole.end(), item.begin(), item.end());
    }
    reply.results.insert(reply.results.end(), {9, 9, 9, 9});
    whole.insert(whole.end(), {9, 9, 9, 9});
    return reply;
  }
  // A Reply chunk of so many segments, 64 octets each.
  v1::Header with_reply_chunk(std::size_t num_segments) {
    const Segment all = writable(64 * num_segments);
    v1::Header header = call_header();
    SegmentArray& chunk = header.lists.reply_chunk.emplace();
    for (std::size_t i = 0; i < num_segments; ++i) chunk.push_back({all.handle, 64, all.offset + 64 * i});
    return header;
  }
};

TEST_F(ResponderReplyTest, ReadItemThroughTheWriteChunkExactlyAndWithoutRoundup) {
  RecordProperty("proves",
                 "R1-4.4.6-03 R1-4.4.6-04 R1-4.4.6-06 R1-4.4.6.1-02 R1-4.4.6.1-03 R1-4.4.6.1-04 R1-5.3.2-02 "
                 "R1-4.5.2-02 R1-5.3.1-02");
  for (const std::size_t len : {0ul, 1ul, 100ul, 2047ul, 2048ul, 2049ul, 4093ul, 4096ul}) {
    open();
    Octets first(2048, 0xa5);
    Octets second(2048, 0xa5);
    v1::Header header = call_header();
    header.lists.write_list = {{writable(first), writable(second)}};
    call(header, rpc_call(kRead));
    ASSERT_EQ(end->service.calls.size(), 1u);
    EXPECT_EQ(end->service.calls[0].result_item_capacity(), 4096u);
    const Octets data = pattern(len);
    const Octets before{0, 0, 0, 0};
    const Octets behind{9, 9, 9, 9};
    answer(item_reply(data, before, behind));
    ASSERT_EQ(end->qp.sent.size(), 1u);
    const v1::Header reply = parse(end->qp.sent[0]);
    EXPECT_EQ(reply.proc, v1::Proc::kMsg);
    EXPECT_TRUE(reply.lists.read_list.empty());
    SegmentArray expected = header.lists.write_list[0];
    expected[0].length = static_cast<std::uint32_t>(std::min<std::size_t>(len, 2048));
    expected[1].length = static_cast<std::uint32_t>(len) - expected[0].length;
    EXPECT_EQ(reply.lists.write_list, std::vector<SegmentArray>{expected});
    EXPECT_EQ(payload_of(end->qp.sent[0]), rpc_reply(5, {0, 0, 0, 0, 9, 9, 9, 9}));
    Octets all = first;
    all.insert(all.end(), second.begin(), second.end());
    Octets wanted = data;
    wanted.resize(4096, 0xa5);
    EXPECT_EQ(all, wanted) << len;
    for (const auto& rdma : end->qp.rdma) EXPECT_EQ(rdma.sends_before, 0u);
    EXPECT_EQ(end->responder->counters().write_chunks, len == 0 ? 0u : 1u);
    EXPECT_EQ(end->budget.used(), 0u);
    EXPECT_EQ(end->pool.in_use(), 0u);
  }
}

TEST_F(ResponderReplyTest, UnusedAndEmptyWriteChunksGoBackAsTheyCame) {
  RecordProperty("proves", "R1-4.4.6.2-01 R1-4.4.6.2-05 R1-4.4.6-09 R1-4.4.6-08");
  open();
  Octets room(100);
  v1::Header header = call_header();
  // The first asks for the result inline, the second is left over.
  header.lists.write_list = {{}, {writable(room)}};
  call(header, rpc_call(kRead));
  EXPECT_FALSE(end->service.calls.at(0).result_item_capacity());
  answer(item_reply({1, 2, 3}, {0, 0, 0, 3}, {}));
  v1::Header reply = parse(end->qp.sent.at(0));
  ASSERT_EQ(reply.lists.write_list.size(), 2u);
  EXPECT_TRUE(reply.lists.write_list[0].empty());
  ASSERT_EQ(reply.lists.write_list[1].size(), 1u);
  EXPECT_EQ(reply.lists.write_list[1][0].length, 0u);
  EXPECT_EQ(reply.lists.write_list[1][0].handle, header.lists.write_list[1][0].handle);
  EXPECT_EQ(payload_of(end->qp.sent[0]), rpc_reply(5, {0, 0, 0, 3, 1, 2, 3, 0}));

  // A failure leaves its Write chunk unused.
  header.lists.write_list = {{writable(room)}};
  call(header, rpc_call(kRead));
  ServedReply failed;
  failed.results = {0, 0, 0, 70};
  answer(std::move(failed));
  reply = parse(end->qp.sent.at(1));
  EXPECT_EQ(reply.lists.write_list[0][0].length, 0u);
}

TEST_F(ResponderReplyTest, ItemsOfOtherProceduresStayInline) {
  RecordProperty("proves", "R1-4.4.2-01");
  open();
  Octets room(100);
  v1::Header header = call_header();
  header.lists.write_list = {{writable(room)}};
  call(header, rpc_call(kReaddir));
  answer(item_reply({1, 2, 3, 4}, {0, 0, 0, 4}, {}));
  EXPECT_EQ(payload_of(end->qp.sent.at(0)), rpc_reply(5, {0, 0, 0, 4, 1, 2, 3, 4}));
  EXPECT_TRUE(end->qp.rdma.empty());
}

TEST_F(ResponderReplyTest, ReplyChunkOnlyWhereTheReplyDoesNotFit) {
  RecordProperty("proves", "R1-4.5.3-06 R1-4.5.3-03 R1-5.3.3-04 R1-5.3.3-05 R1-4.5.1-01 R1-5.2.4-05");
  open({.reply_threshold = 1024});
  const std::size_t transport = 28 + 4 + 2 * 16;
  const std::size_t fits = 1024 - transport - 24;
  for (const std::size_t len : {std::size_t{0}, fits, fits + 4, std::size_t{5304}}) {
    end->qp.sent.clear();
    end->qp.rdma.clear();
    Octets first(4096, 0xa5);
    Octets second(4300, 0xa5);
    v1::Header header = call_header();
    header.lists.reply_chunk = SegmentArray{writable(first), writable(second)};
    call(header, rpc_call(kReaddir));
    ServedReply served;
    served.results = pattern(len);
    answer(std::move(served));
    ASSERT_EQ(end->qp.sent.size(), 1u);
    const v1::Header reply = parse(end->qp.sent[0]);
    const Octets whole = rpc_reply(5, pattern(len));
    ASSERT_TRUE(reply.lists.reply_chunk);
    const SegmentArray& returned = *reply.lists.reply_chunk;
    if (len <= fits) {
      EXPECT_EQ(reply.proc, v1::Proc::kMsg);
      EXPECT_EQ(total_length(returned), 0u);
      EXPECT_EQ(payload_of(end->qp.sent[0]), whole);
      EXPECT_TRUE(end->qp.rdma.empty());
      EXPECT_LE(end->qp.sent[0].size(), 1024u);
    } else {
      EXPECT_EQ(reply.proc, v1::Proc::kNomsg);
      EXPECT_EQ(end->qp.sent[0].size(), transport);
      EXPECT_EQ(total_length(returned), whole.size());
      Octets got(first.begin(), first.begin() + returned[0].length);
      got.insert(got.end(), second.begin(), second.begin() + returned[1].length);
      EXPECT_EQ(got, whole);
    }
  }
}

TEST_F(ResponderReplyTest, ItemWithinTheReplyChunkKeepsItsRoundup) {
  RecordProperty("proves", "R1-4.5.3-09 R1-4.5.3-08");
  open({.reply_threshold = 1024});
  Octets room(8192, 0xa5);
  v1::Header header = call_header();
  header.lists.reply_chunk = SegmentArray{writable(room)};
  call(header, rpc_call(kRead));
  const Octets data = pattern(5001);
  answer(item_reply(data, {0, 0, 0x13, 0x89}, {7, 7, 7, 7}));
  const v1::Header reply = parse(end->qp.sent.at(0));
  Octets results{0, 0, 0x13, 0x89};
  results.insert(results.end(), data.begin(), data.end());
  results.insert(results.end(), {0, 0, 0, 7, 7, 7, 7});
  const Octets whole = rpc_reply(5, results);
  EXPECT_EQ(reply.lists.reply_chunk->at(0).length, whole.size());
  EXPECT_EQ(Octets(room.begin(), room.begin() + static_cast<std::ptrdiff_t>(whole.size())), whole);
  EXPECT_EQ(room[whole.size()], 0xa5);
}

TEST_F(ResponderReplyTest, WhatFitsNothingOfferedGetsErrChunkAndWritesNothing) {
  RecordProperty("proves", "R1-5.5.3-02");
  open({.reply_threshold = 1024});
  Octets room(100, 0xa5);
  v1::Header header = call_header();
  header.lists.reply_chunk = SegmentArray{writable(room)};
  call(header, rpc_call(kReaddir));
  ServedReply big;
  big.results = pattern(2000);
  answer(std::move(big));
  EXPECT_EQ(end->qp.sent.at(0).size(), v1::kErrChunkLen);

  header.lists.reply_chunk.reset();
  call(header, rpc_call(kReaddir));
  big.results = pattern(2000);
  answer(std::move(big));
  EXPECT_EQ(end->qp.sent.at(1).size(), v1::kErrChunkLen);

  header.lists.write_list = {{writable(room)}};
  call(header, rpc_call(kRead));
  answer(item_reply(pattern(101), {0, 0, 0, 101}, {}));
  EXPECT_EQ(end->qp.sent.at(2).size(), v1::kErrChunkLen);

  EXPECT_TRUE(end->qp.rdma.empty());
  EXPECT_FALSE(end->endpoint->failure());
  EXPECT_EQ(end->budget.used(), 0u);
}

TEST_F(ResponderReplyTest, ManySegmentsThroughAShortSendQueue) {
  open({.max_send_wr = 8});
  Octets room(64 * 10);
  v1::Header header = call_header();
  const Segment all = writable(room);
  header.lists.write_list.emplace_back();
  for (std::uint32_t i = 0; i < 64; ++i) header.lists.write_list[0].push_back({all.handle, 10, all.offset + 10 * i});
  call(header, rpc_call(kRead));
  const Octets data = pattern(635);
  answer(item_reply(data, {0, 0, 2, 0x7b}, {}));
  end->pump();
  ASSERT_EQ(end->qp.sent.size(), 1u);
  EXPECT_TRUE(std::equal(data.begin(), data.end(), room.begin()));
  EXPECT_EQ(end->qp.rdma.size(), 64u);
  EXPECT_FALSE(end->endpoint->failure());
}

TEST_F(ResponderReplyTest, ASendGathersNoMoreElementsThanTheDeviceTakes) {
  RecordProperty("proves", "R1-5.2.4-06");
  for (std::uint32_t max_sge = 1; max_sge <= 8; ++max_sge) {
    SCOPED_TRACE(max_sge);
    open({.inline_threshold = 16 << 10, .reply_threshold = 16 << 10, .max_sge = max_sge});
    call(call_header(), rpc_call(kReaddir));
    Octets whole;
    answer(three_items(whole));
    EXPECT_FALSE(end->endpoint->failure());
    ASSERT_EQ(end->qp.sent.size(), 1u);
    EXPECT_EQ(payload_of(end->qp.sent[0]), rpc_reply(5, whole));
    // Each item takes two elements: the octets before it, and itself. One more is for the octets behind the last item.
    EXPECT_EQ(end->qp.last_send_sges, std::min(7u, 1 + (max_sge - 1) / 2 * 2));
  }
}

TEST_F(ResponderReplyTest, AWriteGathersNoMoreElementsThanTheDeviceTakes) {
  for (std::uint32_t max_sge = 1; max_sge <= 9; ++max_sge) {
    SCOPED_TRACE(max_sge);
    open({.reply_threshold = 1024, .max_sge = max_sge});
    v1::Header header = call_header();
    header.lists.reply_chunk = SegmentArray{writable(8192)};
    call(header, rpc_call(kReaddir));
    Octets whole;
    answer(three_items(whole));
    EXPECT_FALSE(end->endpoint->failure());
    ASSERT_EQ(end->qp.sent.size(), 1u);
    // The RPC header, and the Payload stream in seven pieces.
    EXPECT_EQ(end->qp.rdma.size(), (8 + max_sge - 1) / max_sge);
    const Octets reply = rpc_reply(5, whole);
    EXPECT_EQ(Octets(rooms.back().begin(), rooms.back().begin() + static_cast<std::ptrdiff_t>(reply.size())), reply);
  }
}

// The RPC header that goes through the Reply chunk stands behind the transport header, where the Send buffer has room.
TEST_F(ResponderReplyTest, ALongVerifierGoesThroughTheReplyChunkWhereverItFindsRoom) {
  constexpr std::size_t kSegments = 59;  // the header has 976 octets then, and 112 of the Send buffer are left
  for (const std::size_t len : {0u, 80u, 84u, 88u, 92u, 400u}) {
    SCOPED_TRACE(len);
    open({.inline_threshold = 1024, .reply_threshold = 1024});
    call(with_reply_chunk(kSegments), rpc_call(kReaddir));
    ServedReply reply = item_reply(pattern(2001), {0, 0, 7, 0xd1}, {9, 9, 9, 9});
    reply.verf = {6, pattern(len, 3)};
    end->qp.hold_completions = true;
    answer(std::move(reply));
    ASSERT_EQ(end->qp.sent.size(), 1u);
    ASSERT_EQ(end->qp.sent[0].size(), 976u);
    // The RPC header has 24 octets beside the verifier, and 3 are for roundup.
    EXPECT_EQ(end->pool.in_use(), 2001 + (24 + len + 3 <= 112 ? 0 : 24 + len + 3));
    Octets whole;
    xdr::XdrWriter out(whole);
    emit_reply(out, {.xid = 5, .verf = {6, pattern(len, 3)}});
    out.u32(2001);
    out.opaque_fixed(pattern(2001));
    out.u32(0x09090909);
    EXPECT_EQ(total_length(*parse(end->qp.sent[0]).lists.reply_chunk), whole.size());
    EXPECT_EQ(Octets(rooms.back().begin(), rooms.back().begin() + static_cast<std::ptrdiff_t>(whole.size())), whole);
    end->qp.release();
    end->pump();
    EXPECT_EQ(end->pool.in_use(), 0u);
  }
}

TEST_F(ResponderReplyTest, ALongVerifierThatFindsNoMemoryGetsErrChunk) {
  open({.inline_threshold = 1024, .reply_threshold = 1024});
  call(with_reply_chunk(59), rpc_call(kReaddir));
  ServedReply reply = item_reply(pattern(2001), {});
  reply.verf = {6, pattern(400)};
  end->pd.fail_registration = true;
  answer(std::move(reply));
  ASSERT_EQ(end->qp.sent.size(), 1u);
  EXPECT_EQ(parse(end->qp.sent[0]).err, v1::Err::kChunk);
  EXPECT_TRUE(end->qp.rdma.empty());
  EXPECT_FALSE(end->endpoint->failure());
  EXPECT_EQ(end->pool.in_use(), 0u);
}

// This Reply has no results beside its item that would need a registration.
TEST_F(ResponderReplyTest, AnItemAloneGoesThroughTheReplyChunk) {
  open({.reply_threshold = 1024});
  v1::Header header = call_header();
  header.lists.reply_chunk = SegmentArray{writable(8192)};
  call(header, rpc_call(kReaddir));
  answer(item_reply(pattern(5001), {}));
  ASSERT_EQ(end->qp.sent.size(), 1u);
  Octets whole = pattern(5001);
  whole.resize(5004);
  whole = rpc_reply(5, whole);
  EXPECT_EQ(total_length(*parse(end->qp.sent[0]).lists.reply_chunk), whole.size());
  EXPECT_EQ(Octets(rooms.back().begin(), rooms.back().begin() + static_cast<std::ptrdiff_t>(whole.size())), whole);
}

}  // namespace
}  // namespace weft::rpcrdma::testing
