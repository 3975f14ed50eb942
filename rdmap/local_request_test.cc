// Requests that send nothing (binding and invalidating a window), in order among requests that send.
#include <gtest/gtest.h>

#include <vector>

#include "rdmap/testing/pair.h"

namespace weft::rdmap {
namespace {

using testing::Pair;

constexpr std::uint32_t kKey = 0x11;

SendWr send(std::uint64_t wr_id, std::uint32_t len = 8) {
  SendWr wr;
  wr.wr_id = wr_id;
  wr.sg_list = {{0, len, ddp::Stag{kKey}}};
  return wr;
}

SendWr bind(std::uint64_t wr_id, std::uint32_t stag = 0x501) {
  SendWr wr;
  wr.wr_id = wr_id;
  wr.op = SendOp::kBindWindow;
  wr.args = ddp::WindowBind{ddp::Stag{stag}, ddp::Stag{kKey}, 16, 8, true, false, false};
  return wr;
}

SendWr invalidate(std::uint64_t wr_id, std::uint32_t stag = 0x501) {
  SendWr wr;
  wr.wr_id = wr_id;
  wr.op = SendOp::kInvalidateWindow;
  wr.remote_stag = ddp::Stag{stag};
  return wr;
}

struct LocalRequest : ::testing::Test {
  Pair pair;

  void SetUp() override {
    for (testing::Side* side : {&pair.a, &pair.b}) {
      side->memory.add_simple(kKey, 0, 0, 4096);
      for (std::uint64_t i = 0; i < 8; ++i) side->recvs.post(100 + i, {{0, 64, ddp::Stag{kKey}}});
    }
    pair.connect();
  }
  void post(SendWr wr) { ASSERT_EQ(pair.a.stream.post_send(std::move(wr)), PostResult::kOk); }
  std::vector<std::uint64_t> completed() {
    pair.a.drain();
    std::vector<std::uint64_t> ids;
    for (const Completion& c : pair.a.completions) ids.push_back(c.wr_id);
    return ids;
  }
};

TEST_F(LocalRequest, TakesEffectBetweenItsNeighbours) {
  post(send(1));
  post(bind(2));
  post(send(3));
  post(invalidate(4));
  ASSERT_TRUE(pair.a.stream.wants_tx());
  ASSERT_FALSE(pair.a.stream.tx_buffers(1460, 1 << 20, pair.now).empty());
  // The message that advertises the window is on its way out: the window exists.
  ASSERT_EQ(pair.a.memory.windows.size(), 1u);
  EXPECT_EQ(pair.a.memory.windows[0], (std::get<ddp::WindowBind>(bind(2).args)));
  EXPECT_TRUE(completed().empty()) << "the Send before it has not left";
  pair.a.stream.on_tx(0, pair.now);
  pair.run();
  EXPECT_EQ(completed(), (std::vector<std::uint64_t>{1, 2, 3, 4}));
  EXPECT_EQ(pair.a.completions[1].op, WorkOp::kBindWindow);
  EXPECT_EQ(pair.a.completions[3].op, WorkOp::kInvalidateWindow);
  EXPECT_EQ(pair.a.memory.windows_invalidated, (std::vector<ddp::Stag>{{0x501}}));
}

TEST_F(LocalRequest, IsCarriedOutOnceHoweverOftenItsNeighboursAreFramed) {
  post(bind(1));
  post(send(2));
  post(bind(3, 0x502));
  post(send(4));
  for (int i = 0; i < 5; ++i) {
    ASSERT_FALSE(pair.a.stream.tx_buffers(1460, 1 << 20, pair.now).empty());
    pair.a.stream.on_tx(0, pair.now);
  }
  EXPECT_EQ(pair.a.memory.windows.size(), 2u);
  EXPECT_EQ(completed(), (std::vector<std::uint64_t>{1})) << "nothing is before it";
  pair.run();
  EXPECT_EQ(pair.a.memory.windows.size(), 2u);
  EXPECT_EQ(completed(), (std::vector<std::uint64_t>{1, 2, 3, 4}));
  ASSERT_EQ(pair.b.completions.size(), 2u);
}

TEST_F(LocalRequest, AloneSendsNothing) {
  post(bind(1));
  ASSERT_TRUE(pair.a.stream.wants_tx());
  EXPECT_TRUE(pair.a.stream.tx_buffers(1460, 1 << 20, pair.now).empty());
  EXPECT_FALSE(pair.a.stream.wants_tx());
  EXPECT_EQ(completed(), (std::vector<std::uint64_t>{1}));
}

TEST_F(LocalRequest, WithAFenceWaitsForReads) {
  SendWr read = send(1);
  read.op = SendOp::kRdmaRead;
  read.remote_stag = ddp::Stag{kKey};
  post(read);
  SendWr fenced = invalidate(2);
  fenced.fence = true;
  post(fenced);
  const auto request = pair.a.transmit(pair.now);
  EXPECT_TRUE(pair.a.memory.windows_invalidated.empty());
  EXPECT_FALSE(pair.a.stream.wants_tx());
  pair.b.receive(request, pair.now);
  pair.run();
  EXPECT_EQ(pair.a.memory.windows_invalidated.size(), 1u);
  EXPECT_EQ(completed(), (std::vector<std::uint64_t>{1, 2}));
}

TEST_F(LocalRequest, IsNotHeldBackUntilThePeerHasSpoken) {
  ASSERT_EQ(pair.b.stream.post_send(bind(1)), PostResult::kOk);
  ASSERT_EQ(pair.b.stream.post_send(send(2)), PostResult::kOk);
  pair.run();
  ASSERT_EQ(pair.b.completions.size(), 1u);
  EXPECT_EQ(pair.b.completions[0].wr_id, 1u);
  EXPECT_TRUE(pair.a.completions.empty()) << "the Send is (RFC 5044 section 7.1.2)";
  post(send(3));
  pair.run();
  EXPECT_EQ(pair.b.memory.windows.size(), 1u);
  EXPECT_EQ(pair.a.completions.size(), 2u);
}

TEST_F(LocalRequest, RefusedEndsTheStream) {
  pair.a.memory.refuse_windows = true;
  post(send(1));
  post(bind(2));
  post(send(3));
  pair.run();
  ASSERT_EQ(completed(), (std::vector<std::uint64_t>{1, 2, 3}));
  EXPECT_EQ(pair.a.completions[0].status, WorkStatus::kSuccess);
  EXPECT_EQ(pair.a.completions[1].status, WorkStatus::kWindow);
  EXPECT_EQ(pair.a.completions[2].status, WorkStatus::kFlushed);
  ASSERT_EQ(pair.b.closed.size(), 1u);
  EXPECT_EQ(pair.b.closed[0].terminate, kLocalCatastrophic);
}

// RFC 5044 section 7.1.2: a Terminate is an FPDU, and the responder sends none before it has received one.
TEST_F(LocalRequest, RefusedBeforeThePeerHasSpokenEndsTheStreamWithoutAWord) {
  pair.b.memory.refuse_windows = true;
  ASSERT_EQ(pair.b.stream.post_send(bind(1)), PostResult::kOk);
  ASSERT_EQ(pair.b.stream.post_send(send(2)), PostResult::kOk);
  EXPECT_TRUE(pair.b.transmit(pair.now).empty());
  EXPECT_EQ(pair.b.stream.llp_action(), LlpAction::kReset);
  pair.run();
  ASSERT_EQ(pair.b.completions.size(), 2u);
  EXPECT_EQ(pair.b.completions[0].status, WorkStatus::kWindow);
  EXPECT_EQ(pair.b.completions[1].status, WorkStatus::kFlushed);
  ASSERT_EQ(pair.b.closed.size(), 1u);
  EXPECT_EQ(pair.b.closed[0].terminate, kLocalCatastrophic);
  EXPECT_NE(pair.b.closed[0].text.find("too early"), std::string::npos) << pair.b.closed[0].text;
  ASSERT_EQ(pair.a.closed.size(), 1u);
  EXPECT_EQ(pair.a.closed[0].reason, CloseReason::kLlp);
}

TEST_F(LocalRequest, LetsADisconnectEnd) {
  post(bind(1));
  pair.a.stream.disconnect(pair.now);
  pair.run();
  EXPECT_EQ(completed(), (std::vector<std::uint64_t>{1}));
  EXPECT_EQ(pair.a.completions[0].status, WorkStatus::kSuccess);
  EXPECT_EQ(pair.b.closed.size(), 1u);
}

TEST_F(LocalRequest, IsFlushedWithTheRest) {
  SendWr read = send(1);
  read.op = SendOp::kRdmaRead;
  post(read);
  SendWr fenced = bind(2);
  fenced.fence = true;
  post(fenced);
  pair.a.transmit(pair.now);
  pair.a.stream.abort(pair.now);
  ASSERT_EQ(completed(), (std::vector<std::uint64_t>{1, 2}));
  EXPECT_EQ(pair.a.completions[1].status, WorkStatus::kFlushed);
  EXPECT_TRUE(pair.a.memory.windows.empty());
}

TEST_F(LocalRequest, NamesNoMemory) {
  SendWr wr = bind(1);
  wr.sg_list = {{0, 1, ddp::Stag{kKey}}};
  EXPECT_EQ(pair.a.stream.post_send(wr), PostResult::kInvalid);
  wr = bind(1);
  wr.args = {};
  EXPECT_EQ(pair.a.stream.post_send(wr), PostResult::kInvalid);
}

}  // namespace
}  // namespace weft::rdmap
