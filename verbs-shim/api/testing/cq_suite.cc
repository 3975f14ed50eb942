// Every backend's completion events: arming, solicited, and descriptors that one can sleep on.
#include <thread>

#include "verbs-shim/api/testing/pair.h"

namespace weft::verbs::testing {
namespace {

bool readable(int fd, int timeout_ms) {
  pollfd poller{fd, POLLIN, 0};
  return ::poll(&poller, 1, timeout_ms) == 1;
}

TEST_P(VerbsTest, ArmedOnceFiresOnce) {
  use_channel(server_);
  Mem to(*server_.pd, 64, Access::kLocalWrite);
  Mem from(*client_.pd, 64, Access::kNone);
  establish();
  server_.poll_cq = false;
  for (std::uint64_t i = 0; i < 2; ++i) ASSERT_TRUE(server_.recv({to.sge()}, i).ok());
  ASSERT_TRUE(server_.cq->req_notify(false).ok());
  EXPECT_EQ(server_.channel->get_event(), nullptr);
  ASSERT_TRUE(client_.send({from.sge()}).ok());
  ASSERT_TRUE(client_.send({from.sge()}).ok());
  ASSERT_TRUE(arrived([&] { return server_.qp->counters().sends_rx == 2; }));
  EXPECT_EQ(server_.channel->get_event(), server_.cq.get());
  EXPECT_EQ(server_.channel->get_event(), nullptr);
  Wc wc[4];
  EXPECT_EQ(server_.cq->poll(wc), 2);
}

TEST_P(VerbsTest, SolicitedOnlyWaitsForASolicitedSend) {
  use_channel(server_);
  Mem to(*server_.pd, 64, Access::kLocalWrite);
  Mem from(*client_.pd, 64, Access::kNone);
  establish();
  server_.poll_cq = false;
  for (std::uint64_t i = 0; i < 3; ++i) ASSERT_TRUE(server_.recv({to.sge()}, i).ok());
  ASSERT_TRUE(server_.cq->req_notify(true).ok());
  ASSERT_TRUE(client_.send({from.sge()}).ok());
  ASSERT_TRUE(arrived([&] { return server_.qp->counters().sends_rx == 1; }));
  EXPECT_EQ(server_.channel->get_event(), nullptr);
  ASSERT_TRUE(client_.send({from.sge()}, 1, SendFlags::kSolicited | SendFlags::kSignaled).ok());
  ASSERT_TRUE(arrived([&] { return server_.qp->counters().sends_rx == 2; }));
  EXPECT_EQ(server_.channel->get_event(), server_.cq.get());
}

TEST_P(VerbsTest, SolicitedOnlyFiresOnError) {
  use_channel(server_);
  Mem to(*server_.pd, 64, Access::kLocalWrite);
  establish();
  ASSERT_TRUE(server_.recv({to.sge()}, 1).ok());
  ASSERT_TRUE(server_.cq->req_notify(true).ok());
  ASSERT_TRUE(client_.id->disconnect().ok());
  ASSERT_TRUE(drive([&] { return server_.channel->get_event() == server_.cq.get(); }));
}

TEST_P(VerbsTest, NextOutranksSolicited) {
  use_channel(server_);
  Mem to(*server_.pd, 64, Access::kLocalWrite);
  Mem from(*client_.pd, 64, Access::kNone);
  establish();
  ASSERT_TRUE(server_.recv({to.sge()}, 1).ok());
  ASSERT_TRUE(server_.cq->req_notify(false).ok());
  ASSERT_TRUE(server_.cq->req_notify(true).ok());
  ASSERT_TRUE(client_.send({from.sge()}).ok());
  ASSERT_TRUE(drive([&] { return server_.channel->get_event() == server_.cq.get(); }));
}

TEST_P(VerbsTest, ChannelDescriptorWakesASleeper) {
  use_channel(server_);
  Mem to(*server_.pd, 64, Access::kLocalWrite);
  Mem from(*client_.pd, 64, Access::kNone);
  establish();
  const int fd = server_.channel->fd();
  ASSERT_GE(fd, 0);
  ASSERT_TRUE(server_.recv({to.sge()}, 1).ok());
  ASSERT_TRUE(server_.cq->req_notify(false).ok());
  settle();
  EXPECT_FALSE(readable(fd, 0));
  ASSERT_TRUE(client_.send({from.sge()}).ok());
  client_.device->process(now());
  ASSERT_TRUE(readable(fd, 5000));
  Cq* fired = nullptr;
  while (fired == nullptr && readable(fd, 5000)) {
    server_.device->process(now());
    fired = server_.channel->get_event();
  }
  EXPECT_EQ(fired, server_.cq.get());
  server_.collect();
  EXPECT_EQ(server_.wcs.size(), 1u);
  settle();
  EXPECT_FALSE(readable(fd, 0));
}

TEST_P(VerbsTest, EventThatNobodyTookKeepsTheDescriptorReadable) {
  ASSERT_TRUE(client_.id->resolve_addr(bind_address(GetParam()), std::chrono::seconds(1)).ok());
  const int fd = client_.cm->fd();
  client_.device->process(now());
  EXPECT_TRUE(readable(fd, GetParam().own_progress ? 5000 : 0));
  EXPECT_TRUE(client_.cm->get_event().has_value());
  client_.device->process(now());
  EXPECT_FALSE(readable(fd, 0));
}

TEST_P(VerbsTest, PostWakesASleeper) {
  Mem from(*client_.pd, 64, Access::kNone);
  Mem to(*server_.pd, 64, Access::kLocalWrite);
  establish();
  ASSERT_TRUE(server_.recv({to.sge()}).ok());
  const int fd = client_.device->fd();
  settle();
  EXPECT_FALSE(readable(fd, 0));
  ASSERT_TRUE(client_.send({from.sge()}).ok());
  const auto due = client_.device->next_timeout();
  if (GetParam().own_progress) {  // no thread has to be woken
    EXPECT_FALSE(due);
    EXPECT_TRUE(arrives_alone());
    return;
  }
  EXPECT_TRUE(readable(fd, 0)) << "what was posted must not wait for the peer";
  ASSERT_TRUE(due);
  EXPECT_LE(*due, now());
}

// ---- Device::fd: one loop sleeps on it, whether or not the device moves by itself

// Of a Cq without a channel every completion wakes, also the one that comes right after process was called.
TEST_P(VerbsTest, DeviceDescriptorWakesForACqWithoutAChannel) {
  constexpr std::uint64_t kSends = 16;
  server_.cq = std::move(server_.device->create_cq(cqe_, nullptr).value());
  Mem to(*server_.pd, 64, Access::kLocalWrite);
  Mem from(*client_.pd, 64, Access::kNone);
  establish();
  const int fd = server_.device->fd();
  ASSERT_GE(fd, 0);
  for (std::uint64_t i = 0; i < kSends; ++i) ASSERT_TRUE(server_.recv({to.sge()}, i).ok());
  settle();
  EXPECT_FALSE(readable(fd, 0));
  for (std::uint64_t i = 0; i < kSends; ++i) {
    ASSERT_TRUE(client_.send({from.sge()}, i).ok());
    client_.device->process(now());
    while (server_.wcs.size() <= i) {
      ASSERT_TRUE(readable(fd, 5000)) << i;
      server_.device->process(now());
      server_.collect();
    }
  }
  settle();
  EXPECT_FALSE(readable(fd, 0));
}

TEST_P(VerbsTest, ProcessSaysThatACqWithoutAChannelGotSomething) {
  server_.cq = std::move(server_.device->create_cq(cqe_, nullptr).value());
  Mem to(*server_.pd, 64, Access::kLocalWrite);
  Mem from(*client_.pd, 64, Access::kNone);
  establish();
  ASSERT_TRUE(server_.recv({to.sge()}, 1).ok());
  settle();
  ASSERT_TRUE(client_.send({from.sge()}).ok());
  client_.device->process(now());
  ASSERT_TRUE(readable(server_.device->fd(), 5000));
  EXPECT_GT(server_.device->process(now()), 0u);
}

TEST_P(VerbsTest, DeviceDescriptorIsReadableUntilAChannelsEventIsTaken) {
  use_channel(server_);
  Mem to(*server_.pd, 64, Access::kLocalWrite);
  Mem from(*client_.pd, 64, Access::kNone);
  establish();
  const int fd = server_.device->fd();
  ASSERT_TRUE(server_.recv({to.sge()}, 1).ok());
  ASSERT_TRUE(server_.cq->req_notify(false).ok());
  settle();
  EXPECT_FALSE(readable(fd, 0));
  ASSERT_TRUE(client_.send({from.sge()}).ok());
  ASSERT_TRUE(drive([&] { return !server_.wcs.empty(); }));
  settle();
  EXPECT_TRUE(readable(fd, 0));
  EXPECT_EQ(server_.channel->get_event(), server_.cq.get());
  settle();
  EXPECT_FALSE(readable(fd, 0));

  ASSERT_TRUE(client_.id->disconnect().ok());
  client_.device->process(now());
  std::optional<CmEvent> event;
  while (!event && readable(fd, 5000)) {
    server_.device->process(now());
    event = server_.cm->get_event();
  }
  ASSERT_TRUE(event);
  EXPECT_EQ(event->type, CmEventType::kDisconnected);
}

// The channel is destroyed with an untaken event in it.
TEST_P(VerbsTest, DestroyedChannelLeavesTheDeviceDescriptorQuiet) {
  const int fd = client_.device->fd();
  ASSERT_TRUE(client_.id->resolve_addr(bind_address(GetParam()), std::chrono::seconds(1)).ok());
  client_.device->process(now());
  EXPECT_TRUE(readable(fd, 5000));
  client_.id.reset();
  client_.cm.reset();
  client_.device->process(now());
  EXPECT_FALSE(readable(fd, 0));
  client_.cm = std::move(client_.device->create_event_channel().value());
}

TEST_P(VerbsTest, WhoStopsSpinningFindsItsDescriptorsTrue) {
  client_.cq = std::move(client_.device->create_cq(cqe_, nullptr).value());
  Mem to(*server_.pd, 64, Access::kLocalWrite);
  Mem from(*client_.pd, 64, Access::kNone);
  establish();
  ASSERT_TRUE(server_.recv({to.sge()}, 1).ok());
  const int fd = client_.device->fd();
  settle();
  client_.device->set_busy_polling(true);
  ASSERT_TRUE(client_.send({from.sge()}).ok());
  if (GetParam().own_progress) {  // else the waiting post makes it readable
    Wc wc;
    const auto deadline = now() + std::chrono::seconds(10);
    while (client_.cq->poll({&wc, 1}) == 0 && now() < deadline) std::this_thread::yield();
    EXPECT_EQ(wc.wr_id, 1u);
  }
  client_.device->set_busy_polling(false);
  EXPECT_TRUE(readable(fd, 1000));
  settle();
  client_.device->set_busy_polling(true);
  settle();
  client_.device->set_busy_polling(false);
  EXPECT_FALSE(readable(fd, 0));
}

// The post is flushed within its call: nothing from the network will wake a user that goes to sleep after it.
TEST_P(VerbsTest, FlushedPostWakesWhoSleeps) {
  client_.cq = std::move(client_.device->create_cq(cqe_, nullptr).value());
  Mem memory(*client_.pd, 64, Access::kLocalWrite);
  const int fd = client_.device->fd();
  establish();
  ASSERT_TRUE(client_.qp->modify(QpState::kErr).ok());
  ASSERT_TRUE(
      drive([&] { return client_.has(CmEventType::kDisconnected) && server_.has(CmEventType::kDisconnected); }));
  settle();
  ASSERT_FALSE(readable(fd, 0));
  ASSERT_TRUE(client_.recv({memory.sge()}, 3).ok());
  EXPECT_TRUE(readable(fd, 1000));
  EXPECT_TRUE(wait_wc(client_));
  settle();
  ASSERT_FALSE(readable(fd, 0));
  ASSERT_TRUE(client_.send({memory.sge()}, 4).ok());
  EXPECT_TRUE(readable(fd, 1000));
  EXPECT_TRUE(wait_wc(client_));
}

}  // namespace
}  // namespace weft::verbs::testing
