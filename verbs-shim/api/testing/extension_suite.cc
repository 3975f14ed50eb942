// Every backend's atomics and immediates, as ibverbs has them.
#include <algorithm>
#include <cerrno>
#include <random>
#include <set>
#include <string>

#include "verbs-shim/api/testing/extension.h"

namespace weft::verbs::testing {
namespace {

TEST_P(ExtensionTest, FetchAndAddReturnsWhatWasThere) {
  set_word(0, 40);
  ASSERT_TRUE(client_.qp->post_send(atomic_wr(WrOpcode::kAtomicFetchAndAdd, 7, 2)).ok());
  const auto wc = wait_wc(client_);
  ASSERT_TRUE(wc);
  EXPECT_EQ(wc->status, WcStatus::kSuccess);
  EXPECT_EQ(wc->opcode, WcOpcode::kFetchAdd);
  EXPECT_EQ(wc->wr_id, 7u);
  EXPECT_EQ(wc->byte_len, 8u);
  EXPECT_EQ(result(7), 40u);
  EXPECT_EQ(word(0), 42u);
  EXPECT_TRUE(server_.wcs.empty());
}

TEST_P(ExtensionTest, CompareAndSwapSwapsWhatCompares) {
  set_word(0, 5);
  ASSERT_TRUE(client_.qp->post_send(atomic_wr(WrOpcode::kAtomicCmpAndSwp, 1, 6, 9)).ok());
  ASSERT_TRUE(client_.qp->post_send(atomic_wr(WrOpcode::kAtomicCmpAndSwp, 2, 5, 9)).ok());
  ASSERT_TRUE(client_.qp->post_send(atomic_wr(WrOpcode::kAtomicCmpAndSwp, 3, 5, 1)).ok());
  ASSERT_TRUE(drive([&] { return client_.wcs.size() == 3; }));
  for (const Wc& wc : client_.wcs) {
    EXPECT_EQ(wc.status, WcStatus::kSuccess);
    EXPECT_EQ(wc.opcode, WcOpcode::kCompSwap);
  }
  EXPECT_EQ(result(1), 5u);
  EXPECT_EQ(result(2), 5u);
  EXPECT_EQ(result(3), 9u);
  EXPECT_EQ(word(0), 9u);
}

TEST_P(ExtensionTest, ManyOutstandingAreCarriedOutInOrder) {
  set_word(0, 0);
  for (std::uint64_t i = 0; i < 32; ++i)
    ASSERT_TRUE(client_.qp->post_send(atomic_wr(WrOpcode::kAtomicFetchAndAdd, i, 1)).ok());
  ASSERT_TRUE(drive([&] { return client_.wcs.size() == 32; }));
  for (std::uint64_t i = 0; i < 32; ++i) EXPECT_EQ(result(i), i);
}

TEST_P(ExtensionTest, NoAdditionIsLostBetweenConnections) {
  RecordProperty("proves", "EXT-5-01 EXT-5.4-02");
  constexpr std::uint64_t kTimes = 100;
  set_word(0, 0);
  Connection second;
  ASSERT_NO_FATAL_FAILURE(connect_another(second));
  std::set<std::uint64_t> seen;
  for (std::uint64_t i = 0; i < kTimes; ++i) {
    ASSERT_TRUE(client_.qp->post_send(atomic_wr(WrOpcode::kAtomicFetchAndAdd, 0, 1)).ok());
    ASSERT_TRUE(second.qp->post_send(atomic_wr(WrOpcode::kAtomicFetchAndAdd, 1, 1)).ok());
    ASSERT_TRUE(drive([&] { return client_.wcs.size() == 2; }));
    client_.wcs.clear();
    seen.insert(result(0));
    seen.insert(result(1));
  }
  EXPECT_EQ(word(0), 2 * kTimes);
  EXPECT_EQ(seen.size(), 2 * kTimes);
}

// A client of a lock at octet 0 of the server's memory and of a counter at kCounter, which the lock alone protects. The
// name (not 0) in the lock is its holder's. The client has one request at a time, but for the Write and the unlock
// behind it.
struct Locker {
  static constexpr std::size_t kCounter = 64;
  enum class Step : std::uint8_t { kLock, kRead, kWriteAndUnlock };

  bool idle() const { return under_way == 0; }
  std::uint64_t wr_id(std::uint64_t i) const { return 4 * name + i; }  // of the lock's word, and of the counter's

  Qp* qp = nullptr;
  std::uint64_t name = 0;
  Step step = Step::kLock;
  std::size_t under_way = 0;
  int left = 0;
  int refused = 0;
};

TEST_P(ExtensionTest, ALockOfCompareAndSwapKeepsTwoClientsApart) {
  RecordProperty("proves", "EXT-5.3-01");
  constexpr int kRounds = 200;
  Connection second;
  ASSERT_NO_FATAL_FAILURE(connect_another(second));
  Locker lockers[] = {{.qp = client_.qp.get(), .name = 1}, {.qp = second.qp.get(), .name = 2}};
  const auto next = [&](Locker& locker) {
    const std::uint64_t word_id = locker.wr_id(0), counter_id = locker.wr_id(1);
    const auto counter = [&](WrOpcode opcode) {
      SendWr wr = atomic_wr(opcode, counter_id, 0);
      wr.remote_addr = memory_->addr(Locker::kCounter);
      return wr;
    };
    if (locker.step == Locker::Step::kWriteAndUnlock) {
      const std::uint64_t value = result(counter_id) + 1;
      std::memcpy(&ours_->octets[8 * counter_id], &value, sizeof(value));
      ASSERT_TRUE(locker.qp->post_send(counter(WrOpcode::kRdmaWrite)).ok());
      ASSERT_TRUE(locker.qp->post_send(atomic_wr(WrOpcode::kAtomicCmpAndSwp, word_id, locker.name, 0)).ok());
      locker.under_way = 2;
      return;
    }
    ASSERT_TRUE(locker.qp
                    ->post_send(locker.step == Locker::Step::kLock
                                    ? atomic_wr(WrOpcode::kAtomicCmpAndSwp, word_id, 0, locker.name)
                                    : counter(WrOpcode::kRdmaRead))
                    .ok());
    locker.under_way = 1;
  };
  const auto on_done = [&](const Wc& wc) {
    ASSERT_EQ(wc.status, WcStatus::kSuccess);
    Locker& locker = lockers[wc.wr_id / 4 - 1];
    if (--locker.under_way != 0) return;
    const std::uint64_t found = result(locker.wr_id(0));
    switch (locker.step) {
      case Locker::Step::kLock:
        if (found == 0) locker.step = Locker::Step::kRead;
        if (found != 0) ++locker.refused;
        break;
      case Locker::Step::kRead: locker.step = Locker::Step::kWriteAndUnlock; break;
      case Locker::Step::kWriteAndUnlock:
        ASSERT_EQ(found, locker.name) << "somebody else had the lock, too";
        locker.step = Locker::Step::kLock;
        --locker.left;
        break;
    }
  };
  for (const std::uint32_t seed : {1u, 2u, 3u}) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    set_word(0, 0);
    set_word(Locker::kCounter, 0);
    for (Locker& locker : lockers) locker.left = kRounds;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (lockers[0].left != 0 || lockers[1].left != 0) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline);
      const std::uint32_t turn = random() % 4;
      if (turn >= 2) {
        (turn == 2 ? server_ : client_).device->process(now());
        client_.collect();
      } else if (Locker& locker = lockers[turn]; locker.idle() && locker.left != 0) {
        ASSERT_NO_FATAL_FAILURE(next(locker));
      }
      for (; !client_.wcs.empty(); client_.wcs.pop_front()) ASSERT_NO_FATAL_FAILURE(on_done(client_.wcs.front()));
    }
    EXPECT_EQ(word(Locker::kCounter), 2u * kRounds);
    EXPECT_EQ(word(0), 0u);
  }
  EXPECT_GT(lockers[0].refused, 0) << "nobody ever waited: nothing was put to the test";
  EXPECT_GT(lockers[1].refused, 0) << "nobody ever waited: nothing was put to the test";
}

TEST_P(ExtensionTest, AtomicNeedsTheRight) {
  for (const Access access : {Access::kLocalWrite | Access::kRemoteWrite | Access::kRemoteRead}) {
    Mem plain(*server_.pd, 64, access, 0xa5);
    SendWr wr = atomic_wr(WrOpcode::kAtomicFetchAndAdd, 3, 1);
    wr.remote_addr = plain.addr();
    wr.rkey = plain.mr->rkey();
    ASSERT_TRUE(client_.qp->post_send(wr).ok());
    const auto wc = wait_wc(client_);
    ASSERT_TRUE(wc);
    EXPECT_EQ(wc->status, WcStatus::kRemAccessErr);
    if (GetParam().tells_why) {
      EXPECT_EQ(wc->vendor_err, 0u << 12 | 1u << 8 | 2u);
    }
    EXPECT_EQ(plain.octets, std::vector<std::uint8_t>(64, 0xa5));
  }
}

TEST_P(ExtensionTest, TargetsAreAlignedAddresses) {
  RecordProperty("proves", "EXT-5.1.1-04 EXT-5.1.2-04 EXT-5.2.1-06");
  // A region that begins at 4 mod 8.
  auto mr = std::move(server_.pd->reg_mr(&memory_->octets[4], 60, kAtomicMemory).value());
  SendWr good = atomic_wr(WrOpcode::kAtomicFetchAndAdd, 1, 1);
  good.rkey = mr->rkey();
  good.remote_addr = memory_->addr(8);
  ASSERT_TRUE(client_.qp->post_send(good).ok());
  ASSERT_EQ(wait_wc(client_)->status, WcStatus::kSuccess);
  const auto before = memory_->octets;
  SendWr bad = good;
  bad.opcode = GetParam().blocking ? WrOpcode::kAtomicCmpAndSwp : WrOpcode::kAtomicFetchAndAdd;
  bad.remote_addr = memory_->addr(4);
  ASSERT_TRUE(client_.qp->post_send(bad).ok());
  const auto wc = wait_wc(client_);
  ASSERT_TRUE(wc);
  EXPECT_EQ(wc->status, WcStatus::kRemOpErr);
  if (GetParam().tells_why) {
    EXPECT_EQ(wc->vendor_err, 0u << 12 | 2u << 8 | 7u);
  }
  EXPECT_EQ(memory_->octets, before);
  ASSERT_TRUE(drive([&] { return server_.has(CmEventType::kDisconnected); }));
  if (GetParam().tells_why) {
    EXPECT_NE(server_.take(CmEventType::kDisconnected)->status, 0);
  }
}

TEST_P(ExtensionTest, AtomicThroughAWindow) {
  if (!server_.device->caps().mem_windows_type2) GTEST_SKIP() << "no memory windows of type 2";
  Mem region(*server_.pd, 64, kAtomicMemory | Access::kMwBind);
  auto mw = std::move(server_.pd->alloc_mw().value());
  SendWr bind;
  bind.opcode = WrOpcode::kBindMw;
  bind.bind_mw = {mw.get(), inc_rkey(mw->rkey()), region.mr.get(), region.addr(8), 8, Access::kRemoteAtomic};
  ASSERT_TRUE(server_.qp->post_send(bind).ok());
  ASSERT_EQ(wait_wc(server_)->status, WcStatus::kSuccess);
  SendWr wr = atomic_wr(WrOpcode::kAtomicFetchAndAdd, 1, 1);
  wr.rkey = mw->rkey();
  wr.remote_addr = region.addr(8);
  ASSERT_TRUE(client_.qp->post_send(wr).ok());
  EXPECT_EQ(wait_wc(client_)->status, WcStatus::kSuccess);
  wr.remote_addr = region.addr(16);
  ASSERT_TRUE(client_.qp->post_send(wr).ok());
  EXPECT_EQ(wait_wc(client_)->status, WcStatus::kRemAccessErr);
}

TEST_P(ExtensionTest, PostRefusesWhatNoAtomicIs) {
  SendWr wr = atomic_wr(WrOpcode::kAtomicFetchAndAdd, 1, 1);
  const Sge seven = ours_->sge(0, 7);
  wr.sg_list = {&seven, 1};
  EXPECT_EQ(client_.qp->post_send(wr).error().errno_value, EINVAL);
  wr = atomic_wr(WrOpcode::kAtomicCmpAndSwp, 1, 1);
  wr.send_flags = SendFlags::kInline | SendFlags::kSignaled;
  EXPECT_EQ(client_.qp->post_send(wr).error().errno_value, EINVAL);
  std::uint8_t octets[8];
  EXPECT_EQ(client_.pd->reg_mr(octets, 8, Access::kRemoteAtomic).error().errno_value, EINVAL);
}

TEST_P(ExtensionTest, WriteWithImmediateCompletesAReceive) {
  ASSERT_TRUE(server_.recv({}, 60).ok());  // ibverbs' users post receives without memory for it
  ASSERT_TRUE(server_.recv({memory_->sge(2048, 16)}, 61).ok());
  std::fill(ours_->octets.begin(), ours_->octets.end(), std::uint8_t{9});
  const std::uint32_t imm = 0x04030201;  // the octets are in network byte order already
  ASSERT_TRUE(client_.qp->post_send(imm_wr(1, imm)).ok());
  ASSERT_TRUE(client_.qp->post_send(imm_wr(2, ~imm)).ok());
  ASSERT_TRUE(drive([&] { return server_.wcs.size() == 2 && client_.wcs.size() == 2; }));
  EXPECT_EQ(client_.wcs[0].opcode, WcOpcode::kRdmaWrite);
  EXPECT_EQ(client_.wcs[0].wr_id, 1u);
  for (std::size_t i = 0; i < 2; ++i) {
    const Wc& wc = server_.wcs[i];
    EXPECT_EQ(wc.wr_id, 60 + i);
    EXPECT_EQ(wc.status, WcStatus::kSuccess);
    EXPECT_EQ(wc.opcode, WcOpcode::kRecvRdmaWithImm);
    EXPECT_TRUE(has(wc.wc_flags, WcFlags::kWithImm));
    EXPECT_EQ(wc.imm_data, i == 0 ? imm : ~imm);
  }
  EXPECT_EQ(memory_->octets[1024], 9) << "the Write was placed before";
  EXPECT_EQ(memory_->octets[1024 + 599], 9);
  if (server_.device->query().transport == Transport::kIwarp) {  // where an immediate is a message of its own
    std::uint32_t stored = 0;
    std::memcpy(&stored, &memory_->octets[2048], sizeof(stored));
    EXPECT_EQ(stored, ~imm);
  }
  const std::uint64_t counted = GetParam().counters ? 2 : 0;
  EXPECT_EQ(client_.qp->counters().immediates_tx, counted);
  EXPECT_EQ(server_.qp->counters().immediates_rx, counted);
}

TEST_P(ExtensionTest, OnlyASolicitedImmediateWakesWhoWaitsForSolicitedEvents) {
  RecordProperty("proves", "EXT-6.1-02");
  for (std::uint64_t i = 0; i < 2; ++i) ASSERT_TRUE(server_.recv({}, i).ok());
  ASSERT_TRUE(server_.cq->req_notify(true).ok());
  ASSERT_TRUE(client_.qp->post_send(imm_wr(1, 1)).ok());
  ASSERT_TRUE(drive([&] { return server_.wcs.size() == 1; }));
  EXPECT_EQ(server_.channel->get_event(), nullptr);
  SendWr wr = imm_wr(2, 2);
  wr.send_flags = SendFlags::kSignaled | SendFlags::kSolicited;
  ASSERT_TRUE(client_.qp->post_send(wr).ok());
  ASSERT_TRUE(drive([&] { return server_.wcs.size() == 2; }));
  EXPECT_EQ(server_.channel->get_event(), server_.cq.get());
}

TEST_P(ExtensionTest, ImmediateWithoutReceiveEndsTheConnection) {
  ASSERT_TRUE(client_.qp->post_send(imm_wr(1, 1)).ok());
  ASSERT_TRUE(
      drive([&] { return client_.has(CmEventType::kDisconnected) && server_.has(CmEventType::kDisconnected); }));
}

TEST_P(ExtensionTest, AllEndOnceWhenThePeerVanishes) {
  for (std::uint64_t i = 0; i < 24; ++i) {
    SendWr wr = i % 3 == 0 ? imm_wr(i, 1) : atomic_wr(WrOpcode::kAtomicFetchAndAdd, i, 1);
    ASSERT_TRUE(client_.qp->post_send(wr).ok());
  }
  server_.qp.reset();
  server_.id.reset();
  ASSERT_TRUE(drive([&] { return client_.has(CmEventType::kDisconnected); }));
  settle();
  std::set<std::uint64_t> ended;
  for (const Wc& wc : client_.wcs) EXPECT_TRUE(ended.insert(wc.wr_id).second);
  EXPECT_EQ(ended.size(), 24u);
}

}  // namespace
}  // namespace weft::verbs::testing
