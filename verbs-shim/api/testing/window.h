#pragma once

#include <memory>

#include "verbs-shim/api/testing/pair.h"

namespace weft::verbs::testing {

inline constexpr Access kBindable =
    Access::kLocalWrite | Access::kRemoteWrite | Access::kRemoteRead | Access::kRemoteAtomic | Access::kMwBind;
inline constexpr Access kReadWrite = Access::kRemoteRead | Access::kRemoteWrite;

// WindowTest: the server has memory and a window, and both ends receives; the client has spoken.
class WindowTest : public VerbsTest {
 protected:
  void SetUp() override {
    VerbsTest::SetUp();
    if (IsSkipped()) return;
    if (!server_.device->caps().mem_windows_type2) GTEST_SKIP() << "no memory windows of type 2";
    memory_ = std::make_unique<Mem>(*server_.pd, 4096, kBindable, 0xa5);
    mw_ = std::move(server_.pd->alloc_mw().value());
    ours_ = std::make_unique<Mem>(*client_.pd, 4096, client_.sink(), 1);
    use_channel(server_);
    establish();
    server_receives(8);
    client_receives(8);
    // The responder may speak once the initiator has.
    ASSERT_TRUE(client_.send({ours_->sge(0, 1)}, 1000).ok());
    ASSERT_TRUE(drive([&] { return client_.wcs.size() == 1 && server_.wcs.size() == 1; }));
    client_.wcs.clear();
    server_.wcs.clear();
  }
  void TearDown() override {
    mw_.reset();
    memory_.reset();
    ours_.reset();
  }

  void server_receives(std::uint64_t num) {
    for (std::uint64_t i = 0; i < num; ++i) ASSERT_TRUE(server_.recv({memory_->sge(4000, 64)}, 500 + i).ok());
  }
  void client_receives(std::uint64_t num) {
    for (std::uint64_t i = 0; i < num; ++i) ASSERT_TRUE(client_.recv({ours_->sge(4000, 64)}, 600 + i).ok());
  }

  SendWr bind_wr(std::uint64_t wr_id, Access access = kReadWrite, std::size_t off = 1024, std::size_t len = 512) {
    SendWr wr;
    wr.wr_id = wr_id;
    wr.opcode = WrOpcode::kBindMw;
    wr.bind_mw = {mw_.get(), inc_rkey(mw_->rkey()), memory_->mr.get(), memory_->addr(off), len, access};
    return wr;
  }
  void bind(Access access = kReadWrite) {
    ASSERT_TRUE(server_.qp->post_send(bind_wr(1, access)).ok());
    const auto wc = wait_wc(server_);
    ASSERT_TRUE(wc);
    ASSERT_EQ(wc->status, WcStatus::kSuccess);
    EXPECT_EQ(wc->opcode, WcOpcode::kBindMw);
  }
  static SendWr inv_wr(WrOpcode opcode, std::uint32_t rkey, std::uint64_t wr_id,
                       SendFlags flags = SendFlags::kSignaled) {
    SendWr wr;
    wr.wr_id = wr_id;
    wr.opcode = opcode;
    wr.send_flags = flags;
    wr.invalidate_rkey = rkey;
    return wr;
  }
  Status write(std::uint32_t rkey, std::size_t off = 1024, std::uint32_t len = 512) {
    return client_.rdma(WrOpcode::kRdmaWrite, {ours_->sge(0, len)}, memory_->addr(off), rkey, 3);
  }
  // The client's Write through rkey ends the connection and changes nothing.
  void expect_write_refused(std::uint32_t rkey, std::size_t off = 1024, std::uint32_t len = 512) {
    const auto before = memory_->octets;
    ASSERT_TRUE(write(rkey, off, len).ok());
    ASSERT_TRUE(
        drive([&] { return client_.has(CmEventType::kDisconnected) && server_.has(CmEventType::kDisconnected); }));
    if (GetParam().tells_why) {
      EXPECT_NE(server_.take(CmEventType::kDisconnected)->status, 0);
    }
    EXPECT_EQ(memory_->octets, before);
  }

  std::unique_ptr<Mem> memory_, ours_;
  std::unique_ptr<Mw> mw_;
};

}  // namespace weft::verbs::testing
