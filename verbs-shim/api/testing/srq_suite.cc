// Every backend's shared receive queues: consumption by queue pairs, the remaining receives, and the timely warning to
// their user.
#include <algorithm>
#include <cerrno>
#include <map>

#include "verbs-shim/api/testing/srq.h"

namespace weft::verbs::testing {
namespace {

TEST_P(SrqTest, ItsLimitsHold) {
  const Caps& caps = server_.device->caps();
  EXPECT_EQ(server_.pd->create_srq({.max_wr = caps.max_srq_wr + 1}).error().errno_value, EINVAL);
  EXPECT_EQ(server_.pd->create_srq({.max_wr = 1, .max_sge = caps.max_srq_sge + 1}).error().errno_value, EINVAL);
  const SrqAttr attr = server_.srq->query().value();
  EXPECT_GE(attr.max_wr, kMaxWr);
  EXPECT_GE(attr.max_sge, kMaxSge);
  EXPECT_EQ(attr.srq_limit, 0u);
  post(attr.max_wr);
  EXPECT_EQ(server_.srq->post_recv({}).error().errno_value, ENOMEM);
  EXPECT_EQ(server_.srq->modify(attr.max_wr + 1).error().errno_value, EINVAL);
  const std::vector<Sge> too_many(attr.max_sge + 1, to_->sge(0, 1));
  EXPECT_EQ(server_.srq->post_recv({.wr_id = 1, .sg_list = too_many}).error().errno_value, EINVAL);
}

TEST_P(SrqTest, ItsQueuePairsTakeNoReceivesOfTheirOwn) {
  establish();
  const Status status = server_.recv({});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().errno_value, EINVAL);
}

TEST_P(SrqTest, SeveralQueuePairsTakeFromItInOrder) {
  RecordProperty("proves", "SEC-2.3.5-01");
  constexpr std::uint64_t kRounds = 8;
  connect_two();
  post(2 * kRounds);
  for (std::uint64_t i = 0; i < kRounds; ++i) {
    ASSERT_TRUE(send(*client_.qp, 10).ok());
    ASSERT_TRUE(send(*other_.qp, 20).ok());
  }
  ASSERT_TRUE(drive([&] { return server_.wcs.size() == 2 * kRounds; }));
  std::map<std::uint32_t, std::vector<std::uint64_t>> taken;  // by queue pair
  std::vector<bool> seen(2 * kRounds);
  for (const Wc& wc : server_.wcs) {
    EXPECT_EQ(wc.status, WcStatus::kSuccess);
    EXPECT_EQ(wc.byte_len, wc.qp_num == server_.qp->qp_num() ? 10u : 20u);
    ASSERT_LT(wc.wr_id, seen.size());
    EXPECT_FALSE(seen[wc.wr_id]) << "two took one receive";
    seen[wc.wr_id] = true;
    taken[wc.qp_num].push_back(wc.wr_id);
  }
  EXPECT_EQ(taken[server_.qp->qp_num()].size(), kRounds);
  EXPECT_EQ(taken[other_.server_qp->qp_num()].size(), kRounds);
  for (const auto& [qp_num, wr_ids] : taken) EXPECT_TRUE(std::ranges::is_sorted(wr_ids)) << qp_num;
}

// As with a private receive queue, the message finds no buffer, and only its own connection ends.
TEST_P(SrqTest, EmptyItEndsTheConnectionThatAsks) {
  RecordProperty("proves", "DDP-7.1-03");
  connect_two();
  ASSERT_TRUE(send(*client_.qp, 10).ok());
  ASSERT_TRUE(drive([&] { return client_.has(CmEventType::kDisconnected); }));
  settle();
  post(1);
  ASSERT_TRUE(send(*other_.qp, 20).ok());
  const auto wc = wait_wc(server_);
  ASSERT_TRUE(wc);
  EXPECT_EQ(wc->status, WcStatus::kSuccess);
  EXPECT_EQ(wc->qp_num, other_.server_qp->qp_num());
}

TEST_P(SrqTest, WhatAQueuePairDidNotTakeStays) {
  connect_two();
  post(4);
  ASSERT_TRUE(send(*client_.qp, 10).ok());
  ASSERT_TRUE(wait_wc(server_));
  ASSERT_TRUE(server_.qp->modify(QpState::kErr).ok());
  ASSERT_TRUE(drive([&] { return client_.has(CmEventType::kDisconnected); }));
  server_.qp.reset();
  settle();
  EXPECT_TRUE(server_.wcs.empty()) << "nothing of the shared queue is flushed";
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(send(*other_.qp, 20).ok());
  ASSERT_TRUE(drive([&] { return server_.wcs.size() == 3; }));
  for (const Wc& wc : server_.wcs) EXPECT_EQ(wc.status, WcStatus::kSuccess);
}

// The connection ends inside a message: the receive that it had taken ends with it, once, and no other.
TEST_P(SrqTest, TakenReceiveEndsWithItsQueuePair) {
  constexpr std::size_t kLen = std::size_t{16} << 20;
  Mem sink(*server_.pd, kLen, Access::kLocalWrite);
  Mem source(*client_.pd, kLen, Access::kNone);
  establish();
  const Sge sge = sink.sge();
  for (std::uint64_t i = 0; i < 2; ++i) ASSERT_TRUE(server_.srq->post_recv({.wr_id = i, .sg_list = {&sge, 1}}).ok());
  ASSERT_TRUE(client_.send({source.sge()}).ok());
  client_.device->process(now());
  for (int i = 0; i < 50; ++i) server_.device->process(now());
  client_.qp.reset();
  ASSERT_TRUE(drive([&] { return server_.has(CmEventType::kDisconnected); }));
  settle();
  ASSERT_LE(server_.wcs.size(), 1u);
  if (GetParam().own_progress) return;  // it may all have been there, or nothing
  ASSERT_EQ(server_.wcs.size(), 1u);
  EXPECT_EQ(server_.wcs[0].wr_id, 0u);
  EXPECT_EQ(server_.wcs[0].status, WcStatus::kWrFlushErr);
}

TEST_P(SrqTest, LimitIsToldOnce) {
  RecordProperty("proves", "SEC-6.4.3.1-02");
  establish();
  post(4);
  ASSERT_TRUE(server_.srq->modify(3).ok());
  EXPECT_EQ(server_.srq->query().value().srq_limit, 3u);
  ASSERT_TRUE(send(*client_.qp, 1).ok());
  ASSERT_TRUE(wait_wc(server_));
  settle();
  expect_no_async(server_, "three are left, which is not fewer");
  ASSERT_TRUE(send(*client_.qp, 1).ok());
  expect_limit();
  ASSERT_TRUE(send(*client_.qp, 1).ok());
  ASSERT_TRUE(drive([&] { return server_.wcs.size() == 2; }));
  settle();
  expect_no_async(server_);
  EXPECT_EQ(server_.srq->query().value().srq_limit, 0u);
  ASSERT_TRUE(server_.srq->modify(2).ok());
  expect_limit();  // one is left: at once
}

// A device that moves by itself delivers asynchronous events without a call of process.
TEST_P(SrqTest, LimitWakesWhoSleepsOnTheAsyncDescriptorAlone) {
  establish();
  post(4);
  ASSERT_TRUE(server_.srq->modify(4).ok());
  settle();
  ASSERT_TRUE(send(*client_.qp, 10).ok());
  pollfd poller{server_.device->async_fd(), POLLIN, 0};
  std::optional<AsyncEvent> event;
  // A device that its caller moves wakes for any cause of progress.
  if (!GetParam().own_progress) event = wait_async(server_);
  while (GetParam().own_progress && !event && ::poll(&poller, 1, 5000) == 1) event = take_async(server_);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->type, AsyncEventType::kSrqLimitReached);
  settle();
  expect_no_async(server_);
  EXPECT_EQ(::poll(&poller, 1, 0), 0) << "taken";
}

TEST_P(SrqTest, LastReceiveOfAQueuePairInErrorIsTold) {
  connect_two();
  post(2);
  ASSERT_TRUE(send(*client_.qp, 1).ok());
  ASSERT_TRUE(wait_wc(server_));
  ASSERT_TRUE(server_.qp->modify(QpState::kErr).ok());
  const auto event = wait_async(server_);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->type, AsyncEventType::kQpLastWqeReached);
  EXPECT_EQ(event->qp, server_.qp.get());
  settle();
  expect_no_async(server_);
}

// One peer takes more than its share. The limit warns in time, the counters name the peer, and it is sent away before
// the other starves.
TEST_P(SrqTest, GreedyPeerIsFoundAndSentAway) {
  RecordProperty("proves", "SEC-6.4.3.1-05 RDMAP-8.1.2-07 SEC-A-03");
  connect_two();
  post(8);
  ASSERT_TRUE(server_.srq->modify(4).ok());
  ASSERT_TRUE(send(*other_.qp, 20).ok());
  ASSERT_TRUE(wait_wc(server_));
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(send(*client_.qp, 10).ok());
  expect_limit();
  ASSERT_TRUE(drive([&] { return server_.wcs.size() == 4; }));
  const auto by_greedy =
      std::ranges::count_if(server_.wcs, [&](const Wc& wc) { return wc.qp_num == server_.qp->qp_num(); });
  EXPECT_EQ(by_greedy, 4);
  const QpCounters counters = server_.qp->counters();
  // Where the device counts.
  EXPECT_TRUE(counters.sends_rx == 0 || counters.sends_rx > other_.server_qp->counters().sends_rx);
  ASSERT_TRUE(server_.qp->modify(QpState::kErr).ok());
  ASSERT_TRUE(drive([&] { return client_.has(CmEventType::kDisconnected); }));
  server_.wcs.clear();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(send(*other_.qp, 20).ok());
  ASSERT_TRUE(drive([&] { return server_.wcs.size() == 3; }));
  for (const Wc& wc : server_.wcs) EXPECT_EQ(wc.status, WcStatus::kSuccess);
}

}  // namespace
}  // namespace weft::verbs::testing
