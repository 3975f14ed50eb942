#include "apps/dissect/call_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apps/dissect/testing/rpc.h"

namespace weft::apps::dissect {
namespace {

using Had = CallTable::Had;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::pattern;
using ::testing::SizeIs;
using testing::Talk;

rpcrdma::ChunkListsView write_chunk(std::uint32_t num_segments, std::uint32_t handle = 1) {
  rpcrdma::ChunkListsView lists;
  lists.write_list = {{num_segments, {.handle = handle, .length = 64}}};
  return lists;
}

// ---- what a table remembers

TEST(CallTable, TheNextCallMakesItForgetTheOthers) {
  HeldEntries held;
  CallTable::Pool pool;
  CallTable calls(held, pool);
  for (std::uint32_t xid = 0; xid < CallTable::kMaxCalls; ++xid) calls.add(xid, {}, {});
  EXPECT_EQ(calls.num_open(), CallTable::kMaxCalls);
  EXPECT_NE(calls.find(0), nullptr);
  EXPECT_FALSE(calls.has_forgotten());
  EXPECT_FALSE(calls.has_overflowed());
  calls.add(CallTable::kMaxCalls, {}, {});
  EXPECT_EQ(calls.num_open(), 1u);
  EXPECT_EQ(calls.find(0), nullptr);
  EXPECT_TRUE(calls.has_forgotten());
  EXPECT_EQ(calls.had(0), Had::kUnknown);
  EXPECT_TRUE(calls.has_overflowed());
}

TEST(CallTable, TheNextSegmentMakesItForgetTheOthers) {
  HeldEntries held;
  CallTable::Pool pool;
  CallTable calls(held, pool);
  calls.add(1, {}, write_chunk(CallTable::kMaxSegments - 1));
  EXPECT_TRUE(calls.find_memory(1, 0, 64).is_offered);
  calls.add(2, {}, write_chunk(1, 2));
  EXPECT_EQ(calls.find_memory(1, 0, 64).segment, nullptr);
  EXPECT_TRUE(calls.find_memory(2, 0, 64).is_offered);
  EXPECT_TRUE(calls.has_forgotten());
}

TEST(CallTable, AnswersThatWentBeforeTheirCallsAreBounded) {
  HeldEntries held;
  CallTable::Pool pool;
  CallTable calls(held, pool);
  calls.on_overtaken();
  EXPECT_TRUE(calls.has_forgotten());
  for (std::uint32_t xid = 0; xid < CallTable::kMaxPast; ++xid) calls.on_unknown_answer(xid);
  EXPECT_GT(held.now, 0u);
  EXPECT_FALSE(calls.has_overflowed());
  EXPECT_TRUE(calls.takes_early_answer(7));
  EXPECT_FALSE(calls.takes_early_answer(7));
  calls.on_unknown_answer(7);
  calls.on_unknown_answer(CallTable::kMaxPast);
  EXPECT_TRUE(calls.has_overflowed());
  calls.on_caught_up();
  EXPECT_FALSE(calls.takes_early_answer(8));
  EXPECT_EQ(held.now, 0u);
}

TEST(CallTable, OfEndedCallsTheLastOnesAreKnown) {
  HeldEntries held;
  CallTable::Pool pool;
  CallTable calls(held, pool);
  for (std::uint32_t xid = 0; xid <= CallTable::kMaxPast; ++xid) {
    calls.add(xid, {}, {});
    calls.answer(xid);
  }
  EXPECT_EQ(calls.had(0), Had::kNever);
  EXPECT_EQ(calls.had(1), Had::kAnswered);
  EXPECT_EQ(calls.had(CallTable::kMaxPast + 1), Had::kNever);
}

// ---- and what all connections do

TEST(HeldEntries, CallsBeyondTheBoundAreForgottenAndNotJudged) {
  HeldEntries held{.now = HeldEntries::kMax - 5};
  CallTable::Pool pool;
  {
    CallTable calls(held, pool);
    calls.add(1, {}, write_chunk(2));
    EXPECT_EQ(held.now, HeldEntries::kMax - 1);
    calls.add(2, {}, write_chunk(2));
    EXPECT_EQ(calls.find(1), nullptr);
    EXPECT_NE(calls.find(2), nullptr);
    EXPECT_TRUE(calls.has_forgotten());
    EXPECT_EQ(held.now, HeldEntries::kMax - 1);
    calls.answer(2);
    EXPECT_EQ(held.now, HeldEntries::kMax - 5);
  }
  EXPECT_EQ(held.now, HeldEntries::kMax - 5);
}

// A table that has nothing to forget remembers the Call alone.
TEST(HeldEntries, ACallIsRememberedWithoutItsSegmentsWhereOthersHoldAll) {
  HeldEntries held{.now = HeldEntries::kMax};
  CallTable::Pool pool;
  CallTable calls(held, pool);
  calls.add(1, {}, write_chunk(1));
  ASSERT_NE(calls.find(1), nullptr);
  EXPECT_TRUE(calls.has_forgotten());
  EXPECT_EQ(calls.find_memory(1, 0, 1).segment, nullptr);
}

TEST(HeldEntries, ChunksWithoutSegmentsCount) {
  HeldEntries held;
  CallTable::Pool pool;
  CallTable calls(held, pool);
  rpcrdma::ChunkListsView lists;
  lists.write_list.resize(7000);
  calls.add(1, {}, lists);
  EXPECT_EQ(held.now, 7001u);
  calls.answer(1);
  EXPECT_EQ(held.now, 0u);
}

TEST(HeldEntries, BeginningsOfRepliesInChunksCount) {
  constexpr std::size_t kHead = 2 * CallTable::kHeadOfEntry;
  HeldEntries held{.now = HeldEntries::kMax - 4};
  CallTable::Pool pool;
  CallTable calls(held, pool);
  CallTable::Call& first = calls.add(1, {}, {});
  calls.keep_reply_head(first, pattern(10));
  calls.keep_reply_head(first, pattern(kHead));
  EXPECT_EQ(first.reply_head, pattern(kHead));
  EXPECT_EQ(held.now, HeldEntries::kMax - 1);
  CallTable::Call& second = calls.add(2, {}, {});
  calls.keep_reply_head(second, pattern(1));
  EXPECT_THAT(second.reply_head, IsEmpty()) << "there is no room";
  calls.answer(1);
  calls.refuse(2);
  EXPECT_EQ(held.now, HeldEntries::kMax - 4);
}

TEST(HeldEntries, EndedCallsCount) {
  HeldEntries held;
  CallTable::Pool pool;
  {
    CallTable calls(held, pool);
    for (std::uint32_t xid = 0; xid < 2 * CallTable::kMaxPast; ++xid) {
      calls.add(xid, {}, {});
      calls.answer(xid);
    }
    EXPECT_EQ(held.now, CallTable::kMaxPast / CallTable::kPastOfEntry);
    held.now = HeldEntries::kMax;
    calls.note_unread(1);
    EXPECT_EQ(calls.had(1), Had::kUnknown);
    EXPECT_TRUE(calls.has_overflowed());
    EXPECT_LE(held.now, HeldEntries::kMax);
  }
}

// ---- an XID that two open Calls have

TEST(CallTable, AfterARepeatedXidMemoryIsInDoubtForATime) {
  HeldEntries held;
  CallTable::Pool pool;
  CallTable calls(held, pool);
  for (int i = 0; i < 3; ++i) calls.add(7, {}, write_chunk(1));
  EXPECT_TRUE(calls.has_forgotten());
  EXPECT_EQ(calls.had(8), Had::kNever) << "the doubt is about the one XID";
  calls.answer(7);
  EXPECT_EQ(calls.had(7), Had::kUnknown) << "the older Call may get a Reply, too";
  for (std::uint32_t xid = 100; xid < 100 + CallTable::kMaxPast; ++xid) {
    EXPECT_TRUE(calls.has_forgotten());
    EXPECT_TRUE(calls.has_repeated_xid());
    calls.add(xid, {}, {});
    calls.answer(xid);
  }
  EXPECT_FALSE(calls.has_forgotten());
  EXPECT_FALSE(calls.has_repeated_xid());
}

TEST(CallTable, WhereAnXidWasRepeatedOtherXidsAreJudgedAndTheRestIsTold) {
  Talk talk;
  talk.wire.open();
  talk.call(1);
  talk.reply(1);
  EXPECT_THAT(talk.told.unjudged, IsEmpty());
  talk.call(2);
  talk.call(2);
  talk.reply(2);
  talk.reply(77);
  talk.write(0xdef, 0, 64);
  EXPECT_THAT(talk.told.findings, ElementsAre("R1-3.1.2-01"));
  EXPECT_THAT(talk.told.unjudged, ElementsAre(HasSubstr("two open Calls have the same XID")));
  using testing::Wire;
  talk.wire.lose(Wire::kClient, talk.wire.fpdu(Wire::kClient, pattern(40)));
  talk.call(3);
  talk.dissector.finish();
  EXPECT_THAT(talk.told.unjudged, SizeIs(2)) << "that bytes are missing is another matter";
}

// The XID is used once more while the older Call may still get its Reply.
TEST(CallTable, AnXidThatWasRepeatedStaysInDoubt) {
  Talk talk;
  talk.wire.open();
  talk.call(1);
  talk.reply(1);
  talk.call(7);
  talk.call(7);
  talk.reply(7);
  talk.call(7);
  talk.reply(7);
  talk.reply(7);
  EXPECT_THAT(talk.told.findings, IsEmpty());
}

TEST(CallTable, ForgettingAllLeavesNoDoubtBehind) {
  HeldEntries held;
  CallTable::Pool pool;
  CallTable calls(held, pool);
  for (int i = 0; i < 2; ++i) calls.add(7, {}, {});
  for (std::uint32_t xid = 100; xid < 100 + CallTable::kMaxCalls; ++xid) calls.add(xid, {}, {});
  ASSERT_EQ(calls.find(7), nullptr);
  for (int i = 0; i < 2; ++i) calls.add(8, {}, {});
  calls.answer(8);
  for (std::uint32_t xid = 0; xid < 2 * CallTable::kMaxPast; ++xid) {
    calls.add(xid, {}, {});
    calls.answer(xid);
  }
  EXPECT_TRUE(calls.has_overflowed());
}

TEST(HeldEntries, SegmentsWithHolesCount) {
  HeldEntries held;
  CallTable::Pool pool;
  CallTable calls(held, pool);
  calls.add(1, {}, write_chunk(1));
  const std::size_t before = held.now;
  calls.note_write(1, 10, 1);
  EXPECT_EQ(held.now, before + CallTable::kEntriesOfHoled);
  calls.note_write(1, 0, 10);
  EXPECT_EQ(held.now, before);
  held.now = HeldEntries::kMax;
  calls.note_write(1, 20, 1);
  EXPECT_FALSE(calls.written(1, {.handle = 1, .length = 64})) << "there is no room";
  held.now = before;
}

}  // namespace
}  // namespace weft::apps::dissect
