#include "rpcrdma/endpoint.h"

#include <gtest/gtest.h>

#include "rpcrdma/testing/fake_verbs.h"

namespace weft::rpcrdma::testing {
namespace {

// An end whose peer owns nothing that an RDMA operation could name.
struct EndpointTest : ::testing::Test {
  EndpointTest() {
    endpoint = std::move(*Endpoint::create(pd, {.serial = 7, .num_receives = 1, .num_sends = 1}));
    EXPECT_TRUE(endpoint->attach(qp).ok());
  }
  ~EndpointTest() override { endpoint->detach(); }

  bool write(SendSlot reply, bool signaled) {
    const verbs::Sge from = sge();
    return endpoint->post_write(std::span(&from, 1), 0x1000, 0xbad, reply, signaled);
  }
  bool read(CallSlot call) {
    const verbs::Sge to = sge();
    return endpoint->post_read(std::span(&to, 1), 0x1000, 0xbad, call);
  }
  verbs::Sge sge() {
    const SendSlot send = *endpoint->take_send();
    return {reinterpret_cast<std::uintptr_t>(endpoint->send_buffer(send).data()), 16, endpoint->send_lkey(send)};
  }
  void take_completions() {
    verbs::Wc wc;
    while (cq.poll(std::span(&wc, 1)) == 1) EXPECT_FALSE(endpoint->on_completion(wc));
  }

  FakeMemory memory;
  FakePd pd{memory};
  FakeCq cq;
  FakeQp qp{memory, cq};
  std::unique_ptr<Endpoint> endpoint;
};

// On InfiniBand the completion says so, whether or not the Write asked for one (R1-5.5.3-03 needs the Call).
TEST_F(EndpointTest, ARefusedWriteIsKnownByItsReply) {
  ASSERT_TRUE(write(SendSlot{5}, false));
  take_completions();
  EXPECT_EQ(endpoint->refused_write(), SendSlot{5});
  EXPECT_EQ(endpoint->refused_read(), std::nullopt);
  EXPECT_TRUE(endpoint->failure());
}

TEST_F(EndpointTest, ARefusedWriteThatWasSignaledIsKnownByItsReply) {
  ASSERT_TRUE(write(SendSlot{6}, true));
  take_completions();
  EXPECT_EQ(endpoint->refused_write(), SendSlot{6});
  EXPECT_EQ(endpoint->refused_read(), std::nullopt);
}

TEST_F(EndpointTest, ARefusedReadIsKnownByItsCall) {
  ASSERT_TRUE(read(CallSlot{7}));
  take_completions();
  EXPECT_EQ(endpoint->refused_read(), CallSlot{7});
  EXPECT_EQ(endpoint->refused_write(), std::nullopt);
}

}  // namespace
}  // namespace weft::rpcrdma::testing
