// The handles that a requester of cel05 lets its peer invalidate (draft-cel-nfsv4-rpcrdma-version-two-05
// section 7.2.3).
#include <gmock/gmock.h>

#include "rpcrdma/testing/cel05_requester.h"

namespace weft::rpcrdma::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAreArray;

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

}  // namespace
}  // namespace weft::rpcrdma::testing
