// COMPOUNDs over wg07 and their chunks (draft-ietf-nfsv4-nfs-ulb-v2 section 5.4.2).
#include "tests/rpc/nfs_over_wg07.h"

namespace weft::rpcrdma::testing {
namespace {

using nfsulb::testing::lookup;
using nfsulb::testing::op;
using nfsulb::testing::putfh;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Optional;
using ::testing::SizeIs;

// Items go by chunk, whatever their length.
constexpr ChunkUse kByChunk{.max_write_chunks = 3, .max_continued_call = 0, .max_continued_reply = 0};

// PUTFH LOOKUP READ PUTFH LOOKUP READLINK PUTFH LOOKUP READ.
struct NfsCompound : NfsOverWg07 {
  CallSpec three_reads() {
    return compound(0, {putfh(), lookup(), nfsulb::testing::read(3000), putfh(), lookup(), op(27), putfh(), lookup(),
                        nfsulb::testing::read(2000)});
  }
  void answer_three_reads() {
    answer_with([this] {
      using nfsulb::testing::ok;
      const Xdr found = Xdr().add(ok(22)).add(ok(15));
      ServedReply reply;
      put_item(reply, Xdr().u32(0).opaque(5).u32(9).add(found).add(nfsulb::testing::read_ok(3000)), 3000);
      put_item(reply, Xdr().add(found).add(nfsulb::testing::readlink_ok(40)), 40);
      put_item(reply, Xdr().add(found).add(nfsulb::testing::read_ok(1996)), 1996);
      return reply;
    });
  }
  static std::vector<std::size_t> lengths(const ChunkListsView& lists) {
    std::vector<std::size_t> all;
    for (const SegmentArray& chunk : lists.write_list) all.push_back(total_length(chunk));
    return all;
  }
};

TEST_F(NfsCompound, ReadOperationsFillTheirChunksInOrder) {
  RecordProperty("proves", "U2-5.4.1-2 U2-5.4.1-4 U2-5.4.1-5 U2-5.4.3-1");
  open(kByChunk);
  answer_three_reads();
  call(three_reads());
  expect_success();
  EXPECT_THAT(lengths(lists_of_call()), ElementsAre(3000u, rooms[1].size(), 2000u));
  EXPECT_THAT(lengths(lists_of_reply()), ElementsAre(3000u, 40u, 1996u));
  EXPECT_THAT(item_lens, ElementsAre(Optional(3000u), Optional(40u), Optional(1996u)));
  EXPECT_EQ(rooms[0], pattern(3000));
  EXPECT_TRUE(std::ranges::equal(ConstBytes(rooms[1]).first(40), pattern(40)));
  EXPECT_TRUE(std::ranges::equal(ConstBytes(rooms[2]).first(1996), pattern(1996)));
}

TEST_F(NfsCompound, AnEmptyChunkAsksForItsResultInline) {
  RecordProperty("proves", "U2-5.4.1-6 U2-5.4.3-1");
  open(kByChunk);
  answer_three_reads();
  CallSpec spec = three_reads();
  scattered[1] = {};
  spec.result_items = scattered;
  call(spec);
  expect_success();
  EXPECT_THAT(lists_of_call().write_list.at(1), SizeIs(0));
  EXPECT_THAT(item_lens, ElementsAre(Optional(3000u), std::nullopt, Optional(1996u)));
  const Octets link = pattern(40);
  EXPECT_NE(std::ranges::search(results, link).begin(), results.end()) << "the text stands in the results";
}

TEST_F(NfsCompound, WithoutAChunkResultsAreInline) {
  RecordProperty("proves", "U2-5.4.1-3 U2-5.4.1-10 U2-5.4.2-3");
  for (const std::size_t num : {0u, 1u}) {
    open(num == 0 ? ChunkUse{.max_write_chunks = 0} : ChunkUse{.max_continued_reply = 0});
    answer_three_reads();
    CallSpec spec = three_reads();
    if (num == 0) {
      spec.result_items = {};
      spec.max_results = 9000;
    }
    call(spec);
    expect_success();
    EXPECT_LE(wg07_parse(requester->qp.sent[0]).body<wg07::CallInline>().lists.write_list.size(), num);
    const Octets last = pattern(1996);
    const bool has_room = num != 0;
    EXPECT_EQ(std::ranges::search(results, last).begin() == results.end(), has_room);
    if (!has_room) continue;
    EXPECT_THAT(item_lens, ElementsAre(Optional(3000u), Optional(40u), Optional(1996u)));
    EXPECT_TRUE(std::ranges::equal(ConstBytes(rooms[2]).first(1996), last));
  }
}

TEST_F(NfsCompound, ChunksOfOperationsThatFailedComeBackUnused) {
  RecordProperty("proves", "U2-5.4.1-7 U2-5.4.1-8 U2-5.4.1-9");
  for (const bool is_empty : {false, true}) {
    open(kByChunk);
    const Octets failed = nfsulb::testing::compound_res(
                              5, {nfsulb::testing::ok(22), nfsulb::testing::ok(15), nfsulb::testing::failed(25, 5)})
                              .octets();
    if (is_empty) responder->service.answer = nullptr;
    if (!is_empty) answer_with(failed);
    call(three_reads());
    if (is_empty) {  // as the binding's words have it: without segments
      const std::uint32_t xid = wg07_parse(requester->qp.sent[0]).header.xid;
      const wg07::ReplyInline body{.lists = {.write_list = {{}, {}, {}}}};
      ASSERT_TRUE(requester->qp.inject(wg07_octets(xid, 1000, body, rpc_reply(xid, failed))));
      run();
    } else {
      EXPECT_THAT(lengths(lists_of_reply()), ElementsAre(0u, 0u, 0u));
      EXPECT_THAT(lists_of_reply().write_list, Each(SizeIs(1)));
    }
    expect_success();
    EXPECT_EQ(results, failed);
    EXPECT_THAT(item_lens, Each(Optional(0u)));
  }
}

TEST_F(NfsCompound, ArgumentsAreToldApartByTheirPositions) {
  RecordProperty("proves", "U2-5.4.1-1");
  open({.max_read_chunks = 2, .max_continued_call = 0});
  const Octets first = pattern(5000, 1), second = pattern(6000, 2);
  const Xdr before = Xdr().opaque(5).u32(0).u32(3).add(putfh()).add(nfsulb::testing::write(5000));
  const Xdr whole = Xdr(before).add(nfsulb::testing::write(6000));
  args = whole.octets();
  const std::vector<ArgumentItem> items{{before.size(), ConstBytes(first)}, {whole.size(), ConstBytes(second)}};
  CallSpec spec = call_of(nfsulb::testing::nfs4(), kCompound, args);
  spec.items = items;
  std::vector<Octets> got;
  responder->service.answer = [&](ServedCall& served) {
    for (const ServedItem& item : served.items) got.push_back(copy_of(item.data.octets()));
    responder->responder->reply(served.id, {});
  };
  call(spec);
  expect_success();
  EXPECT_THAT(lists_of_call().read_list, SizeIs(2));
  EXPECT_THAT(got, ElementsAre(first, second));
}

// A Call chunk, one Read chunk and one Write chunk.
TEST_F(NfsCompound, EveryServerTakesOneChunkOfEachKind) {
  RecordProperty("proves", "U2-5.4.2-2");
  open({.write_list_with_reply_chunk = true,
        .max_continued_call = 0,
        .max_continued_reply = 0,
        .long_calls_with_items = true},
       {.max_write_chunks = 1});
  const Octets data = pattern(5000);
  const Xdr before = Xdr().opaque(5).u32(2).u32(4).add(putfh()).add(nfsulb::testing::write(5000));
  args = Xdr(before)
             .add(op(nfsulb::testing::kOpSetxattr, Xdr().u32(0).opaque(9).opaque(6000)))
             .add(nfsulb::testing::read(6000))
             .octets();
  const ArgumentItem item{before.size(), ConstBytes(data)};
  Octets room(6000);
  CallSpec spec = call_of(nfsulb::testing::nfs4(), kCompound, args);
  spec.items = item;
  spec.result_items = room;
  spec.max_results = 1000;
  Octets got_args, got_data;
  responder->service.answer = [&](ServedCall& served) {
    got_args = copy_of(served.args);
    ASSERT_EQ(served.items.size(), 1u);
    got_data = copy_of(served.items[0].data.octets());
    responder->responder->reply(served.id, {});
  };
  call(spec);
  ASSERT_THAT(requester->qp.sent, SizeIs(1));
  const auto lists = wg07_parse(requester->qp.sent[0]).body<wg07::CallExternal>().lists;
  EXPECT_FALSE(lists.call_chunk.empty());
  EXPECT_THAT(lists.read_list, SizeIs(1));
  EXPECT_THAT(lists.write_list, SizeIs(1));
  EXPECT_EQ(got_args, args);
  EXPECT_EQ(got_data, data);
  EXPECT_THAT(ended, SizeIs(1));
}

TEST_F(NfsCompound, RefusedWriteChunksAreLeftOutOfTheNextTry) {
  RecordProperty("proves", "U2-5.4.2-5");
  open(kByChunk, {.max_write_chunks = 1});
  answer_three_reads();
  call(three_reads());
  expect_success();
  ASSERT_THAT(requester->qp.sent, SizeIs(2));
  const auto error = wg07_parse(responder->qp.sent[0]).body<wg07::Error>();
  EXPECT_EQ(error.err, wg07::Err::kWriteChunks);
  EXPECT_EQ(error.arm.max_chunks, 1u);
  EXPECT_TRUE(wg07_parse(requester->qp.sent[1]).body<wg07::CallInline>().lists.write_list.empty());
}

}  // namespace
}  // namespace weft::rpcrdma::testing
