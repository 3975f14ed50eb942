#pragma once

#include <memory>
#include <vector>

#include "verbs-shim/api/testing/pair.h"

namespace weft::verbs::testing {

// SrqTest: the server's queue pairs share a receive queue; their completions go to one Cq.
class SrqTest : public VerbsTest {
 protected:
  static constexpr std::uint32_t kMaxWr = 16;
  static constexpr std::uint32_t kMaxSge = 2;

  void SetUp() override {
    VerbsTest::SetUp();
    if (IsSkipped()) return;
    if (server_.device->caps().max_srq == 0) GTEST_SKIP() << "no shared receive queues";
    auto srq = server_.pd->create_srq({.max_wr = kMaxWr, .max_sge = kMaxSge});
    ASSERT_TRUE(srq.ok()) << srq.error().message;
    server_.srq = std::move(*srq);
    to_ = std::make_unique<Mem>(*server_.pd, 4096, Access::kLocalWrite);
    from_ = std::make_unique<Mem>(*client_.pd, 64, Access::kNone, 7);
    server_.device->async_fd();  // its events are listened for
  }
  void TearDown() override {
    other_.qp.reset();
    other_.server_qp.reset();
    other_ = {};
    to_.reset();
    from_.reset();
  }

  void connect_two() {
    establish();
    connect_another(other_);
    client_.events.clear();
    server_.events.clear();
  }
  // So many receives of 64 octets, named from 0 up.
  void post(std::uint64_t num) {
    for (std::uint64_t i = 0; i < num; ++i) ASSERT_TRUE(post_one(i).ok());
  }
  // Each has memory of its own: several threads may fill them at once.
  Status post_one(std::uint64_t wr_id) {
    const Sge sge = to_->sge(64 * (wr_id % 64), 64);
    return server_.srq->post_recv({.wr_id = wr_id, .sg_list = {&sge, 1}});
  }
  Status send(Qp& qp, std::size_t len) {
    const Sge sge = from_->sge(0, len);
    return qp.post_send({.sg_list = {&sge, 1}, .opcode = WrOpcode::kSend, .send_flags = SendFlags::kSignaled});
  }
  void expect_limit() {
    const auto event = wait_async(server_);
    ASSERT_TRUE(event);
    EXPECT_EQ(event->type, AsyncEventType::kSrqLimitReached) << event->text;
    EXPECT_EQ(event->srq, server_.srq.get());
  }

  std::unique_ptr<Mem> to_, from_;
  Connection other_;
};

}  // namespace weft::verbs::testing
