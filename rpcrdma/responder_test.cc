#include "rpcrdma/responder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "rpcrdma/testing/engines.h"
#include "rpcrdma/testing/vectors.h"

namespace weft::rpcrdma::testing {
namespace {

// Caller plays the peer: memory that it offers, and Calls made by hand.
struct ResponderTest : ::testing::Test {
  void open(ResponderEnd::Options options = {}) { end = std::make_unique<ResponderEnd>(memory, options); }

  Segment offer(Octets& octets, verbs::Access access) {
    mrs.push_back(std::make_unique<FakeMr>(memory, FakeMemory::Region{octets.data(), octets.size(), access}));
    return {mrs.back()->rkey(), static_cast<std::uint32_t>(octets.size()),
            reinterpret_cast<std::uintptr_t>(octets.data())};
  }
  Segment readable(Octets& octets) { return offer(octets, verbs::Access::kRemoteRead); }
  Segment writable(Octets& octets) { return offer(octets, verbs::Access::kLocalWrite | verbs::Access::kRemoteWrite); }

  static Octets rpc_call(std::uint32_t procedure, const Octets& args = {}) {
    Octets octets;
    xdr::XdrWriter out(octets);
    emit_call(out, {5, kTestProgram, kTestVersion, procedure, {}, {}});
    out.raw(args);
    return octets;
  }

  static v1::Header call_header() {
    v1::Header header;
    header.xid = 5;
    header.credit = 8;
    return header;
  }

  // Delivers a Call and returns what was sent.
  const std::vector<Octets>& call(const v1::Header& header, const Octets& payload) {
    EXPECT_TRUE(end->qp.inject(message(header, payload)));
    end->pump();
    return end->qp.sent;
  }

  ServedReply item_reply(const Octets& item, const Octets& before, const Octets& behind) {
    ServedReply reply;
    Buffer buffer = end->pool.take(std::max<std::size_t>(item.size(), 1));
    std::copy(item.begin(), item.end(), buffer.octets().begin());
    reply.results = before;
    reply.add_item(std::move(buffer), item.size());
    reply.results.insert(reply.results.end(), behind.begin(), behind.end());
    return reply;
  }

  void answer(ServedReply reply) {
    ASSERT_FALSE(end->service.calls.empty());
    EXPECT_TRUE(end->responder->reply(end->service.calls.back().id, std::move(reply)));
    end->pump();
  }

  FakeMemory memory;
  std::vector<std::unique_ptr<FakeMr>> mrs;
  std::unique_ptr<ResponderEnd> end;
};

TEST_F(ResponderTest, EveryMalformedVectorGetsItsExactAnswer) {
  RecordProperty("proves",
                 "R1-5.5-01 R1-5.5-02 R1-5.5-04 R1-5.5-05 R1-5.5-06 R1-5.5.1-01 R1-5.5.2-01 R1-5.5.2-05 R1-5.5.2-06 "
                 "R1-8.1.1-01 R1-8.1.1-02 R1-4.4.4.1-03 R1-4.4.4-03 R1-10.1-03");
  for (const auto& vector : load_vectors('M')) {
    if (vector.to != "responder") continue;
    open();
    ASSERT_TRUE(end->qp.inject(vector.octets)) << vector.id;
    end->pump();
    EXPECT_TRUE(end->service.calls.empty()) << vector.id;
    EXPECT_TRUE(end->qp.rdma.empty()) << vector.id;
    EXPECT_FALSE(end->channel->failure()) << vector.id;
    if (vector.expect == "DISCARD") {
      EXPECT_TRUE(end->qp.sent.empty()) << vector.id;
    } else {
      ASSERT_EQ(end->qp.sent.size(), 1u) << vector.id;
      EXPECT_EQ(to_hex(end->qp.sent[0]), to_hex(vector.answer)) << vector.id << " " << vector.title;
    }
    // The Receive is back, and the next Call is served.
    EXPECT_EQ(end->qp.num_receives(), end->channel->config().num_receives) << vector.id;
    ASSERT_TRUE(end->qp.inject(load_vector("V01").octets));
    end->pump();
    EXPECT_EQ(end->service.calls.size(), 1u) << vector.id;
  }
}

TEST_F(ResponderTest, InlineCallAndReply) {
  open();
  ASSERT_TRUE(end->qp.inject(load_vector("V01").octets));
  end->pump();
  ASSERT_EQ(end->service.calls.size(), 1u);
  EXPECT_EQ(end->service.calls[0].procedure, kNull);
  EXPECT_EQ(end->service.calls[0].xid, 0x11110001u);
  EXPECT_TRUE(end->service.calls[0].args.empty());
  answer({});
  ASSERT_EQ(end->qp.sent.size(), 1u);
  Octets expected = load_vector("V02").octets;
  expected[11] = 32;  // our grant
  EXPECT_EQ(to_hex(end->qp.sent[0]), to_hex(expected));
}

TEST_F(ResponderTest, PullsTheItemOfVectorsV03AndV05) {
  RecordProperty("proves", "R1-4.4.5.1-04 R1-4.4.5.1-05 R1-4.4.5.2-01 R1-4.4.5-06 R1-4.4.4-01");
  const Octets data = pattern(5095);
  for (const char* id : {"V03", "V05"}) {
    open();
    const Octets vector = load_vector(id).octets;
    v1::Header header = parse(vector);
    std::vector<Octets> parts;
    std::size_t at = 0;
    for (const ReadSegment& segment : header.lists.read_list) {
      Octets part(segment.target.length, 0xff);
      for (auto& octet : part) {
        if (at < data.size()) octet = data[at++];
      }
      parts.push_back(part);
    }
    for (std::size_t i = 0; i < parts.size(); ++i) header.lists.read_list[i].target = readable(parts[i]);
    call(header, payload_of(vector));
    ASSERT_EQ(end->service.calls.size(), 1u) << id;
    const ServedCall& served = end->service.calls[0];
    ASSERT_EQ(served.items.size(), 1u);
    EXPECT_EQ(served.items[0].position, 56u);
    EXPECT_EQ(copy_of(served.items[0].data.octets()), data) << id;
    EXPECT_EQ(served.args.size(), 56u);
  }
}

TEST_F(ResponderTest, RoundupInALongerLastSegmentIsLeftWhereItIs) {
  RecordProperty("proves", "R1-4.4.5.1-04 R1-4.4.5.1-05");
  open();
  Octets data = pattern(5000);
  Octets rounded = data;
  rounded.resize(5000 + 3, 0xff);
  data.resize(4997);
  Octets first(rounded.begin(), rounded.begin() + 4096);
  Octets second(rounded.begin() + 4096, rounded.begin() + 5000);
  v1::Header header = call_header();
  const auto position = static_cast<std::uint32_t>(40 + write_position());
  header.lists.read_list = {{position, readable(first)}, {position, readable(second)}};
  call(header, rpc_call(kWrite, write_args(4997)));
  ASSERT_EQ(end->service.calls.size(), 1u);
  EXPECT_EQ(copy_of(end->service.calls[0].items.at(0).data.octets()), data);
  EXPECT_EQ(end->qp.rdma.at(1).len, 4997u - 4096);
}

TEST_F(ResponderTest, OneConnectionHoldsNoMoreThanItsShare) {
  open({.max_item = 8 << 10, .max_held = 30000});
  Octets data = pattern(6000);
  v1::Header header = call_header();
  header.lists.read_list = {{static_cast<std::uint32_t>(40 + write_position()), readable(data)}};
  const Octets payload = rpc_call(kWrite, write_args(6000));
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(end->qp.inject(message(header, payload)));
  end->pump();
  EXPECT_EQ(end->service.calls.size(), 2u);
  EXPECT_LE(end->budget.used, 30000u);
  answer({});
  EXPECT_EQ(end->service.calls.size(), 3u);
}

TEST_F(ResponderTest, LongCallWithNormalReadChunkBesideIt) {
  RecordProperty("proves", "R1-4.5.3-10 R1-4.5.3-05 R1-4.4.5-02");
  open();
  Octets payload = rpc_call(kWrite, write_args(777));
  Octets data = pattern(777);
  Octets first(payload.begin(), payload.begin() + 41);
  Octets second(payload.begin() + 41, payload.end());
  v1::Header header = call_header();
  header.proc = v1::Proc::kNomsg;
  header.lists.read_list = {
      {0, readable(first)}, {static_cast<std::uint32_t>(40 + write_position()), readable(data)}, {0, readable(second)}};
  call(header, {});
  ASSERT_EQ(end->service.calls.size(), 1u);
  const ServedCall& served = end->service.calls[0];
  EXPECT_EQ(copy_of(served.args), write_args(777));
  EXPECT_EQ(copy_of(served.header), rpc_call(kWrite));
  EXPECT_EQ(served.items.at(0).position, write_position());
  EXPECT_EQ(copy_of(served.items[0].data.octets()), data);
  answer({});
  EXPECT_EQ(payload_of(end->qp.sent.at(0)), rpc_reply(5));
}

TEST_F(ResponderTest, LongCallWhoseXidDiffersGetsErrChunk) {
  open();
  Octets payload = rpc_call(kNull);
  payload[3] ^= 1;
  v1::Header header = call_header();
  header.proc = v1::Proc::kNomsg;
  header.lists.read_list = {{0, readable(payload)}};
  call(header, {});
  EXPECT_TRUE(end->service.calls.empty());
  ASSERT_EQ(end->qp.sent.size(), 1u);
  EXPECT_EQ(parse(end->qp.sent[0]).err, v1::Err::kChunk);
  EXPECT_EQ(end->budget.used, 0u);
}

TEST_F(ResponderTest, ReadItemThroughTheWriteChunkExactlyAndWithoutRoundup) {
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
    EXPECT_EQ(end->budget.used, 0u);
    EXPECT_EQ(end->pool.in_use(), 0u);
  }
}

TEST_F(ResponderTest, UnusedAndEmptyWriteChunksGoBackAsTheyCame) {
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

TEST_F(ResponderTest, ItemsOfOtherProceduresStayInline) {
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

TEST_F(ResponderTest, ReplyChunkOnlyWhereTheReplyDoesNotFit) {
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

TEST_F(ResponderTest, ItemWithinTheReplyChunkKeepsItsRoundup) {
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

TEST_F(ResponderTest, WhatFitsNothingOfferedGetsErrChunkAndWritesNothing) {
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
  EXPECT_FALSE(end->channel->failure());
  EXPECT_EQ(end->budget.used, 0u);
}

TEST_F(ResponderTest, AnswersForProgramsVersionsAndCredentials) {
  RecordProperty("proves", "R1-8-01 R1-10.2.2.3-01");
  open();
  const auto with = [this](CallHeader rpc) {
    Octets payload;
    xdr::XdrWriter out(payload);
    emit_call(out, rpc);
    call(call_header(), payload);
    const Octets answer_octets = payload_of(end->qp.sent.back());
    xdr::XdrReader in(answer_octets);
    ReplyHeader reply;
    EXPECT_TRUE(parse_reply(in, reply));
    return describe(reply);
  };
  EXPECT_EQ(with({5, 200000, 1, 0, {}, {}}), "PROG_UNAVAIL");
  EXPECT_EQ(with({5, kTestProgram, 4, 0, {}, {}}), "PROG_MISMATCH: the peer offers versions 3 to 3");
  EXPECT_EQ(with({5, kTestProgram, 3, 0, {6, {1, 2, 3, 4}}, {}}), "MSG_DENIED: AUTH_BADCRED");
  Octets payload = rpc_call(kNull);
  payload[11] = 3;
  call(call_header(), payload);
  const Octets denied = payload_of(end->qp.sent.back());
  EXPECT_EQ(to_hex(denied),
            "00000005000000010000000100000000"
            "0000000200000002");
  EXPECT_TRUE(end->service.calls.empty());
}

TEST_F(ResponderTest, NeverMoreReadsThanOrdAtOnce) {
  RecordProperty("proves", "R1-4.3.1-13 R1-4.4.5.2-02");
  open({.ord = 2});
  Octets data = pattern(1600);
  std::vector<Octets> parts;
  for (std::size_t i = 0; i < 16; ++i) {
    parts.emplace_back(data.begin() + static_cast<std::ptrdiff_t>(100 * i),
                       data.begin() + static_cast<std::ptrdiff_t>(100 * i + 100));
  }
  v1::Header header = call_header();
  for (auto& part : parts) {
    header.lists.read_list.push_back({static_cast<std::uint32_t>(40 + write_position()), readable(part)});
  }
  end->qp.hold_completions = true;
  ASSERT_TRUE(end->qp.inject(message(header, rpc_call(kWrite, write_args(1600)))));
  for (std::size_t turn = 0; turn < 8; ++turn) {
    end->pump();
    EXPECT_EQ(end->qp.rdma.size(), 2 * turn + 2);
    EXPECT_TRUE(end->service.calls.empty());
    end->qp.release();
  }
  end->pump();
  ASSERT_EQ(end->service.calls.size(), 1u);
  EXPECT_EQ(copy_of(end->service.calls[0].items.at(0).data.octets()), data);
}

TEST_F(ResponderTest, NoReadsFromAPeerThatAllowsNone) {
  open({.ord = 0});
  Octets data = pattern(16);
  v1::Header header = call_header();
  header.lists.read_list = {{static_cast<std::uint32_t>(40 + write_position()), readable(data)}};
  call(header, rpc_call(kWrite, write_args(16)));
  EXPECT_EQ(end->qp.sent.at(0).size(), v1::kErrChunkLen);
}

TEST_F(ResponderTest, CallsBeyondTheBudgetWaitAndAreThenServed) {
  open({.budget = 12 << 10, .max_item = 8 << 10});
  Octets data = pattern(6000);
  v1::Header header = call_header();
  header.lists.read_list = {{static_cast<std::uint32_t>(40 + write_position()), readable(data)}};
  const Octets payload = rpc_call(kWrite, write_args(6000));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(end->qp.inject(message(header, payload)));
  end->pump();
  for (std::size_t served = 1; served <= 3; ++served) {
    ASSERT_EQ(end->service.calls.size(), served);
    EXPECT_LE(end->budget.used, end->budget.limit);
    answer({});
    EXPECT_EQ(end->qp.sent.size(), served);
  }
  EXPECT_EQ(end->budget.used, 0u);
}

TEST_F(ResponderTest, GrantsFollowUseAndMemory) {
  RecordProperty("proves", "R1-4.3.1-03 R1-4.3.1-05");
  open({.credits = 16, .min_credits = 2, .reply_threshold = 1024, .budget = 40 << 10, .max_item = 20 << 10});
  const auto grant = [this] { return parse(end->qp.sent.back()).credit; };
  end->service.answer = [this](ServedCall& served) { end->responder->reply(served.id, {}); };
  v1::Header header = call_header();
  header.credit = 12;
  call(header, rpc_call(kNull));
  EXPECT_EQ(grant(), 2u);
  // It uses all it has, so it gets more, but no more than it asks for.
  end->service.answer = nullptr;
  for (int i = 0; i < 16; ++i) ASSERT_TRUE(end->qp.inject(message(header, rpc_call(kNull))));
  end->pump();
  answer({});
  EXPECT_EQ(grant(), 12u);
  for (const ServedCall& one : end->service.calls) end->responder->reply(one.id, {});
  end->pump();
  // A Call has to wait for memory: fewer for everybody.
  end->service.calls.clear();
  Octets data = pattern(20000);
  header.lists.read_list = {{static_cast<std::uint32_t>(40 + write_position()), readable(data)}};
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(end->qp.inject(message(header, rpc_call(kWrite, write_args(20000)))));
  end->pump();
  ASSERT_EQ(end->service.calls.size(), 1u);
  answer({});
  EXPECT_EQ(grant(), 6u);
  EXPECT_EQ(end->service.calls.back().procedure, kWrite);
}

TEST_F(ResponderTest, AReceiveComesBackOnlyWithItsAnswer) {
  RecordProperty("proves", "R1-4.3.1-09");
  open({.credits = 2});
  ASSERT_EQ(end->qp.num_receives(), 4u);
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(end->qp.inject(load_vector("V01").octets));
    end->pump();
  }
  EXPECT_EQ(end->qp.num_receives(), 0u);
  EXPECT_EQ(end->service.calls.size(), 4u);
  answer({});
  EXPECT_EQ(end->qp.num_receives(), 1u);
  // One more than it may.
  ASSERT_TRUE(end->qp.inject(load_vector("V01").octets));
  end->pump();
  EXPECT_FALSE(end->qp.inject(load_vector("V01").octets));
}

// The slot of a Call that was answered is made anew, and its id stays nobody's.
TEST_F(ResponderTest, ATrimmedResponderKnowsOldIdsFromNew) {
  open();
  const auto inject = [this] {
    ASSERT_TRUE(end->qp.inject(load_vector("V01").octets));
    end->pump();
  };
  inject();
  const CallId first = end->service.calls.back().id;
  end->responder->trim();  // one is under way
  answer({});
  EXPECT_EQ(end->qp.sent.size(), 1u);
  end->responder->trim();
  EXPECT_FALSE(end->responder->reply(first, {}));
  // Until the same Receive, and so the same slot, has its turn.
  for (std::uint32_t i = 1; i < end->channel->config().num_receives; ++i) {
    inject();
    answer({});
  }
  inject();
  const CallId second = end->service.calls.back().id;
  EXPECT_EQ(second.value & 0xfff, first.value & 0xfff);
  EXPECT_NE(second.value, first.value);
  EXPECT_FALSE(end->responder->reply(first, {}));
  answer({});
}

TEST_F(ResponderTest, AnswersOnceAndOnlyToWhatItAsked) {
  open();
  call(parse(load_vector("V01").octets), payload_of(load_vector("V01").octets));
  const CallId id = end->service.calls.at(0).id;
  EXPECT_FALSE(end->responder->reply(CallId{id.value ^ 1}, {}));
  EXPECT_FALSE(end->responder->reply(CallId{id.value + (1 << 12)}, {}));
  EXPECT_TRUE(end->responder->reply(id, {}));
  EXPECT_FALSE(end->responder->reply(id, {}));
  end->pump();
  EXPECT_FALSE(end->responder->reply(id, {}));
  EXPECT_EQ(end->qp.sent.size(), 1u);
}

TEST_F(ResponderTest, ManySegmentsThroughAShortSendQueue) {
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
  EXPECT_FALSE(end->channel->failure());
}

TEST_F(ResponderTest, AStaleHandleEndsTheConnectionAndNothingElse) {
  RecordProperty("proves", "R1-5.5.3-01");
  open();
  v1::Header header = call_header();
  header.lists.read_list = {{static_cast<std::uint32_t>(40 + write_position()), {0xdead, 16, 0}}};
  call(header, rpc_call(kWrite, write_args(16)));
  EXPECT_TRUE(end->channel->failure());
  EXPECT_TRUE(end->service.calls.empty());
  end->responder.reset();
  EXPECT_EQ(end->budget.used, 0u);
  EXPECT_EQ(end->pool.in_use(), 0u);
}

TEST_F(ResponderTest, AFailingSendIsAFailureOfTheConnection) {
  RecordProperty("proves", "R1-5.5.4-03");
  open();
  call(call_header(), rpc_call(kNull));
  end->qp.fail_post_send = true;
  answer({});
  EXPECT_TRUE(end->channel->failure());
}

TEST_F(ResponderTest, APeerThatTakesNothingIsGivenUp) {
  open();
  end->qp.hold_completions = true;
  call(call_header(), rpc_call(kNull));
  answer({});
  const verbs::TimePoint start{std::chrono::seconds(100)};
  end->responder->on_time(start);
  EXPECT_EQ(end->responder->next_timeout(), start + std::chrono::seconds(30));
  end->responder->on_time(start + std::chrono::seconds(29));
  EXPECT_FALSE(end->channel->failure());
  end->responder->on_time(start + std::chrono::seconds(30));
  EXPECT_TRUE(end->channel->failure());
}

TEST_F(ResponderTest, HostileHeadersNeverReachMemoryThatWasNotOffered) {
  RecordProperty("proves", "R1-10.1-01");
  for (const char* id : {"V03", "V05", "V06", "V07", "V09", "V11", "V16", "V17", "V24"}) {
    const Octets octets = load_vector(id).octets;
    for (std::size_t at = 0; at + 4 <= octets.size(); at += 4) {
      for (const std::uint8_t octet : Octets{0x00, 0x01, 0x04, 0x80, 0xff}) {
        open({.credits = 2});
        end->service.answer = [this](ServedCall& served) { end->responder->reply(served.id, {}); };
        Octets changed = octets;
        changed[at + 3] = octet;
        if (octet >= 0x80) changed[at] = octet;
        end->qp.inject(changed);
        end->pump();
        end->pump();
        // At most one answer, and nothing of the peer's, because nothing was offered, was read or written.
        EXPECT_LE(end->qp.sent.size(), 1u);
      }
    }
  }
}

}  // namespace
}  // namespace weft::rpcrdma::testing
