// A device that is taken away under its users (unplug), and asynchronous events for users that did not ask for them.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <map>
#include <thread>

#include "verbs-shim/api/testing/pair.h"
#include "verbs-shim/soft/async_queue.h"
#include "verbs-shim/soft/device.h"
#include "verbs-shim/soft/soft_device.h"

namespace weft::verbs::testing {
namespace {

class UnplugTest : public VerbsTest {};

bool readable(int fd) {
  pollfd poller{fd, POLLIN, 0};
  return ::poll(&poller, 1, 0) == 1;
}

TEST_P(UnplugTest, EveryIdHearsOfItAndWorkIsFlushed) {
  Mem memory(*server_.pd, 64, Access::kLocalWrite);
  establish();
  Connection other;
  connect_another(other);
  settle();
  server_.events.clear();
  client_.events.clear();
  const auto idle = std::move(server_.cm->create_id().value());
  for (std::uint64_t i = 0; i < 2; ++i) ASSERT_TRUE(server_.recv({memory.sge()}, i).ok());
  unplug(*server_.device);
  unplug(*server_.device);  // once is enough
  ASSERT_TRUE(drive([&] { return server_.wcs.size() == 2 && client_.has(CmEventType::kDisconnected); }));
  for (const Wc& wc : server_.wcs) EXPECT_EQ(wc.status, WcStatus::kWrFlushErr);
  settle();
  std::map<const CmId*, int> told;
  for (const CmEvent& event : server_.events) {
    EXPECT_EQ(event.type, CmEventType::kDeviceRemoval);
    EXPECT_EQ(event.status, ENODEV);
    ++told[event.id];
  }
  const std::map<const CmId*, int> expected{
      {server_.id.get(), 1}, {other.server_id.get(), 1}, {listener_.get(), 1}, {idle.get(), 1}};
  EXPECT_EQ(told, expected);
  const auto event = server_.device->get_async_event();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->type, AsyncEventType::kDeviceFatal);
  EXPECT_FALSE(server_.device->query().port_active);
}

TEST_P(UnplugTest, LaterPostsAreFlushedAndConnectingFails) {
  Mem memory(*client_.pd, 64, Access::kLocalWrite);
  ASSERT_TRUE(listen().ok());
  ASSERT_TRUE(client_.id->resolve_addr(server_.id->local_addr(), std::chrono::seconds(1)).ok());
  ASSERT_TRUE(client_.id->resolve_route(std::chrono::seconds(1)).ok());
  make_qp(client_);
  unplug(*client_.device);
  EXPECT_EQ(client_.id->connect({}).error().errno_value, ENODEV);
  ASSERT_TRUE(client_.send({memory.sge()}, 1).ok());
  ASSERT_TRUE(client_.recv({memory.sge()}, 2).ok());
  ASSERT_TRUE(drive([&] { return client_.wcs.size() == 2; }));
  for (const Wc& wc : client_.wcs) EXPECT_EQ(wc.status, WcStatus::kWrFlushErr);
  auto id = std::move(client_.cm->create_id().value());
  EXPECT_EQ(id->bind_addr(loopback(GetParam().family, 0)).error().errno_value, ENODEV);
  EXPECT_EQ(id->resolve_addr(server_.id->local_addr(), std::chrono::seconds(1)).error().errno_value, ENODEV);
}

// Whichever comes first: afterwards no queue pair of the device is but in error.
TEST_P(UnplugTest, QueuePairsMadeMeanwhileAreInError) {
  std::atomic<bool> begun = false;
  std::vector<std::unique_ptr<CmId>> ids;
  for (int i = 0; i < 100; ++i) ids.push_back(std::move(client_.cm->create_id().value()));
  std::vector<std::unique_ptr<Qp>> qps;
  cap_.max_send_wr = cap_.max_recv_wr = 1;
  const auto make = [&] {
    for (const auto& id : ids) {
      auto qp = id->create_qp(*client_.pd, init_attr(client_));
      if (!qp.ok()) break;
      qps.push_back(std::move(*qp));
      begun = true;
    }
  };
  if (GetParam().own_progress) {
    std::thread maker(make);
    while (!begun) std::this_thread::yield();
    unplug(*client_.device);
    maker.join();
  } else {
    make();
    unplug(*client_.device);
  }
  ASSERT_FALSE(qps.empty());
  for (const auto& qp : qps) EXPECT_EQ(qp->state(), QpState::kErr);
  qps.clear();
}

// A request in the channel goes with its connection, one that was taken can no longer be accepted.
TEST_P(UnplugTest, RequestsGoWithIt) {
  ASSERT_TRUE(listen().ok());
  start_connect();
  take_request();
  make_qp(server_);
  unplug(*server_.device);
  EXPECT_EQ(server_.id->accept({}).error().errno_value, ENODEV);
  ASSERT_TRUE(drive([&] {
    return client_.has(CmEventType::kConnectError) || client_.has(CmEventType::kUnreachable) ||
           client_.has(CmEventType::kRejected);
  }));
  settle();
  EXPECT_EQ(server_.events.size(), 2u);  // the listener's and the request's
}

TEST_P(UnplugTest, NobodyCanConnectToItAnyMore) {
  ASSERT_TRUE(listen().ok());
  unplug(*server_.device);
  start_connect();
  ASSERT_TRUE(drive([&] { return client_.has(CmEventType::kUnreachable); }));
  EXPECT_EQ(client_.take(CmEventType::kUnreachable)->status, ECONNREFUSED);
}

// Programs that know nothing of asynchronous events must not be kept from sleeping by one.
TEST_P(UnplugTest, EventsThatNobodyAskedForWakeNobody) {
  Mem from(*client_.pd, 64, Access::kNone);
  establish();
  const int fd = server_.device->fd();
  ASSERT_TRUE(client_.send({from.sge()}).ok());  // no receive is posted
  ASSERT_TRUE(drive([&] { return server_.has(CmEventType::kDisconnected); }));
  settle();
  EXPECT_FALSE(readable(fd));
  EXPECT_TRUE(readable(server_.device->async_fd()));
  server_.device->process(now());
  EXPECT_TRUE(readable(fd));
}

TEST_P(UnplugTest, OldestOfTooManyEventsGivesWay) {
  auto& queue = static_cast<soft::SoftDevice&>(*server_.device).fleet().core().async();
  const int fd = server_.device->async_fd();
  for (std::size_t i = 0; i < soft::AsyncQueue::kMaxEvents + 2; ++i) queue.push({.text = std::to_string(i)});
  server_.device->process(now());
  EXPECT_TRUE(readable(fd));
  for (std::size_t i = 2; i < soft::AsyncQueue::kMaxEvents + 2; ++i) {
    const auto event = server_.device->get_async_event();
    ASSERT_TRUE(event);
    EXPECT_EQ(event->text, std::to_string(i));
  }
  EXPECT_FALSE(server_.device->get_async_event());
  server_.device->process(now());
  EXPECT_FALSE(readable(fd));
}

Result<std::unique_ptr<Device>> open_polled() {
  SoftConfig config;
  config.fall_back = false;
  return open_soft_device(config);
}

Result<std::unique_ptr<Device>> open_with_workers() {
  SoftConfig config;
  config.fall_back = false;
  config.num_workers = 2;
  return open_soft_device(config);
}

INSTANTIATE_TEST_SUITE_P(Soft, UnplugTest,
                         ::testing::Values(Backend{"Blocking", open_polled, true, AF_INET},
                                           Backend{"Threaded", open_with_workers, false, AF_INET, true, true}),
                         [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace weft::verbs::testing
