// The requester chooses between inline data and chunks, and takes items from the chunks of a Reply.
#include <gtest/gtest.h>

#include "rpcrdma/profiles.h"
#include "rpcrdma/requester.h"
#include "rpcrdma/testing/requester.h"

namespace weft::rpcrdma::testing {
namespace {

TEST_F(RequesterTest, FitsTheThresholdExactlyAndThenChangesForm) {
  RecordProperty("proves", "R1-4.5.1-01 R1-5.2.4-05 R1-5.3.1-01 R1-5.3.2-01 R1-4.5.3-01 R1-4.5.3-02 R1-4.5.3-03");
  const std::size_t fits = 1024 - 28 - 40;
  for (const std::size_t len : {fits, fits + 4}) {
    open({.call_threshold = 1024});
    const Octets args = pattern(len);
    CallSpec spec;
    spec.args = args;
    call(spec);
    const v1::Header header = parse(sent(0));
    if (len == fits) {
      EXPECT_EQ(sent(0).size(), 1024u);
      EXPECT_EQ(header.proc, v1::Proc::kMsg);
      EXPECT_TRUE(header.lists.read_list.empty());
    } else {
      EXPECT_EQ(header.proc, v1::Proc::kNomsg);
      EXPECT_EQ(sent(0).size(), profile_1().call_lengths.of(header.lists));
      ASSERT_EQ(header.lists.read_list.size(), 1u);
      EXPECT_EQ(header.lists.read_list[0].position, 0u);
      EXPECT_EQ(header.lists.read_list[0].target.length, 40 + len);
    }
    EXPECT_TRUE(header.lists.write_list.empty());
    EXPECT_FALSE(header.lists.reply_chunk);
  }
}

TEST_F(RequesterTest, ItemGoesInlineOrAsReadChunkWithoutRoundup) {
  RecordProperty("proves", "R1-4.4.5.1-01 R1-4.4.5.1-03 R1-4.4.5-05 R1-4.4.2-02 R1-4.4.4.1-01 R1-4.4.4-05");
  for (const std::size_t len : {0ul, 5ul, 512ul, 5095ul}) {
    open({.call_threshold = 1024});
    Octets args = write_args(len);
    args.insert(args.end(), {1, 2, 3, 4});
    const Octets data = pattern(len);
    CallSpec spec;
    spec.procedure = kWrite;
    spec.args = args;
    spec.items = ArgumentItem{write_position(), data};
    call(spec);
    const v1::Header header = parse(sent(0));
    EXPECT_EQ(header.proc, v1::Proc::kMsg);
    Octets inline_args = write_args(len);
    if (len < 1000) {
      EXPECT_TRUE(header.lists.read_list.empty());
      inline_args.insert(inline_args.end(), data.begin(), data.end());
      inline_args.resize(xdr::round_up(inline_args.size()));
    } else {
      ASSERT_EQ(header.lists.read_list.size(), 1u);
      EXPECT_EQ(header.lists.read_list[0].position, 40 + write_position());
      EXPECT_EQ(header.lists.read_list[0].target.length, len);
    }
    inline_args.insert(inline_args.end(), {1, 2, 3, 4});
    const Octets payload = payload_of(sent(0));
    EXPECT_EQ(Octets(payload.begin() + 40, payload.end()), inline_args) << len;
  }
}

TEST_F(RequesterTest, ChunksForResultsFromTheBoundOfTheReply) {
  RecordProperty("proves",
                 "R1-5.3.3-01 R1-5.3.3-02 R1-5.3.3-03 R1-4.5.3-07 R1-4.4.6-02 R1-4.4.6.1-01 R1-5.3.2-04 R1-8.2-01");
  Octets room(70000);
  struct Case {
    std::size_t item, max_results;
    bool write, reply;
  };
  for (const Case& c : {Case{0, 1024 - 28 - 24, false, false}, Case{0, 1024 - 28 - 20, false, true},
                        Case{800, 1024 - 28 - 24 - 800, false, false}, Case{801, 1024 - 28 - 24 - 800, true, false},
                        Case{65537, 128, true, false}, Case{65537, 1024 - 28 - 24 - 24, true, false},
                        Case{65537, 1024 - 28 - 24 - 20, true, true}}) {
    open({.reply_threshold = 1024, .chunks = {.write_list_with_reply_chunk = true}});
    CallSpec spec;
    spec.procedure = kRead;
    spec.result_items = MutBytes(room).first(c.item);
    spec.max_results = c.max_results;
    call(spec);
    const v1::Header header = parse(sent(0));
    ASSERT_EQ(header.lists.write_list.size(), c.write ? 1u : 0u) << c.item << " " << c.max_results;
    if (c.write) {
      EXPECT_EQ(total_length(header.lists.write_list[0]), c.item);
    }
    ASSERT_EQ(header.lists.reply_chunk.has_value(), c.reply) << c.item << " " << c.max_results;
    if (c.reply) {
      EXPECT_GE(total_length(*header.lists.reply_chunk), 24 + c.max_results);
    }
  }
}

// For the sake of Linux servers, a Call offers a Write list and a Reply chunk together only if its user allows it.
TEST_F(RequesterTest, WithoutLeaveTheReplyChunkHasItsItemsToo) {
  std::vector<std::uint8_t> room(5000);
  open({.reply_threshold = 1024});
  CallSpec spec;
  spec.procedure = kRead;
  spec.result_items = MutBytes(room);
  spec.max_results = 2000;
  call(spec);
  const v1::Header header = parse(sent(0));
  EXPECT_TRUE(header.lists.write_list.empty());
  ASSERT_TRUE(header.lists.reply_chunk);
  EXPECT_GE(total_length(*header.lists.reply_chunk), 24 + 2000 + room.size());
}

TEST_F(RequesterTest, NothingIsReachableWhenTheCallbackRuns) {
  RecordProperty("proves", "R1-5.4.1-01 R1-10.1.3-01 R1-10.1.2-01");
  open({.call_threshold = 1024, .reply_threshold = 1024, .chunks = {.write_list_with_reply_chunk = true}});
  const Octets args = write_args(9000);
  const Octets data = pattern(9000);
  Octets room(9000);
  CallSpec spec;
  spec.procedure = kSwap;
  spec.args = args;
  spec.items = ArgumentItem{write_position(), data};
  spec.result_items = room;
  spec.max_results = 3000;
  call(spec);
  EXPECT_EQ(memory.num_remote(), 3u);
  v1::Header header = parse(sent(0));
  const Octets whole = rpc_reply(header.xid, pattern(1000));
  // The peer writes into both chunks.
  Octets item = pattern(77);
  const auto put = [this](const Segment& segment, const Octets& octets) {
    auto* to = memory.find(segment.handle, segment.offset, octets.size(), verbs::Access::kRemoteWrite);
    ASSERT_NE(to, nullptr);
    std::copy(octets.begin(), octets.end(), to);
  };
  put(header.lists.write_list[0][0], item);
  put(header.lists.reply_chunk->at(0), whole);
  header.lists.read_list.clear();
  header.lists.write_list[0][0].length = 77;
  header.lists.reply_chunk->at(0).length = static_cast<std::uint32_t>(whole.size());
  header.proc = v1::Proc::kNomsg;
  deliver(message(header, {}));
  ASSERT_EQ(outcomes.size(), 1u);
  EXPECT_EQ(outcomes[0].status, CallStatus::kSuccess);
  EXPECT_EQ(outcomes[0].results, pattern(1000));
  EXPECT_EQ(outcomes[0].item_len, 77u);
  EXPECT_EQ(outcomes[0].remote_regions, 0u);
  EXPECT_TRUE(std::equal(item.begin(), item.end(), room.begin()));
}

TEST_F(RequesterTest, TheLengthOfAnItemIsANumberByChunkAndInline) {
  open({.reply_threshold = 1024});
  Octets room(5000);
  CallSpec spec;
  spec.result_items = room;
  call(spec);
  run();
  deliver(reply_to(0, 8, {0, 0, 0, 70}));
  EXPECT_EQ(outcomes.at(0).item_len, 0u);
  spec.result_items = MutBytes(room).first(10);
  call(spec);
  run();
  deliver(reply_to(1, 8));
  EXPECT_EQ(outcomes.at(1).item_len, 0u);
}

}  // namespace
}  // namespace weft::rpcrdma::testing
