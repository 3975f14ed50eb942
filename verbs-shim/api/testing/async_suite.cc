// Every backend's asynchronous events: errors outside all work requests, and the object at fault.
#include "verbs-shim/api/testing/async.h"

namespace weft::verbs::testing {
namespace {

bool has_event(int fd, int timeout_ms) {
  pollfd poller{fd, POLLIN, 0};
  return ::poll(&poller, 1, timeout_ms) == 1;
}

TEST_P(AsyncTest, SendThatFindsNoReceiveBreaksTheProtocol) {
  Mem from(*client_.pd, 64, Access::kNone);
  establish();
  ASSERT_TRUE(client_.send({from.sge()}).ok());
  expect_qp_event(server_, AsyncEventType::kQpReqErr);
  drive_to_the_end();
  settle();
  expect_no_async(server_);
  expect_no_async(client_, "it was the peer that found the fault");
}

TEST_P(AsyncTest, WriteToForeignMemoryIsAnAccessError) {
  Mem to(*server_.pd, 64, Access::kLocalWrite);
  Mem from(*client_.pd, 64, Access::kNone);
  establish();
  ASSERT_TRUE(client_.rdma(WrOpcode::kRdmaWrite, {from.sge()}, to.addr(), to.mr->rkey()).ok());
  expect_qp_event(server_, AsyncEventType::kQpAccessErr);
  drive_to_the_end();
}

TEST_P(AsyncTest, ReadOfForeignMemoryIsAnAccessError) {
  Mem source(*server_.pd, 64, Access::kLocalWrite);
  Mem sink(*client_.pd, 64, Access::kLocalWrite);
  establish();
  ASSERT_TRUE(client_.rdma(WrOpcode::kRdmaRead, {sink.sge()}, source.addr(), source.mr->rkey()).ok());
  expect_qp_event(server_, AsyncEventType::kQpAccessErr);
  drive_to_the_end();
}

TEST_P(AsyncTest, FaultOfOnesOwnIsFatal) {
  Mem from(*client_.pd, 64, Access::kNone);
  Sge sge = from.sge();
  sge.lkey ^= 1;
  establish();
  ASSERT_TRUE(client_.send({sge}).ok());
  expect_qp_event(client_, AsyncEventType::kQpFatal);
  drive_to_the_end();
}

TEST_P(AsyncTest, EndInOrderIsNoEvent) {
  establish();
  ASSERT_TRUE(client_.id->disconnect().ok());
  drive_to_the_end();
  settle();
  expect_no_async(server_);
  expect_no_async(client_);
}

TEST_P(AsyncTest, OverflowNamesTheCqAndItsQueuePair) {
  client_.cq = std::move(client_.device->create_cq(4, client_.channel.get()).value());
  Mem to(*server_.pd, 64, Access::kLocalWrite);
  Mem from(*client_.pd, 64, Access::kNone);
  establish();
  client_.poll_cq = false;
  for (std::uint64_t i = 0; i < 5; ++i) ASSERT_TRUE(server_.recv({to.sge()}, i).ok());
  for (std::uint64_t i = 0; i < 5; ++i) ASSERT_TRUE(client_.send({from.sge()}, i).ok());
  const auto event = wait_async(client_);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->type, AsyncEventType::kCqErr);
  EXPECT_EQ(event->cq, client_.cq.get());
  expect_qp_event(client_, AsyncEventType::kQpFatal);
}

TEST_P(AsyncTest, EventsOfDestroyedObjectsAreDropped) {
  Mem from(*client_.pd, 64, Access::kNone);
  establish();
  ASSERT_TRUE(client_.send({from.sge()}).ok());
  drive_to_the_end();
  server_.qp.reset();
  expect_no_async(server_);
  settle();
  EXPECT_FALSE(has_event(server_.device->async_fd(), 0));
}

TEST_P(AsyncTest, DescriptorsTellUntilTheEventIsTaken) {
  Mem from(*client_.pd, 64, Access::kNone);
  establish();
  settle();
  EXPECT_FALSE(has_event(server_.device->async_fd(), 0));
  ASSERT_TRUE(client_.send({from.sge()}).ok());
  drive_to_the_end();
  EXPECT_TRUE(has_event(server_.device->async_fd(), 0));
  EXPECT_TRUE(has_event(server_.device->fd(), 0));
  EXPECT_TRUE(take_async(server_));
  settle();
  EXPECT_FALSE(has_event(server_.device->async_fd(), 0));
  EXPECT_FALSE(has_event(server_.device->fd(), 0));
}

}  // namespace
}  // namespace weft::verbs::testing
