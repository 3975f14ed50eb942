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

  bool write(SendSlot reply, bool signaled) {
    const verbs::Sge from = sge();
    return channel->post_write(std::span(&from, 1), 0x1000, 0xbad, reply, signaled);
  }
  bool read(CallSlot call) {
    const verbs::Sge to = sge();
    return channel->post_read(std::span(&to, 1), 0x1000, 0xbad, call);
  }
  verbs::Sge sge() {
    const SendSlot send = *channel->take_send();
    return {reinterpret_cast<std::uintptr_t>(channel->send_buffer(send).data()), 16, channel->send_lkey(send)};
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
TEST_F(ChannelTest, ARefusedWriteIsKnownByItsReply) {
  ASSERT_TRUE(write(SendSlot{5}, false));
  take_completions();
  EXPECT_EQ(channel->refused_write(), SendSlot{5});
  EXPECT_EQ(channel->refused_read(), std::nullopt);
  EXPECT_TRUE(channel->failure());
}

TEST_F(ChannelTest, ARefusedWriteThatWasSignaledIsKnownByItsReply) {
  ASSERT_TRUE(write(SendSlot{6}, true));
  take_completions();
  EXPECT_EQ(channel->refused_write(), SendSlot{6});
  EXPECT_EQ(channel->refused_read(), std::nullopt);
}

TEST_F(ChannelTest, ARefusedReadIsKnownByItsCall) {
  ASSERT_TRUE(read(CallSlot{7}));
  take_completions();
  EXPECT_EQ(channel->refused_read(), CallSlot{7});
  EXPECT_EQ(channel->refused_write(), std::nullopt);
}

}  // namespace
}  // namespace weft::rpcrdma::testing
