// RFC 5040 sections 4.4, 5.2 and 6.1: RDMA Reads from both ends, and how many may be open.
#include <gtest/gtest.h>

#include "tests/conformance/rdmap_peer.h"

namespace weft::conformance {
namespace {

// The payload of a run of Read Response segments, checked to be one message into one STag.
Octets join(const std::vector<Segment>& sent, std::size_t& next, std::uint32_t stag, std::uint64_t to) {
  Octets out;
  while (next < sent.size()) {
    const Segment& s = sent[next++];
    EXPECT_EQ(s.opcode, 2u);
    EXPECT_TRUE(s.tagged);
    EXPECT_EQ(s.stag, stag);
    EXPECT_EQ(s.to, to + out.size());
    out.insert(out.end(), s.payload.begin(), s.payload.end());
    if (s.last) return out;
  }
  ADD_FAILURE() << "no last segment";
  return out;
}

TEST(RdmapReadResponder, SinkStagAndToGoBackUnexamined) {
  RecordProperty("proves", "RDMAP-4.4-03 RDMAP-4.4-05 RDMAP-4.4-07 RDMAP-5.2.2-06");
  for (const std::uint32_t sink : {0xffffffffu, 0u, kSource, 0x12345678u}) {
    Subject s;
    s.remote(kSource, 0x40000, 100) = ramp(100);
    s.feed(read_request(1, sink, 0xfffffffffffffff1, 9, kSource, 0x40000 + 33));
    const auto sent = s.sent();
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(sent[0].ulpdu, read_response(sink, 0xfffffffffffffff1, ramp(9, 33)));
    EXPECT_TRUE(s.closed.empty());
  }
}

TEST(RdmapReadResponder, LaterSegmentsAdvanceTheTo) {
  RecordProperty("proves", "RDMAP-4.4-04 RDMAP-5.2.2-09 RDMAP-5.2.1-11");
  Subject s;
  s.emss = 1032;  // a MULPDU of 1026: 1,012 octets of payload in each segment
  s.remote(kSource, 0, 3000) = ramp(3000);
  s.feed(read_request(1, 0x77, 0x8000, 3000, kSource, 0));
  const auto sent = s.sent();
  ASSERT_EQ(sent.size(), 3u);
  EXPECT_EQ(sent[0].to, 0x8000u);
  EXPECT_EQ(sent[1].to, 0x8000u + 1012);
  EXPECT_EQ(sent[2].to, 0x8000u + 2024);
  EXPECT_FALSE(sent[0].last || sent[1].last);
  std::size_t next = 0;
  EXPECT_EQ(join(sent, next, 0x77, 0x8000), ramp(3000));
}

TEST(RdmapReadResponder, AnswersInTheOrderOfTheRequestsAndWhole) {
  RecordProperty("proves",
                 "RDMAP-5.2.1-08 RDMAP-5.2.1-11 RDMAP-5.2.2-07 RDMAP-5.5-21 RDMAP-B-07 RDMAP-5.2-01 RDMAP-5.2.1-04");
  Subject s;
  s.post_recvs(1);
  const std::uint32_t sizes[] = {1 << 20, 1, 65536, 0, 5000, 3, 0, 20000, 1454, 100};
  s.remote(kSource, 0, 1 << 20) = ramp(1 << 20);
  std::vector<Octets> requests;
  for (std::uint32_t i = 0; i < 10; ++i) requests.push_back(read_request(i + 1, 100 + i, i, sizes[i], kSource, 0));
  s.feed_all(requests);
  const auto sent = s.sent();
  std::size_t next = 0;
  for (std::uint32_t i = 0; i < 10; ++i) EXPECT_TRUE(join(sent, next, 100 + i, i) == ramp(sizes[i])) << i;
  EXPECT_EQ(next, sent.size()) << "ten requests, ten responses, nothing else";
  EXPECT_TRUE(s.completions.empty()) << "the ULP of the responder hears nothing";
  EXPECT_TRUE(s.closed.empty());
  EXPECT_EQ(s.recvs.num_taken, 0u);
}

TEST(RdmapReadResponder, ZeroLengthNamesNothingAndIsAnswered) {
  RecordProperty("proves", "RDMAP-5.2.1-14 RDMAP-5.2.1-15");
  Subject s;
  s.feed(read_request(1, 0xfedcba98, 0x0123456789abcdef, 0, 0xdeadbeef, ~std::uint64_t{0}));
  const auto sent = s.sent();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].ulpdu, read_response(0xfedcba98, 0x0123456789abcdef, {}));
  EXPECT_TRUE(s.closed.empty());
}

TEST(RdmapReadResponder, EachDefectOfTheSourceHasItsCode) {
  RecordProperty("proves",
                 "RDMAP-5.2.1-13 RDMAP-5.2.1-05 RDMAP-3.2-08 RDMAP-4.8-19 RDMAP-4.8-18 RDMAP-7.2-06 RDMAP-7.2-07 "
                 "RDMAP-7.2-08 RDMAP-7.2-09 SEC-5040.7.2-01");
  struct Case {
    std::uint32_t stag;
    std::uint64_t to;
    std::uint32_t size;
    unsigned code;
  };
  const Case cases[] = {{0x999, 0, 8, 0},
                        {0x555, 0, 8, 0},
                        {0x222, 0, 8, 2},
                        {0x333, 0, 8, 3},
                        {0x444, 0, 8, 3},
                        {kSource, 0x40000 + 100, 1, 1},
                        {kSource, 0x3ffff, 8, 1},
                        {kSource, 0x40000 + 93, 8, 1},
                        {kSource, 0x40000, 101, 1},
                        {kSource, 0x40000, 0xffffffff, 1},
                        {kSource, ~std::uint64_t{0} - 6, 8, 4}};
  for (const Case& c : cases) {
    SCOPED_TRACE(testing::PrintToString(c.stag) + " " + testing::PrintToString(c.to));
    Subject s;
    s.remote(kSource, 0x40000, 100);
    s.remote(0x222, 0, 64, false, true);
    s.remote(0x333, 0, 64, true, true, {2});
    s.memory.add(0x444, {9, {}, 0, true, true, true, Octets(64)});
    s.remote(0x555, 0, 64);
    s.memory.regions[0x555].valid = false;
    s.feed(read_request(1, 1, 0, 100, kSource, 0x40000));  // to the last octet: fine, and no event
    ASSERT_EQ(s.sent().size(), 1u);
    EXPECT_TRUE(s.completions.empty());
    EXPECT_TRUE(s.closed.empty());
    const Octets bad = read_request(2, 1, 0, c.size, c.stag, c.to);
    s.feed(bad);
    const auto sent = s.sent();
    ASSERT_EQ(sent.size(), 1u) << "the Terminate, and no response";
    EXPECT_EQ(sent[0].ulpdu, terminate_for(bad, 0x01, c.code, true));
    s.stream.on_rx_eof(s.now);
    s.stream.on_llp_action_done(rdmap::LlpAction::kShutdownWrite);
    s.drain();
    ASSERT_EQ(s.closed.size(), 1u);
    EXPECT_EQ(s.closed[0].reason, rdmap::CloseReason::kTerminateSent);
    EXPECT_EQ(s.closed[0].terminate, (rdmap::Terminate{rdmap::Layer::kRdma, 1, static_cast<std::uint8_t>(c.code)}));

    // At the requester the Read fails, and its ULP learns why.
    Subject requester;
    ASSERT_EQ(requester.post(work(SendOp::kRdmaRead, 1, {{0, 8, ddp::Stag{Subject::kLocal}}}, c.stag, c.to)),
              PostResult::kOk);
    ASSERT_EQ(requester.sent().size(), 1u);
    Octets answer = sent[0].ulpdu;
    answer[18 + 6 + 13] = 1;  // its request was the first
    requester.feed(answer);
    requester.drain();
    ASSERT_EQ(requester.completions.size(), 1u);
    EXPECT_EQ(requester.completions[0].status, WorkStatus::kRemoteAccess);
    EXPECT_EQ(requester.completions[0].terminate, s.closed[0].terminate);
  }
}

TEST(RdmapReadResponder, MalformedRequestsAreNotPerformed) {
  RecordProperty("proves", "RDMAP-4.2-01 RDMAP-4.2-02 RDMAP-7.2-05");
  const Octets good = read_request(1, 1, 0, 8, kSource, 0);
  ASSERT_EQ(good.size(), 46u);
  const auto answer = [](const Octets& ulpdu) {
    Subject s;
    s.remote(kSource, 0, 64);
    s.feed(ulpdu);
    const auto sent = s.sent();
    EXPECT_EQ(sent.size(), 1u);
    EXPECT_TRUE(s.completions.empty());
    return sent.empty() ? Octets{} : sent[0].ulpdu;
  };
  EXPECT_EQ(answer(good), read_response(1, 0, Octets(8, 0xa5)));
  Octets shorter = good, longer = good;
  shorter.pop_back();
  longer.push_back(0);
  EXPECT_EQ(answer(shorter), terminate_for(shorter, 0x02, 0x07));
  EXPECT_EQ(answer(longer), terminate_for(longer, 0x12, 0x05));
  const Octets version = read_request(1, 1, 0, 8, kSource, 0, 0x81);
  EXPECT_EQ(answer(version), terminate_for(version, 0x02, 0x05));
  const Octets gap = read_request(2, 1, 0, 8, kSource, 0);
  EXPECT_EQ(answer(gap), terminate_for(gap, 0x12, 0x03));
}

TEST(RdmapReadResponder, ServesIrdRequestsAndNotOneMore) {
  RecordProperty("proves", "RDMAP-5.2.1-02 RDMAP-5.2.2-03 RDMAP-6.1-04 RDMAP-6.1-08");
  for (const std::uint16_t ird : std::initializer_list<std::uint16_t>{1, 2, 4, 16}) {
    Subject s(ird);
    s.remote(kSource, 0, 64) = ramp(64);
    for (std::uint32_t i = 1; i <= ird; ++i) s.feed(read_request(i, i, 0, 64, kSource, 0));
    // The response path was stalled: nothing was asked of the stream. Now all of them come.
    auto sent = s.sent();
    ASSERT_EQ(sent.size(), ird);
    for (std::uint32_t i = 0; i < ird; ++i) EXPECT_EQ(sent[i].ulpdu, read_response(i + 1, 0, ramp(64)));
    for (std::uint32_t i = 1; i <= ird; ++i) s.feed(read_request(ird + i, i, 0, 64, kSource, 0));
    EXPECT_EQ(s.stream.llp_action(), rdmap::LlpAction::kNone);
    const Octets extra = read_request(2u * ird + 1, 0x999, 0, 64, kSource, 0);
    s.feed(extra);
    sent = s.sent();
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(sent[0].ulpdu, terminate_for(extra, 0x12, 0x02));
  }
}

TEST(RdmapReadRequester, LimitsOfOneConnectionAreItsOwnInEachDirection) {
  RecordProperty("proves", "RDMAP-6.1-03 RDMAP-6.1-05 RDMAP-8.1.1-10");
  Subject s(4, 2);
  s.remote(kSource, 0, 64);
  for (std::uint64_t i = 0; i < 5; ++i)
    ASSERT_EQ(s.post(work(SendOp::kRdmaRead, i, {{0, 8, ddp::Stag{Subject::kLocal}}}, 0x77, 0)), PostResult::kOk);
  EXPECT_EQ(s.sent().size(), 2u) << "ORD requests, whatever IRD is";
  for (std::uint32_t i = 1; i <= 4; ++i) s.feed(read_request(i, i, 0, 8, kSource, 0));
  const Octets extra = read_request(5, 5, 0, 8, kSource, 0);
  s.feed(extra);
  const auto sent = s.sent();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].ulpdu, terminate_for(extra, 0x12, 0x02)) << "IRD requests, whatever ORD is";
}

TEST(RdmapReadRequester, NeverMoreThanOrdOnTheWire) {
  RecordProperty("proves", "RDMAP-6.1-05 RDMAP-6.1-07");
  Subject s(16, 3);
  for (std::uint64_t i = 0; i < 100; ++i)
    ASSERT_EQ(s.post(work(SendOp::kRdmaRead, i, {{0, 8, ddp::Stag{Subject::kLocal}}}, 0x77, i)), PostResult::kOk);
  EXPECT_EQ(s.sent().size(), 3u);
  EXPECT_TRUE(s.sent().empty());
  for (std::uint32_t i = 4; i <= 100; ++i) {
    s.feed(read_response(Subject::kLocal, 0, ramp(4), false));
    EXPECT_TRUE(s.sent().empty()) << "half a response makes no room";
    s.feed(read_response(Subject::kLocal, 4, ramp(4)));
    const auto sent = s.sent();
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(sent[0].msn, i);
  }
  EXPECT_EQ(s.completions.size(), 97u);
}

TEST(RdmapReadRequester, BothEndsAgreeOnTheDepths) {
  RecordProperty("proves", "RDMAP-6.1-06");
  rdmap::StreamConfig a;
  a.ird = 3;
  a.ord = 11;
  rdmap::testing::Pair pair(a, {});
  pair.a.stream.start_initiator({}, pair.a.recvs, pair.now);
  pair.b.stream.start_responder(pair.now);
  pair.run();
  pair.b.stream.accept({}, pair.b.recvs, 7, 9, 0, pair.now);
  pair.run();
  ASSERT_TRUE(pair.a.established && pair.b.established);
  EXPECT_EQ(pair.a.established->ord, 7);
  EXPECT_EQ(pair.b.established->ird, 7);
  EXPECT_EQ(pair.b.established->ord, 3);
  EXPECT_EQ(pair.a.established->ird, 3);
}

TEST(RdmapReadRequester, CompletesByTheResponseAlone) {
  RecordProperty("proves",
                 "RDMAP-5.2.2-04 RDMAP-5.2.1-10 RDMAP-5.2.1-12 RDMAP-5.5-20 RDMAP-5.5-23 RDMAP-4.4-05 RDMAP-5.2.2-06");
  Subject s;
  s.memory.add(0x66,
               {7, {}, 0x8001, false, false, true, Octets(64, 0xa5)});  // local rights only, odd, not page-aligned
  ASSERT_EQ(s.post(work(SendOp::kRdmaRead, 1, {{0x8001 + 27, 10, ddp::Stag{0x66}}}, 0x77, 0x1003)), PostResult::kOk);
  ASSERT_EQ(s.post(work(SendOp::kRdmaRead, 2, {}, 0x77, 0)), PostResult::kOk);
  const auto sent = s.sent();
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_EQ(sent[0].ulpdu, read_request(1, 0x66, 0x8001 + 27, 10, 0x77, 0x1003));
  EXPECT_EQ(sent[1].ulpdu.size(), 46u);
  EXPECT_EQ(get(sent[1].payload, 12, 4), 0u);
  s.feed(read_response(0x66, 0x8001 + 27, ramp(6), false));
  s.drain();
  EXPECT_TRUE(s.completions.empty()) << "the segment with L=1 is still out";
  s.feed(read_response(0x66, 0x8001 + 33, ramp(4, 6)));
  s.drain();
  ASSERT_EQ(s.completions.size(), 1u);
  EXPECT_EQ(s.completions[0].status, WorkStatus::kSuccess);
  EXPECT_EQ(s.completions[0].byte_len, 10u);
  Octets expected(64, 0xa5);
  std::copy_n(ramp(10).begin(), 10, expected.begin() + 27);
  EXPECT_EQ(s.memory.regions[0x66].octets, expected);
  s.feed(read_response(static_cast<std::uint32_t>(get(sent[1].payload, 0, 4)), get(sent[1].payload, 4, 8), {}));
  s.drain();
  ASSERT_EQ(s.completions.size(), 2u);
  EXPECT_EQ(s.completions[1].status, WorkStatus::kSuccess);
  EXPECT_EQ(s.completions[1].byte_len, 0u);
  EXPECT_TRUE(s.sent().empty()) << "nothing more is said, or awaited";
}

TEST(RdmapReadRequester, SizesFromNothingTo32Bits) {
  RecordProperty("proves", "RDMAP-4.4-06");
  Subject s;
  std::uint64_t id = 0;
  for (const std::uint32_t size : {0u, 1u, 0x7fffffffu, 0x80000000u, 0xffffffffu}) {
    // The sink is looked up when octets arrive, so the request can be seen without having the memory.
    ASSERT_EQ(s.post(work(SendOp::kRdmaRead, ++id, {{0, size, ddp::Stag{Subject::kLocal}}}, 0x77, 0)), PostResult::kOk);
    const auto sent = s.sent();
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(get(sent[0].payload, 12, 4), size);
  }
  ASSERT_EQ(s.post(work(SendOp::kRdmaRead, ++id,
                        {{0, 0xffffffff, ddp::Stag{Subject::kLocal}}, {0, 1, ddp::Stag{Subject::kLocal}}}, 0x77, 0)),
            PostResult::kInvalid);
  s.feed(read_response(Subject::kLocal, 0, {}));
  s.feed(read_response(Subject::kLocal, 0, ramp(1)));
  s.drain();
  ASSERT_EQ(s.completions.size(), 2u);
  EXPECT_EQ(s.completions[0].byte_len, 0u);
  EXPECT_EQ(s.completions[1].byte_len, 1u);
  EXPECT_EQ(s.completions[1].status, WorkStatus::kSuccess);
}

TEST(RdmapReadRequester, ResponsesThatDoNotFitTheRequestAreRefused) {
  RecordProperty("proves", "RDMAP-4.4-08 RDMAP-5.2.2-05 RDMAP-5.2.2-08");
  struct Case {
    Octets response;
    unsigned code;
  };
  const std::uint32_t sink = Subject::kLocal;
  const Case cases[] = {{read_response(0x1a2b3c01, 0x1000, ramp(16)), 0x00},
                        {read_response(sink, 0x107, ramp(16)), 0x01},
                        {read_response(sink, 0x100, ramp(17)), 0x01},
                        {read_response(sink, 0x100, ramp(8)), 0x01},
                        {read_response(sink, 0xfffffffffffffff8, ramp(16)), 0x03},
                        {read_response(sink, 0x100, {}), 0x01}};
  for (const Case& c : cases) {
    SCOPED_TRACE(testing::PrintToString(c.response));
    Subject s;
    s.remote(0x1a2b3c01, 0x1000, 64);
    ASSERT_EQ(s.post(work(SendOp::kRdmaRead, 1, {{0x100, 16, ddp::Stag{sink}}}, 0x77, 0)), PostResult::kOk);
    ASSERT_EQ(s.sent().size(), 1u);
    const auto memory = s.memory.regions;
    s.feed(c.response);
    const auto sent = s.sent();
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(sent[0].ulpdu, terminate_for(c.response, 0x11, c.code));
    for (const auto& [stag, region] : memory) EXPECT_EQ(s.memory.regions[stag].octets, region.octets);
    ASSERT_EQ(s.completions.size(), 1u);
    EXPECT_NE(s.completions[0].status, WorkStatus::kSuccess);
    s.stream.on_rx_eof(s.now);
    s.stream.on_llp_action_done(rdmap::LlpAction::kShutdownWrite);
    s.drain();
    ASSERT_EQ(s.closed.size(), 1u);
    EXPECT_EQ(s.closed[0].reason, rdmap::CloseReason::kTerminateSent);
  }
  Subject idle;  // nothing asked for
  const Octets response = read_response(sink, 0x100, ramp(16));
  idle.feed(response);
  const auto sent = idle.sent();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].ulpdu, terminate_for(response, 0x11, 0x00));
  EXPECT_EQ(idle.memory.regions[sink].octets, ramp(Subject::kLocalLen));
}

}  // namespace
}  // namespace weft::conformance
