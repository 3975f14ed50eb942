// Every backend's data path: Send, Receive, RDMA Write, RDMA Read, scatter/gather, inline.
#include <algorithm>
#include <cerrno>
#include <numeric>

#include "verbs-shim/api/testing/pair.h"

namespace weft::verbs::testing {
namespace {

constexpr Access kAll = Access::kLocalWrite | Access::kRemoteWrite | Access::kRemoteRead;

void number(std::vector<std::uint8_t>& octets) {
  std::uint32_t x = 12345;
  for (auto& octet : octets) {
    x = x * 1664525 + 1013904223;
    octet = static_cast<std::uint8_t>(x >> 24);
  }
}

TEST_P(VerbsTest, SendFillsTheReceive) {
  Mem to(*server_.pd, 100, Access::kLocalWrite, 0xa5);
  Mem from(*client_.pd, 64, Access::kNone);
  number(from.octets);
  establish();
  ASSERT_TRUE(server_.recv({to.sge()}, 77).ok());
  ASSERT_TRUE(client_.send({from.sge()}, 88).ok());
  const auto sent = wait_wc(client_);
  const auto received = wait_wc(server_);
  ASSERT_TRUE(sent && received);
  EXPECT_EQ(sent->wr_id, 88u);
  EXPECT_EQ(sent->status, WcStatus::kSuccess);
  EXPECT_EQ(sent->opcode, WcOpcode::kSend);
  EXPECT_EQ(sent->qp_num, client_.qp->qp_num());
  EXPECT_EQ(received->wr_id, 77u);
  EXPECT_EQ(received->opcode, WcOpcode::kRecv);
  EXPECT_EQ(received->byte_len, 64u);
  EXPECT_TRUE(std::equal(from.octets.begin(), from.octets.end(), to.octets.begin()));
  EXPECT_EQ(to.octets[64], 0xa5);
  const std::uint64_t counted = GetParam().counters ? 1 : 0;
  EXPECT_EQ(client_.qp->counters().sends_tx, counted);
  EXPECT_EQ(server_.qp->counters().sends_rx, counted);
}

TEST_P(VerbsTest, ReceivesPostedBeforeTheConnectionAreUsed) {
  Mem to(*client_.pd, 8, Access::kLocalWrite);
  Mem from(*server_.pd, 8, Access::kNone, 3);
  Mem poke(*client_.pd, 1, Access::kNone);
  Mem poked(*server_.pd, 1, Access::kLocalWrite);
  before_accept_ = [&] {
    ASSERT_TRUE(client_.recv({to.sge()}, 4).ok());
    ASSERT_TRUE(server_.recv({poked.sge()}, 5).ok());
  };
  establish();
  ASSERT_TRUE(server_.send({from.sge()}, 6).ok());  // held until the client has spoken
  ASSERT_TRUE(client_.send({poke.sge()}, 7).ok());
  ASSERT_TRUE(drive([&] { return client_.wcs.size() == 2 && server_.wcs.size() == 2; }));
  EXPECT_EQ(to.octets, from.octets);
}

TEST_P(VerbsTest, WriteLandsSilently) {
  Mem to(*server_.pd, 3 << 20, kAll, 0xa5);
  Mem from(*client_.pd, 2 << 20, Access::kNone);
  number(from.octets);
  establish();
  ASSERT_TRUE(client_.rdma(WrOpcode::kRdmaWrite, {from.sge()}, to.addr(4097), to.mr->rkey(), 5).ok());
  const auto wc = wait_wc(client_);
  ASSERT_TRUE(wc);
  EXPECT_EQ(wc->status, WcStatus::kSuccess);
  EXPECT_EQ(wc->opcode, WcOpcode::kRdmaWrite);
  ASSERT_TRUE(arrived([&] { return server_.qp->counters().write_octets_rx == from.octets.size(); }));
  settle();
  EXPECT_TRUE(std::equal(from.octets.begin(), from.octets.end(), to.octets.begin() + 4097));
  EXPECT_EQ(to.octets[4096], 0xa5);
  EXPECT_EQ(to.octets[4097 + from.octets.size()], 0xa5);
  EXPECT_TRUE(server_.wcs.empty());
}

TEST_P(VerbsTest, ReadFetches) {
  Mem source(*server_.pd, 2 << 20, kAll);
  Mem sink(*client_.pd, 2 << 20, client_.sink());
  number(source.octets);
  establish();
  ASSERT_TRUE(client_.rdma(WrOpcode::kRdmaRead, {sink.sge()}, source.addr(), source.mr->rkey(), 5).ok());
  const auto wc = wait_wc(client_);
  ASSERT_TRUE(wc);
  EXPECT_EQ(wc->status, WcStatus::kSuccess);
  EXPECT_EQ(wc->opcode, WcOpcode::kRdmaRead);
  EXPECT_EQ(wc->byte_len, source.octets.size());
  EXPECT_EQ(sink.octets, source.octets);
}

TEST_P(VerbsTest, FullSendQueueTakesNoMore) {
  Mem to(*client_.pd, 64, Access::kLocalWrite);
  establish();
  // A responder's are held until the initiator has sent something: they fill the queue.
  for (std::uint64_t i = 0; i < cap_.max_send_wr; ++i) {
    ASSERT_TRUE(client_.recv({to.sge()}, i).ok());
    ASSERT_TRUE(server_.send({}, i).ok());
  }
  EXPECT_EQ(server_.send({}, 99).error().errno_value, ENOMEM);
}

TEST_P(VerbsTest, MoreReadsThanOrdAllComplete) {
  const std::uint8_t depth = GetParam().depths ? 2 : 16;  // unheard depths must agree by themselves
  Mem source(*server_.pd, 64 << 10, kAll);
  Mem sink(*client_.pd, 64 << 10, client_.sink());
  number(source.octets);
  establish({{}, depth, depth});
  for (std::size_t i = 0; i < 32; ++i) {
    ASSERT_TRUE(
        client_.rdma(WrOpcode::kRdmaRead, {sink.sge(i * 2048, 2048)}, source.addr(i * 2048), source.mr->rkey(), i)
            .ok());
  }
  ASSERT_TRUE(drive([&] { return client_.wcs.size() == 32; }));
  for (std::size_t i = 0; i < 32; ++i) {
    EXPECT_EQ(client_.wcs[i].wr_id, i);
    EXPECT_EQ(client_.wcs[i].status, WcStatus::kSuccess);
  }
  EXPECT_EQ(sink.octets, source.octets);
}

TEST_P(VerbsTest, ScatterAndGather) {
  Mem a(*client_.pd, 1000, Access::kNone, 1);
  Mem b(*client_.pd, 1000, Access::kNone, 2);
  Mem to(*server_.pd, 4000, Access::kLocalWrite, 0xa5);
  establish();
  ASSERT_TRUE(server_.recv({to.sge(0, 10), to.sge(1000, 0), to.sge(2000, 900), to.sge(3000, 1000)}).ok());
  ASSERT_TRUE(client_.send({a.sge(0, 500), b.sge(0, 0), b.sge(500, 500)}).ok());
  const auto wc = wait_wc(server_);
  ASSERT_TRUE(wc);
  EXPECT_EQ(wc->byte_len, 1000u);
  EXPECT_EQ(to.octets[9], 1);
  EXPECT_EQ(to.octets[10], 0xa5);
  EXPECT_EQ(to.octets[2000], 1);
  EXPECT_EQ(to.octets[2489], 1);
  EXPECT_EQ(to.octets[2490], 2);
  EXPECT_EQ(to.octets[3089], 2);
  EXPECT_EQ(to.octets[3090], 0xa5);
  const std::vector<Sge> five(5, a.sge(0, 1));
  EXPECT_EQ(client_.send(five).error().errno_value, EINVAL);
  EXPECT_EQ(server_.recv(five).error().errno_value, EINVAL);
}

TEST_P(VerbsTest, InlineMemoryIsTheCallersAtOnce) {
  const std::uint32_t most = cap_.max_inline_data;
  if (most == 0) GTEST_SKIP() << "no inline data";
  Mem to(*server_.pd, 300, Access::kLocalWrite);
  establish();
  ASSERT_TRUE(server_.recv({to.sge()}).ok());
  std::vector<std::uint8_t> mine(most - 1, 9);  // not registered: inline needs no key
  const Sge sge{reinterpret_cast<std::uintptr_t>(mine.data()), most - 1, 0};
  ASSERT_TRUE(client_.send({sge}, 1, SendFlags::kInline | SendFlags::kSignaled).ok());
  std::fill(mine.begin(), mine.end(), 0);
  const auto wc = wait_wc(server_);
  ASSERT_TRUE(wc);
  EXPECT_EQ(wc->byte_len, most - 1);
  EXPECT_EQ(to.octets[most - 2], 9);
  std::vector<std::uint8_t> more(most + 1);
  const Sge big{reinterpret_cast<std::uintptr_t>(more.data()), most + 1, 0};
  EXPECT_EQ(client_.send({big}, 1, SendFlags::kInline).error().errno_value, EINVAL);
  EXPECT_FALSE(client_.rdma(WrOpcode::kRdmaRead, {sge}, 0, 1, 1, SendFlags::kInline).ok());
}

TEST_P(VerbsTest, EmptySendTakesAReceive) {
  Mem to(*server_.pd, 8, Access::kLocalWrite);
  establish();
  ASSERT_TRUE(server_.recv({to.sge()}, 3).ok());
  ASSERT_TRUE(client_.send({}).ok());
  const auto wc = wait_wc(server_);
  ASSERT_TRUE(wc);
  EXPECT_EQ(wc->byte_len, 0u);
  EXPECT_EQ(wc->wr_id, 3u);
}

TEST_P(VerbsTest, UnsignaledSuccessIsSilent) {
  Mem to(*server_.pd, 8, Access::kLocalWrite);
  Mem from(*client_.pd, 8, Access::kNone);
  establish();
  for (std::uint64_t i = 0; i < 8; ++i) ASSERT_TRUE(server_.recv({to.sge()}, i).ok());
  for (std::uint64_t i = 0; i < 8; ++i) {
    ASSERT_TRUE(client_.send({from.sge()}, i, i == 7 ? SendFlags::kSignaled : SendFlags::kNone).ok());
  }
  ASSERT_TRUE(drive([&] { return server_.wcs.size() == 8 && !client_.wcs.empty(); }));
  settle();
  ASSERT_EQ(client_.wcs.size(), 1u);
  EXPECT_EQ(client_.wcs[0].wr_id, 7u);
}

// The completion of a later request gives the memory of unsignaled ones back.
TEST_P(VerbsTest, MemoryOfUnsignaledRequestsIsFreeBehindALaterCompletion) {
  constexpr std::size_t kNum = 16, kLen = 64 << 10;
  Mem to(*server_.pd, kNum * kLen, kAll);
  Mem from(*client_.pd, kNum * kLen, Access::kNone);
  establish();
  for (std::uint8_t round = 1; round <= 4; ++round) {
    std::fill(from.octets.begin(), from.octets.end(), round);
    ASSERT_TRUE(server_.recv({}).ok());
    for (std::size_t i = 0; i < kNum; ++i) {
      ASSERT_TRUE(client_
                      .rdma(WrOpcode::kRdmaWrite, {from.sge(i * kLen, kLen)}, to.addr(i * kLen), to.mr->rkey(), 5,
                            SendFlags::kNone)
                      .ok());
    }
    ASSERT_TRUE(client_.send({}, 5).ok());
    const auto sent = wait_wc(client_);
    ASSERT_TRUE(sent);
    EXPECT_EQ(sent->opcode, WcOpcode::kSend);
    std::fill(from.octets.begin(), from.octets.end(), 0xa5);
    const auto received = wait_wc(server_);
    ASSERT_TRUE(received && received->status == WcStatus::kSuccess) << "in round " << int{round};
    EXPECT_EQ(std::count(to.octets.begin(), to.octets.end(), round), std::ptrdiff_t{kNum * kLen});
  }
  settle();
  EXPECT_TRUE(client_.wcs.empty());
}

TEST_P(VerbsTest, UnsignaledRequestsNeedNoRoomInTheCq) {
  constexpr std::size_t kLen = 8192;
  Mem to(*server_.pd, kLen, kAll);
  Mem from(*client_.pd, kLen, Access::kNone);
  client_.cq = std::move(client_.device->create_cq(2, nullptr).value());
  establish();
  for (int round = 0; round < 12; ++round) {
    for (std::uint32_t i = 1; i <= cap_.max_send_wr; ++i) {
      const SendFlags flags = i < cap_.max_send_wr ? SendFlags::kNone : SendFlags::kSignaled;
      ASSERT_TRUE(client_.rdma(WrOpcode::kRdmaWrite, {from.sge()}, to.addr(), to.mr->rkey(), i, flags).ok());
    }
    const auto wc = wait_wc(client_);
    ASSERT_TRUE(wc && wc->status == WcStatus::kSuccess);
    EXPECT_EQ(wc->wr_id, cap_.max_send_wr);
  }
  settle();
  EXPECT_TRUE(client_.wcs.empty());
}

TEST_P(VerbsTest, PingPong) {
  Mem a(*server_.pd, 64, Access::kLocalWrite);
  Mem b(*client_.pd, 64, Access::kLocalWrite);
  establish();
  for (int i = 0; i < 200; ++i) {
    a.octets[0] = 0;
    b.octets[0] = static_cast<std::uint8_t>(i + 1);
    ASSERT_TRUE(server_.recv({a.sge()}, 1).ok());
    ASSERT_TRUE(client_.recv({b.sge()}, 2).ok());
    ASSERT_TRUE(client_.send({b.sge()}, 3).ok());
    ASSERT_TRUE(drive([&] { return !server_.wcs.empty(); }));
    ASSERT_EQ(a.octets[0], static_cast<std::uint8_t>(i + 1));
    ASSERT_TRUE(server_.send({a.sge()}, 4).ok());
    ASSERT_TRUE(drive([&] { return client_.wcs.size() == 2; }));
    client_.wcs.clear();
    ASSERT_TRUE(drive([&] { return server_.wcs.size() == 2; }));
    server_.wcs.clear();
  }
}

TEST_P(VerbsTest, BulkBothWaysAtOnce) {
  constexpr std::size_t kLen = 1 << 20;
  Mem at_server(*server_.pd, 2 * kLen, kAll, 0x11);
  Mem at_client(*client_.pd, 2 * kLen, kAll, 0x22);
  establish();
  for (std::uint64_t i = 0; i < 16; ++i) {
    ASSERT_TRUE(
        client_.rdma(WrOpcode::kRdmaWrite, {at_client.sge(0, kLen)}, at_server.addr(kLen), at_server.mr->rkey(), i)
            .ok());
    ASSERT_TRUE(
        server_.rdma(WrOpcode::kRdmaWrite, {at_server.sge(0, kLen)}, at_client.addr(kLen), at_client.mr->rkey(), i)
            .ok());
  }
  ASSERT_TRUE(drive([&] { return client_.wcs.size() == 16 && server_.wcs.size() == 16; }));
  ASSERT_TRUE(arrived([&] {
    return client_.qp->counters().write_octets_rx == 16 * kLen && server_.qp->counters().write_octets_rx == 16 * kLen;
  }));
  EXPECT_EQ(at_server.octets[2 * kLen - 1], 0x22);
  EXPECT_EQ(at_client.octets[2 * kLen - 1], 0x11);
}

// Several connections take turns in both devices, each with messages that are cut anywhere.
TEST_P(VerbsTest, ConnectionsDoNotMixTheirOctets) {
  constexpr std::size_t kNum = 6;
  constexpr std::size_t kLen = 300'000;
  ASSERT_TRUE(listen().ok());
  Mem to(*server_.pd, kNum * kLen, kAll);
  Mem from(*client_.pd, kNum * kLen, Access::kNone);
  number(from.octets);
  std::vector<std::unique_ptr<CmId>> ids;
  std::vector<std::unique_ptr<Qp>> client_qps, server_qps;
  for (std::size_t i = 0; i < kNum; ++i) {
    auto id = std::move(client_.cm->create_id().value());
    ASSERT_NO_FATAL_FAILURE(resolve(*id, server_.id->local_addr()));
    client_qps.push_back(std::move(id->create_qp(*client_.pd, init_attr(client_)).value()));
    ASSERT_TRUE(id->connect({{}, 16, 16}).ok());
    ids.push_back(std::move(id));
    ASSERT_TRUE(drive([&] { return server_.has(CmEventType::kConnectRequest); }));
    auto accepted = std::move(server_.take(CmEventType::kConnectRequest)->new_id);
    server_qps.push_back(std::move(accepted->create_qp(*server_.pd, init_attr(server_)).value()));
    ASSERT_TRUE(accepted->accept({{}, 16, 16}).ok());
    ids.push_back(std::move(accepted));
    ASSERT_TRUE(drive([&] { return client_.take(CmEventType::kEstablished).has_value(); }));
  }
  constexpr std::size_t kPart = kLen / 3;
  for (std::size_t part = 0; part < 3; ++part) {
    for (std::size_t i = 0; i < kNum; ++i) {
      const std::size_t off = i * kLen + part * kPart;
      const Sge sge = from.sge(off, kPart);
      ASSERT_TRUE(client_qps[i]
                      ->post_send({.sg_list = {&sge, 1},
                                   .opcode = WrOpcode::kRdmaWrite,
                                   .remote_addr = to.addr(off),
                                   .rkey = to.mr->rkey()})
                      .ok());
    }
  }
  ASSERT_TRUE(drive([&] { return client_.wcs.size() == 3 * kNum; }));
  ASSERT_TRUE(arrived([&] {
    std::uint64_t sum = 0;
    for (const auto& qp : server_qps) sum += qp->counters().write_octets_rx;
    return sum == kNum * kLen;
  }));
  EXPECT_EQ(to.octets, from.octets);
  for (const Wc& wc : client_.wcs) EXPECT_EQ(wc.status, WcStatus::kSuccess);
}

TEST_P(VerbsTest, OpcodesWithoutCounterpartAreRefused) {
  establish();
  EXPECT_EQ(client_.rdma(WrOpcode::kSendWithImm, {}, 0, 0).error().errno_value, EINVAL);
}

TEST_P(VerbsTest, RegistrationsAreChecked) {
  std::uint8_t octets[16] = {};
  EXPECT_EQ(client_.pd->reg_mr(octets, 0, Access::kNone).error().errno_value, EINVAL);
  EXPECT_EQ(client_.pd->reg_mr(octets, 16, Access::kRemoteWrite).error().errno_value, EINVAL);
  EXPECT_EQ(client_.pd->reg_mr(octets, SIZE_MAX, Access::kNone).error().errno_value, EINVAL);
  const auto mr = client_.pd->reg_mr(octets, 16, kAll);
  ASSERT_TRUE(mr.ok());
  EXPECT_EQ(mr.value()->addr(), octets);
  EXPECT_EQ(mr.value()->length(), 16u);
  EXPECT_NE(mr.value()->rkey(), 0u);
}

}  // namespace
}  // namespace weft::verbs::testing
