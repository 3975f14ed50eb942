#include "rdmap/stream.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>

#include "mpa/fpdu.h"

#include "rdmap/testing/pair.h"

namespace weft::rdmap {
namespace {

using testing::ids;
using testing::Pair;
using testing::rdma_wr;
using testing::send_wr;
using testing::Side;

std::vector<std::uint8_t> ramp(std::size_t len, std::uint8_t first = 0) {
  std::vector<std::uint8_t> octets(len);
  std::iota(octets.begin(), octets.end(), first);
  return octets;
}

TEST(Stream, ConnectsSendsWritesReadsAndDisconnects) {
  Pair pair;
  const auto request_data = ramp(10), reply_data = ramp(20, 100);
  pair.connect(request_data, reply_data);
  ASSERT_TRUE(pair.a.established && pair.b.established && pair.b.request);
  EXPECT_EQ(pair.b.request->private_data, request_data);
  EXPECT_EQ(pair.a.established->private_data, reply_data);
  EXPECT_EQ(pair.a.established->ord, 16);

  auto& src = pair.a.memory.add_simple(1, 0, 0x1000, 100000);
  std::iota(src.octets.begin(), src.octets.end(), std::uint8_t{7});
  auto& dst = pair.b.memory.add_simple(2, 0, 0x2000, 100000);
  auto& recv = pair.b.memory.add_simple(3, 0, 0, 5000);
  pair.a.memory.add_simple(4, 0, 0, 90000);
  pair.b.recvs.post(77, {{0, 5000, ddp::Stag{3}}});

  ASSERT_EQ(pair.a.stream.post_send(rdma_wr(SendOp::kRdmaWrite, 1, {{0x1000, 90000, ddp::Stag{1}}}, 2, 0x2001)),
            PostResult::kOk);
  ASSERT_EQ(pair.a.stream.post_send(rdma_wr(SendOp::kRdmaRead, 2, {{5, 80000, ddp::Stag{4}}}, 2, 0x2001)),
            PostResult::kOk);
  ASSERT_EQ(pair.a.stream.post_send(send_wr(3, {{0x1000, 3000, ddp::Stag{1}}, {0x1000, 1000, ddp::Stag{1}}})),
            PostResult::kOk);
  pair.run();

  ASSERT_EQ(pair.a.completions.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(pair.a.completions[i].wr_id, i + 1);
    EXPECT_EQ(pair.a.completions[i].status, WorkStatus::kSuccess);
  }
  EXPECT_EQ(pair.a.completions[1].byte_len, 80000u);
  EXPECT_TRUE(std::equal(src.octets.begin(), src.octets.begin() + 90000, dst.octets.begin() + 1));
  EXPECT_EQ(dst.octets[0], 0xa5);
  EXPECT_EQ(dst.octets[90001], 0xa5);
  const auto& sink = pair.a.memory.regions[4].octets;
  EXPECT_TRUE(std::equal(src.octets.begin(), src.octets.begin() + 80000, sink.begin() + 5));
  EXPECT_EQ(sink[80005], 0xa5);
  ASSERT_EQ(pair.b.completions.size(), 1u);
  EXPECT_EQ(pair.b.completions[0].wr_id, 77u);
  EXPECT_EQ(pair.b.completions[0].byte_len, 4000u);
  EXPECT_TRUE(std::equal(src.octets.begin(), src.octets.begin() + 1000, recv.octets.begin() + 3000));

  pair.a.stream.disconnect(pair.now);
  pair.run();
  ASSERT_EQ(pair.a.closed.size(), 1u);
  ASSERT_EQ(pair.b.closed.size(), 1u);
  EXPECT_EQ(pair.a.closed[0].reason, CloseReason::kLocal);
  EXPECT_EQ(pair.b.closed[0].reason, CloseReason::kGraceful) << pair.b.closed[0].text;
}

TEST(Stream, ResponderHoldsItsWorkUntilTheFirstFpdu) {
  RecordProperty("proves", "MPA2-4.3-01 MPA-7.1.2-14");
  Pair pair;
  pair.connect();
  pair.a.recvs.post(1);
  pair.b.recvs.post(1);
  ASSERT_EQ(pair.b.stream.post_send(send_wr(1, {})), PostResult::kOk);
  EXPECT_FALSE(pair.b.stream.wants_tx());
  pair.run();
  EXPECT_TRUE(pair.b.completions.empty());
  ASSERT_EQ(pair.a.stream.post_send(send_wr(2, {})), PostResult::kOk);
  pair.run();
  EXPECT_EQ(pair.a.completions.size(), 2u);
  EXPECT_EQ(pair.b.completions.size(), 2u);
}

TEST(Stream, WorkPostedBeforeTheConnectionStandsLeavesOnceItDoes) {
  Pair pair;
  pair.b.recvs.post(1);
  pair.a.stream.start_initiator({}, pair.a.recvs, pair.now);
  ASSERT_EQ(pair.a.stream.post_send(send_wr(5, {})), PostResult::kOk);
  pair.b.stream.start_responder(pair.now);
  pair.run();
  pair.b.stream.accept({}, pair.b.recvs, 1, 1, 0, pair.now);
  pair.run();
  EXPECT_EQ(ids(pair.a.completions), (std::vector<std::uint64_t>{5}));
  EXPECT_EQ(ids(pair.b.completions), (std::vector<std::uint64_t>{1}));
}

TEST(Stream, FenceAndOrderOfCompletions) {
  RecordProperty("proves", "RDMAP-5.5-16");
  Pair pair;
  pair.connect();
  pair.a.memory.add_simple(1, 0, 0, 100);
  pair.b.memory.add_simple(2, 0, 0, 100);
  pair.b.recvs.post(1);
  pair.b.recvs.post(2);
  ASSERT_EQ(pair.a.stream.post_send(rdma_wr(SendOp::kRdmaRead, 1, {{0, 50, ddp::Stag{1}}}, 2, 0)), PostResult::kOk);
  ASSERT_EQ(pair.a.stream.post_send(send_wr(2, {})), PostResult::kOk);
  SendWr fenced = send_wr(3, {});
  fenced.fence = true;
  ASSERT_EQ(pair.a.stream.post_send(fenced), PostResult::kOk);
  const auto first = pair.a.transmit(pair.now);
  pair.a.drain();
  EXPECT_TRUE(pair.a.completions.empty()) << "the Send behind the Read waits for it";
  pair.b.receive(first, pair.now);
  pair.b.drain();
  EXPECT_EQ(ids(pair.b.completions), (std::vector<std::uint64_t>{1})) << "the fenced Send has not left";
  pair.run();
  EXPECT_EQ(ids(pair.a.completions), (std::vector<std::uint64_t>{1, 2, 3}));
  EXPECT_EQ(ids(pair.b.completions), (std::vector<std::uint64_t>{1, 2}));
}

TEST(Stream, NeverMoreReadsOpenThanOrd) {
  RecordProperty("proves", "MPA2-9.1-12");
  StreamConfig config;
  config.ord = 3;
  Pair pair(config, {});
  pair.connect();
  for (std::uint64_t i = 0; i < 10; ++i)
    ASSERT_EQ(pair.a.stream.post_send(rdma_wr(SendOp::kRdmaRead, i, {}, 1, 0)), PostResult::kOk);
  // FPDUs of 46 octets of ULPDU: 52 each.
  EXPECT_EQ(pair.a.transmit(pair.now).size(), 3u * 52);
  EXPECT_FALSE(pair.a.stream.wants_tx());
}

TEST(Stream, ResponsesAndRequestsTakeTurns) {
  Pair pair;
  pair.connect();
  pair.a.memory.add_simple(1, 0, 0, 100000);
  pair.b.memory.add_simple(2, 0, 0, 100000);
  for (std::uint64_t i = 0; i < 4; ++i) {
    pair.a.recvs.post(i);
    ASSERT_EQ(pair.a.stream.post_send(rdma_wr(SendOp::kRdmaRead, i, {{0, 20000, ddp::Stag{1}}}, 2, 0)),
              PostResult::kOk);
  }
  pair.b.receive(pair.a.transmit(pair.now), pair.now);
  for (std::uint64_t i = 0; i < 4; ++i) ASSERT_EQ(pair.b.stream.post_send(send_wr(i, {})), PostResult::kOk);
  pair.a.receive(pair.b.transmit(pair.now, 65000), pair.now);
  pair.a.drain();
  std::string order;
  for (const Completion& c : pair.a.completions) order += c.op == WorkOp::kRecv ? 's' : 'r';
  EXPECT_TRUE(order == "srsrsrsr" || order == "rsrsrsrs") << order;
}

TEST(Stream, BatchesStayWithinWhatWasAskedAndTheFpduLimit) {
  for (const std::size_t limit : {std::size_t{0}, std::size_t{1}, std::size_t{501}, std::size_t{4000}}) {
    StreamConfig config;
    config.fpdu_limit = limit;
    Pair pair(config, {});
    pair.connect();
    pair.a.memory.add_simple(1, 0, 0, 100000);
    ASSERT_EQ(pair.a.stream.post_send(rdma_wr(SendOp::kRdmaWrite, 1, {{0, 100000, ddp::Stag{1}}}, 2, 0)),
              PostResult::kOk);
    const auto views = pair.a.stream.tx_buffers(9000, 30000, pair.now);
    std::size_t total = 0;
    for (ConstBytes view : views) total += view.size();
    EXPECT_LE(total, 30000u);
    EXPECT_GE(total, 21000u);
    const std::size_t ulpdu_len = static_cast<std::size_t>(views[0][0]) << 8 | views[0][1];
    const std::size_t fpdu = mpa::fpdu_len(ulpdu_len);
    EXPECT_LE(fpdu, limit == 0 ? 9000u : std::max<std::size_t>(limit, 136));
    EXPECT_GT(fpdu + 8, limit == 0 ? 9000u : std::max<std::size_t>(limit, 136));
    pair.a.stream.on_tx(0, pair.now);
    EXPECT_TRUE(pair.a.stream.wants_tx());
  }
}

TEST(Stream, LocalFaultSendsTerminateInPlaceOfTheRequest) {
  Pair pair;
  pair.connect();
  pair.a.memory.add_simple(1, 0, 0, 100);
  pair.b.recvs.post(9);
  ASSERT_EQ(pair.a.stream.post_send(send_wr(1, {{0, 10, ddp::Stag{1}}})), PostResult::kOk);
  ASSERT_EQ(pair.a.stream.post_send(send_wr(2, {{0, 10, ddp::Stag{1}}, {95, 10, ddp::Stag{1}}})), PostResult::kOk);
  ASSERT_EQ(pair.a.stream.post_send(send_wr(3, {})), PostResult::kOk);
  pair.b.memory.add_simple(3, 0, 0, 0);
  pair.b.recvs.posted.front().sg_list = {{0, 0, ddp::Stag{3}}};
  pair.b.memory.add_simple(4, 0, 0, 64);
  pair.b.recvs.posted.front().sg_list = {{0, 64, ddp::Stag{4}}};
  pair.run();
  ASSERT_EQ(ids(pair.a.completions), (std::vector<std::uint64_t>{1, 2, 3}));
  EXPECT_EQ(pair.a.completions[0].status, WorkStatus::kSuccess);
  EXPECT_EQ(pair.a.completions[1].status, WorkStatus::kLocalProtection);
  EXPECT_EQ(pair.a.completions[2].status, WorkStatus::kFlushed);
  ASSERT_EQ(pair.b.completions.size(), 1u);
  EXPECT_EQ(pair.b.completions[0].status, WorkStatus::kSuccess);
  ASSERT_EQ(pair.b.closed.size(), 1u);
  EXPECT_EQ(pair.b.closed[0].reason, CloseReason::kTerminateReceived);
  EXPECT_EQ(pair.b.closed[0].terminate, kLocalCatastrophic);
  ASSERT_EQ(pair.a.closed.size(), 1u);
  EXPECT_EQ(pair.a.closed[0].reason, CloseReason::kTerminateSent);
}

// Reads and Atomics on streams that may have none outstanding (ORD 0, RFC 6581 section 9.1).
struct WithoutOrd : ::testing::TestWithParam<SendOp> {
  static StreamConfig none() {
    StreamConfig config;
    config.ord = 0;
    return config;
  }
  WithoutOrd() {
    for (Side* side : {&pair.a, &pair.b}) {
      side->memory.add_simple(1, 0, 0, 64);
      for (std::uint64_t i = 0; i < 4; ++i) side->recvs.post(100 + i, {{0, 64, ddp::Stag{1}}});
    }
  }
  static SendWr request(std::uint64_t wr_id) {
    SendWr wr = rdma_wr(GetParam(), wr_id, {{0, 8, ddp::Stag{1}}}, 1, 0);
    wr.signaled = false;
    if (GetParam() == SendOp::kAtomic) wr.args = AtomicOperands{};
    return wr;
  }
  // A Send, a request that cannot leave, and a Send.
  void post_three(Side& side) {
    ASSERT_EQ(side.stream.post_send(send_wr(1, {{0, 8, ddp::Stag{1}}})), PostResult::kOk);
    ASSERT_EQ(side.stream.post_send(request(2)), PostResult::kOk);
    ASSERT_EQ(side.stream.post_send(send_wr(3, {{0, 8, ddp::Stag{1}}})), PostResult::kOk);
  }
  static void expect_ends(const Side& side, const Side& peer) {
    ASSERT_EQ(ids(side.completions), (std::vector<std::uint64_t>{1, 2, 3}));
    EXPECT_EQ(side.completions[0].status, WorkStatus::kSuccess);
    EXPECT_EQ(side.completions[1].status, WorkStatus::kLocalOperation);
    EXPECT_EQ(side.completions[2].status, WorkStatus::kFlushed);
    EXPECT_EQ(side.stream.counters().reads_tx + side.stream.counters().atomics_tx, 0u);
    EXPECT_EQ(peer.stream.counters().sends_rx, 1u);
    ASSERT_EQ(side.closed.size(), 1u);
    EXPECT_EQ(side.closed[0].reason, CloseReason::kTerminateSent);
    ASSERT_EQ(peer.closed.size(), 1u);
    EXPECT_EQ(peer.closed[0].terminate, kLocalCatastrophic);
  }
  Pair pair{none(), {}};
};

TEST_P(WithoutOrd, PostedOnAnEstablishedStreamFailsInItsTurn) {
  pair.connect();
  ASSERT_EQ(pair.a.established->ord, 0);
  post_three(pair.a);
  pair.run();
  expect_ends(pair.a, pair.b);
}

TEST_P(WithoutOrd, PostedBeforeTheConnectionStandsFailsOnceItDoes) {
  pair.a.stream.start_initiator({}, pair.a.recvs, pair.now);
  pair.b.stream.start_responder(pair.now);
  post_three(pair.a);
  pair.run();
  EXPECT_TRUE(pair.a.completions.empty());
  pair.b.stream.accept({}, pair.b.recvs, 16, 16, 0, pair.now);
  pair.run();
  expect_ends(pair.a, pair.b);
}

TEST_P(WithoutOrd, PostedByAResponderFailsOnceItMaySpeak) {
  pair.a.stream.start_initiator({}, pair.a.recvs, pair.now);
  pair.b.stream.start_responder(pair.now);
  pair.run();
  pair.b.stream.accept({}, pair.b.recvs, 16, 0, 0, pair.now);
  post_three(pair.b);
  pair.run();
  EXPECT_TRUE(pair.b.completions.empty()) << "RFC 5044 section 7.1.2: not before the initiator's first FPDU";
  ASSERT_EQ(pair.a.stream.post_send(send_wr(9, {})), PostResult::kOk);
  pair.run();
  ASSERT_FALSE(pair.b.completions.empty());
  EXPECT_EQ(pair.b.completions.front().op, WorkOp::kRecv);
  std::erase_if(pair.b.completions, [](const Completion& c) { return c.op == WorkOp::kRecv; });
  expect_ends(pair.b, pair.a);
}

TEST_P(WithoutOrd, DoesNotKeepADisconnectWaiting) {
  pair.connect();
  post_three(pair.a);
  pair.a.stream.disconnect(pair.now);
  pair.run();
  ASSERT_EQ(ids(pair.a.completions), (std::vector<std::uint64_t>{1, 2, 3}));
  EXPECT_EQ(pair.a.completions[1].status, WorkStatus::kLocalOperation);
  EXPECT_EQ(pair.b.closed.size(), 1u);
}

TEST_P(WithoutOrd, IsNotRescuedByTheSlotOfAnRtrIndication) {
  StreamConfig initiator = none();
  initiator.rtr_offered.read = true;
  Pair p2p(initiator, {});
  p2p.a.memory.add_simple(1, 0, 0, 64);
  p2p.a.stream.start_initiator({}, p2p.a.recvs, p2p.now);
  p2p.b.stream.start_responder(p2p.now);
  p2p.run();
  ASSERT_EQ(p2p.a.stream.post_send(request(2)), PostResult::kOk);
  p2p.b.stream.accept({}, p2p.b.recvs, 16, 16, 0, p2p.now);
  p2p.run();
  ASSERT_TRUE(p2p.b.established) << "the indication has left";
  ASSERT_EQ(ids(p2p.a.completions), (std::vector<std::uint64_t>{2}));
  EXPECT_EQ(p2p.a.completions[0].status, WorkStatus::kLocalOperation);
}

INSTANTIATE_TEST_SUITE_P(Ops, WithoutOrd, ::testing::Values(SendOp::kRdmaRead, SendOp::kAtomic), [](const auto& info) {
  return std::string(info.param == SendOp::kRdmaRead ? "Read" : "Atomic");
});

// A peer that guesses the request answers a Read or an Atomic of which TCP has only the beginning.
TEST(Stream, AnswersToWhatHasNotLeftAreRefused) {
  for (const SendOp op : {SendOp::kRdmaRead, SendOp::kAtomic}) {
    Pair pair;
    pair.connect();
    for (Side* side : {&pair.a, &pair.b}) side->memory.add_simple(1, 0, 0, 64);
    SendWr wr = rdma_wr(op, 1, {{0, 8, ddp::Stag{1}}}, 1, 0);
    if (op == SendOp::kAtomic) wr.args = AtomicOperands{};
    for (int i = 0; i < 16; ++i) {  // in every place of the send queue there was one
      ASSERT_EQ(pair.a.stream.post_send(wr), PostResult::kOk);
      pair.run();
    }
    ASSERT_EQ(pair.a.stream.post_send(wr), PostResult::kOk);
    std::vector<std::uint8_t> request;
    for (ConstBytes view : pair.a.stream.tx_buffers(pair.emss, 8000, pair.now))
      request.insert(request.end(), view.begin(), view.end());
    pair.a.stream.on_tx(10, pair.now);
    pair.b.receive(request, pair.now);
    pair.a.receive(pair.b.transmit(pair.now), pair.now);
    pair.run();
    ASSERT_EQ(pair.a.completions.size(), 17u);
    EXPECT_EQ(pair.a.completions[15].status, WorkStatus::kSuccess);
    EXPECT_NE(pair.a.completions[16].status, WorkStatus::kSuccess);
    ASSERT_EQ(pair.a.closed.size(), 1u);
    EXPECT_EQ(pair.a.closed[0].reason, CloseReason::kTerminateSent);
  }
}

TEST(Stream, TerminateThatArrivesWithinAnFpduOfOursIsFollowedByOurFin) {
  Pair pair;
  pair.connect();
  pair.b.recvs.post(9);
  ASSERT_EQ(pair.a.stream.post_send(send_wr(1, {})), PostResult::kOk);
  pair.run();  // from here on the responder may send, too
  pair.a.memory.add_simple(1, 0, 0, 4000);
  pair.b.memory.add_simple(2, 0, 0, 4000);
  ASSERT_EQ(pair.a.stream.post_send(rdma_wr(SendOp::kRdmaWrite, 2, {{0, 4000, ddp::Stag{1}}}, 2, 0)), PostResult::kOk);
  ASSERT_FALSE(pair.a.stream.tx_buffers(pair.emss, 8000, pair.now).empty());
  pair.a.stream.on_tx(100, pair.now);  // an FPDU is cut
  pair.b.memory.add_simple(3, 0, 0, 10);
  ASSERT_EQ(pair.b.stream.post_send(send_wr(3, {{5, 10, ddp::Stag{3}}})), PostResult::kOk);
  pair.a.receive(pair.b.transmit(pair.now), pair.now);  // beyond its region: a Terminate
  EXPECT_EQ(pair.a.stream.llp_action(), LlpAction::kNone);
  EXPECT_FALSE(pair.a.transmit(pair.now).empty());  // the rest of the cut FPDU
  EXPECT_EQ(pair.a.stream.llp_action(), LlpAction::kShutdownWrite);
}

TEST(Stream, RefusedReadIsToldFromTheOthers) {
  RecordProperty("proves", "RDMAP-5.4-06");
  Pair pair;
  pair.connect();
  pair.a.memory.add_simple(1, 0, 0, 100);
  pair.b.memory.add_simple(2, 0, 0, 100);
  ASSERT_EQ(pair.a.stream.post_send(rdma_wr(SendOp::kRdmaRead, 1, {{0, 50, ddp::Stag{1}}}, 2, 0)), PostResult::kOk);
  ASSERT_EQ(pair.a.stream.post_send(rdma_wr(SendOp::kRdmaRead, 2, {{0, 50, ddp::Stag{1}}}, 2, 51)), PostResult::kOk);
  ASSERT_EQ(pair.a.stream.post_send(rdma_wr(SendOp::kRdmaRead, 3, {{0, 50, ddp::Stag{1}}}, 2, 0)), PostResult::kOk);
  pair.run();
  ASSERT_EQ(ids(pair.a.completions), (std::vector<std::uint64_t>{1, 2, 3}));
  EXPECT_NE(pair.a.completions[0].status, WorkStatus::kRemoteAccess);
  EXPECT_EQ(pair.a.completions[1].status, WorkStatus::kRemoteAccess);
  EXPECT_EQ(pair.a.completions[1].terminate, kReadBaseBounds);
  EXPECT_EQ(pair.a.completions[2].status, WorkStatus::kFlushed);
  ASSERT_EQ(pair.a.closed.size(), 1u);
  EXPECT_NE(pair.a.closed[0].text.find("0/1/01"), std::string::npos) << pair.a.closed[0].text;
  // Both ends name the Read and the remedy.
  for (const Closed* closed : {&pair.a.closed[0], &pair.b.closed.at(0)}) {
    for (const char* part :
         {"it reads 50 bytes from STag 0x00000002 TO 0x33", "[RDMAP-7.2-08]", "Likely cause: ", "Try: "})
      EXPECT_NE(closed->text.find(part), std::string::npos) << part << ": " << closed->text;
  }
}

TEST(Stream, ParkTellsWhetherTheFpduWasParkedBefore) {
  Pair pair;
  pair.connect();
  pair.a.memory.add_simple(1, 0, 0, 300);
  pair.b.memory.add_simple(2, 0, 0, 300);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(pair.a.stream.post_send(rdma_wr(SendOp::kRdmaWrite, 1, {{0, 300, ddp::Stag{1}}}, 2, 0)), PostResult::kOk);
  }
  const auto octets = pair.a.transmit(pair.now);
  const ConstBytes fpdus(octets);
  const std::size_t len = octets.size() / 2;
  Side& b = pair.b;
  const auto park_after = [&](ConstBytes received) {
    b.receive(received, pair.now);
    return b.stream.park(b.staging);
  };
  const auto nothing = park_after({});
  EXPECT_EQ(nothing.num_octets, 0u);
  const auto first = park_after(fpdus.first(10));
  EXPECT_EQ(first.num_octets, 10u);
  EXPECT_FALSE(first.again) << "nothing of it was parked before";
  EXPECT_TRUE(park_after(fpdus.subspan(10, 10)).again);
  const auto next = park_after(fpdus.subspan(20, len - 20 + 15));
  EXPECT_EQ(next.num_octets, 15u);
  EXPECT_FALSE(next.again) << "of the next FPDU";
}

TEST(Stream, CountersCount) {
  Pair pair;
  pair.connect();
  pair.a.memory.add_simple(1, 0, 0, 5000);
  pair.b.memory.add_simple(2, 0, 0, 5000);
  pair.b.recvs.post(1);
  ASSERT_EQ(pair.a.stream.post_send(rdma_wr(SendOp::kRdmaWrite, 1, {{0, 5000, ddp::Stag{1}}}, 2, 0)), PostResult::kOk);
  ASSERT_EQ(pair.a.stream.post_send(rdma_wr(SendOp::kRdmaRead, 2, {{0, 4000, ddp::Stag{1}}}, 2, 0)), PostResult::kOk);
  ASSERT_EQ(pair.a.stream.post_send(send_wr(3, {})), PostResult::kOk);
  pair.run();
  const StreamCounters& a = pair.a.stream.counters();
  const StreamCounters& b = pair.b.stream.counters();
  EXPECT_EQ(a.fpdus_tx, b.fpdus_rx);
  EXPECT_EQ(b.fpdus_tx, a.fpdus_rx);
  EXPECT_EQ(a.writes_tx, 1u);
  EXPECT_EQ(a.write_octets_tx, 5000u);
  EXPECT_EQ(b.writes_rx, 1u);
  EXPECT_EQ(b.write_octets_rx, 5000u);
  EXPECT_EQ(a.reads_tx, 1u);
  EXPECT_EQ(b.reads_rx, 1u);
  EXPECT_EQ(a.read_octets_rx, 4000u);
  EXPECT_EQ(b.read_octets_tx, 4000u);
  EXPECT_EQ(a.sends_tx, 1u);
  EXPECT_EQ(b.sends_rx, 1u);
}

}  // namespace
}  // namespace weft::rdmap
