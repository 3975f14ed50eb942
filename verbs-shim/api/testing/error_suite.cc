// Every backend's way to fail: Terminates, flushes, overflow, and objects destroyed at odd moments.
#include <algorithm>
#include <cerrno>
#include <map>

#include "verbs-shim/api/testing/pair.h"

namespace weft::verbs::testing {
namespace {

constexpr Access kAllRights = Access::kLocalWrite | Access::kRemoteWrite | Access::kRemoteRead;

std::map<WcStatus, int> count(const std::deque<Wc>& wcs) {
  std::map<WcStatus, int> out;
  for (const Wc& wc : wcs) ++out[wc.status];
  return out;
}

TEST_P(VerbsTest, SendWithoutReceiveTerminates) {
  Mem from(*client_.pd, 64, Access::kLocalWrite);
  Mem to(*client_.pd, 64, Access::kLocalWrite);
  establish();
  for (std::uint64_t i = 0; i < 3; ++i) ASSERT_TRUE(client_.recv({to.sge()}, 10 + i).ok());
  ASSERT_TRUE(client_.send({from.sge()}, 1).ok());
  ASSERT_TRUE(
      drive([&] { return client_.has(CmEventType::kDisconnected) && server_.has(CmEventType::kDisconnected); }));
  const CmEvent at_server = *server_.take(CmEventType::kDisconnected);
  if (GetParam().tells_why) {
    EXPECT_NE(at_server.status, 0);
  }
  EXPECT_FALSE(at_server.text.empty());
  // The Send left before the Terminate came; the receives are flushed.
  EXPECT_EQ(count(client_.wcs)[WcStatus::kWrFlushErr], 3);
  EXPECT_EQ(client_.wcs.size(), 4u);
  EXPECT_EQ(server_.qp->state(), QpState::kErr);
}

TEST_P(VerbsTest, SendTooLongForTheReceive) {
  RecordProperty("proves", "DDP-1.2-02");
  Mem from(*client_.pd, 64, Access::kNone, 1);
  Mem to(*server_.pd, 64, Access::kLocalWrite, 0xa5);
  establish();
  ASSERT_TRUE(server_.recv({to.sge(0, 63)}, 1).ok());
  ASSERT_TRUE(server_.recv({to.sge(0, 64)}, 2).ok());
  ASSERT_TRUE(client_.send({from.sge()}, 3).ok());
  ASSERT_TRUE(drive([&] { return server_.wcs.size() == 2 && client_.has(CmEventType::kDisconnected); }));
  EXPECT_EQ(server_.wcs[0].wr_id, 1u);
  EXPECT_EQ(server_.wcs[0].status, WcStatus::kLocLenErr);
  EXPECT_EQ(server_.wcs[1].status, WcStatus::kWrFlushErr);
  EXPECT_EQ(to.octets, std::vector<std::uint8_t>(64, 0xa5));
}

TEST_P(VerbsTest, WriteOutsideTheRegionChangesNothing) {
  RecordProperty("proves", "DDP-7.1-14");
  Mem to(*server_.pd, 4096, kAllRights, 0xa5);
  Mem from(*client_.pd, 64, Access::kNone, 1);
  establish();
  ASSERT_TRUE(client_.rdma(WrOpcode::kRdmaWrite, {from.sge()}, to.addr(4096 - 63), to.mr->rkey()).ok());
  ASSERT_TRUE(
      drive([&] { return client_.has(CmEventType::kDisconnected) && server_.has(CmEventType::kDisconnected); }));
  EXPECT_EQ(to.octets, std::vector<std::uint8_t>(4096, 0xa5));
}

TEST_P(VerbsTest, WriteNeedsTheRight) {
  RecordProperty("proves", "DDP-7.1-12");
  Mem to(*server_.pd, 4096, Access::kLocalWrite | Access::kRemoteRead, 0xa5);
  Mem from(*client_.pd, 4096, Access::kNone, 1);
  establish();
  ASSERT_TRUE(client_.rdma(WrOpcode::kRdmaWrite, {from.sge()}, to.addr(), to.mr->rkey()).ok());
  ASSERT_TRUE(
      drive([&] { return client_.has(CmEventType::kDisconnected) && server_.has(CmEventType::kDisconnected); }));
  EXPECT_EQ(to.octets, std::vector<std::uint8_t>(4096, 0xa5));
}

TEST_P(VerbsTest, ForeignProtectionDomainIsRefused) {
  RecordProperty("proves", "DDP-8.2-02 DDP-8.3.1-01");
  auto other = std::move(server_.device->alloc_pd().value());
  Mem to(*other, 4096, kAllRights, 0xa5);
  Mem from(*client_.pd, 4096, Access::kNone, 1);
  establish();
  ASSERT_TRUE(client_.rdma(WrOpcode::kRdmaWrite, {from.sge()}, to.addr(), to.mr->rkey()).ok());
  ASSERT_TRUE(
      drive([&] { return client_.has(CmEventType::kDisconnected) && server_.has(CmEventType::kDisconnected); }));
  EXPECT_EQ(to.octets, std::vector<std::uint8_t>(4096, 0xa5));
}

TEST_P(VerbsTest, ReadNeedsTheRight) {
  RecordProperty("proves", "DDP-8.3.1-05");
  Mem source(*server_.pd, 4096, Access::kLocalWrite | Access::kRemoteWrite, 7);
  Mem sink(*client_.pd, 4096, client_.sink(), 0xa5);
  establish();
  ASSERT_TRUE(client_.rdma(WrOpcode::kRdmaRead, {sink.sge()}, source.addr(), source.mr->rkey(), 4).ok());
  const auto wc = wait_wc(client_);
  ASSERT_TRUE(wc);
  EXPECT_EQ(wc->wr_id, 4u);
  EXPECT_EQ(wc->status, WcStatus::kRemAccessErr);
  if (GetParam().tells_why) {
    EXPECT_EQ(wc->vendor_err, 0u << 12 | 1u << 8 | 2u);  // RDMAP, remote protection, access rights
  }
  EXPECT_EQ(sink.octets, std::vector<std::uint8_t>(4096, 0xa5));
  ASSERT_TRUE(
      drive([&] { return client_.has(CmEventType::kDisconnected) && server_.has(CmEventType::kDisconnected); }));
}

// An initiator_depth of 0 is the promise to read nothing (RFC 6581 section 9.1): a Read then fails, it does not wait.
TEST_P(VerbsTest, ReadWithoutDepthFails) {
  Mem source(*server_.pd, 64, kAllRights, 7);
  Mem sink(*client_.pd, 64, client_.sink(), 0xa5);
  ASSERT_TRUE(listen().ok());
  start_connect({{}, 16, 0});
  take_request();
  make_qp(server_);
  ASSERT_TRUE(server_.id->accept({{}, 16, 16}).ok());
  ASSERT_TRUE(drive([&] { return server_.has(CmEventType::kEstablished) && client_.has(CmEventType::kEstablished); }));
  ASSERT_TRUE(client_.recv({sink.sge()}, 3).ok());
  ASSERT_TRUE(
      client_.rdma(WrOpcode::kRdmaRead, {sink.sge()}, source.addr(), source.mr->rkey(), 4, SendFlags::kNone).ok());
  ASSERT_TRUE(client_.send({}, 5).ok());
  ASSERT_TRUE(drive([&] {
    return client_.has(CmEventType::kDisconnected) && server_.has(CmEventType::kDisconnected) &&
           client_.wcs.size() >= 3;
  }));
  std::map<std::uint64_t, WcStatus> ends;
  for (const Wc& wc : client_.wcs) ends[wc.wr_id] = wc.status;
  EXPECT_EQ(client_.wcs.size(), 3u);
  EXPECT_EQ(ends, (std::map<std::uint64_t, WcStatus>{
                      {3, WcStatus::kWrFlushErr}, {4, WcStatus::kLocQpOpErr}, {5, WcStatus::kWrFlushErr}}));
  EXPECT_EQ(client_.qp->state(), QpState::kErr);
  EXPECT_EQ(sink.octets, std::vector<std::uint8_t>(64, 0xa5));
}

// The server's own depth, and a Read that it posted before it may say anything.
TEST_P(VerbsTest, ServersReadWithoutDepthFailsOnceTheClientHasSpoken) {
  Mem source(*client_.pd, 64, kAllRights, 7);
  Mem sink(*server_.pd, 64, server_.sink(), 0xa5);
  establish({{}, 16, 0});
  ASSERT_TRUE(server_.recv({sink.sge()}, 1).ok());
  ASSERT_TRUE(server_.rdma(WrOpcode::kRdmaRead, {sink.sge()}, source.addr(), source.mr->rkey(), 2).ok());
  ASSERT_TRUE(client_.send({}, 3).ok());
  ASSERT_TRUE(
      drive([&] { return client_.has(CmEventType::kDisconnected) && server_.has(CmEventType::kDisconnected); }));
  const auto refused = std::find_if(server_.wcs.begin(), server_.wcs.end(), [](const Wc& wc) { return wc.wr_id == 2; });
  ASSERT_NE(refused, server_.wcs.end());
  EXPECT_EQ(refused->status, WcStatus::kLocQpOpErr);
  EXPECT_EQ(sink.octets, std::vector<std::uint8_t>(64, 0xa5));
}

TEST_P(VerbsTest, LocalKeyIsChecked) {
  Mem from(*client_.pd, 64, Access::kNone);
  Sge sge = from.sge();
  sge.lkey ^= 1;
  establish();
  ASSERT_TRUE(client_.send({sge}, 4).ok());
  const auto wc = wait_wc(client_);
  ASSERT_TRUE(wc);
  EXPECT_EQ(wc->status, GetParam().wrong_lkey);
  ASSERT_TRUE(
      drive([&] { return client_.has(CmEventType::kDisconnected) && server_.has(CmEventType::kDisconnected); }));
}

TEST_P(VerbsTest, DeregisteredUnderTraffic) {
  RecordProperty("proves", "DDP-8.3-02");
  auto to = std::make_unique<Mem>(*server_.pd, 1 << 20, kAllRights);
  Mem from(*client_.pd, 1 << 20, Access::kNone, 1);
  establish();
  const std::uint64_t addr = to->addr();
  const std::uint32_t rkey = to->mr->rkey();
  for (std::uint64_t i = 0; i < 16; ++i) {
    ASSERT_TRUE(client_.rdma(WrOpcode::kRdmaWrite, {from.sge()}, addr, rkey, i).ok());
  }
  ASSERT_TRUE(arrived([&] { return server_.qp->counters().write_octets_rx > 0; }));
  to.reset();  // the memory is gone: the sanitizer finds any access to it
  ASSERT_TRUE(client_.rdma(WrOpcode::kRdmaWrite, {from.sge()}, addr, rkey, 16).ok());
  ASSERT_TRUE(drive([&] {
    return client_.has(CmEventType::kDisconnected) && server_.has(CmEventType::kDisconnected) &&
           client_.wcs.size() == 17;
  })) << client_.wcs.size()
      << " completions, disconnected " << client_.has(CmEventType::kDisconnected)
      << server_.has(CmEventType::kDisconnected);
}

TEST_P(VerbsTest, SourceDeregisteredWhileQueued) {
  Mem to(*server_.pd, 1 << 20, kAllRights);
  auto from = std::make_unique<Mem>(*client_.pd, 1 << 20, Access::kNone, 1);
  establish();
  for (std::uint64_t i = 0; i < 32; ++i) {
    ASSERT_TRUE(client_.rdma(WrOpcode::kRdmaWrite, {from->sge()}, to.addr(), to.mr->rkey(), i).ok());
  }
  client_.device->process(now());  // some left, some are cut, some wait
  from.reset();
  ASSERT_TRUE(drive([&] { return client_.wcs.size() == 32; }));
  EXPECT_GE(count(client_.wcs)[GetParam().wrong_lkey] + count(client_.wcs)[WcStatus::kSuccess], 1);
}

TEST_P(VerbsTest, EveryRequestEndsOnceWhenThePeerVanishes) {
  Mem to(*server_.pd, 1 << 20, kAllRights);
  Mem from(*client_.pd, 1 << 20, kAllRights);
  establish();
  for (std::uint64_t i = 0; i < 10; ++i) ASSERT_TRUE(client_.recv({from.sge(0, 8)}, 100 + i).ok());
  for (std::uint64_t i = 0; i < 20; ++i) {
    const WrOpcode opcode = i % 2 == 0 ? WrOpcode::kRdmaWrite : WrOpcode::kRdmaRead;
    ASSERT_TRUE(client_.rdma(opcode, {from.sge()}, to.addr(), to.mr->rkey(), i).ok());
  }
  client_.device->process(now());
  server_.qp.reset();  // without disconnect: a reset
  server_.id.reset();
  ASSERT_TRUE(drive([&] { return client_.has(CmEventType::kDisconnected); }));
  if (GetParam().tells_why) {
    EXPECT_EQ(client_.take(CmEventType::kDisconnected)->status, ECONNRESET);
  }
  settle();
  std::map<std::uint64_t, int> ended;
  for (const Wc& wc : client_.wcs) ++ended[wc.wr_id];
  EXPECT_EQ(ended.size(), 30u);
  for (const auto& [wr_id, times] : ended) EXPECT_EQ(times, 1) << wr_id;
}

TEST_P(VerbsTest, CqOverflowEndsItsQueuePairs) {
  client_.cq = std::move(client_.device->create_cq(4, client_.channel.get()).value());
  Mem to(*server_.pd, 64, Access::kLocalWrite);
  Mem from(*client_.pd, 64, Access::kNone);
  establish();
  client_.poll_cq = false;
  for (std::uint64_t i = 0; i < 5; ++i) ASSERT_TRUE(server_.recv({to.sge()}, i).ok());
  for (std::uint64_t i = 0; i < 5; ++i) ASSERT_TRUE(client_.send({from.sge()}, i).ok());
  ASSERT_TRUE(
      drive([&] { return server_.has(CmEventType::kDisconnected) && client_.has(CmEventType::kDisconnected); }));
  Wc wc[8];
  EXPECT_LT(client_.cq->poll(wc), 0);
  EXPECT_EQ(client_.qp->state(), QpState::kErr);
}

TEST_P(VerbsTest, QpGoesBeforeIdAndIdBeforeQp) {
  establish();
  server_.qp.reset();
  ASSERT_TRUE(drive([&] { return client_.has(CmEventType::kDisconnected); }));
  client_.id.reset();
  EXPECT_EQ(client_.qp->state(), QpState::kErr);
  client_.qp.reset();
  settle();
}

TEST_P(VerbsTest, IdDestroyedUnderItsQp) {
  Mem from(*client_.pd, 64, Access::kLocalWrite);
  establish();
  ASSERT_TRUE(client_.recv({from.sge()}, 3).ok());
  client_.id.reset();
  client_.collect();
  EXPECT_EQ(client_.qp->state(), QpState::kErr);
  if (GetParam().own_progress) drive([&] { return !client_.wcs.empty(); });  // the kernel flushes in its own time
  ASSERT_EQ(client_.wcs.size(), 1u);
  EXPECT_EQ(client_.wcs[0].status, WcStatus::kWrFlushErr);
  ASSERT_TRUE(drive([&] { return server_.has(CmEventType::kDisconnected); }));
}

TEST_P(VerbsTest, DestroyedQpLeavesNoCompletions) {
  Mem from(*client_.pd, 64, Access::kLocalWrite);
  establish();
  ASSERT_TRUE(client_.id->disconnect().ok());
  client_.poll_cq = false;
  ASSERT_TRUE(client_.recv({from.sge()}, 3).ok());
  ASSERT_TRUE(drive([&] { return client_.has(CmEventType::kDisconnected); }));
  client_.qp.reset();
  Wc wc[4];
  EXPECT_EQ(client_.cq->poll(wc), 0);
}

TEST_P(VerbsTest, ListenerDestroyedWithRequestsWaiting) {
  ASSERT_TRUE(listen(1).ok());
  start_connect();
  ASSERT_TRUE(drive([&] { return server_.has(CmEventType::kConnectRequest); }));
  server_.id.reset();  // the request that was taken stays
  settle();
  EXPECT_TRUE(client_.events.empty());
  server_.events.clear();  // dropped
  ASSERT_TRUE(drive([&] { return client_.has(CmEventType::kRejected); }));
}

TEST_P(VerbsTest, ListenerDestroyedWithRequestsInTheChannel) {
  ASSERT_TRUE(listen().ok());
  start_connect();
  for (int i = 0; i < 50; ++i) {
    server_.device->process(now());
    client_.device->process(now());
  }
  pollfd queued{server_.cm->fd(), POLLIN, 0};  // by the device itself where it moves by itself
  ASSERT_EQ(::poll(&queued, 1, 5000), 1);
  server_.id.reset();
  EXPECT_FALSE(server_.cm->get_event().has_value());
  ASSERT_TRUE(drive([&] { return client_.has(CmEventType::kRejected); }));
}

TEST_P(VerbsTest, ChannelDestroyedBeforeItsIds) {
  establish();
  client_.events.clear();
  client_.cm.reset();
  client_.cm = std::move(client_.device->create_event_channel().value());
  ASSERT_TRUE(client_.id->disconnect().ok());
  ASSERT_TRUE(drive([&] { return server_.has(CmEventType::kDisconnected); }));
  settle();
  EXPECT_FALSE(client_.has(CmEventType::kDisconnected));
}

TEST_P(VerbsTest, DeviceGoesWithADisconnectUnderWay) {
  Mem to(*server_.pd, 64, Access::kLocalWrite);
  auto from = std::make_unique<Mem>(*client_.pd, 64, Access::kNone, 5);
  establish();
  ASSERT_TRUE(server_.recv({to.sge()}, 9).ok());
  ASSERT_TRUE(client_.send({from->sge()}).ok());
  ASSERT_TRUE(client_.id->disconnect().ok());
  client_.qp.reset();
  client_.id.reset();
  from.reset();
  client_.close();
  ASSERT_TRUE(drive([&] { return server_.has(CmEventType::kDisconnected); }));
  EXPECT_EQ(server_.take(CmEventType::kDisconnected)->status, 0);
  ASSERT_EQ(server_.wcs.size(), 1u);
  EXPECT_EQ(server_.wcs[0].status, WcStatus::kSuccess);
  EXPECT_EQ(to.octets[0], 5);
}

}  // namespace
}  // namespace weft::verbs::testing
