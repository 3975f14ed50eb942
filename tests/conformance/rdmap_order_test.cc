// RFC 5040 section 5.5 and Appendix B: the order of events.
#include <gtest/gtest.h>

#include <map>

#include "tests/conformance/rdmap_peer.h"
#include "tests/sim/world.h"

namespace weft::conformance {
namespace {

Octets framed(const std::vector<Octets>& ulpdus) {
  Octets all;
  for (const Octets& ulpdu : ulpdus) {
    const Octets fpdu = sim::frame_fpdu(ulpdu);
    all.insert(all.end(), fpdu.begin(), fpdu.end());
  }
  return all;
}

TEST(RdmapOrder, MessagesLeaveInTheOrderOfPosting) {
  RecordProperty("proves", "RDMAP-5.5-14 RDMAP-5.1-06 RDMAP-5.3-10");
  sim::Random random(20);
  Subject s(16, 200);
  std::vector<unsigned> expected;
  for (std::uint64_t i = 0; i < 200; ++i) {
    const std::size_t kind = random.between(0, 3);
    const SendOp op = std::array{SendOp::kSend, SendOp::kRdmaWrite, SendOp::kRdmaRead, SendOp::kSendInvalidate}[kind];
    expected.push_back(std::array{3u, 0u, 1u, 4u}[kind]);
    ASSERT_EQ(s.post(work(op, i, {{i, 1, kKey}}, 0x77, i)), PostResult::kOk);
  }
  const auto sent = s.sent();
  ASSERT_EQ(sent.size(), expected.size());
  const Octets local = ramp(Subject::kLocalLen);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(sent[i].opcode, expected[i]) << i;
    if (expected[i] == 1) {
      EXPECT_EQ(get(sent[i].payload, 20, 8), i);
    } else {
      EXPECT_EQ(sent[i].payload, Octets(1, local[i]));
    }
  }
}

TEST(RdmapOrder, WorkCompletesInTheOrderOfPosting) {
  RecordProperty("proves", "RDMAP-5.5-16 RDMAP-5.5-20");
  Subject s;
  ASSERT_EQ(s.post(work(SendOp::kRdmaRead, 1, {{0, 8, kKey}}, 0x77, 0)), PostResult::kOk);
  ASSERT_EQ(s.post(work(SendOp::kSend, 2, {{0, 8, kKey}})), PostResult::kOk);
  ASSERT_EQ(s.post(work(SendOp::kRdmaRead, 3, {{8, 8, kKey}}, 0x77, 0)), PostResult::kOk);
  ASSERT_EQ(s.post(work(SendOp::kRdmaWrite, 4, {{0, 8, kKey}}, 0x77, 0)), PostResult::kOk);
  EXPECT_EQ(s.sent().size(), 4u);
  EXPECT_TRUE(s.completions.empty()) << "all has left, and nothing is complete before the first Read";
  s.feed(read_response(Subject::kLocal, 0, ramp(8)));
  s.drain();
  EXPECT_EQ(ids(s.completions), (std::vector<std::uint64_t>{1, 2}));
  s.feed(read_response(Subject::kLocal, 8, ramp(8)));
  s.drain();
  EXPECT_EQ(ids(s.completions), (std::vector<std::uint64_t>{1, 2, 3, 4}));
}

TEST(RdmapOrder, EarlierWritesAreThereWhenASendCompletes) {
  RecordProperty("proves", "RDMAP-5.1-07 RDMAP-5.5-09 RDMAP-5.5-05 RDMAP-5.5-04");
  constexpr std::uint32_t kRegions = 8;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    sim::Random random(seed);
    Subject s;
    s.post_recvs(20, 200);
    std::map<std::uint32_t, Octets> expected;
    for (std::uint32_t i = 0; i < kRegions; ++i) {
      s.remote(0x500 + i, 0, 300);
      expected[0x500 + i] = Octets(300, 0xa5);
    }
    for (std::uint32_t msn = 1; msn <= 20; ++msn) {
      std::vector<Octets> ulpdus;
      for (std::size_t n = random.between(0, 5); n > 0; --n) {
        const auto stag = static_cast<std::uint32_t>(0x500 + random.between(0, kRegions - 1));
        const std::size_t at = random.between(0, 250), len = random.between(0, 50);
        const Octets data = ramp(len, random.between(0, 255));
        ulpdus.push_back(write(stag, at, data));
        std::copy(data.begin(), data.end(), expected[stag].begin() + static_cast<std::ptrdiff_t>(at));
      }
      ulpdus.push_back(send(msn, ramp(100, msn), false));
      ulpdus.push_back(send(msn, ramp(50, msn + 100), true, 100));
      s.receive(framed(ulpdus), s.now, random.between(1, 300));
      s.drain();
      ASSERT_EQ(s.completions.size(), msn);
      for (const auto& [stag, octets] : expected) ASSERT_EQ(s.memory.regions[stag].octets, octets);
      const Octets& inbox = s.memory.regions[Subject::kInbox].octets;
      ASSERT_EQ(Octets(inbox.begin() + 200 * (msn - 1), inbox.begin() + 200 * (msn - 1) + 150), ramp(150, msn));
    }
  }
}

TEST(RdmapOrder, ReadsCompleteInOrderWithTheirData) {
  RecordProperty("proves", "RDMAP-5.5-10 RDMAP-5.5-06");
  Subject s(16, 64);
  for (std::uint64_t i = 0; i < 64; ++i)
    ASSERT_EQ(s.post(work(SendOp::kRdmaRead, i, {{i * 100, 100, kKey}}, 0x77, 0)), PostResult::kOk);
  ASSERT_EQ(s.sent().size(), 64u);
  for (std::uint64_t i = 0; i < 64; ++i) {
    const Octets data = ramp(100, 7 * i + 3);
    s.feed(read_response(Subject::kLocal, i * 100, data));
    s.drain();
    ASSERT_EQ(s.completions.size(), i + 1);
    EXPECT_EQ(s.completions[i].wr_id, i);
    const Octets& local = s.memory.regions[Subject::kLocal].octets;
    EXPECT_EQ(Octets(local.begin() + static_cast<std::ptrdiff_t>(i * 100),
                     local.begin() + static_cast<std::ptrdiff_t>(i * 100 + 100)),
              data);
  }
}

TEST(RdmapOrder, ARequestIsServedAfterWhatCameBeforeIt) {
  RecordProperty("proves", "RDMAP-5.5-11 RDMAP-5.5-18 RDMAP-B-03 RDMAP-B-04");
  // A Write, or a Send in two segments, cut one octet before its end; behind it a Read Request.
  for (const bool by_write : {true, false}) {
    for (const std::uint32_t size : {8u, 0u}) {
      Subject s;
      s.remote(kSource, 0, 64);
      s.post_recvs(1);
      const Octets before = by_write ? framed({write(kSource, 0, ramp(8))})
                                     : framed({send(1, ramp(30), false), send(1, ramp(30), true, 30)});
      const Octets request = framed({read_request(1, 9, 0, size, kSource, 0)});
      s.receive(ConstBytes(before).first(before.size() - 1), s.now);
      EXPECT_TRUE(s.sent().empty());
      EXPECT_TRUE(s.completions.empty());
      Octets rest(1, before.back());
      rest.insert(rest.end(), request.begin(), request.end() - 1);
      s.receive(rest, s.now);
      EXPECT_TRUE(s.sent().empty()) << "the request itself has not been delivered";
      s.receive(Octets(1, request.back()), s.now);
      const auto sent = s.sent();
      ASSERT_EQ(sent.size(), 1u);
      EXPECT_EQ(sent[0].opcode, 2u);
      EXPECT_EQ(sent[0].payload, size == 0 ? Octets{} : by_write ? ramp(8) : Octets(8, 0xa5));
      EXPECT_EQ(s.completions.size(), by_write ? 0u : 1u) << "a Send before it has completed";
    }
  }
  // A Read Request whose CRC is wrong is none.
  Subject s;
  s.remote(kSource, 0, 64);
  Octets request = framed({read_request(1, 9, 0, 8, kSource, 0)});
  request.back() ^= 1;
  s.receive(request, s.now);
  const auto sent = s.sent();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].ulpdu, terminate({0x20, 0x02, 0, 0}));
}

TEST(RdmapOrder, ReadsSeeWhatWasWrittenBefore) {
  RecordProperty("proves", "RDMAP-5.5-12 RDMAP-B-04");
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    sim::Random random(seed);
    rdmap::testing::Pair pair;
    pair.connect();
    auto& mine = pair.a.memory.add_simple(1, 0, 0, 40000);
    pair.a.memory.add_simple(2, 0, 0, 40000);
    pair.b.memory.add_simple(3, 0, 0, 40000);
    for (auto& octet : mine.octets) octet = static_cast<std::uint8_t>(random.between(0, 255));
    Octets expected(40000, 0xa5);
    for (std::uint64_t i = 0; i < 20; ++i) {  // each Read behind its Write, nothing waited for
      const std::uint64_t at = i * 2000;
      const auto len = static_cast<std::uint32_t>(random.between(1, 2000));
      ASSERT_EQ(pair.a.stream.post_send(work(SendOp::kRdmaWrite, i, {{at, len, ddp::Stag{1}}}, 3, at)),
                PostResult::kOk);
      ASSERT_EQ(pair.a.stream.post_send(work(SendOp::kRdmaRead, i, {{at, len, ddp::Stag{2}}}, 3, at)), PostResult::kOk);
      std::copy_n(mine.octets.begin() + static_cast<std::ptrdiff_t>(at), len,
                  expected.begin() + static_cast<std::ptrdiff_t>(at));
    }
    pair.run();
    ASSERT_EQ(pair.a.completions.size(), 40u);
    for (const Completion& c : pair.a.completions) EXPECT_EQ(c.status, WorkStatus::kSuccess);
    EXPECT_TRUE(pair.a.memory.regions[2].octets == expected);
  }
}

TEST(RdmapOrder, AWriteBehindAReadMayBeSeenByItUnlessFenced) {
  RecordProperty("proves", "RDMAP-5.5-13 RDMAP-B-05 RDMAP-B-06");
  for (const SendOp op : {SendOp::kRdmaWrite, SendOp::kSend, SendOp::kSendInvalidate}) {
    for (const bool fence : {false, true}) {
      Subject s;
      ASSERT_EQ(s.post(work(SendOp::kRdmaRead, 1, {{0, 8, kKey}}, 0x77, 0)), PostResult::kOk);
      SendWr behind = work(op, 2, {{100, 8, kKey}}, 0x77, 0);
      behind.fence = fence;
      ASSERT_EQ(s.post(behind), PostResult::kOk);
      EXPECT_EQ(s.sent().size(), fence ? 1u : 2u);
      s.feed(read_response(Subject::kLocal, 0, ramp(4), false));
      EXPECT_TRUE(s.sent().empty()) << "the response is not complete";
      s.feed(read_response(Subject::kLocal, 4, ramp(4)));
      EXPECT_EQ(s.sent().size(), fence ? 1u : 0u);
      EXPECT_EQ(ids(s.completions), (std::vector<std::uint64_t>{1, 2}));
    }
  }
  // As the responder: either order is right. The response has the contents of memory at the time when it is made.
  Subject s;
  s.remote(kSource, 0, 8);
  s.feed_all({read_request(1, 9, 0, 8, kSource, 0), write(kSource, 0, ramp(8))});
  const auto sent = s.sent();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_TRUE(sent[0].payload == Octets(8, 0xa5) || sent[0].payload == ramp(8));
}

TEST(RdmapOrder, ASendIsDeliveredWhenItsLastSegmentCame) {
  RecordProperty("proves", "RDMAP-5.5-17 RDMAP-5.5-04");
  Subject s;
  s.post_recvs(1, 100);
  s.feed(send(1, ramp(40), false));
  EXPECT_TRUE(s.sent().empty());
  EXPECT_TRUE(s.completions.empty());
  s.feed(send(1, ramp(40, 40), true, 40));
  s.drain();
  ASSERT_EQ(s.completions.size(), 1u);
  EXPECT_EQ(s.completions[0].byte_len, 80u);
}

TEST(RdmapOrder, ASendNeedNotWaitForResponsesUnderWay) {
  RecordProperty("proves", "RDMAP-5.5-19");
  Subject s;
  s.remote(kSource, 0, 1 << 20);
  s.post_recvs(1);
  s.feed(read_request(1, 9, 0, 1 << 20, kSource, 0));
  ASSERT_FALSE(s.stream.tx_buffers(1460, 10000, s.now).empty());
  s.stream.on_tx(1460, s.now);  // the first segment is gone, the rest waits for room
  s.feed(send(1, ramp(8)));
  s.drain();
  ASSERT_EQ(s.completions.size(), 1u);
  EXPECT_EQ(s.completions[0].status, WorkStatus::kSuccess);
  EXPECT_FALSE(s.sent().empty());
}

TEST(RdmapOrder, CompleteAtTheSourceSaysNothingAboutTheSink) {
  RecordProperty("proves", "RDMAP-5.5-08 RDMAP-5.5-15");
  Subject s;
  for (std::uint64_t i = 0; i < 3; ++i)
    ASSERT_EQ(s.post(work(i == 1 ? SendOp::kRdmaWrite : SendOp::kSend, i, {{0, 100, kKey}}, 0x77, 0)), PostResult::kOk);
  // The peer has stopped reading. The socket takes octets as far as it has room: 18 + 100 octets make an FPDU of 124,
  // 14 + 100 one of 120.
  const auto take = [&](std::size_t n) {
    ASSERT_FALSE(s.stream.tx_buffers(1460, 1 << 20, s.now).empty());
    s.stream.on_tx(n, s.now);
    s.drain();
  };
  take(123);
  EXPECT_TRUE(s.completions.empty()) << "an octet of its FPDU has not been accepted";
  take(0);
  EXPECT_TRUE(s.completions.empty());
  take(1);
  EXPECT_EQ(ids(s.completions), (std::vector<std::uint64_t>{0}));
  take(119);
  EXPECT_EQ(s.completions.size(), 1u);
  take(1 + 124);
  EXPECT_EQ(ids(s.completions), (std::vector<std::uint64_t>{0, 1, 2})) << "though nobody has read an octet";
  EXPECT_FALSE(s.stream.wants_tx());
}

TEST(RdmapOrder, ResponsesAndSendsShareTheWire) {
  Subject s;
  s.remote(kSource, 0, 100000);
  for (std::uint32_t i = 1; i <= 8; ++i) s.feed(read_request(i, i, 0, 100000, kSource, 0));
  for (std::uint64_t i = 0; i < 8; ++i) ASSERT_EQ(s.post(work(SendOp::kSend, i, {{0, 100, kKey}})), PostResult::kOk);
  std::size_t responses = 0, sends = 0;
  for (const Segment& segment : s.sent()) {
    if (!segment.last) continue;
    ++(segment.opcode == 2 ? responses : sends);
    EXPECT_LE(responses, sends + 1) << "nobody gets two turns while the other waits";
    EXPECT_LE(sends, responses + 1);
  }
  EXPECT_EQ(responses, 8u);
  EXPECT_EQ(sends, 8u);
}

}  // namespace
}  // namespace weft::conformance
