#include "rpcrdma/chunk_lists.h"

#include <gtest/gtest.h>

namespace weft::rpcrdma {
namespace {

ReadSegment read_segment(std::uint32_t position, std::uint32_t handle, std::uint32_t length) {
  return {position, {handle, length, 0x1000}};
}

TEST(ChunkLists, GroupsReadSegmentsByPositionInListOrder) {
  RecordProperty("proves", "R1-4.4.5-04 R1-4.4.5-06 R1-4.4.5-07 R1-4.4.3-02");
  ChunkListsView view;
  view.call_chunk = {{3, 7, 0x1000}};
  view.read_list = {read_segment(4240, 1, 10), read_segment(104, 2, 3), read_segment(104, 4, 0),
                    read_segment(4240, 5, 1), read_segment(104, 6, 2)};
  ChunkLists lists;
  ASSERT_EQ(ChunkLists::validate(view, {}, lists), ChunkError::kNone);
  ASSERT_NE(lists.call_chunk(), nullptr);
  EXPECT_EQ(lists.call_chunk()->length, 7u);
  ASSERT_EQ(lists.read_chunks().size(), 2u);
  EXPECT_EQ(lists.read_chunks()[0].position, 104u);
  EXPECT_EQ(lists.read_chunks()[0].length, 5u);
  EXPECT_EQ(lists.read_chunks()[0].segments[0].handle, 2u);
  EXPECT_EQ(lists.read_chunks()[0].segments[2].handle, 6u);
  EXPECT_EQ(lists.read_chunks()[1].segments[1].handle, 5u);
}

TEST(ChunkLists, RefusesMisalignedPositions) {
  RecordProperty("proves", "R1-4.4.5-05");
  for (const std::uint32_t position : {1u, 2u, 3u, 98u}) {
    ChunkListsView view;
    view.read_list = {read_segment(position, 1, 4)};
    ChunkLists lists;
    EXPECT_EQ(ChunkLists::validate(view, {}, lists), ChunkError::kMisalignedPosition);
  }
}

TEST(ChunkLists, SumsIn64Bits) {
  RecordProperty("proves", "R1-4.4.4-02");
  ChunkListsView view;
  view.read_list = {read_segment(96, 1, 0xffffffff), read_segment(96, 2, 0xffffffff)};
  ChunkLists lists;
  EXPECT_EQ(ChunkLists::validate(view, {.max_item = 8589934589}, lists), ChunkError::kTooLong);
  ASSERT_EQ(ChunkLists::validate(view, {.max_item = 8589934590}, lists), ChunkError::kNone);
  EXPECT_EQ(lists.read_chunks()[0].length, 8589934590u);
}

TEST(ChunkLists, LimitsByKindAndCount) {
  ChunkListsView view;
  view.call_chunk = {{1, 100, 0x1000}};
  view.read_list = {read_segment(96, 1, 200)};
  ChunkLists lists;
  EXPECT_EQ(ChunkLists::validate(view, {.max_message = 99, .max_item = 200}, lists), ChunkError::kTooLong);
  EXPECT_EQ(ChunkLists::validate(view, {.max_message = 100, .max_item = 199}, lists), ChunkError::kTooLong);
  EXPECT_EQ(ChunkLists::validate(view, {.max_message = 100, .max_item = 200}, lists), ChunkError::kNone);
  EXPECT_EQ(ChunkLists::validate(view, {.max_segments = 1}, lists), ChunkError::kTooManySegments);

  // The Call chunk does not count as a Read chunk. The sum is over all segments.
  EXPECT_EQ(ChunkLists::validate(view, {.max_read_chunks = 1}, lists), ChunkError::kNone);
  EXPECT_EQ(ChunkLists::validate(view, {.max_read_chunks = 0}, lists), ChunkError::kTooManyReadChunks);
  EXPECT_EQ(ChunkLists::validate(view, {.max_read_list = 299}, lists), ChunkError::kTooLong);
  EXPECT_EQ(ChunkLists::validate(view, {.max_read_list = 300}, lists), ChunkError::kNone);

  ChunkListsView writes;
  writes.write_list = {SegmentArray(2), SegmentArray(3)};
  EXPECT_EQ(ChunkLists::validate(writes, {.max_segments = 4}, lists), ChunkError::kTooManySegments);
  EXPECT_EQ(ChunkLists::validate(writes, {.max_segments = 5}, lists), ChunkError::kNone);
  EXPECT_EQ(ChunkLists::validate(writes, {.max_write_chunks = 1}, lists), ChunkError::kTooManyWriteChunks);

  ChunkListsView reply;
  reply.reply_chunk = SegmentArray(3);
  EXPECT_EQ(ChunkLists::validate(reply, {.max_segments = 2}, lists), ChunkError::kTooManySegments);
  ASSERT_EQ(ChunkLists::validate(reply, {}, lists), ChunkError::kNone);
  EXPECT_EQ(lists.reply_chunk()->segments.size(), 3u);
}

TEST(ChunkLists, RefusesSegmentsThatEndBeyond2To64) {
  RecordProperty("proves", "R1-5.5-02");
  constexpr std::uint64_t kTop = ~std::uint64_t{0};
  struct Row {
    Segment segment;
    ChunkError error;
  };
  const Row rows[] = {{{1, 1, kTop}, ChunkError::kNone},           {{1, 2, kTop}, ChunkError::kWraps},
                      {{1, 4096, kTop - 4095}, ChunkError::kNone}, {{1, 4096, kTop - 4094}, ChunkError::kWraps},
                      {{1, 0, kTop}, ChunkError::kNone},           {{1, 0xffffffff, 0}, ChunkError::kNone}};
  const Segment good{2, 16, 0x1000};
  for (const Row& row : rows) {
    ChunkListsView call, read, write, reply;
    call.call_chunk = {good, row.segment};
    read.read_list = {{96, good}, {96, row.segment}};
    write.write_list = {{good}, {good, row.segment}};
    reply.reply_chunk = SegmentArray{good, row.segment};
    for (const ChunkListsView& view : {call, read, write, reply}) {
      ChunkLists lists;
      EXPECT_EQ(ChunkLists::validate(view, {.max_message = UINT64_MAX, .max_item = UINT64_MAX}, lists), row.error)
          << row.segment.length << " octets at " << row.segment.offset;
    }
  }
}

TEST(ChunkLists, TellsEmptyFromUnusedWriteChunks) {
  RecordProperty("proves", "R1-4.4.6-08");
  ChunkListsView view;
  view.write_list = {SegmentArray{}, SegmentArray{{1, 0, 0}, {2, 0, 0}}};
  ChunkLists lists;
  ASSERT_EQ(ChunkLists::validate(view, {}, lists), ChunkError::kNone);
  EXPECT_TRUE(lists.write_chunks()[0].segments.empty());
  EXPECT_EQ(lists.write_chunks()[1].segments.size(), 2u);
  EXPECT_EQ(lists.write_chunks()[1].length, 0u);
}

}  // namespace
}  // namespace weft::rpcrdma
