#include "rpcrdma/channel.h"

#include <gtest/gtest.h>

#include "rpcrdma/testing/fake_verbs.h"

namespace weft::rpcrdma::testing {
namespace {

// An end whose peer owns nothing that an RDMA operation could name.
struct ChannelTest : ::testing::Test {
  ChannelTest() {
    channel = std::move(*Channel::create(pd, {.serial = 7, .num_receives = 1, .num_sends = 1}));
    EXPECT_TRUE(channel->attach(qp).ok());
  }
  ~ChannelTest() override { channel->detach(); }

  bool post(verbs::WrOpcode opcode, std::uint32_t slot, bool signaled) {
    const std::uint32_t send = *channel->take_send();
    const verbs::Sge sge{reinterpret_cast<std::uintptr_t>(channel->send_buffer(send).data()), 16,
                         channel->send_lkey(send)};
    return channel->post_rdma(opcode, std::span(&sge, 1), 0x1000, 0xbad, slot, signaled);
  }
  void take_completions() {
    verbs::Wc wc;
    while (cq.poll(std::span(&wc, 1)) == 1) EXPECT_FALSE(channel->on_completion(wc));
  }

  FakeMemory memory;
  FakePd pd{memory};
  FakeCq cq;
  FakeQp qp{memory, cq};
  std::unique_ptr<Channel> channel;
};

// On InfiniBand the completion says so, whether or not the Write asked for one (R1-5.5.3-03 needs the Call).
TEST_F(ChannelTest, ARefusedWriteIsKnownByItsSlot) {
  ASSERT_TRUE(post(verbs::WrOpcode::kRdmaWrite, 5, false));
  take_completions();
  EXPECT_EQ(channel->refused_write(), 5u);
  EXPECT_EQ(channel->refused_read(), std::nullopt);
  EXPECT_TRUE(channel->failure());
}

TEST_F(ChannelTest, ARefusedWriteThatWasSignaledIsKnownByItsSlot) {
  ASSERT_TRUE(post(verbs::WrOpcode::kRdmaWrite, 6, true));
  take_completions();
  EXPECT_EQ(channel->refused_write(), 6u);
  EXPECT_EQ(channel->refused_read(), std::nullopt);
}

TEST_F(ChannelTest, ARefusedReadIsKnownByItsSlot) {
  ASSERT_TRUE(post(verbs::WrOpcode::kRdmaRead, 7, true));
  take_completions();
  EXPECT_EQ(channel->refused_read(), 7u);
  EXPECT_EQ(channel->refused_write(), std::nullopt);
}

}  // namespace
}  // namespace weft::rpcrdma::testing
