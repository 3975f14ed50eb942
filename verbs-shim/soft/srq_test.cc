// Shared receive queues of the soft RNIC: their reserve, and several workers at one of them. Run under ThreadSanitizer
// too.
#include <algorithm>
#include <cerrno>
#include <map>
#include <set>
#include <thread>

#include "verbs-shim/api/testing/srq.h"
#include "verbs-shim/soft/device.h"

namespace weft::verbs::testing {
namespace {

class SoftSrqTest : public SrqTest {};

// One queue's receives can be in the Cq once, however many queue pairs took them (RFC 5042 section 6.4.3.2).
TEST_P(SoftSrqTest, CqHasRoomForItOnce) {
  RecordProperty("proves", "SEC-6.4.3.2-01 SEC-6.4.3.2-02");
  const auto cq = std::move(server_.device->create_cq(kMaxWr, nullptr).value());
  const auto small = std::move(server_.device->create_cq(kMaxWr - 1, nullptr).value());
  const auto send_cq = std::move(server_.device->create_cq(256, nullptr).value());
  QpInitAttr attr = init_attr(server_);
  attr.send_cq = send_cq.get();
  attr.recv_cq = small.get();
  EXPECT_EQ(server_.id->create_qp(*server_.pd, attr).error().errno_value, ENOMEM);
  attr.recv_cq = cq.get();
  auto first = server_.id->create_qp(*server_.pd, attr);
  ASSERT_TRUE(first.ok()) << first.error().message;
  const auto id = std::move(server_.cm->create_id().value());
  auto second = id->create_qp(*server_.pd, attr);
  ASSERT_TRUE(second.ok()) << second.error().message;
  // While one of them is there, no other queue's.
  first->reset();
  const auto srq = std::move(server_.pd->create_srq({.max_wr = 1}).value());
  attr.srq = srq.get();
  EXPECT_EQ(server_.id->create_qp(*server_.pd, attr).error().errno_value, ENOMEM);
  second->reset();
  auto third = server_.id->create_qp(*server_.pd, attr);
  EXPECT_TRUE(third.ok());
  third->reset();
}

TEST_P(SoftSrqTest, OnlyOfTheSameProtectionDomain) {
  const auto pd = std::move(server_.device->alloc_pd().value());
  EXPECT_EQ(server_.id->create_qp(*pd, init_attr(server_)).error().errno_value, EINVAL);
}

TEST_P(SoftSrqTest, AsManyAsTheDeviceAllows) {
  const auto second = server_.pd->create_srq({});
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(server_.pd->create_srq({}).error().errno_value, ENOMEM);
  server_.srq.reset();
  EXPECT_TRUE(server_.pd->create_srq({}).ok());
}

// Both peers' Sends have arrived before the device looks. The second finds too few receives for a turn, and waits until
// there are enough again.
TEST_P(SoftSrqTest, OneTurnMayUseUpTheReserveAndTheNextWaits) {
  ASSERT_EQ(server_.device->caps().srq_reserve, !GetParam().own_progress);
  server_.srq.reset();
  server_.srq = std::move(server_.pd->create_srq({.max_wr = kMaxWr, .max_sge = kMaxSge, .reserve = 4}).value());
  if (GetParam().own_progress) {
    EXPECT_EQ(server_.srq->query().value().reserve, 0u);
    return;
  }
  connect_two();
  post(4);
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(send(*client_.qp, 10).ok());
    ASSERT_TRUE(send(*other_.qp, 20).ok());
  }
  ASSERT_TRUE(drive([&] { return client_.wcs.size() == 8; }));  // with TCP
  const auto taken = [&] {
    settle();
    return server_.wcs.size();
  };
  EXPECT_EQ(taken(), 4u);
  post(3);
  EXPECT_EQ(taken(), 4u) << "three are too few";
  post(1);
  EXPECT_EQ(taken(), 8u);
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(server_.wcs[i].status, WcStatus::kSuccess);
    EXPECT_EQ(server_.wcs[i].qp_num == server_.wcs[0].qp_num, i < 4);
  }
}

// A peer that works beside many that rest: however many receives are posted, it fills the same one again and again.
TEST_P(SoftSrqTest, WithAReserveTheNewestReceiveIsFilledFirst) {
  server_.srq.reset();
  server_.srq = std::move(server_.pd->create_srq({.max_wr = kMaxWr, .max_sge = kMaxSge, .reserve = 4}).value());
  establish();
  post(kMaxWr);
  std::set<std::uint64_t> filled;
  for (std::size_t i = 0; i < std::size_t{2} * kMaxWr; ++i) {
    ASSERT_TRUE(send(*client_.qp, 10).ok());
    ASSERT_TRUE(drive([&] { return server_.wcs.size() == i + 1; }));
    EXPECT_EQ(server_.wcs.back().status, WcStatus::kSuccess);
    filled.insert(server_.wcs.back().wr_id);
    ASSERT_TRUE(post_one(server_.wcs.back().wr_id).ok());
  }
  EXPECT_EQ(filled, std::set<std::uint64_t>{kMaxWr - 1});
}

// The purpose of the reserve: the peer that takes too much is the peer that finds nothing.
TEST_P(SoftSrqTest, WhoTakesMoreThanTheReserveEndsItselfAlone) {
  if (GetParam().own_progress) return;
  server_.srq.reset();
  server_.srq = std::move(server_.pd->create_srq({.max_wr = kMaxWr, .max_sge = kMaxSge, .reserve = 4}).value());
  connect_two();
  post(6);
  for (int i = 0; i < 12; ++i) ASSERT_TRUE(send(*client_.qp, 10).ok());
  ASSERT_TRUE(send(*other_.qp, 20).ok());
  ASSERT_TRUE(drive([&] { return client_.has(CmEventType::kDisconnected); }));
  post(4);
  const std::uint32_t good = other_.server_qp->qp_num();
  ASSERT_TRUE(drive([&] { return std::ranges::any_of(server_.wcs, [&](const Wc& wc) { return wc.qp_num == good; }); }));
  EXPECT_EQ(other_.server_qp->state(), QpState::kRts);
}

// Clients send as fast as they can, and used receives are posted again: nothing is lost and nothing counted twice.
TEST_P(SoftSrqTest, BusyQueuePairsOfSeveralWorkers) {
  constexpr std::uint64_t kSends = 300;
  constexpr std::uint64_t kWindow = kMaxWr / 4;
  establish();
  Connection others[3];
  for (Connection& other : others) connect_another(other);
  post(kMaxWr);
  std::map<Qp*, std::uint64_t> sent{{client_.qp.get(), 0}};
  std::map<std::uint32_t, std::uint64_t> received;  // by queue pair
  std::map<Qp*, std::uint32_t> peer{{client_.qp.get(), server_.qp->qp_num()}};
  for (Connection& other : others) {
    sent[other.qp.get()] = 0;
    peer[other.qp.get()] = other.server_qp->qp_num();
  }
  ASSERT_TRUE(drive([&] {
    for (auto& [qp, num] : sent) {
      while (num < kSends && num < received[peer[qp]] + kWindow && send(*qp, 8).ok()) ++num;
    }
    while (const auto wc = server_.take_wc()) {
      EXPECT_EQ(wc->status, WcStatus::kSuccess);
      ++received[wc->qp_num];
      EXPECT_TRUE(post_one(wc->wr_id).ok());
    }
    client_.wcs.clear();
    return std::ranges::all_of(peer, [&](const auto& entry) { return received[entry.second] == kSends; });
  }));
}

Result<std::unique_ptr<Device>> open(std::uint32_t num_workers) {
  SoftConfig config;
  config.max_srq = 2;
  config.num_workers = num_workers;
  return open_soft_device(config);
}

INSTANTIATE_TEST_SUITE_P(Soft, SoftSrqTest,
                         ::testing::Values(Backend{"Blocking", [] { return open(0); }, true, AF_INET},
                                           Backend{"Threaded", [] { return open(2); }, false, AF_INET, true, true}),
                         [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace weft::verbs::testing
