// Both engines of wg07 together: what they reduce and how it comes back (draft-ietf-nfsv4-rpcrdma-version-two-07
// section 4.5).
#include <gmock/gmock.h>

#include "rpcrdma/testing/forms.h"
#include "rpcrdma/testing/gss.h"
#include "rpcrdma/testing/wg07.h"

namespace weft::rpcrdma::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
namespace wg07 = v2_wg07;

struct Wg07FormsTest : FormsTest {
  Wg07FormsTest() { protocol = Protocol::k2Wg07; }
  // The engines have settled, and nothing goes in parts.
  void open(ChunkUse chunks = {}, ResponderEnd::Options options = {}) {
    chunks.max_continued_call = chunks.max_continued_reply = 0;
    open_with_parts(chunks, std::move(options));
  }
  void open_with_parts(const ChunkUse& chunks, ResponderEnd::Options options = {}) {
    FormsTest::open(chunks, 4096, std::move(options));
    requester->qp.keep_sent = responder->qp.keep_sent = true;
    answer_with([](ServedCall&) { return ServedReply{}; });
    EXPECT_EQ(call(spec_of(0)).status, CallStatus::kSuccess);
    requester->qp.sent.clear();
    responder->qp.sent.clear();
    seen_args.clear();
  }
  Wg07Message last_call() { return wg07_parse(requester->qp.sent.back()); }
  Wg07Message last_reply() { return wg07_parse(responder->qp.sent.back()); }
  Octets args_sent() {
    const Octets payload = last_call().payload;
    return part_of(payload, kCallHeader, payload.size());
  }
};

// The second Position counts the first item and its roundup.
TEST_F(Wg07FormsTest, EachItemHasAReadChunkOfItsOwn) {
  RecordProperty("proves", "W2-4.5.1-1 W2-4.5.3-2 W2-4.5.3.1-1 W2-4.5.3.1-2");
  for (const std::size_t len : {5000u, 5001u, 5003u}) {
    open({.max_read_chunks = 2});
    const Message message = pair_message(pattern(len, 1), pattern(7001, 2));
    const auto items = items_of(message);
    CallSpec spec = spec_of(kPair, message.without);
    spec.items = items;
    EXPECT_EQ(call(spec).status, CallStatus::kSuccess);
    EXPECT_THAT(seen_args, ElementsAre(message.whole));
    EXPECT_EQ(args_sent(), message.without) << "the lengths stay, the roundup goes";
    const auto list = last_call().body<wg07::CallInline>().lists.read_list;
    ASSERT_THAT(list, SizeIs(2));
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(list[i].position, kCallHeader + message.items[i].position);
      EXPECT_EQ(list[i].target.length, message.items[i].octets.size());
    }
    EXPECT_EQ(list[1].position, kCallHeader + 4 + 4 + xdr::round_up(len) + 4 + 4);
  }
}

TEST_F(Wg07FormsTest, ElementsMoveWholeAndTheirCountStays) {
  RecordProperty("proves", "W2-4.5.3.2-1");
  open();
  const Message message = table_message(500);
  const auto items = items_of(message);
  CallSpec spec = spec_of(kTable, message.without);
  spec.items = items;
  EXPECT_EQ(call(spec).status, CallStatus::kSuccess);
  EXPECT_EQ(args_sent(), message.without);
  EXPECT_THAT(args_sent(), SizeIs(8)) << "the count of rows, and the field behind them";
  const auto list = last_call().body<wg07::CallInline>().lists.read_list;
  ASSERT_THAT(list, SizeIs(1));
  EXPECT_EQ(list[0].target.length, 500u * 12);
  EXPECT_EQ(list[0].position, kCallHeader + 4) << "behind the count";
  EXPECT_THAT(seen_args, ElementsAre(message.whole));
}

TEST_F(Wg07FormsTest, OptionalDataMovesAndItsPresenceStays) {
  RecordProperty("proves", "W2-4.5.3.3-1");
  const Octets first = pattern(5001, 1), second = pattern(6002, 2);
  for (const bool has_first : {true, false}) {
    open({.max_read_chunks = 2});
    const Message message = option_message(has_first ? &first : nullptr, &second);
    const auto items = items_of(message);
    CallSpec spec = spec_of(kOption, message.without);
    spec.items = items;
    EXPECT_EQ(call(spec).status, CallStatus::kSuccess);
    EXPECT_EQ(args_sent(), message.without);
    EXPECT_EQ(args_sent().at(3), has_first ? 1 : 0) << "the discriminator";
    EXPECT_THAT(last_call().body<wg07::CallInline>().lists.read_list, SizeIs(has_first ? 2 : 1));
    EXPECT_THAT(seen_args, ElementsAre(message.whole));
  }
}

// Arms of a union may be eligible: one that has no item takes no chunk.
TEST_F(Wg07FormsTest, ArmsOfAUnionAreReducedAndNoUnionIs) {
  RecordProperty("proves", "W2-4.5.3.4-1");
  open({.max_write_chunks = 2});
  const Octets data = pattern(3001);
  const Message message = many_message({&data, nullptr});
  answer_with([&](ServedCall&) { return reply_with(message, responder->pool); });
  Octets first(9000, 0xa5), second(9000, 0xa5);
  const std::vector<ScatteredBytes> rooms{MutBytes(first), MutBytes(second)};
  CallSpec spec = spec_of(kMany, no_operations());
  spec.result_items = rooms;
  spec.max_results = 40;
  const Outcome outcome = call(spec);
  ASSERT_EQ(outcome.status, CallStatus::kSuccess) << outcome.text;
  EXPECT_EQ(outcome.results, message.without) << "status words and lengths";
  EXPECT_EQ(part_of(first, 0, 3001), data);
  EXPECT_EQ(second, Octets(9000, 0xa5));
  const auto list = last_reply().body<wg07::ReplyInline>().lists.write_list;
  ASSERT_THAT(list, SizeIs(2));
  EXPECT_EQ(total_length(list[0]), 3001u);
  EXPECT_EQ(total_length(list[1]), 0u);
}

TEST_F(Wg07FormsTest, ABodyChunkHasAllRoundup) {
  RecordProperty("proves", "W2-4.5.3-1");
  for (const std::size_t len : {5001u, 5002u, 5003u, 5004u}) {
    open({.max_read_chunks = 0});
    const Message message = pair_message(pattern(len, 1), pattern(len + 1, 2));
    answer_with([&](ServedCall&) {
      ServedReply reply;
      reply.results = message.whole;
      return reply;
    });
    const auto items = items_of(message);
    CallSpec spec = spec_of(kPair, message.without);
    spec.items = items;
    spec.max_results = 20000;
    const Outcome outcome = call(spec);
    ASSERT_EQ(outcome.status, CallStatus::kSuccess) << outcome.text;
    EXPECT_THAT(seen_args, ElementsAre(message.whole));
    EXPECT_EQ(outcome.results, message.whole);
    const std::uint64_t sent = total_length(last_call().body<wg07::CallExternal>().lists.call_chunk);
    EXPECT_EQ(sent, kCallHeader + message.whole.size());
    EXPECT_EQ(sent % 4, 0u);
    EXPECT_EQ(total_length(*last_reply().body<wg07::ReplyExternal>().lists.reply_chunk), 24 + message.whole.size());
  }
}

TEST_F(Wg07FormsTest, ResultsAreThereWhenTheReplyIs) {
  RecordProperty("proves", "W2-4.5.2.3-1 W2-4-1");
  open();
  const Octets data = pattern(30001);
  const Message message = pair_message(data, {});
  answer_with([&](ServedCall&) { return reply_with(message, responder->pool); });
  Octets room(40000, 0xa5);
  const std::vector<ScatteredBytes> rooms{MutBytes(room), {}};
  const Octets args = pair_message({}, {}).whole;
  CallSpec spec = spec_of(kPair, args);
  spec.result_items = rooms;
  spec.max_results = 40;
  CallStatus status = CallStatus::kTimeout;
  Octets at_callback;
  ASSERT_TRUE(requester->requester
                  ->call(spec,
                         [&](const Reply& reply) {
                           status = reply.status;
                           at_callback = room;
                         })
                  .ok());
  run();
  EXPECT_EQ(status, CallStatus::kSuccess);
  Octets wanted = data;
  wanted.resize(40000, 0xa5);
  EXPECT_EQ(at_callback, wanted);
  EXPECT_THAT(responder->qp.rdma, SizeIs(1));
  EXPECT_EQ(responder->qp.rdma[0].sends_before, 1u) << "before the Reply";
  EXPECT_THAT(requester->qp.rdma, IsEmpty()) << "only responders read and write";
}

// What comes in several messages comes to its room, too. A result that is longer than its room ends its Call.
TEST_F(Wg07FormsTest, ResultsThatComeInPartsAreInTheirRooms) {
  open_with_parts({.max_write_chunks = 2, .max_continued_reply = 64 << 10});
  const Octets a = pattern(5001, 1), b = pattern(3, 2);
  const Message message = many_message({&a, &b});
  answer_with([&](ServedCall&) { return reply_with(message, responder->pool); });
  for (const std::size_t first : {6000u, 5001u, 5000u}) {
    Octets room_a(first, 0xa5), room_b(4, 0xa5);
    const std::vector<ScatteredBytes> rooms{MutBytes(room_a), MutBytes(room_b)};
    CallSpec spec = spec_of(kMany, no_operations());
    spec.result_items = rooms;
    spec.max_results = 40;
    const Outcome outcome = call(spec);
    EXPECT_TRUE(last_reply().body<wg07::ReplyInline>().lists.write_list.empty());
    if (first < a.size()) {
      EXPECT_EQ(outcome.status, CallStatus::kBadReply);
      EXPECT_EQ(outcome.text, "a result has 5001 bytes, and its room in CallSpec::result_items has 5000");
      continue;
    }
    ASSERT_EQ(outcome.status, CallStatus::kSuccess) << outcome.text;
    EXPECT_THAT(outcome.item_lens, ElementsAre(5001u, 3u));
    EXPECT_EQ(outcome.results, message.without);
    EXPECT_EQ(part_of(room_a, 0, 5001), a);
    EXPECT_EQ(part_of(room_b, 0, 3), b);
  }
}

TEST_F(Wg07FormsTest, WhatIsProtectedGoesWhole) {
  RecordProperty("proves", "W2-11.2.2-1 W2-11.2.2.3-1");
  const Octets wrapped = pattern(20000);
  for (const OpaqueAuth& cred : {gss_cred(GssService::kIntegrity), gss_cred(GssService::kPrivacy),
                                 gss_cred(GssService::kNone, 1), gss_cred(GssService::kNone, 2)}) {
    open();
    responder->programs.back().takes_gss = true;
    answer_with([&](ServedCall&) {
      ServedReply reply;
      reply.results = wrapped;
      return reply;
    });
    CallSpec spec = spec_of(kPair, wrapped);
    spec.cred = &cred;
    spec.max_results = wrapped.size();
    const Outcome outcome = call(spec);
    ASSERT_EQ(outcome.status, CallStatus::kSuccess) << outcome.text;
    EXPECT_EQ(seen_args.at(0), wrapped);
    EXPECT_EQ(outcome.results, wrapped);
    const auto lists = last_call().body<wg07::CallExternal>().lists;
    EXPECT_THAT(lists.read_list, IsEmpty());
    EXPECT_THAT(lists.write_list, IsEmpty());
    EXPECT_TRUE(lists.reply_chunk);
    // Nor does the caller reduce any.
    const Message message = pair_message(pattern(5000), {});
    const auto items = items_of(message);
    spec = spec_of(kPair, message.without);
    spec.cred = &cred;
    spec.items = items;
    EXPECT_FALSE(requester->requester->call(spec, nullptr).ok());
  }
}

// The other end reduced an item that is not eligible, or did not reduce one that is.
TEST_F(Wg07FormsTest, ResultsThatDisagreeWithTheirChunksEndTheCall) {
  RecordProperty("proves", "W2-A.1-1");
  const auto ended = [&](std::uint32_t procedure, const Octets& results, std::uint32_t len) {
    requester = std::make_unique<RequesterEnd>(memory, RequesterEnd::Options{.protocol = protocol});
    Octets room(30000);
    CallSpec spec = call_of(test_binding(), procedure);
    spec.result_items = room;
    spec.max_results = 40;
    CallStatus status = CallStatus::kTimeout;
    EXPECT_TRUE(requester->requester->call(spec, [&](const Reply& reply) { status = reply.status; }).ok());
    const Wg07Message sent = wg07_parse(requester->qp.sent.at(0));
    wg07::ReplyInline body{.lists = {.write_list = sent.body<wg07::CallInline>().lists.write_list}};
    for (SegmentArray& chunk : body.lists.write_list) chunk.at(0).length = len;
    const std::uint32_t xid = sent.header.xid;
    EXPECT_TRUE(requester->qp.inject(wg07_octets(xid, 9, body, rpc_reply(xid, results))));
    requester->pump();
    requester->requester->on_time(at(0));
    return status;
  };
  EXPECT_EQ(ended(kRead, {0, 0, 0, 8}, 8), CallStatus::kSuccess);
  EXPECT_EQ(ended(kRead, {}, 8), CallStatus::kBadReply);
  EXPECT_EQ(ended(kReaddir, {}, 8), CallStatus::kBadReply) << "not eligible";
}

}  // namespace
}  // namespace weft::rpcrdma::testing
