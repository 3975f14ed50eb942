// RFC 5041's requirements on the sink beyond the vectors: limits, order, delivery.
#include <random>

#include "ddp/untagged_queue.h"
#include "tests/conformance/ddp_peer.h"

namespace weft::conformance {
namespace {

using rdmap::CloseReason;
using rdmap::Completion;
using rdmap::WorkOp;
using rdmap::WorkStatus;
using sim::Victim;

constexpr std::uint32_t kKey = 0x11;

// n receives of len octets each, one behind the other, with wr_ids from 0.
Octets& post_receives(Victim& v, std::uint64_t n, std::uint32_t len) {
  for (std::uint64_t i = 0; i < n; ++i) v.recvs.post(i, {{i * len, len, ddp::Stag{kKey}}});
  return v.memory.add_simple(kKey, 7, 0, static_cast<std::size_t>(n * len)).octets;
}

ddp::UntaggedHeader send_header(std::uint32_t msn, std::uint32_t mo = 0, bool last = true) {
  return {.last = last, .rsvd_ulp = kSendControl, .msn = {msn}, .mo = mo};
}

// Error Type and Error Code of the Terminate that is all the victim has to say.
std::pair<int, int> answered(Victim& v) {
  const auto sent = v.ulpdus();
  if (sent.size() != 1 || !is_terminate(sent[0])) return {-1, -1};
  return {sent[0][18], sent[0][19]};
}

TEST(DdpSink, OneAdvertisementServesManyWritesButEachSendNeedsItsBuffer) {
  RecordProperty("proves", "DDP-1.2-04 DDP-5.1.2-03");
  Victim v;
  auto& region = v.memory.add_simple(kStag, 7, 0, 1000);
  for (std::uint64_t i = 0; i < 1000; ++i)
    v.feed(tagged({.rsvd_ulp = kWriteControl, .stag = {kStag}, .to = i}, Octets(1, static_cast<std::uint8_t>(i))));
  EXPECT_EQ(region.octets, ramp(1000));
  EXPECT_EQ(v.recvs.num_taken, 0u);
  post_receives(v, 1000, 4);
  for (std::uint32_t msn = 1; msn <= 1000; ++msn) v.feed(untagged(send_header(msn), ramp(4)));
  v.drain();
  EXPECT_EQ(v.completions.size(), 1000u);
  EXPECT_TRUE(v.ulpdus().empty());
  v.feed(untagged(send_header(1001), ramp(4)));
  EXPECT_EQ(answered(v), (std::pair{0x12, 0x02}));
}

TEST(DdpSink, TAloneDecidesOnTheModel) {
  RecordProperty("proves", "DDP-4.1-03");
  Victim v;
  Octets& inbox = post_receives(v, 1, 64);
  Octets& region = v.memory.add_simple(kStag, 7, 0, 64).octets;
  const Octets filled(64, 0xa5);
  v.feed(tagged({.rsvd_ulp = kWriteControl, .stag = {kStag}}, ramp(8)));
  EXPECT_NE(region, filled);
  EXPECT_EQ(inbox, filled);
  region = filled;
  v.feed(untagged(send_header(1), ramp(8)));
  EXPECT_EQ(region, filled);
  EXPECT_NE(inbox, filled);
  inbox = filled;
  Octets flipped = tagged({.rsvd_ulp = kWriteControl, .stag = {kStag}});
  flipped[0] = 0x41;
  v.feed(flipped);
  EXPECT_EQ(answered(v), (std::pair{0x10, 0x00}));
  EXPECT_EQ(region, filled);
  EXPECT_EQ(inbox, filled);
}

TEST(DdpSink, AFlippedPayloadBitIsFoundAndNothingPlaced) {
  const bool verify = rdmap::testing::under_test({}).placement == rdmap::Placement::kVerify;
  RecordProperty("proves", verify ? "DDP-3-06 DDP-6.2.2-02 MPA-6-01" : "DDP-6.2.2-02");
  const Octets good = sim::frame_fpdu(tagged({.rsvd_ulp = kWriteControl, .stag = {kStag}}, ramp(64)));
  for (std::size_t bit = 16 * 8; bit < (16 + 64) * 8; ++bit) {
    Victim v;
    auto& region = v.memory.add_simple(kStag, 7, 0, 64);
    Octets bad = good;
    bad[bit / 8] = static_cast<std::uint8_t>(bad[bit / 8] ^ 1 << bit % 8);
    v.receive(bad, v.now);
    if (verify) {
      EXPECT_EQ(region.octets, Octets(64, 0xa5));
    }
    EXPECT_EQ(v.stream.counters().write_octets_rx, 0u);
    ASSERT_EQ(answered(v), (std::pair{0x20, 0x02})) << bit;
    v.stream.on_rx_eof(v.now);
    v.drain();
    ASSERT_EQ(v.closed.size(), 1u);
    EXPECT_EQ(v.closed[0].terminate, (rdmap::Terminate{rdmap::Layer::kLlp, 0, 2}));
  }
}

TEST(DdpSink, ThePayloadIsTheUlpduLessItsHeaderWhateverThePad) {
  RecordProperty("proves", "DDP-3-07 DDP-5.2-04");
  constexpr std::size_t kUntaggedRoom = 110, kTaggedRoom = 114;
  for (const std::size_t room : {kUntaggedRoom, kTaggedRoom}) {
    for (const std::size_t len : {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{4},
                                  std::size_t{5}, room - 1, room, room + 1, 10 * room}) {
      SCOPED_TRACE(len);
      Sender s;
      Victim v;
      Octets& inbox = post_receives(v, 2, 2000);
      Octets& region = v.memory.add_simple(kStag, 7, 0, 2000).octets;
      s.post(SendOp::kSend, ramp(len, 3));
      s.post(SendOp::kRdmaWrite, ramp(len, 5), kStag, 100);
      v.receive(s.transmit(s.now), v.now);
      v.drain();
      ASSERT_EQ(v.completions.size(), 1u);
      EXPECT_EQ(v.completions[0].byte_len, len);
      EXPECT_EQ(v.stream.counters().write_octets_rx, len);
      Octets want(4000, 0xa5);
      const Octets sent = ramp(len, 3);
      std::copy(sent.begin(), sent.end(), want.begin());
      EXPECT_EQ(inbox, want);
      want.assign(2000, 0xa5);
      const Octets written = ramp(len, 5);
      std::copy(written.begin(), written.end(), want.begin() + 100);
      EXPECT_EQ(region, want);
    }
  }
}

TEST(DdpSink, EachSendIsDeliveredWithItsLastOctetAndInOrder) {
  RecordProperty("proves", "DDP-4.1-08 DDP-5.1.2-02 DDP-1.2-03");
  Victim v;
  Octets& inbox = post_receives(v, 3, 8);
  const Octets first = sim::frame_fpdu(untagged(send_header(1), ramp(5, 1)));
  const Octets second = sim::frame_fpdu(untagged(send_header(2), ramp(5, 11)));
  Octets both = first;
  both.insert(both.end(), second.begin(), second.end());
  for (std::size_t i = 0; i < both.size(); ++i) {
    v.receive(ConstBytes(both).subspan(i, 1), v.now);
    v.drain();
    const std::size_t num_whole = i + 1 < first.size() ? 0 : i + 1 < both.size() ? 1 : 2;
    ASSERT_EQ(v.completions.size(), num_whole) << "octet " << i;
  }
  EXPECT_EQ(v.completions[0].wr_id, 0u);
  EXPECT_EQ(v.completions[1].wr_id, 1u);
  EXPECT_EQ(inbox[0], 1);
  EXPECT_EQ(inbox[8], 11);
}

TEST(DdpSink, AChangedRsvdUlpInTheMiddleIsNeverMixed) {
  RecordProperty("proves", "DDP-4.3-06");
  Victim v;
  post_receives(v, 1, 12);
  constexpr std::uint32_t kOuter = 0x11223344, kMiddle = 0x55667788;
  for (const std::uint32_t stag : {kOuter, kMiddle}) v.memory.add_simple(stag, 7, 0, 8).streams = {1};
  for (std::uint32_t i = 0; i < 3; ++i) {
    ddp::UntaggedHeader h = send_header(1, i * 4, i == 2);
    h.rsvd_ulp = kSendInvalidateControl;
    h.rsvd_ulp_8_39 = i == 1 ? kMiddle : kOuter;
    v.feed(untagged(h, ramp(4)));
  }
  v.drain();
  ASSERT_EQ(v.completions.size(), 1u);
  ASSERT_EQ(v.completions[0].status, WorkStatus::kSuccess);
  EXPECT_EQ(v.completions[0].byte_len, 12u);
  EXPECT_EQ(v.completions[0].invalidated, ddp::Stag{kOuter});
  EXPECT_FALSE(v.memory.regions[kOuter].valid);
  EXPECT_TRUE(v.memory.regions[kMiddle].valid);
}

TEST(DdpSink, QueuesAreSeparatePools) {
  RecordProperty("proves", "DDP-5.1.2-01");
  Victim v;
  post_receives(v, 2, 4);
  v.memory.add_simple(kStag, 7, 0, 64);
  for (std::uint32_t msn = 1; msn <= 2; ++msn) v.feed(untagged(send_header(msn), ramp(4)));
  v.drain();
  EXPECT_EQ(v.completions.size(), 2u);
  EXPECT_TRUE(v.recvs.posted.empty());
  v.feed(untagged({.rsvd_ulp = kReadRequestControl, .qn = 1},
                  rdmap::emit_read_request_header({ddp::Stag{9}, 0, 16, ddp::Stag{kStag}, 0})));
  const auto response = v.ulpdus();
  ASSERT_EQ(response.size(), 1u);
  EXPECT_EQ(response[0][1], kReadResponseControl);
  v.feed(untagged({.rsvd_ulp = kTerminateControl, .qn = 2}, Octets{0x02, 0x07, 0, 0}));
  EXPECT_TRUE(v.ulpdus().empty());
  v.stream.on_rx_eof(v.now);
  v.drain();
  ASSERT_EQ(v.closed.size(), 1u);
  EXPECT_EQ(v.closed[0].reason, CloseReason::kTerminateReceived);
}

TEST(DdpSink, AnEmptyTaggedSegmentStillHasItsVersion) {
  RecordProperty("proves", "DDP-5.2-12");
  for (const std::uint8_t fill : Octets{0x00, 0x5a, 0xff}) {
    Victim v;
    Octets ulpdu(ddp::kTaggedHeaderLen, fill);
    ulpdu[0] = 0xc1;
    ulpdu[1] = kWriteControl;
    v.feed(ulpdu);
    EXPECT_TRUE(v.ulpdus().empty());
    ulpdu[0] = 0xc0;
    v.feed(ulpdu);
    EXPECT_EQ(answered(v), (std::pair{0x11, 0x04}));
  }
}

TEST(DdpSink, NothingIsDeliveredBeforeTheLastSegment) {
  RecordProperty("proves", "DDP-5.4-02");
  Victim v;
  post_receives(v, 2, 12);
  v.memory.add_simple(kStag, 7, 0, 64);
  v.feed(untagged(send_header(1, 0, false), ramp(4)));
  v.feed(untagged(send_header(1, 4, false), ramp(4)));
  v.feed(tagged({.last = false, .rsvd_ulp = kWriteControl, .stag = {kStag}}, ramp(4)));
  v.feed(tagged({.rsvd_ulp = kWriteControl, .stag = {kStag}, .to = 4}, ramp(4)));
  v.drain();
  EXPECT_TRUE(v.completions.empty());
  v.feed(untagged(send_header(1, 8), ramp(4)));
  v.feed(untagged(send_header(2), ramp(1)));
  v.drain();
  ASSERT_EQ(v.completions.size(), 2u);
  EXPECT_EQ(v.completions[0].byte_len, 12u);
  EXPECT_EQ(v.completions[1].byte_len, 1u);
}

TEST(DdpSink, AThousandSendsWithCreditsArriveInOrder) {
  RecordProperty("proves", "DDP-5.3-06 DDP-7.1-05");
  constexpr unsigned kSeed = 5041;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937 random(kSeed);
  constexpr std::uint32_t kMaxLen = 3000;
  constexpr std::size_t kCredits = 16;
  Victim v;
  Sender s(std::size_t{0});
  v.memory.add_simple(kKey, 7, 0, kMaxLen);
  std::vector<std::uint32_t> lens;
  std::uint64_t next_recv = 0;
  while (lens.size() < 1000) {
    for (std::size_t i = 0; i < kCredits && lens.size() < 1000; ++i) {
      v.recvs.post(next_recv++, {{0, kMaxLen, ddp::Stag{kKey}}});
      lens.push_back(static_cast<std::uint32_t>(random() % (kMaxLen + 1)));
      s.post(SendOp::kSend, ramp(lens.back()));
    }
    v.receive(s.transmit(s.now), v.now, 1 + random() % 4000);
    v.drain();
    ASSERT_EQ(v.completions.size(), lens.size());
  }
  for (std::size_t i = 0; i < 1000; ++i) {
    ASSERT_EQ(v.completions[i].wr_id, i);
    ASSERT_EQ(v.completions[i].status, WorkStatus::kSuccess);
    ASSERT_EQ(v.completions[i].byte_len, lens[i]);
  }
  EXPECT_TRUE(v.ulpdus().empty()) << "no Terminate";
}

TEST(DdpSink, MemoryTakenAwayAtHomeIsALocalCatastrophe) {
  RecordProperty("proves", "DDP-7.2-02");
  Victim v;
  post_receives(v, 1, 8);
  v.memory.regions.erase(kKey);
  v.feed(untagged(send_header(1), ramp(4)));
  EXPECT_EQ(answered(v), (std::pair{0x10, 0x00}));
  Victim runt;
  runt.feed(Octets(13, 0xc1));
  EXPECT_EQ(answered(runt), (std::pair{0x10, 0x00}));
}

TEST(DdpSink, AMissingReceiveEndsTheStreamAndIsCounted) {
  RecordProperty("proves", "DDP-7.1-03 DDP-7.1-06");
  Victim v;
  post_receives(v, 1, 8);
  v.feed(untagged(send_header(1), ramp(4)));
  EXPECT_EQ(v.stream.counters().no_buffer_rx, 0u);
  v.feed(untagged(send_header(2), ramp(4)));
  v.feed(untagged(send_header(3), ramp(4)));
  EXPECT_EQ(answered(v), (std::pair{0x12, 0x02}));
  EXPECT_EQ(v.stream.counters().no_buffer_rx, 1u);
  EXPECT_EQ(v.stream.llp_action(), rdmap::LlpAction::kShutdownWrite);
}

TEST(DdpSink, TheErrorOfARefusedAccessNamesItsStagAndCode) {
  RecordProperty("proves", "DDP-8.3-06");
  struct Access {
    std::uint32_t pd;
    std::vector<std::uint32_t> streams;
    bool valid;
    const char* code;
  };
  for (const Access& access :
       {Access{9, {}, true, "1/1/02"}, Access{7, {2}, true, "1/1/02"}, Access{7, {}, false, "1/1/00"}}) {
    Victim v;
    v.memory.add(kStag, {access.pd, access.streams, 0, true, true, access.valid, Octets(64)});
    v.feed(tagged({.rsvd_ulp = kWriteControl, .stag = {kStag}, .to = 16}, ramp(4)));
    v.ulpdus();
    v.stream.on_rx_eof(v.now);
    v.drain();
    ASSERT_EQ(v.closed.size(), 1u);
    EXPECT_NE(v.closed[0].text.find("0x5d6e7f02"), std::string::npos) << v.closed[0].text;
    EXPECT_NE(v.closed[0].text.find(access.code), std::string::npos) << v.closed[0].text;
  }
}

TEST(DdpSink, RightsAreGrantedAndRevokedForEachStag) {
  RecordProperty("proves", "DDP-8.3.1-05 DDP-8.3-02");
  enum { kWrite, kRead };
  const auto attempt = [](bool may_read, bool may_write, int op, bool valid = true) {
    Victim v;
    v.memory.add(kStag, {7, {}, 0, may_read, may_write, valid, Octets(64, 0xa5)});
    if (op == kWrite) {
      v.feed(tagged({.rsvd_ulp = kWriteControl, .stag = {kStag}}, ramp(4)));
      const bool written = v.memory.regions[kStag].octets != Octets(64, 0xa5);
      return written ? std::pair{0, 0} : answered(v);
    }
    v.feed(untagged({.rsvd_ulp = kReadRequestControl, .qn = 1},
                    rdmap::emit_read_request_header({ddp::Stag{9}, 0, 16, ddp::Stag{kStag}, 0})));
    const auto sent = v.ulpdus();
    if (sent.size() == 1 && sent[0][1] == kReadResponseControl) return std::pair{0, 0};
    return sent.size() == 1 && is_terminate(sent[0]) ? std::pair{int{sent[0][18]}, int{sent[0][19]}}
                                                     : std::pair{-1, -1};
  };
  const auto kOk = std::pair{0, 0};
  const auto kInvalid = std::pair{0x11, 0x00};
  const auto kRefusedRead = std::pair{0x01, 0x02};
  EXPECT_EQ(attempt(true, true, kWrite), kOk);
  EXPECT_EQ(attempt(true, true, kRead), kOk);
  EXPECT_EQ(attempt(true, false, kWrite), kInvalid);
  EXPECT_EQ(attempt(true, false, kRead), kOk);
  EXPECT_EQ(attempt(false, true, kWrite), kOk);
  EXPECT_EQ(attempt(false, true, kRead), kRefusedRead);
  EXPECT_EQ(attempt(true, true, kWrite, false), kInvalid);
  EXPECT_EQ(attempt(true, true, kRead, false), (std::pair{0x01, 0x00}));
}

TEST(DdpSink, AnStagTakenBackBetweenTwoWritesRefusesTheSecond) {
  RecordProperty("proves", "DDP-8.3-01 DDP-8.3-02");
  for (const bool shrunk : {true, false}) {
    Victim v;
    v.memory.add_simple(kStag, 7, 0, 64);
    const Octets write = tagged({.rsvd_ulp = kWriteControl, .stag = {kStag}, .to = 40}, ramp(16, 1));
    v.feed(write);
    EXPECT_EQ(v.memory.regions[kStag].octets[40], 1);
    EXPECT_TRUE(v.ulpdus().empty());
    if (shrunk) {
      v.memory.add_simple(kStag, 7, 0, 55);  // one octet less than the Write needs
    } else {
      v.memory.regions[kStag].valid = false;
    }
    const Octets before = v.memory.regions[kStag].octets;
    v.feed(write);
    EXPECT_EQ(v.memory.regions[kStag].octets, before);
    EXPECT_EQ(answered(v), (std::pair{0x11, shrunk ? 0x01 : 0x00}));
  }
}

TEST(DdpSink, ErrorTypesBeyondTheAssignedOnesAreUnderstoodButNeverSent) {
  RecordProperty("proves", "DDP-7.2-14");
  for (int type = 0; type < 3; ++type) {
    for (int code = 0; code < 256; ++code) {
      const auto what = rdmap::to_terminate(static_cast<ddp::Error>(type << 8 | code));
      EXPECT_EQ(what, (rdmap::Terminate{rdmap::Layer::kDdp, static_cast<std::uint8_t>(type),
                                        static_cast<std::uint8_t>(code)}));
    }
  }
  for (std::uint8_t type = 3; type < 16; ++type) {
    Victim v;
    v.recvs.post(1);
    v.feed(untagged({.rsvd_ulp = kTerminateControl, .qn = 2}, Octets{static_cast<std::uint8_t>(0x10 | type), 0, 0, 0}));
    EXPECT_TRUE(v.ulpdus().empty());
    v.stream.on_rx_eof(v.now);
    v.drain();
    ASSERT_EQ(v.closed.size(), 1u);
    EXPECT_EQ(v.closed[0].reason, CloseReason::kTerminateReceived);
    EXPECT_EQ(v.closed[0].terminate, (rdmap::Terminate{rdmap::Layer::kDdp, type, 0}));
    EXPECT_NE(v.closed[0].text.find("1/" + std::to_string(type)), std::string::npos) << v.closed[0].text;
  }
}

}  // namespace
}  // namespace weft::conformance
