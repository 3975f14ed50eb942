// The counters of queue pairs: every kind of message at both ends, during the connection and after it.
#include <algorithm>

#include "verbs-shim/api/testing/pair.h"
#include "verbs-shim/soft/device.h"

namespace weft::verbs::testing {
namespace {

class CountersTest : public VerbsTest {
 protected:
  void expect(const QpCounters& is, const QpCounters& should) {
    EXPECT_EQ(is.sends_tx, should.sends_tx);
    EXPECT_EQ(is.sends_rx, should.sends_rx);
    EXPECT_EQ(is.send_octets_tx, should.send_octets_tx);
    EXPECT_EQ(is.send_octets_rx, should.send_octets_rx);
    EXPECT_EQ(is.writes_tx, should.writes_tx);
    EXPECT_EQ(is.writes_rx, should.writes_rx);
    EXPECT_EQ(is.write_octets_tx, should.write_octets_tx);
    EXPECT_EQ(is.write_octets_rx, should.write_octets_rx);
    EXPECT_EQ(is.reads_tx, should.reads_tx);
    EXPECT_EQ(is.reads_rx, should.reads_rx);
    EXPECT_EQ(is.read_octets_tx, should.read_octets_tx);
    EXPECT_EQ(is.read_octets_rx, should.read_octets_rx);
    EXPECT_EQ(is.immediates_tx, should.immediates_tx);
    EXPECT_EQ(is.immediates_rx, should.immediates_rx);
    EXPECT_EQ(is.atomics_tx, should.atomics_tx);
    EXPECT_EQ(is.atomics_rx, should.atomics_rx);
  }
};

TEST_P(CountersTest, EveryKindIsCountedAtBothEnds) {
  constexpr Access kAll = Access::kLocalWrite | Access::kRemoteWrite | Access::kRemoteRead | Access::kRemoteAtomic;
  establish();
  Mem there(*server_.pd, 4096, kAll);
  Mem here(*client_.pd, 4096, Access::kLocalWrite);
  const std::uint64_t aligned = (there.addr() + 7) & ~std::uint64_t{7};
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(server_.recv({there.sge(0, 64)}).ok());
  ASSERT_TRUE(client_.send({here.sge(0, 5)}).ok());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(client_.rdma(WrOpcode::kRdmaWrite, {here.sge(0, 100)}, there.addr(), there.mr->rkey()).ok());
  }
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(client_.rdma(WrOpcode::kRdmaRead, {here.sge(0, 50)}, there.addr(), there.mr->rkey()).ok());
  }
  const Sge word = here.sge(0, 8);
  for (int i = 0; i < 5; ++i) {
    const SendWr add{.sg_list = {&word, 1},
                     .opcode = WrOpcode::kAtomicFetchAndAdd,
                     .remote_addr = aligned,
                     .rkey = there.mr->rkey(),
                     .compare_add = 1};
    ASSERT_TRUE(client_.qp->post_send(add).ok());
  }
  ASSERT_TRUE(client_.rdma(WrOpcode::kRdmaWriteWithImm, {here.sge(0, 7)}, there.addr(), there.mr->rkey()).ok());
  ASSERT_TRUE(drive([&] { return client_.wcs.size() == 14 && server_.wcs.size() == 2; }));
  for (const Wc& wc : client_.wcs) EXPECT_EQ(wc.status, WcStatus::kSuccess);

  QpCounters client;
  client.sends_tx = 1;
  client.send_octets_tx = 5;
  client.writes_tx = 4;
  client.write_octets_tx = 307;
  client.reads_tx = 4;
  client.read_octets_rx = 200;
  client.atomics_tx = 5;
  client.immediates_tx = 1;
  QpCounters server;
  server.sends_rx = 1;
  server.send_octets_rx = 5;
  server.writes_rx = 4;
  server.write_octets_rx = 307;
  server.reads_rx = 4;
  server.read_octets_tx = 200;
  server.atomics_rx = 5;
  server.immediates_rx = 1;
  expect(client_.qp->counters(), client);
  expect(server_.qp->counters(), server);

  ASSERT_TRUE(client_.id->disconnect().ok());
  ASSERT_TRUE(drive([&] { return server_.has(CmEventType::kDisconnected); }));
  ASSERT_TRUE(server_.id->disconnect().ok());
  ASSERT_TRUE(drive([&] { return client_.has(CmEventType::kDisconnected); }));
  expect(client_.qp->counters(), client);
  expect(server_.qp->counters(), server);
}

// A peer that reads nothing lets TCP send little of what the socket takes.
TEST_P(CountersTest, OctetsThatThePeerHasNoWindowForAreUnsent) {
  constexpr std::size_t kLen = 1 << 20;
  establish();
  EXPECT_EQ(client_.qp->num_unsent(), 0u);
  Mem there(*server_.pd, kLen, Access::kLocalWrite | Access::kRemoteWrite);
  Mem here(*client_.pd, kLen, Access::kLocalWrite);
  for (int i = 0; i < 32; ++i) {
    ASSERT_TRUE(client_.rdma(WrOpcode::kRdmaWrite, {here.sge()}, there.addr(), there.mr->rkey()).ok());
  }
  while (client_.device->process(now()) != 0) continue;
  const std::uint64_t taken = client_.qp->counters().write_octets_tx;
  const std::size_t unsent = client_.qp->num_unsent();
  EXPECT_GT(unsent, 0u);
  EXPECT_LT(unsent, kLen + kLen / 4) << "the kernel's memory is in no ledger";
  EXPECT_LT(taken - std::min<std::uint64_t>(taken, unsent), 8 * kLen);

  ASSERT_TRUE(drive([&] { return client_.wcs.size() == 32 && client_.qp->num_unsent() == 0; }));
  ASSERT_TRUE(client_.id->disconnect().ok());
  ASSERT_TRUE(drive([&] { return server_.has(CmEventType::kDisconnected); }));
  ASSERT_TRUE(server_.id->disconnect().ok());
  ASSERT_TRUE(drive([&] { return client_.has(CmEventType::kDisconnected); }));
  EXPECT_EQ(client_.qp->num_unsent(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Soft, CountersTest,
                         ::testing::Values(Backend{"Spinning", [] { return open_soft_device({}); }, false},
                                           Backend{"Blocking", [] { return open_soft_device({}); }, true}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace weft::verbs::testing
