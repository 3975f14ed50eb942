// Every backend's type-2 memory windows: bind, use, both ways to invalidate, and all that they refuse.
#include <cerrno>

#include "verbs-shim/api/testing/window.h"

namespace weft::verbs::testing {
namespace {

TEST_P(WindowTest, PeerReadsAndWritesThroughIt) {
  bind();
  EXPECT_EQ(memory_->mr->num_windows(), 1u);
  ASSERT_TRUE(write(mw_->rkey()).ok());
  ASSERT_TRUE(client_.rdma(WrOpcode::kRdmaRead, {ours_->sge(512, 512)}, memory_->addr(1024), mw_->rkey(), 4).ok());
  ASSERT_TRUE(drive([&] { return client_.wcs.size() == 2; }));
  EXPECT_EQ(client_.wcs[1].status, WcStatus::kSuccess);
  EXPECT_EQ(ours_->octets[1023], 1);
  EXPECT_EQ(memory_->octets[1023], 0xa5);
  EXPECT_EQ(memory_->octets[1024], 1);
  EXPECT_EQ(memory_->octets[1535], 1);
  EXPECT_EQ(memory_->octets[1536], 0xa5);
}

TEST_P(WindowTest, PeerInvalidatesIt) {
  RecordProperty("proves", "RDMAP-5.3-14 RDMAP-1.2-02");
  auto other = std::move(server_.pd->alloc_mw().value());
  bind();
  SendWr second = bind_wr(2);
  second.bind_mw.mw = other.get();
  second.bind_mw.rkey = inc_rkey(other->rkey());
  ASSERT_TRUE(server_.qp->post_send(second).ok());
  ASSERT_TRUE(wait_wc(server_));
  const std::uint32_t rkey = mw_->rkey();
  const auto read = [&](std::uint32_t from) {
    return client_.rdma(WrOpcode::kRdmaRead, {ours_->sge(0, 8)}, memory_->addr(1024), from, 4);
  };
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(write(rkey).ok() && read(rkey).ok());
  // Without the fence it could end the window under Reads that are not answered yet.
  const SendFlags fenced = SendFlags::kSignaled | SendFlags::kFence;
  ASSERT_TRUE(client_.qp->post_send(inv_wr(WrOpcode::kSendWithInv, rkey, 9, fenced)).ok());
  ASSERT_TRUE(drive([&] { return client_.wcs.size() == 7 && !server_.wcs.empty(); }));
  for (const Wc& wc : client_.wcs) EXPECT_EQ(wc.status, WcStatus::kSuccess);
  const Wc received = *server_.take_wc();
  EXPECT_EQ(received.status, WcStatus::kSuccess);
  EXPECT_TRUE(has(received.wc_flags, WcFlags::kWithInv));
  EXPECT_EQ(received.invalidated_rkey, rkey);
  EXPECT_EQ(memory_->mr->num_windows(), 1u);
  client_.wcs.clear();
  ASSERT_TRUE(read(other->rkey()).ok());
  EXPECT_EQ(wait_wc(client_)->status, WcStatus::kSuccess) << "all others still work";
  ASSERT_TRUE(read(rkey).ok());
  const auto refused = wait_wc(client_);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->status, WcStatus::kRemAccessErr);
  if (GetParam().tells_why) {
    EXPECT_EQ(refused->vendor_err, 0u << 12 | 1u << 8 | 0u) << "a Terminate: invalid STag";
  }
}

TEST_P(WindowTest, PeerInvalidatesItWithSolicitedEvent) {
  bind();
  ASSERT_TRUE(server_.cq->req_notify(true).ok());
  EXPECT_EQ(server_.channel->get_event(), nullptr);
  ASSERT_TRUE(
      client_.qp
          ->post_send(inv_wr(WrOpcode::kSendWithInv, mw_->rkey(), 9, SendFlags::kSignaled | SendFlags::kSolicited))
          .ok());
  const auto wc = wait_wc(server_);
  ASSERT_TRUE(wc);
  EXPECT_TRUE(has(wc->wc_flags, WcFlags::kWithInv));
  EXPECT_EQ(wc->invalidated_rkey, mw_->rkey());
  EXPECT_EQ(server_.channel->get_event(), server_.cq.get());
  EXPECT_EQ(memory_->mr->num_windows(), 0u);
}

TEST_P(WindowTest, UserInvalidatesItAndBindsItAgainUnderAnotherKey) {
  bind();
  const std::uint32_t first = mw_->rkey();
  ASSERT_TRUE(server_.qp->post_send(inv_wr(WrOpcode::kLocalInv, first, 5)).ok());
  const auto wc = wait_wc(server_);
  ASSERT_TRUE(wc);
  EXPECT_EQ(wc->status, WcStatus::kSuccess);
  EXPECT_EQ(wc->opcode, WcOpcode::kLocalInv);
  EXPECT_EQ(memory_->mr->num_windows(), 0u);
  bind();
  EXPECT_NE(mw_->rkey(), first);
  EXPECT_EQ(mw_->rkey() >> 8, first >> 8);
  ASSERT_TRUE(write(mw_->rkey()).ok());
  ASSERT_TRUE(wait_wc(client_));
  ASSERT_TRUE(client_.send({ours_->sge(0, 1)}, 10).ok());
  ASSERT_TRUE(wait_wc(server_));
  expect_write_refused(first);
}

TEST_P(WindowTest, UserInvalidatesWhatThePeerHasInvalidatedAlready) {
  bind();
  ASSERT_TRUE(client_.qp->post_send(inv_wr(WrOpcode::kSendWithInv, mw_->rkey(), 9)).ok());
  ASSERT_TRUE(wait_wc(server_));
  ASSERT_TRUE(server_.qp->post_send(inv_wr(WrOpcode::kLocalInv, mw_->rkey(), 5)).ok());
  const auto wc = wait_wc(server_);
  ASSERT_TRUE(wc);
  EXPECT_EQ(wc->status, WcStatus::kSuccess);
}

// Bind, tell the peer, and invalidate behind its answer, all without waiting for a completion of ours.
TEST_P(WindowTest, TakesEffectInTheOrderOfTheQueue) {
  for (int round = 0; round < 20; ++round) {
    ASSERT_TRUE(server_.qp->post_send(bind_wr(1)).ok());
    ASSERT_TRUE(server_.send({memory_->sge(0, 8)}, 2).ok());
    ASSERT_TRUE(drive([&] { return !client_.wcs.empty(); }));
    client_.wcs.clear();
    client_receives(1);
    ASSERT_TRUE(write(mw_->rkey()).ok());
    ASSERT_TRUE(client_.qp->post_send(inv_wr(WrOpcode::kSendWithInv, mw_->rkey(), 9)).ok());
    ASSERT_TRUE(drive([&] { return client_.wcs.size() == 2 && server_.wcs.size() == 3; }));
    for (const Wc& wc : server_.wcs) ASSERT_EQ(wc.status, WcStatus::kSuccess);
    server_.wcs.clear();
    client_.wcs.clear();
    server_receives(1);
  }
}

TEST_P(WindowTest, RightsAreThoseOfTheBind) {
  bind(Access::kRemoteRead);
  expect_write_refused(mw_->rkey());
}

TEST_P(WindowTest, ReadNeedsTheRightOfTheBind) {
  bind(Access::kRemoteWrite);
  ASSERT_TRUE(client_.rdma(WrOpcode::kRdmaRead, {ours_->sge(0, 8)}, memory_->addr(1024), mw_->rkey(), 4).ok());
  const auto wc = wait_wc(client_);
  ASSERT_TRUE(wc);
  EXPECT_EQ(wc->status, WcStatus::kRemAccessErr);
  if (GetParam().tells_why) {
    EXPECT_EQ(wc->vendor_err, 0u << 12 | 1u << 8 | 2u);
  }
}

TEST_P(WindowTest, EndsWhereTheBindSaid) {
  bind();
  expect_write_refused(mw_->rkey(), 1529, 8);  // one segment: earlier ones of a message may have been placed
}

TEST_P(WindowTest, OtherConnectionOfTheSameDomainIsRefused) {
  bind();
  // A second connection, of the same protection domains and queues at both ends.
  auto id = std::move(client_.cm->create_id().value());
  ASSERT_NO_FATAL_FAILURE(resolve(*id, listener_->local_addr()));
  auto qp = std::move(id->create_qp(*client_.pd, init_attr(client_)).value());
  ASSERT_TRUE(id->connect({{}, 16, 16}).ok());
  ASSERT_TRUE(drive([&] { return server_.has(CmEventType::kConnectRequest); }));
  auto accepted = std::move(server_.take(CmEventType::kConnectRequest)->new_id);
  auto server_qp = std::move(accepted->create_qp(*server_.pd, init_attr(server_)).value());
  ASSERT_TRUE(accepted->accept({{}, 16, 16}).ok());
  ASSERT_TRUE(drive([&] { return server_qp->state() == QpState::kRts && qp->state() == QpState::kRts; }));

  const auto before = memory_->octets;
  const Sge sge = ours_->sge(0, 8);
  SendWr wr;
  wr.sg_list = {&sge, 1};
  wr.opcode = WrOpcode::kRdmaWrite;
  wr.remote_addr = memory_->addr(1024);
  wr.rkey = mw_->rkey();
  ASSERT_TRUE(qp->post_send(wr).ok());
  ASSERT_TRUE(drive([&] { return server_qp->state() == QpState::kErr && qp->state() == QpState::kErr; }));
  EXPECT_EQ(memory_->octets, before);
  EXPECT_EQ(server_.qp->state(), QpState::kRts);
  client_.wcs.clear();
  ASSERT_TRUE(write(mw_->rkey()).ok()) << "the rightful one still can";
  const auto wc = wait_wc(client_);
  ASSERT_TRUE(wc);
  EXPECT_EQ(wc->status, WcStatus::kSuccess);
  ASSERT_TRUE(arrived([&] { return server_.qp->counters().write_octets_rx == 512; }));
}

TEST_P(WindowTest, RegionItselfIsNotThePeersToInvalidate) {
  ASSERT_TRUE(client_.qp->post_send(inv_wr(WrOpcode::kSendWithInv, memory_->mr->rkey(), 9)).ok());
  const auto wc = wait_wc(server_);
  ASSERT_TRUE(wc);
  EXPECT_EQ(wc->status, WcStatus::kRemInvReqErr);
  if (GetParam().tells_why) {
    EXPECT_EQ(wc->vendor_err, 0u << 12 | 2u << 8 | 9u);
  }
  ASSERT_TRUE(drive([&] { return client_.has(CmEventType::kDisconnected); }));
}

TEST_P(WindowTest, BindOfWhatTheRegionDoesNotAllowFails) {
  Mem plain(*server_.pd, 64, Access::kLocalWrite | Access::kRemoteWrite);
  SendWr wr = bind_wr(7);
  wr.bind_mw.mr = plain.mr.get();
  wr.bind_mw.addr = plain.addr();
  wr.bind_mw.length = 64;
  ASSERT_TRUE(server_.qp->post_send(wr).ok());
  const auto wc = wait_wc(server_);
  ASSERT_TRUE(wc);
  EXPECT_EQ(wc->wr_id, 7u);
  EXPECT_EQ(wc->status, GetParam().refused_bind);
  ASSERT_TRUE(
      drive([&] { return client_.has(CmEventType::kDisconnected) && server_.has(CmEventType::kDisconnected); }));
}

TEST_P(WindowTest, InvalidationOfANameThatNeverWasFails) {
  bind();
  ASSERT_TRUE(server_.qp->post_send(inv_wr(WrOpcode::kLocalInv, inc_rkey(mw_->rkey()), 5)).ok());
  const auto wc = wait_wc(server_);
  ASSERT_TRUE(wc);
  EXPECT_EQ(wc->status, WcStatus::kMwBindErr);
}

TEST_P(WindowTest, PostRefusesWhatMakesNoSense) {
  const auto refused = [&](auto change) {
    SendWr wr = bind_wr(1);
    change(wr);
    const Status status = server_.qp->post_send(wr);
    return !status && status.error().errno_value == EINVAL;
  };
  const Sge sge = memory_->sge(0, 8);
  EXPECT_TRUE(refused([](SendWr& wr) { wr.bind_mw.mw = nullptr; }));
  EXPECT_TRUE(refused([](SendWr& wr) { wr.bind_mw.mr = nullptr; }));
  EXPECT_TRUE(refused([](SendWr& wr) { wr.bind_mw.rkey += 256; }));
  EXPECT_TRUE(refused([](SendWr& wr) { wr.bind_mw.length = 0; }));
  EXPECT_TRUE(refused([](SendWr& wr) { wr.bind_mw.access = Access::kLocalWrite; }));
  EXPECT_TRUE(refused([&](SendWr& wr) { wr.sg_list = {&sge, 1}; }));
  const std::uint32_t before = mw_->rkey();
  EXPECT_TRUE(refused([](SendWr& wr) { wr.bind_mw.length = 0; }));
  EXPECT_EQ(mw_->rkey(), before);
}

TEST_P(WindowTest, RegionDestroyedUnderItsWindows) {
  bind();
  const std::uint64_t addr = memory_->addr(1024);
  const std::uint32_t rkey = mw_->rkey();
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(client_.rdma(WrOpcode::kRdmaWrite, {ours_->sge(0, 512)}, addr, rkey, 3).ok());
  client_.device->process(now());
  memory_.reset();  // the memory is gone: the sanitizer finds any access to it
  ASSERT_TRUE(client_.rdma(WrOpcode::kRdmaWrite, {ours_->sge(0, 512)}, addr, rkey, 4).ok());
  ASSERT_TRUE(
      drive([&] { return client_.has(CmEventType::kDisconnected) && server_.has(CmEventType::kDisconnected); }));
}

TEST_P(WindowTest, WindowDestroyedWhileBound) {
  bind();
  const std::uint32_t rkey = mw_->rkey();
  mw_.reset();
  EXPECT_EQ(memory_->mr->num_windows(), 0u);
  expect_write_refused(rkey);
}

}  // namespace
}  // namespace weft::verbs::testing
