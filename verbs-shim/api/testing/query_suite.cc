// Every backend's answers about its objects, and the one change of state that a user makes.
#include <algorithm>
#include <cerrno>

#include "verbs-shim/api/testing/pair.h"

namespace weft::verbs::testing {
namespace {

TEST_P(VerbsTest, DeviceSaysWhatItIs) {
  const DeviceAttr attr = server_.device->query();
  EXPECT_FALSE(attr.name.empty());
  EXPECT_GE(attr.num_ports, 1u);
  EXPECT_TRUE(attr.port_active);
  EXPECT_STRNE(transport_str(attr.transport), "unknown");
}

TEST_P(VerbsTest, QueuePairSaysWhatWasGrantedAndNegotiated) {
  ASSERT_TRUE(listen().ok());
  start_connect({{}, 16, 16});
  const QpAttr before = client_.qp->query().value();
  EXPECT_EQ(before.qp_state, client_.qp->state());
  EXPECT_EQ(before.max_rd_atomic, 0);
  EXPECT_EQ(before.max_dest_rd_atomic, 0);
  EXPECT_GE(before.cap.max_send_wr, cap_.max_send_wr);
  EXPECT_GE(before.cap.max_recv_wr, cap_.max_recv_wr);
  EXPECT_GE(before.cap.max_send_sge, cap_.max_send_sge);
  EXPECT_GE(before.cap.max_recv_sge, cap_.max_recv_sge);
  EXPECT_GE(before.cap.max_inline_data, cap_.max_inline_data);
  take_request();
  make_qp(server_);
  EXPECT_EQ(server_.qp->query().value().qp_state, QpState::kInit);
  ASSERT_TRUE(server_.id->accept({{}, 4, 2}).ok());
  ASSERT_TRUE(drive([&] { return server_.has(CmEventType::kEstablished) && client_.has(CmEventType::kEstablished); }));
  const QpAttr server = server_.qp->query().value();
  EXPECT_EQ(server.qp_state, QpState::kRts);
  EXPECT_EQ(server.max_dest_rd_atomic, 4);
  EXPECT_EQ(server.max_rd_atomic, 2);
  const QpAttr client = client_.qp->query().value();
  EXPECT_EQ(client.qp_state, QpState::kRts);
  EXPECT_EQ(client.max_rd_atomic, GetParam().depths && !GetParam().raises_ird ? 4 : 16);
}

TEST_P(VerbsTest, ModifyToErrorEndsTheConnectionAtOnce) {
  Mem memory(*client_.pd, 64, Access::kLocalWrite);
  establish();
  for (std::uint64_t i = 0; i < 3; ++i) ASSERT_TRUE(client_.recv({memory.sge()}, i).ok());
  ASSERT_TRUE(client_.qp->modify(QpState::kErr).ok());
  EXPECT_EQ(client_.qp->state(), QpState::kErr);
  EXPECT_EQ(client_.qp->query().value().qp_state, QpState::kErr);
  ASSERT_TRUE(drive([&] {
    return client_.has(CmEventType::kDisconnected) && server_.has(CmEventType::kDisconnected) &&
           client_.wcs.size() == 3;
  }));
  for (const Wc& wc : client_.wcs) EXPECT_EQ(wc.status, WcStatus::kWrFlushErr);
  client_.wcs.clear();
  ASSERT_TRUE(client_.send({memory.sge()}, 7).ok());
  const auto wc = wait_wc(client_);
  ASSERT_TRUE(wc);
  EXPECT_EQ(wc->wr_id, 7u);
  EXPECT_EQ(wc->status, WcStatus::kWrFlushErr);
  EXPECT_TRUE(client_.qp->modify(QpState::kErr).ok()) << "once more is no error";
}

TEST_P(VerbsTest, ModifyKnowsNoOtherState) {
  establish();
  for (const QpState state : {QpState::kReset, QpState::kInit, QpState::kRtr, QpState::kRts, QpState::kSqd}) {
    const Status status = client_.qp->modify(state);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().errno_value, EINVAL);
  }
  EXPECT_EQ(client_.qp->state(), QpState::kRts);
}

TEST_P(VerbsTest, ModifyToErrorBeforeAnyConnection) {
  Mem memory(*client_.pd, 64, Access::kLocalWrite);
  ASSERT_TRUE(listen().ok());
  ASSERT_TRUE(client_.id->resolve_addr(server_.id->local_addr(), std::chrono::seconds(1)).ok());
  ASSERT_TRUE(drive([&] { return client_.take(CmEventType::kAddrResolved).has_value(); }));
  ASSERT_TRUE(client_.id->resolve_route(std::chrono::seconds(1)).ok());
  ASSERT_TRUE(drive([&] { return client_.take(CmEventType::kRouteResolved).has_value(); }));
  make_qp(client_);
  ASSERT_TRUE(client_.recv({memory.sge()}, 5).ok());
  ASSERT_TRUE(client_.qp->modify(QpState::kErr).ok());
  const auto wc = wait_wc(client_);
  ASSERT_TRUE(wc);
  EXPECT_EQ(wc->wr_id, 5u);
  EXPECT_EQ(wc->status, WcStatus::kWrFlushErr);
  ASSERT_TRUE(client_.send({memory.sge()}, 6).ok()) << "in kErr requests are taken, and flushed";
  const auto sent = wait_wc(client_);
  ASSERT_TRUE(sent);
  EXPECT_EQ(sent->wr_id, 6u);
  EXPECT_EQ(sent->status, WcStatus::kWrFlushErr);
  EXPECT_FALSE(client_.id->connect({}).ok());
}

// The send finds no receive: a device that waits for one has it under way until the end.
TEST_P(VerbsTest, ModifyToErrorCutsADisconnectShort) {
  Mem memory(*client_.pd, 64, Access::kLocalWrite);
  establish();
  ASSERT_TRUE(client_.send({memory.sge()}, 7).ok());
  ASSERT_TRUE(client_.id->disconnect().ok());
  ASSERT_TRUE(client_.qp->modify(QpState::kErr).ok());
  ASSERT_TRUE(drive([&] { return client_.has(CmEventType::kDisconnected) && !client_.wcs.empty(); }));
  settle();
  ASSERT_EQ(client_.wcs.size(), 1u) << "one request, one completion";
  EXPECT_EQ(client_.wcs.front().wr_id, 7u);
}

TEST_P(VerbsTest, PeerCutsADisconnectShort) {
  Mem memory(*client_.pd, 64, Access::kLocalWrite);
  establish();
  ASSERT_TRUE(client_.send({memory.sge()}, 7).ok());
  ASSERT_TRUE(client_.id->disconnect().ok());
  ASSERT_TRUE(server_.qp->modify(QpState::kErr).ok());
  ASSERT_TRUE(drive([&] { return client_.has(CmEventType::kDisconnected) && !client_.wcs.empty(); }));
  settle();
  ASSERT_EQ(client_.wcs.size(), 1u) << "one request, one completion";
  EXPECT_EQ(client_.wcs.front().wr_id, 7u);
}

TEST_P(VerbsTest, ModifyToErrorWhileConnecting) {
  ASSERT_TRUE(listen().ok());
  start_connect();
  ASSERT_TRUE(client_.qp->modify(QpState::kErr).ok());
  ASSERT_TRUE(drive([&] { return client_.has(CmEventType::kConnectError); }));
  EXPECT_EQ(client_.qp->state(), QpState::kErr);
  server_.close();  // first: a kernel's connection manager lets the client's end go only when the peer has answered
}

}  // namespace
}  // namespace weft::verbs::testing
