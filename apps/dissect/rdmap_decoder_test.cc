// Segments of a message: their order, and what is said of a message whose segments are not in it.
#include "apps/dissect/rdmap_decoder.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "apps/dissect/testing/rpc.h"
#include "rdmap/atomic.h"

namespace weft::apps::dissect {
namespace {

using rdmap::Opcode;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::Octets;
using testing::pattern;
using testing::tagged;
using testing::Talk;
using testing::untagged;
using testing::Wire;

void send(Talk& talk, Wire::End from, const Octets& ulpdu) {
  talk.wire.send(from, talk.wire.fpdu(from, ulpdu), 60000);
}

Octets part(const Octets& octets, std::size_t at, std::size_t len) {
  return {octets.begin() + static_cast<std::ptrdiff_t>(at), octets.begin() + static_cast<std::ptrdiff_t>(at + len)};
}

// RFC 5041 section 5.3 asks for the order of the MOs, and lets the receiver place segments in any.
TEST(RdmapDecoder, SegmentsInAnotherOrderArePutTogether) {
  Talk talk;
  talk.wire.open();
  rpcrdma::v1::Header header;
  header.xid = 1;
  header.credit = 1;
  const Octets call = testing::message(header, testing::rpc_call(1, 6, testing::read_args()));
  const std::size_t third = call.size() / 3;
  send(talk, Wire::kClient,
       untagged(Opcode::kSend, 1, part(call, third, third), static_cast<std::uint32_t>(third), false));
  send(talk, Wire::kClient, untagged(Opcode::kSend, 1, part(call, 0, third), 0, false));
  send(talk, Wire::kClient,
       untagged(Opcode::kSend, 1, part(call, 2 * third, call.size() - 2 * third),
                static_cast<std::uint32_t>(2 * third)));
  send(talk, Wire::kClient, untagged(Opcode::kSend, 2, pattern(8)));
  EXPECT_THAT(talk.told.findings, Contains("DDP-5.3-02").Times(1));
  EXPECT_THAT(talk.told.findings, Not(Contains(HasSubstr("DDP-7.1"))));
  EXPECT_THAT(talk.told.lines, Contains(HasSubstr("in 3 segments")));
  EXPECT_THAT(talk.told.lines, Contains(HasSubstr("CALL NFSv3 READ fh")));
}

// A Write may have its segments in any order; octets between them are missing.
TEST(RdmapDecoder, SegmentsOfAWriteAreBesideEachOther) {
  struct Case {
    std::uint64_t second, third;
    bool is_fault;
  };
  for (const Case& one : {Case{108, 116, false}, Case{116, 108, false}, Case{108, 117, true}, Case{107, 115, true}}) {
    Talk talk;
    talk.wire.open();
    send(talk, Wire::kClient, untagged(Opcode::kSend, 1, pattern(8)));
    send(talk, Wire::kServer, tagged(Opcode::kWrite, 5, 100, pattern(8), false));
    send(talk, Wire::kServer, tagged(Opcode::kWrite, 5, one.second, pattern(8), false));
    send(talk, Wire::kServer, tagged(Opcode::kWrite, 5, one.third, pattern(8)));
    send(talk, Wire::kServer, tagged(Opcode::kWrite, 5, 4000, pattern(8)));
    if (one.is_fault) {
      EXPECT_THAT(talk.told.findings, ElementsAre("DDP-5.2-09")) << one.second;
    } else {
      EXPECT_THAT(talk.told.findings, IsEmpty()) << one.second;
    }
  }
}

TEST(RdmapDecoder, AMessageWithoutOctetsHasOneSegment) {
  Talk talk;
  talk.wire.open();
  send(talk, Wire::kClient, untagged(Opcode::kSend, 1, {}));
  send(talk, Wire::kServer, tagged(Opcode::kWrite, 5, 100, {}));
  EXPECT_THAT(talk.told.findings, IsEmpty());
  send(talk, Wire::kClient, untagged(Opcode::kSend, 2, {}, 0, false));
  send(talk, Wire::kClient, untagged(Opcode::kSend, 2, {}));
  EXPECT_THAT(talk.told.findings, ElementsAre("DDP-5.2-11"));
  send(talk, Wire::kServer, tagged(Opcode::kWrite, 5, 100, {}, false));
  send(talk, Wire::kServer, tagged(Opcode::kWrite, 5, 100, {}));
  EXPECT_THAT(talk.told.findings, ElementsAre("DDP-5.2-11", "DDP-5.2-11"));
}

// The capture has the headers alone.
TEST(RdmapDecoder, AMessageOf4GibIsNamed) {
  Talk talk;
  talk.wire.open();
  send(talk, Wire::kClient, untagged(Opcode::kSend, 1, pattern(8)));
  constexpr std::uint64_t kLen = 1 << 15, kNum = (std::uint64_t{1} << 32) / kLen;
  constexpr std::size_t kCrcLen = 4, kUlpduLen = ddp::kTaggedHeaderLen + kLen;
  for (std::uint64_t i = 0; i < kNum; ++i) {
    ASSERT_TRUE(talk.told.findings.empty());
    Octets front = {kUlpduLen >> 8, kUlpduLen & 0xff};
    const Octets header = tagged(Opcode::kWrite, 5, i * kLen, pattern(8), false);
    front.insert(front.end(), header.begin(), header.end());
    TcpSegment segment = talk.wire.segment(Wire::kServer, front);
    segment.payload_len = 2 + kUlpduLen + kCrcLen;
    talk.dissector.on_segment(segment);
    talk.wire.seq[Wire::kServer] += static_cast<std::uint32_t>(segment.payload_len);
  }
  EXPECT_THAT(talk.told.findings, ElementsAre("DDP-5.2-02"));
}

TEST(RdmapDecoder, SegmentsThatAreNotBesideEachOtherAreNamed) {
  for (const std::uint32_t mo : {0u, 7u, 9u, 2000000u, 0xfffffff8u}) {
    Talk talk;
    talk.wire.open();
    send(talk, Wire::kClient, untagged(Opcode::kSend, 1, pattern(8), 0, false));
    send(talk, Wire::kClient, untagged(Opcode::kSend, 1, pattern(8), mo));
    EXPECT_THAT(talk.told.findings, ElementsAre("DDP-7.1-07")) << mo;
  }
}

// Octets that the CRC does not cover may be any.
TEST(RdmapDecoder, AnFpduWithABadCrcProvesNothing) {
  Talk talk;
  talk.wire.open();
  Octets damaged = talk.wire.fpdu(Wire::kClient, untagged(Opcode::kSend, 1, pattern(8)));
  constexpr std::size_t kQueueAt = 9;
  damaged[kQueueAt] ^= 0x10;
  talk.wire.send(Wire::kClient, damaged);
  EXPECT_THAT(talk.told.findings, ElementsAre("MPA-4.4-20"));
  EXPECT_THAT(talk.told.lines, Contains(HasSubstr("Send by its header, of 8 bytes")));
  send(talk, Wire::kClient, untagged(Opcode::kSend, 2, pattern(8)));
  EXPECT_THAT(talk.told.findings, ElementsAre("MPA-4.4-20"));
  EXPECT_THAT(talk.told.unjudged, ElementsAre("the CRC of an FPDU does not fit"));
}

// One sender that computes no CRC has one fault.
TEST(RdmapDecoder, ManyBadCrcsInARowAreNamedOnce) {
  Talk talk;
  talk.wire.open();
  const auto send_damaged = [&talk](std::uint32_t msn) {
    Octets damaged = talk.wire.fpdu(Wire::kClient, untagged(Opcode::kSend, msn, pattern(8)));
    damaged.back() ^= 1;
    talk.wire.send(Wire::kClient, damaged);
  };
  send_damaged(1);
  send_damaged(2);
  EXPECT_THAT(talk.told.findings, ElementsAre("MPA-4.4-20"));
  send(talk, Wire::kClient, untagged(Opcode::kSend, 3, pattern(8)));
  send_damaged(4);
  EXPECT_THAT(talk.told.findings, ElementsAre("MPA-4.4-20", "MPA-4.4-20"));
}

// A flipped bit of ULPDU_Length hides where the next FPDU begins. It is found again, even inside the octets of this
// one.
TEST(RdmapDecoder, GoesOnBehindAWrongLength) {
  constexpr int kBits = 16;
  for (int bit = 0; bit < kBits; ++bit) {
    Talk talk;
    talk.wire.open();
    Octets stream;
    for (std::uint32_t msn = 1; msn <= 60; ++msn) {
      Octets fpdu = talk.wire.fpdu(Wire::kClient, untagged(Opcode::kSend, msn, pattern(1406)));
      if (msn == 2) fpdu[static_cast<std::size_t>(1 - bit / 8)] ^= static_cast<std::uint8_t>(1 << bit % 8);
      stream.insert(stream.end(), fpdu.begin(), fpdu.end());
    }
    talk.wire.send(Wire::kClient, stream, 60000);
    talk.dissector.finish();
    EXPECT_THAT(talk.told.findings, ElementsAre("MPA-4.4-20")) << "bit " << bit;
    for (const std::uint32_t msn : {3u, 59u}) {
      EXPECT_THAT(talk.told.lines, Contains(HasSubstr(fmt::format("Send, MSN {},", msn)))) << "bit " << bit;
    }
  }
}

// A Response at the wrong place is one fault, however many segments it has.
TEST(RdmapDecoder, AReadResponseAtAWrongPlaceIsNamedOnce) {
  Talk talk;
  talk.wire.open();
  send(talk, Wire::kClient, untagged(Opcode::kSend, 1, pattern(8)));
  talk.read(7, 0, 300, 9);
  for (const std::uint64_t to : {0u, 100u, 200u}) {
    send(talk, Wire::kClient, tagged(Opcode::kReadResponse, 8, to, pattern(100), to == 200));
  }
  EXPECT_THAT(talk.told.findings, ElementsAre("RDMAP-5.2.2-08"));
  talk.read(7, 0, 100, 9);
  send(talk, Wire::kClient, tagged(Opcode::kReadResponse, 8, 0, pattern(100)));
  EXPECT_THAT(talk.told.findings, ElementsAre("RDMAP-5.2.2-08", "RDMAP-5.2.2-08"));
}

TEST(RdmapDecoder, AReadResponseInAnotherOrderIsOfItsRequest) {
  Talk talk;
  talk.wire.open();
  send(talk, Wire::kClient, untagged(Opcode::kSend, 1, pattern(8)));
  talk.read(7, 0, 300, 9);
  send(talk, Wire::kClient, tagged(Opcode::kReadResponse, 9, 100, pattern(100), false));
  send(talk, Wire::kClient, tagged(Opcode::kReadResponse, 9, 0, pattern(100), false));
  send(talk, Wire::kClient, tagged(Opcode::kReadResponse, 9, 200, pattern(100)));
  EXPECT_THAT(talk.told.findings, ElementsAre("DDP-5.3-02"));
  talk.told.findings.clear();
  talk.read(7, 0, 300, 9);
  send(talk, Wire::kClient, tagged(Opcode::kReadResponse, 9, 201, pattern(100)));
  EXPECT_THAT(talk.told.findings, ElementsAre("RDMAP-5.2.2-08"));
}

TEST(RdmapDecoder, ASegmentOfAnotherStagOrRsvdUlpIsNamed) {
  Talk talk;
  talk.wire.open();
  send(talk, Wire::kClient, tagged(Opcode::kWrite, 1, 0, pattern(8), false));
  send(talk, Wire::kClient, tagged(Opcode::kWrite, 2, 8, pattern(8)));
  send(talk, Wire::kClient, tagged(Opcode::kWrite, 3, 8, pattern(8)));
  EXPECT_THAT(talk.told.findings, ElementsAre("DDP-4.2-08"));
  talk.told.findings.clear();
  send(talk, Wire::kClient, untagged(Opcode::kSendInvalidate, 1, pattern(8), 0, false));
  Octets other = untagged(Opcode::kSendInvalidate, 1, pattern(8), 8);
  other[2] = 1;
  send(talk, Wire::kClient, other);
  EXPECT_THAT(talk.told.findings, ElementsAre("DDP-4.3-05"));
}

// The end of a message is missing, and the next message begins at that place.
TEST(RdmapDecoder, NoTaggedMessageGoesOnBehindAGap) {
  Talk talk;
  talk.wire.open();
  send(talk, Wire::kClient, tagged(Opcode::kWrite, 1, 0, pattern(8), false));
  talk.wire.lose(Wire::kClient, talk.wire.fpdu(Wire::kClient, tagged(Opcode::kWrite, 1, 8, pattern(8))));
  talk.wire.on_segment(talk.wire.segment(Wire::kServer, {}));
  send(talk, Wire::kClient, tagged(Opcode::kWrite, 1, 8, pattern(8)));
  talk.dissector.finish();
  EXPECT_THAT(talk.told.lines, Contains(HasSubstr("STag 0x00000001, TO 0x8, 8 bytes")));
  EXPECT_THAT(talk.told.findings, IsEmpty());
}

TEST(RdmapDecoder, AUlpduAboveTheLargestOfMpaIsNamed) {
  Talk talk;
  talk.wire.open();
  send(talk, Wire::kClient, tagged(Opcode::kWrite, 1, 0, pattern(64768 - 14)));
  EXPECT_THAT(talk.told.findings, IsEmpty());
  send(talk, Wire::kClient, tagged(Opcode::kWrite, 1, 0, pattern(64769 - 14)));
  EXPECT_THAT(talk.told.findings, ElementsAre("MPA-3-05"));
}

TEST(RdmapDecoder, AnAtomicAtAnOddPlaceIsNamed) {
  for (std::uint8_t operation = 0; operation < 3; ++operation) {
    Talk talk;
    talk.wire.open();
    Octets request(52);
    request[3] = operation;
    request[19] = 12;  // the TO
    send(talk, Wire::kClient, untagged(Opcode::kAtomicRequest, 1, request));
    const bool is_add = operation == static_cast<std::uint8_t>(rdmap::AtomicOp::kFetchAdd);
    EXPECT_THAT(talk.told.findings, Contains(!rdmap::is_atomic_op(operation) ? "EXT-5.2.1-13"
                                             : is_add                        ? "EXT-5.1.1-04"
                                                                             : "EXT-5.1.2-04"));
  }
}

// ---- messages that are not whole yet

// Sends: what the layer above hears of them.
struct Sends final : UpperLayer {
  std::vector<std::pair<std::size_t, std::size_t>> sends;  // the octets that are there, and those that it had
  void on_send(const Send& send, Frame&) override { sends.emplace_back(send.octets.size(), send.len); }
  void on_gap(Side) override {}
  void on_resumed(Side, std::optional<std::uint32_t>) override {}
  void on_overtaken(Side) override {}
  void on_caught_up(Side) override {}
  void on_written(Side, std::uint32_t, std::uint64_t, std::uint64_t) override {}
  void on_transfer(const Transfer&, Frame&, LayerWriter&) override {}
};
struct HeldMessagesTest : ::testing::Test {
  // The findings of this segment.
  std::size_t num_findings(RdmapDecoder& decoder, std::uint32_t mo, std::size_t len, bool last) {
    const Octets ulpdu = untagged(Opcode::kSend, 1, pattern(len), mo, last);
    Frame frame;
    decoder.on_fpdu(Side::kClient, {.ulpdu = ulpdu, .ulpdu_len = ulpdu.size()}, frame);
    return frame.findings.size();
  }
  Options options;
  Sends upper;
  HeldMessages held;
  HeldEntries entries;
};

TEST_F(HeldMessagesTest, AMessageThatHasNoRoomIsCut) {
  constexpr std::size_t kOthers = HeldMessages::kMax - 1000;
  held.now = kOthers;
  RdmapDecoder decoder(options, upper, held, entries);
  EXPECT_EQ(num_findings(decoder, 0, 600, false), 0u);
  EXPECT_EQ(num_findings(decoder, 600, 600, false), 0u);
  EXPECT_EQ(num_findings(decoder, 1200, 10, true), 0u);
  EXPECT_THAT(upper.sends, ElementsAre(std::pair(600u, 1210u)));
  EXPECT_EQ(held.now, kOthers);
}

TEST_F(HeldMessagesTest, AMessageIsCutAtItsBound) {
  constexpr std::uint32_t kSegment = 60000, kNum = 20;
  RdmapDecoder decoder(options, upper, held, entries);
  for (std::uint32_t i = 0; i < kNum; ++i) {
    EXPECT_EQ(num_findings(decoder, i * kSegment, kSegment, i + 1 == kNum), 0u);
    EXPECT_LE(held.now, 2 * UntaggedQueue::kMaxMessage);
  }
  EXPECT_THAT(upper.sends, ElementsAre(std::pair(UntaggedQueue::kMaxMessage, std::size_t{kNum * kSegment})));
  EXPECT_EQ(held.now, 0u);
}

TEST_F(HeldMessagesTest, HolesTakeLittleMemory) {
  {
    RdmapDecoder decoder(options, upper, held, entries);
    for (std::uint32_t i = 0; i < 16; ++i) EXPECT_EQ(num_findings(decoder, i * 65000, 10, false), 0u);
    EXPECT_GT(held.now, 0u);
    EXPECT_LE(held.now, 2 * UntaggedQueue::kMaxHoles);
  }
  EXPECT_EQ(held.now, 0u);
}

// ---- what is remembered of all connections together

TEST(HeldEntries, StagsBeyondTheBoundAreUnknown) {
  HeldEntries held{.now = HeldEntries::kMax - 2};
  {
    SentStags stags(held);
    for (const std::uint32_t stag : {7u, 8u, 7u}) stags.on_sent({stag});
    EXPECT_TRUE(stags.may_have_sent({8}));
    EXPECT_FALSE(stags.may_have_sent({9}));
    EXPECT_EQ(held.now, HeldEntries::kMax);
    stags.on_sent({10});
    EXPECT_TRUE(stags.may_have_sent({9}));
    EXPECT_EQ(held.now, HeldEntries::kMax - 2);
  }
  EXPECT_EQ(held.now, HeldEntries::kMax - 2);
}

TEST(HeldEntries, ReadsBeyondTheBoundAreForgotten) {
  HeldEntries held{.now = HeldEntries::kMax - 2};
  {
    PendingReads reads(held);
    reads.add({1, 0}, {.stag = 11}, false);
    reads.add({2, 0}, {.stag = 12}, false);
    EXPECT_EQ(held.now, HeldEntries::kMax);
    reads.add({3, 0}, {.stag = 13}, false);
    EXPECT_FALSE(reads.take({1, 0}));
    EXPECT_EQ(reads.take({3, 0})->stag, 13u);
  }
  EXPECT_EQ(held.now, HeldEntries::kMax - 2);
}

TEST(HeldEntries, PartsWithoutRoomAreCut) {
  HeldMessages held{.now = HeldMessages::kMax - 1000};
  {
    MessageParts parts(held);
    const TransportHeader header{{.xid = 1, .is_middle = true}};
    parts.take(header, pattern(600));
    parts.take(header, pattern(600));
    const MessageParts::Joined joined = parts.join(pattern(10));
    EXPECT_EQ(joined.octets, pattern(600));
    EXPECT_EQ(joined.len, 1210u);
    EXPECT_EQ(held.now, HeldMessages::kMax - 1000);
    parts.take(header, pattern(600));
  }
  EXPECT_EQ(held.now, HeldMessages::kMax - 1000);
}

// RFC 5040 section 7.1: the header in a Terminate is that of a segment that came.
TEST(RdmapDecoder, ATerminateNamesASegmentThatWasSent) {
  const auto findings_about = [](const Octets& header) {
    Talk talk;
    talk.wire.open();
    send(talk, Wire::kClient, tagged(Opcode::kWrite, 7, 100, pattern(8)));
    send(talk, Wire::kClient, tagged(Opcode::kSend, 9, 100, pattern(8)));  // a tagged segment that no receiver takes
    Octets body{0x11, 0x00, 0xc0, 0};                                      // DDP, tagged buffer, invalid STag; M and D
    body.insert(body.end(), {0, static_cast<std::uint8_t>(header.size() + 8)});
    body.insert(body.end(), header.begin(), header.end());
    send(talk, Wire::kServer, untagged(Opcode::kTerminate, 1, body));
    return talk.told.findings;
  };
  EXPECT_THAT(findings_about(tagged(Opcode::kWrite, 7, 100, {})), Not(Contains("RDMAP-7.1-03")));
  EXPECT_THAT(findings_about(tagged(Opcode::kSend, 9, 100, {})), Not(Contains("RDMAP-7.1-03")));
  EXPECT_THAT(findings_about(tagged(Opcode::kWrite, 8, 100, {})), Contains("RDMAP-7.1-03"));
}

// Two segments overlap by as many octets as another one leaves out: the sums are right.
TEST(RdmapDecoder, AnOverlapHidesNoHole) {
  for (const bool has_hole : {false, true}) {
    const std::array<std::uint32_t, 3> places =
        has_hole ? std::array{0u, 4u, 16u} : std::array{0u, 16u, 8u};  // of 8 octets each
    Talk talk;
    talk.wire.open();
    for (const std::uint32_t at : places) {
      send(talk, Wire::kClient, tagged(Opcode::kWrite, 7, 100 + at, pattern(8), at == places.back()));
    }
    for (const std::uint32_t at : places) {
      send(talk, Wire::kClient, untagged(Opcode::kSend, 1, pattern(8), at, at == places.back()));
    }
    if (has_hole) {
      EXPECT_THAT(talk.told.findings, ElementsAre("DDP-5.2-09", "DDP-7.1-07"));
    } else {
      EXPECT_THAT(talk.told.findings, ElementsAre("DDP-5.3-02"));
    }
  }
}

TEST(RdmapDecoder, AnOverlapHidesNoHoleAtTheFront) {
  Talk talk;
  talk.wire.open();
  send(talk, Wire::kClient, untagged(Opcode::kSend, 1, pattern(8), 8, false));
  send(talk, Wire::kClient, untagged(Opcode::kSend, 1, pattern(8), 8, true));
  EXPECT_THAT(talk.told.findings, ElementsAre("DDP-7.1-07"));
}

// A receiver may refuse a segment by its headers, before the last TCP segment of its FPDU has come.
TEST(RdmapDecoder, ATerminateMayComeInsideTheFpduThatItBlames) {
  for (const bool comes_first : {false, true}) {
    Talk talk;
    talk.wire.open();
    send(talk, Wire::kClient, tagged(Opcode::kWrite, 7, 100, pattern(8)));
    const Octets blamed = talk.wire.fpdu(Wire::kClient, tagged(Opcode::kWrite, 8, 100, pattern(3000)));
    if (!comes_first) talk.wire.send(Wire::kClient, part(blamed, 0, 1400));
    Octets body{0x11, 0x00, 0xc0, 0, 0, 0};
    const Octets header = tagged(Opcode::kWrite, 8, 100, {});
    body.insert(body.end(), header.begin(), header.end());
    send(talk, Wire::kServer, untagged(Opcode::kTerminate, 1, body));
    if (!comes_first) talk.wire.send(Wire::kClient, part(blamed, 1400, blamed.size() - 1400));
    EXPECT_EQ(std::ranges::count(talk.told.findings, "RDMAP-7.1-03"), comes_first ? 1 : 0);
  }
}

TEST(RdmapDecoder, BitsThatAreSentAsZeroAreNamed) {
  Talk talk;
  talk.wire.open();
  Octets of_ddp = tagged(Opcode::kWrite, 1, 0, pattern(8)), of_rdmap = untagged(Opcode::kSend, 1, pattern(8));
  of_ddp[0] |= 0x20;
  of_rdmap[1] |= 0x10;
  send(talk, Wire::kClient, of_ddp);
  send(talk, Wire::kClient, of_rdmap);
  EXPECT_THAT(talk.told.findings, ElementsAre("DDP-4.1-10", "RDMAP-4.1-09"));
}

TEST(RdmapDecoder, ItSaysThatItRemembersNoMoreRequests) {
  Talk talk;
  talk.wire.open();
  const auto request = [&talk](std::uint32_t msn) {
    send(talk, Wire::kServer, untagged(Opcode::kReadRequest, msn, Octets(28)));
  };
  for (std::uint32_t msn = 1; msn <= StreamRules::kMaxOutstanding; ++msn) request(msn);
  EXPECT_THAT(talk.told.unjudged, IsEmpty());
  request(StreamRules::kMaxOutstanding + 1);
  EXPECT_THAT(talk.told.unjudged, ElementsAre("more RDMA Reads and Atomics are under way than are remembered"));
}

// RFC 6581 section 9.2: the Reply names an RDMA Write, so a Send cannot come first.
TEST(RdmapDecoder, AMissingReadyToReceiveIsNamed) {
  const auto first = [](const Octets& ulpdu) {
    Talk talk;
    talk.wire.syn(Wire::kClient);
    talk.wire.syn(Wire::kServer);
    for (const auto kind : {mpa::FrameKind::kRequest, mpa::FrameKind::kReply}) {
      Octets octets;
      mpa::StartupFrame frame{.kind = kind, .c = true, .s = true, .rev = 2, .private_data = {}};
      mpa::emit_enhanced_words({.a = true, .c = true, .ird = 4, .ord = 4}, frame.private_data);
      mpa::emit_startup_frame(frame, octets);
      talk.wire.send(kind == mpa::FrameKind::kRequest ? Wire::kClient : Wire::kServer, octets);
    }
    send(talk, Wire::kClient, ulpdu);
    send(talk, Wire::kClient, untagged(Opcode::kSend, 1, pattern(8)));
    return talk.told.findings;
  };
  EXPECT_THAT(first(tagged(Opcode::kWrite, 0, 0, {})), IsEmpty());
  EXPECT_THAT(first(tagged(Opcode::kWrite, 0, 0, pattern(1))), ElementsAre("MPA2-9.2-09"));
  EXPECT_THAT(first(untagged(Opcode::kReadRequest, 1, Octets(28))), ElementsAre("MPA2-9.2-09"));
  EXPECT_THAT(first(untagged(Opcode::kTerminate, 1, {0x20, 0x07, 0, 0})), ::testing::Not(Contains("MPA2-9.2-09")));
}

// ---- the requests that are remembered

struct NoUpperLayer final : UpperLayer {
  void on_send(const Send&, Frame&) override {}
  void on_gap(Side) override {}
  void on_resumed(Side, std::optional<std::uint32_t>) override {}
  void on_overtaken(Side) override {}
  void on_caught_up(Side) override {}
  void on_written(Side, std::uint32_t, std::uint64_t, std::uint64_t) override {}
  void on_transfer(const Transfer&, Frame&, LayerWriter&) override {}
};

// A client that reads memory of the server, as a RdmapDecoder alone sees it.
struct Reader {
  explicit Reader(std::size_t held) : entries{.now = held} {
    for (const Side side : {Side::kClient, Side::kServer}) {
      decoder.on_startup_frame(side);
      RdmapDecoder::Start start;
      start.is_responder = side == Side::kServer;
      decoder.on_start(side, start);
    }
  }
  void take(Side from, const Octets& ulpdu) {
    Frame frame;
    frame.from = from;
    frame.ulpdu = ulpdu;
    decoder.on_fpdu(from, {.ulpdu = ulpdu, .ulpdu_len = ulpdu.size(), .crc = CrcVerdict::kGood}, frame);
  }
  void read(std::uint32_t msn) {
    const auto request = rdmap::emit_read_request_header({.sink_stag = {1}, .size = 8, .src_stag = {2}});
    take(Side::kClient, untagged(Opcode::kReadRequest, msn, {request.begin(), request.end()}));
  }
  void compare(std::uint32_t msn) {
    const auto request = rdmap::emit_atomic_request_header({.request_id = msn, .stag = {2}, .operands = {}});
    take(Side::kClient, untagged(Opcode::kAtomicRequest, msn, {request.begin(), request.end()}));
  }

  Options options;
  NoUpperLayer upper;
  HeldMessages messages;
  HeldEntries entries;
  RdmapDecoder decoder{options, upper, messages, entries};
};

TEST(HeldEntries, ReadsAndAtomicsUnderWayCount) {
  Reader reader(0);
  for (const std::uint32_t msn : {1u, 2u, 3u}) reader.read(msn);
  EXPECT_EQ(reader.entries.now, 4u);  // with one for the client's last segments
  reader.compare(4);
  EXPECT_EQ(reader.entries.now, 5u);
  reader.take(Side::kServer, tagged(Opcode::kReadResponse, 1, 0, pattern(8)));
  EXPECT_EQ(reader.entries.now, 6u);  // three requests, an STag of the server, and the last segments of both
  const auto response = rdmap::emit_atomic_response_header({.request_id = 4});
  reader.take(Side::kServer, untagged(Opcode::kAtomicResponse, 1, {response.begin(), response.end()}));
  EXPECT_EQ(reader.entries.now, 5u);
  reader.decoder.on_disorder("a test");
  EXPECT_EQ(reader.entries.now, 3u);
}
TEST(HeldEntries, ReadsBeyondTheBoundEndTheRulesAboutBothSides) {
  Reader reader(HeldEntries::kMax - 1);
  reader.read(1);
  EXPECT_THAT(reader.decoder.why_unjudged(), IsEmpty());
  reader.read(2);
  EXPECT_EQ(reader.decoder.why_unjudged(), "more RDMA Reads and Atomics are under way than are remembered");
  EXPECT_EQ(reader.entries.now, HeldEntries::kMax - 1);
}

}  // namespace
}  // namespace weft::apps::dissect
