#include "rdmap/send_queue.h"

#include <gtest/gtest.h>

#include <limits>

namespace weft::rdmap {
namespace {

SendWr wr(SendOp op, std::uint64_t wr_id, std::uint32_t len = 1) {
  SendWr out;
  out.op = op;
  out.wr_id = wr_id;
  out.remote_stag = ddp::Stag{1};
  if (len > 0) out.sg_list = {{0, len, ddp::Stag{1}}};
  return out;
}

struct Fixture {
  Ring<Event> events;
  SendQueue queue{4, events};
  std::vector<Completion> take() {
    std::vector<Completion> out;
    for (; !events.empty(); events.pop_front()) out.push_back(std::get<Completion>(events.front()));
    return out;
  }
};

TEST(SendQueue, RefusesWhatContradictsItselfAndWhatIsTooMuch) {
  Fixture f;
  auto read = wr(SendOp::kRdmaRead, 1, 0);
  read.inline_data = {1};
  EXPECT_EQ(f.queue.post(read), PostResult::kInvalid);
  auto huge = wr(SendOp::kSend, 1, std::numeric_limits<std::uint32_t>::max());
  huge.sg_list.push_back({0, 1, ddp::Stag{1}});
  EXPECT_EQ(f.queue.post(huge), PostResult::kInvalid);
  auto wrap = wr(SendOp::kRdmaWrite, 1, 2);
  wrap.remote_to = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(f.queue.post(wrap), PostResult::kInvalid);
  for (std::uint64_t i = 0; i < 4; ++i) EXPECT_EQ(f.queue.post(wr(SendOp::kSend, i)), PostResult::kOk);
  EXPECT_EQ(f.queue.post(wr(SendOp::kSend, 4)), PostResult::kQueueFull);
}

TEST(SendQueue, SendsAndReadsCountTheirMsnsApart) {
  Fixture f;
  ASSERT_EQ(f.queue.post(wr(SendOp::kSend, 0)), PostResult::kOk);
  ASSERT_EQ(f.queue.post(wr(SendOp::kRdmaRead, 1)), PostResult::kOk);
  ASSERT_EQ(f.queue.post(wr(SendOp::kSendInvalidate, 2)), PostResult::kOk);
  ASSERT_EQ(f.queue.post(wr(SendOp::kRdmaRead, 3)), PostResult::kOk);
  EXPECT_EQ(f.queue[0].msn.value, 1u);
  EXPECT_EQ(f.queue[1].msn.value, 1u);
  EXPECT_EQ(f.queue[2].msn.value, 2u);
  EXPECT_EQ(f.queue[3].msn.value, 2u);
}

TEST(SendQueue, ReadsWaitForOrdAndFencesForReads) {
  RecordProperty("proves", "MPA2-4.1-02");
  Fixture f;
  f.queue.set_ord(1);
  ASSERT_EQ(f.queue.post(wr(SendOp::kRdmaRead, 0)), PostResult::kOk);
  ASSERT_EQ(f.queue.post(wr(SendOp::kRdmaRead, 1)), PostResult::kOk);
  auto fenced = wr(SendOp::kSend, 2);
  fenced.fence = true;
  ASSERT_EQ(f.queue.post(fenced), PostResult::kOk);
  EXPECT_TRUE(f.queue.may_leave(0, 0));
  EXPECT_FALSE(f.queue.may_leave(1, 1)) << "a Read in the same batch counts";
  EXPECT_FALSE(f.queue.may_leave(3, 0)) << "not posted";
  f.queue.on_read_sent(0);
  EXPECT_FALSE(f.queue.may_leave(1, 0));
  EXPECT_FALSE(f.queue.may_leave(2, 0));
  f.queue.finish_read(WorkStatus::kSuccess);
  EXPECT_TRUE(f.queue.may_leave(1, 0));
  EXPECT_TRUE(f.queue.may_leave(2, 0));
  EXPECT_FALSE(f.queue.may_leave(2, 1));
}

TEST(SendQueue, CompletesInOrder) {
  Fixture f;
  f.queue.set_ord(4);
  ASSERT_EQ(f.queue.post(wr(SendOp::kRdmaRead, 7, 9)), PostResult::kOk);
  auto noted = wr(SendOp::kSend, 8);
  noted.note = 0x1234;
  ASSERT_EQ(f.queue.post(noted), PostResult::kOk);
  auto silent = wr(SendOp::kRdmaWrite, 9);
  silent.signaled = false;
  ASSERT_EQ(f.queue.post(silent), PostResult::kOk);
  f.queue.on_read_sent(0);
  f.queue.finish(1, WorkStatus::kSuccess);
  f.queue.finish(2, WorkStatus::kSuccess);
  EXPECT_TRUE(f.take().empty());
  f.queue.finish_read(WorkStatus::kSuccess);
  const auto done = f.take();
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[0].wr_id, 7u);
  EXPECT_EQ(done[0].op, WorkOp::kRdmaRead);
  EXPECT_EQ(done[0].byte_len, 9u);
  EXPECT_EQ(done[0].note, 0u);
  EXPECT_EQ(done[1].wr_id, 8u);
  EXPECT_EQ(done[1].note, 0x1234u);
  EXPECT_TRUE(f.queue.empty());
}

// A slot is used again with the leftovers of an earlier request in it. They must not count for the next request.
TEST(SendQueue, AUsedSlotIsAsGoodAsNew) {
  Fixture f;
  f.queue.set_ord(4);
  for (std::uint64_t seq = 0; seq < 64; ++seq) {
    auto read = wr(SendOp::kRdmaRead, seq, 9);
    ASSERT_EQ(f.queue.post(read), PostResult::kOk);
    EXPECT_FALSE(f.queue[seq].done);
    EXPECT_EQ(f.queue[seq].read, 0u);
    EXPECT_EQ(f.queue[seq].status, WorkStatus::kSuccess);
    f.queue.on_read_sent(seq);
    EXPECT_EQ(f.queue.oldest_read(), nullptr) << "not all of the request has left";
    f.queue.on_read_left(seq);
    ASSERT_NE(f.queue.oldest_read(), nullptr);
    f.queue.oldest_read()->read = 9;
    // Requests behind it wait for it, and the next one in this slot is another.
    f.queue.finish_read(WorkStatus::kSuccess);
    ASSERT_EQ(f.take().size(), 1u);
  }
  for (std::uint64_t seq = 64; seq < 128; ++seq) {
    ASSERT_EQ(f.queue.post(wr(SendOp::kSend, seq)), PostResult::kOk);
    EXPECT_EQ(f.queue[seq].msn.value, seq - 63);
    f.queue.finish(seq, WorkStatus::kSuccess);
    const auto done = f.take();
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(done[0].wr_id, seq);
    EXPECT_EQ(done[0].byte_len, 0u);
  }
}

// A slot that is used again keeps the memory of its inline data, but little of it: a queue has many slots.
TEST(SendQueue, MuchInlineDataIsGivenBack) {
  constexpr std::size_t kKept = 256;
  Fixture f;
  for (const std::size_t len : {kKept + 1, std::size_t{100'000}}) {
    auto large = wr(SendOp::kSend, 0, 0);
    large.inline_data.resize(len);
    // As many as there are slots, so that each is used again.
    for (int i = 0; i < 8; ++i) {
      ASSERT_EQ(f.queue.post(large), PostResult::kOk);
      f.queue.finish(f.queue.skip_done(0), WorkStatus::kSuccess);
    }
    for (int i = 0; i < 8; ++i) {
      ASSERT_EQ(f.queue.post(wr(SendOp::kSend, 0)), PostResult::kOk);
      const std::uint64_t seq = f.queue.skip_done(0);
      EXPECT_LE(f.queue[seq].wr.inline_data.capacity(), kKept);
      f.queue.finish(seq, WorkStatus::kSuccess);
    }
    ASSERT_EQ(f.take().size(), 16u);
  }
}

TEST(SendQueue, FlushEndsEverythingOnceWithItsOwnStatus) {
  Fixture f;
  f.queue.set_ord(4);
  ASSERT_EQ(f.queue.post(wr(SendOp::kRdmaRead, 0)), PostResult::kOk);
  ASSERT_EQ(f.queue.post(wr(SendOp::kSend, 1)), PostResult::kOk);
  ASSERT_EQ(f.queue.post(wr(SendOp::kRdmaRead, 2)), PostResult::kOk);
  auto silent = wr(SendOp::kSend, 3);
  silent.signaled = false;
  ASSERT_EQ(f.queue.post(silent), PostResult::kOk);
  f.queue.on_read_sent(0);
  f.queue.finish(1, WorkStatus::kSuccess);  // taken by TCP, but behind a Read that fails: its fate is unknown
  f.queue[3].done = true;
  f.queue[3].status = WorkStatus::kLocalProtection;
  f.queue.flush(kReadAccessRights, ddp::Msn{2}, WorkStatus::kRemoteAccess);
  const auto done = f.take();
  ASSERT_EQ(done.size(), 4u);
  EXPECT_EQ(done[0].status, WorkStatus::kFlushed);
  EXPECT_EQ(done[1].status, WorkStatus::kFlushed);
  EXPECT_EQ(done[2].status, WorkStatus::kRemoteAccess);
  EXPECT_EQ(done[3].status, WorkStatus::kLocalProtection);
  for (const Completion& c : done) EXPECT_EQ(c.terminate, kReadAccessRights);
  EXPECT_TRUE(f.queue.empty());
  EXPECT_EQ(f.queue.oldest_read(), nullptr);
}

}  // namespace
}  // namespace weft::rdmap
