// Every backend's connection manager: set-up, private data, depths, reject, disconnect.
#include <cerrno>

#include "verbs-shim/api/testing/pair.h"

namespace weft::verbs::testing {
namespace {

TEST_P(VerbsTest, PrivateDataTravelsBothWays) {
  ASSERT_TRUE(listen().ok());
  start_connect({{1, 2, 3, 4, 5}, 4, 7});
  CmEvent request;
  take_request(&request);
  EXPECT_EQ(request.param.private_data, as_received({1, 2, 3, 4, 5}, request.param.private_data.size()));
  if (GetParam().depths) {
    EXPECT_EQ(request.param.responder_resources, 7);  // the client's ORD is our number of Reads to serve
    EXPECT_EQ(request.param.initiator_depth, 4);
  }
  make_qp(server_);
  EXPECT_EQ(server_.qp->state(), QpState::kInit);
  ASSERT_TRUE(server_.id->accept({{9, 8, 7}, 7, 4}).ok());
  ASSERT_TRUE(drive([&] { return server_.has(CmEventType::kEstablished) && client_.has(CmEventType::kEstablished); }));
  const CmEvent established = *client_.take(CmEventType::kEstablished);
  EXPECT_EQ(established.param.private_data, as_received({9, 8, 7}, established.param.private_data.size()));
  EXPECT_EQ(established.param.responder_resources, 4);
  EXPECT_EQ(established.param.initiator_depth, 7);
  EXPECT_EQ(established.id, client_.id.get());
  EXPECT_EQ(client_.qp->state(), QpState::kRts);
  EXPECT_EQ(server_.qp->state(), QpState::kRts);
}

TEST_P(VerbsTest, AddressesAreKnown) {
  establish();
  const sockaddr_storage here = client_.id->local_addr();
  const sockaddr_storage there = server_.id->peer_addr();
  EXPECT_EQ(std::memcmp(&here, &there, sizeof(sockaddr_in)), 0);
  EXPECT_EQ(client_.id->peer_addr().ss_family, GetParam().family);
  const sockaddr_storage asked = client_.id->peer_addr();
  const sockaddr_storage answered = server_.id->local_addr();
  EXPECT_EQ(std::memcmp(&asked, &answered, sizeof(sockaddr_in)), 0);
}

TEST_P(VerbsTest, LongestPrivateData) {
  const std::size_t most = client_.device->caps().max_private_data;
  ASSERT_TRUE(listen().ok());
  std::vector<std::uint8_t> data(most + 1, 0x5a);
  EXPECT_FALSE(client_.id->connect({data, 1, 1}).ok());
  data.pop_back();
  start_connect({data, 1, 1});
  CmEvent request;
  take_request(&request);
  EXPECT_EQ(request.param.private_data, data);
  EXPECT_TRUE(server_.id->reject({}).ok());  // an answer, for which a kernel's client waits before it can go
}

TEST_P(VerbsTest, RejectCarriesPrivateData) {
  ASSERT_TRUE(listen().ok());
  start_connect();
  take_request();
  const std::vector<std::uint8_t> why{'n', 'o'};
  ASSERT_TRUE(server_.id->reject(why).ok());
  server_.id.reset();  // the rejection is delivered all the same
  ASSERT_TRUE(drive([&] { return client_.has(CmEventType::kRejected); }));
  const auto seen = client_.take(CmEventType::kRejected)->param.private_data;
  EXPECT_EQ(seen, as_received(why, seen.size()));
  settle();
  EXPECT_FALSE(client_.has(CmEventType::kDisconnected));
  EXPECT_EQ(client_.qp->state(), QpState::kErr);
}

TEST_P(VerbsTest, DroppedRequestIsRejected) {
  ASSERT_TRUE(listen().ok());
  start_connect();
  take_request();
  server_.id.reset();
  ASSERT_TRUE(drive([&] { return client_.has(CmEventType::kRejected); }));
}

TEST_P(VerbsTest, NobodyListens) {
  ASSERT_TRUE(listen().ok());
  const sockaddr_storage address = server_.id->local_addr();
  server_.id.reset();
  ASSERT_NO_FATAL_FAILURE(resolve(*client_.id, address));
  make_qp(client_);
  ASSERT_TRUE(client_.id->connect({}).ok());
  ASSERT_TRUE(drive([&] { return client_.has(CmEventType::kUnreachable); }));
  const CmEvent event = *client_.take(CmEventType::kUnreachable);
  EXPECT_EQ(event.status, ECONNREFUSED);
  EXPECT_NE(event.text.find("refused"), std::string::npos) << event.text;
}

TEST_P(VerbsTest, StepsOutOfOrderAreRefused) {
  EXPECT_EQ(client_.id->listen(1).error().errno_value, EINVAL);
  EXPECT_EQ(client_.id->resolve_route(std::chrono::seconds(1)).error().errno_value, EINVAL);
  EXPECT_EQ(client_.id->connect({}).error().errno_value, EINVAL);
  EXPECT_EQ(client_.id->accept({}).error().errno_value, EINVAL);
  EXPECT_EQ(client_.id->reject({}).error().errno_value, EINVAL);
  EXPECT_EQ(client_.id->disconnect().error().errno_value, EINVAL);
}

TEST_P(VerbsTest, QueuePairBeforeTheAddressIsKnown) {
  make_qp(client_);
  EXPECT_EQ(client_.send({}).error().errno_value, ENOTCONN);
  auto second = client_.id->create_qp(*client_.pd, init_attr(client_));
  EXPECT_FALSE(second.ok());
}

TEST_P(VerbsTest, DisconnectIsSeenByBoth) {
  establish();
  ASSERT_TRUE(client_.id->disconnect().ok());
  ASSERT_TRUE(drive([&] { return server_.has(CmEventType::kDisconnected); }));
  EXPECT_EQ(server_.take(CmEventType::kDisconnected)->status, 0);
  ASSERT_TRUE(server_.id->disconnect().ok());  // late, and no error
  ASSERT_TRUE(drive([&] { return client_.has(CmEventType::kDisconnected); }));
  EXPECT_EQ(client_.qp->state(), QpState::kErr);
  EXPECT_EQ(server_.qp->state(), QpState::kErr);
}

TEST_P(VerbsTest, WhatWasPostedBeforeDisconnectArrives) {
  Mem to(*server_.pd, 1 << 20, Access::kLocalWrite | Access::kRemoteWrite);
  Mem from(*client_.pd, 1 << 20, Access::kLocalWrite, 0x42);
  Mem note(*server_.pd, 16, Access::kLocalWrite);
  establish();
  ASSERT_TRUE(server_.recv({note.sge()}, 7).ok());
  ASSERT_TRUE(client_.rdma(WrOpcode::kRdmaWrite, {from.sge()}, to.addr(), to.mr->rkey()).ok());
  ASSERT_TRUE(client_.send({from.sge(0, 3)}).ok());
  ASSERT_TRUE(client_.id->disconnect().ok());
  client_.qp.reset();
  client_.id.reset();
  const auto wc = wait_wc(server_);
  ASSERT_TRUE(wc);
  EXPECT_EQ(wc->status, WcStatus::kSuccess);
  EXPECT_EQ(wc->byte_len, 3u);
  EXPECT_EQ(to.octets, from.octets);
  ASSERT_TRUE(drive([&] { return server_.has(CmEventType::kDisconnected); }));
}

TEST_P(VerbsTest, PostsAfterDisconnectAreFlushed) {
  Mem from(*client_.pd, 16, Access::kLocalWrite);
  establish();
  ASSERT_TRUE(client_.id->disconnect().ok());
  ASSERT_TRUE(client_.send({from.sge()}, 5).ok());
  ASSERT_TRUE(client_.recv({from.sge()}, 6).ok());
  ASSERT_TRUE(drive([&] { return client_.wcs.size() == 2; }));
  for (const Wc& wc : client_.wcs) EXPECT_EQ(wc.status, WcStatus::kWrFlushErr);
  ASSERT_TRUE(client_.send({from.sge()}, 8).ok());  // in error: at once, or in its turn where others do the work
  ASSERT_TRUE(client_.recv({from.sge()}, 9).ok());
  client_.collect();
  if (GetParam().own_progress) {
    ASSERT_TRUE(drive([&] { return client_.wcs.size() == 4; }));
  }
  EXPECT_EQ(client_.wcs.size(), 4u);
}

TEST_P(VerbsTest, SeveralConnectionsOfOneListener) {
  establish();
  Side other;
  open(other);
  std::vector<std::unique_ptr<CmId>> ids;
  std::vector<std::unique_ptr<Qp>> qps;
  for (int i = 0; i < 5; ++i) {
    auto id = std::move(client_.cm->create_id().value());
    ASSERT_NO_FATAL_FAILURE(resolve(*id, listener_->local_addr()));
    qps.push_back(std::move(id->create_qp(*client_.pd, init_attr(client_)).value()));
    ASSERT_TRUE(id->connect({{static_cast<std::uint8_t>(i)}, 1, 1}).ok());
    ids.push_back(std::move(id));
  }
  std::size_t requests = 0;
  ASSERT_TRUE(drive([&] {
    while (auto event = server_.take(CmEventType::kConnectRequest)) {
      EXPECT_EQ(event->id, listener_.get());
      ++requests;
    }
    return requests == ids.size();
  }));
  qps.clear();
}

}  // namespace
}  // namespace weft::verbs::testing
