// What a dissector finds wrong in MPA, DDP and RDMAP, and what it must not find.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>

#include "apps/dissect/testing/dissector.h"
#include "apps/dissect/testing/wire.h"
#include "mpa/crc32c.h"
#include "mpa/fpdu.h"

namespace weft::apps::dissect {
namespace {

using rdmap::Opcode;
using ::testing::Contains;
using testing::DissectorTest;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Octets;
using testing::pattern;
using testing::tagged;
using testing::Told;
using testing::untagged;
using testing::Wire;

struct Violation {
  const char* requirement;
  Octets ulpdu;
};

TEST_F(DissectorTest, NamesEachViolation) {
  Octets wrong_dv = untagged(Opcode::kSend, 1, pattern(8));
  wrong_dv[0] = 0x42;
  Octets wrong_rv = untagged(Opcode::kSend, 1, pattern(8));
  wrong_rv[1] = 0x83;
  Octets reserved = untagged(Opcode::kSend, 1, pattern(8));
  reserved[1] = 0x4d;
  Octets wrong_queue = untagged(Opcode::kSend, 1, pattern(8));
  wrong_queue[9] = 1;
  Octets no_queue = untagged(Opcode::kSend, 1, pattern(8));
  no_queue[9] = 9;
  Octets tagged_send = tagged(Opcode::kSend, 1, 0, pattern(8));
  const Violation violations[] = {
      {"DDP-7.2-13", wrong_dv},    {"RDMAP-7.2-03", wrong_rv},
      {"RDMAP-7.2-02", reserved},  {"RDMAP-7.2-02", wrong_queue},
      {"DDP-7.1-01", no_queue},    {"RDMAP-7.2-02", tagged_send},
      {"DDP-4.4-01", pattern(10)}, {"RDMAP-4.4-01", untagged(Opcode::kReadRequest, 1, pattern(27))},
  };
  for (const Violation& violation : violations) {
    Told one;
    Dissector of_one({}, one);
    Wire wire(of_one);
    wire.open();
    wire.send(Wire::kClient, wire.fpdu(Wire::kClient, violation.ulpdu));
    of_one.finish();
    EXPECT_THAT(one.findings, Contains(violation.requirement));
  }
}

TEST_F(DissectorTest, NamesWhatIsOutOfOrder) {
  Wire wire(dissector);
  wire.open();
  wire.send(Wire::kClient, wire.fpdu(Wire::kClient, untagged(Opcode::kSend, 1, pattern(8))));
  wire.send(Wire::kClient, wire.fpdu(Wire::kClient, untagged(Opcode::kSend, 3, pattern(8))));
  wire.send(Wire::kClient, wire.fpdu(Wire::kClient, untagged(Opcode::kSend, 4, pattern(8), 0, false)));
  wire.send(Wire::kClient, wire.fpdu(Wire::kClient, untagged(Opcode::kSend, 4, pattern(8), 9)));
  Octets bad_crc = wire.fpdu(Wire::kClient, untagged(Opcode::kSend, 5, pattern(8)));
  bad_crc.back() ^= 1;
  wire.send(Wire::kClient, bad_crc);
  dissector.finish();
  EXPECT_THAT(told.findings, ElementsAre("DDP-7.1-09", "DDP-7.1-07", "MPA-4.4-20"));
}

// Linux siw may count a payload twice. The octets are good, and the finding says so.
TEST_F(DissectorTest, ACrcOverAPayloadThatCountsTwiceIsNamed) {
  for (const bool is_twice : {false, true}) {
    Told one;
    Dissector of_one({}, one);
    Wire wire(of_one);
    wire.open();
    wire.send(Wire::kClient, wire.fpdu(Wire::kClient, untagged(Opcode::kSend, 1, pattern(8))));
    constexpr std::size_t kHeaderLen = mpa::kUlpduLengthLen + ddp::kTaggedHeaderLen;
    Octets fpdu = wire.fpdu(Wire::kServer, testing::tagged(Opcode::kWrite, 5, 100, pattern(1001)));
    fpdu.resize(fpdu.size() - mpa::kCrcLen);
    mpa::Crc32c crc;
    crc.update(fpdu);
    crc.update(ConstBytes(fpdu).subspan(kHeaderLen + (is_twice ? 0 : 1)));
    fpdu.resize(fpdu.size() + mpa::kCrcLen);
    mpa::emit_crc(std::span(fpdu).last<mpa::kCrcLen>(), crc.value());
    wire.send(Wire::kServer, fpdu);
    of_one.finish();
    ASSERT_THAT(one.findings, ElementsAre("MPA-4.4-20"));
    EXPECT_EQ(one.whats.front().find("payload counts twice") != std::string::npos, is_twice);
  }
}

// The capture may have the Reply first. Its acknowledgment tells whether the Request had come.
TEST_F(DissectorTest, AReplyDoesNotComeBeforeItsRequest) {
  for (const bool is_acknowledged : {false, true}) {
    Told one;
    Dissector of_one({}, one);
    Wire wire(of_one);
    const Octets request = testing::startup(mpa::FrameKind::kRequest), reply = testing::startup(mpa::FrameKind::kReply);
    wire.syn(Wire::kClient);
    wire.syn(Wire::kServer);
    TcpSegment segment = wire.segment(Wire::kServer, reply);
    if (is_acknowledged) segment.ack += static_cast<std::uint32_t>(request.size());
    wire.on_segment(segment);
    wire.seq[Wire::kServer] += static_cast<std::uint32_t>(reply.size());
    wire.send(Wire::kClient, request);
    of_one.finish();
    if (is_acknowledged) {
      EXPECT_THAT(one.findings, IsEmpty());
    } else {
      EXPECT_THAT(one.findings, ElementsAre("MPA-7.1.2-03"));
    }
  }
}

// The initiator's first octets behind its Request: an FPDU or garbage. Their acknowledgment tells whether the Reply had
// come, in whichever order the capture has them.
TEST_F(DissectorTest, AnInitiatorWaitsForTheReply) {
  const Octets request = testing::startup(mpa::FrameKind::kRequest), reply = testing::startup(mpa::FrameKind::kReply);
  const auto findings_of = [&](bool is_fpdu, bool has_reply, bool is_captured_first) {
    Told one;
    Dissector of_one({}, one);
    Wire wire(of_one);
    wire.syn(Wire::kClient);
    wire.syn(Wire::kServer);
    wire.send(Wire::kClient, request);
    if (!is_captured_first) wire.send(Wire::kServer, reply);
    const Octets octets = is_fpdu ? wire.fpdu(Wire::kClient, untagged(Opcode::kSend, 1, pattern(100))) : pattern(90, 1);
    TcpSegment first = wire.segment(Wire::kClient, octets);
    first.ack = has_reply ? 78 + static_cast<std::uint32_t>(reply.size()) : 78;
    wire.on_segment(first);
    wire.seq[Wire::kClient] += static_cast<std::uint32_t>(octets.size());
    if (is_captured_first) wire.send(Wire::kServer, reply);
    wire.send(Wire::kClient, wire.fpdu(Wire::kClient, untagged(Opcode::kSend, is_fpdu ? 2 : 1, pattern(100))));
    of_one.finish();
    return one.findings;
  };
  for (const bool is_captured_first : {false, true}) {
    EXPECT_THAT(findings_of(true, true, is_captured_first), IsEmpty());
    EXPECT_THAT(findings_of(true, false, is_captured_first), ElementsAre("MPA-7.1.2-10"));
  }
  // The words of the garbage are a ULPDU_Length if the terms are known, and no FPDU without them.
  EXPECT_THAT(findings_of(false, false, true), ElementsAre("MPA-7.1.2-10"));
  EXPECT_THAT(findings_of(false, false, false), ElementsAre("MPA-7.1.2-10"));
}

// The same where nothing behind the Request is an FPDU: zeros, or the front of one and TCP's end.
TEST_F(DissectorTest, AnInitiatorWaitsForTheReplyWhateverItSends) {
  for (const Octets& octets : {Octets(60), Octets{0, 60, 0x41, 0x43, 0, 0, 0, 0}}) {
    Told one;
    Dissector of_one({}, one);
    Wire wire(of_one);
    wire.syn(Wire::kClient);
    wire.syn(Wire::kServer);
    wire.send(Wire::kClient, testing::startup(mpa::FrameKind::kRequest));
    TcpSegment first = wire.segment(Wire::kClient, {});
    first.payload = octets;
    first.payload_len = octets.size();
    wire.on_segment(first);
    wire.seq[Wire::kClient] += static_cast<std::uint32_t>(octets.size());
    wire.send(Wire::kServer, testing::startup(mpa::FrameKind::kReply));
    TcpSegment fin = wire.segment(Wire::kClient, {});
    fin.fin = true;
    wire.on_segment(fin);
    of_one.finish();
    EXPECT_THAT(one.findings, Contains("MPA-7.1.2-10")) << octets.size();
  }
}

TEST_F(DissectorTest, AnFpduThatDoesNotEndIsTold) {
  Wire wire(dissector);
  wire.open();
  const Octets fpdu = wire.fpdu(Wire::kClient, untagged(Opcode::kSend, 1, pattern(100)));
  wire.send(Wire::kClient, Octets(fpdu.begin(), fpdu.begin() + 70));
  told.lines.clear();
  dissector.finish();
  EXPECT_THAT(told.lines, ElementsAre(HasSubstr("the first 70 bytes of an FPDU")));
  EXPECT_THAT(told.findings, IsEmpty());
}

// A PD_Length that is too small: the rest of the private data stands where the first FPDU should.
TEST_F(DissectorTest, OctetsBehindAStartupFrameAreNoFpdu) {
  Wire wire(dissector);
  wire.open();
  wire.send(Wire::kClient, pattern(6, 0));
  wire.send(Wire::kClient, wire.fpdu(Wire::kClient, untagged(Opcode::kSend, 1, pattern(100))));
  dissector.finish();
  EXPECT_THAT(told.findings, Contains("MPA-4.4-20"));
}

// Both startup frames say S=1 and have no IRD and ORD. The peers go on all the same.
TEST_F(DissectorTest, OctetsBehindABrokenStartupFrameAreCounted) {
  Wire wire(dissector);
  wire.syn(Wire::kClient);
  wire.syn(Wire::kServer);
  for (const auto kind : {mpa::FrameKind::kRequest, mpa::FrameKind::kReply}) {
    Octets octets;
    mpa::emit_startup_frame({.kind = kind, .c = true, .s = true, .rev = 2, .private_data = {}}, octets);
    wire.send(kind == mpa::FrameKind::kRequest ? Wire::kClient : Wire::kServer, octets);
  }
  const Octets fpdu = wire.fpdu(Wire::kClient, untagged(Opcode::kSend, 1, pattern(100)));
  wire.send(Wire::kClient, fpdu);
  wire.send(Wire::kClient, fpdu);
  told.lines.clear();
  dissector.finish();
  EXPECT_THAT(told.lines, ElementsAre(HasSubstr(std::to_string(2 * fpdu.size()) + " bytes are missing")));
  EXPECT_THAT(told.unjudged, ElementsAre("bytes are missing in the capture or unreadable"));
}

TEST_F(DissectorTest, AStartupFrameBehindABrokenOneIsRead) {
  Wire wire(dissector);
  wire.syn(Wire::kClient);
  wire.syn(Wire::kServer);
  for (const bool is_broken : {true, false}) {
    for (const auto kind : {mpa::FrameKind::kRequest, mpa::FrameKind::kReply}) {
      Octets octets;
      mpa::emit_startup_frame({.kind = kind, .c = true, .s = is_broken, .rev = 2, .private_data = {}}, octets);
      wire.send(kind == mpa::FrameKind::kRequest ? Wire::kClient : Wire::kServer, octets);
    }
  }
  const Octets fpdu = wire.fpdu(Wire::kClient, untagged(Opcode::kSend, 1, pattern(100)));
  wire.send(Wire::kClient, Octets(fpdu.begin(), fpdu.begin() + 70));
  told.lines.clear();
  dissector.finish();
  EXPECT_THAT(told.lines, ElementsAre(HasSubstr("the first 70 bytes of an FPDU")));
}

TEST_F(DissectorTest, ASpoiledMarkerIsNamedBesideTheCrc) {
  Wire wire(dissector, true);
  wire.open(true);
  Octets bad_marker = wire.fpdu(Wire::kClient, untagged(Opcode::kSend, 1, pattern(8)));
  bad_marker[3] ^= 4;  // the FPDUPTR of the Marker before the FPDU
  wire.send(Wire::kClient, bad_marker);
  dissector.finish();
  EXPECT_THAT(told.findings, ElementsAre("MPA-4.4-20", "MPA-8-05"));
  EXPECT_THAT(told.lines, Contains("> BAD CRC, BAD MARKER"));
}

// The bits of a Marker that are sent as zero; without CRCs, which cover them.
TEST_F(DissectorTest, BitsOfMarkersAreNamed) {
  struct Case {
    std::size_t at;
    std::uint8_t bits;
    const char* finding;
  };
  for (const Case& one : {Case{0, 0x80, "MPA-4.2-02"}, Case{1, 0x01, "MPA-4.2-02"}, Case{3, 0x03, "MPA-4.2-05"}}) {
    Told of_one;
    Dissector of_bits({}, of_one);
    Wire wire(of_bits, true, false);
    wire.open(true, false);
    Octets fpdu = wire.fpdu(Wire::kClient, untagged(Opcode::kSend, 1, pattern(8)));
    fpdu[one.at] = one.bits;
    wire.send(Wire::kClient, fpdu);
    EXPECT_THAT(of_one.findings, ElementsAre(one.finding));
  }
}

// RFC 5044 section 7.1.2: the initiator's first FPDU comes first.
TEST_F(DissectorTest, AResponderDoesNotSpeakFirst) {
  Wire wire(dissector);
  wire.open();
  wire.send(Wire::kServer, wire.fpdu(Wire::kServer, untagged(Opcode::kSend, 1, pattern(8))));
  EXPECT_THAT(told.findings, ElementsAre("MPA-7.1.2-14"));
  wire.send(Wire::kClient, wire.fpdu(Wire::kClient, untagged(Opcode::kSend, 1, pattern(8))));
  wire.send(Wire::kServer, wire.fpdu(Wire::kServer, untagged(Opcode::kSend, 2, pattern(8))));
  EXPECT_THAT(told.findings, ElementsAre("MPA-7.1.2-14"));
}

// The capture has the directions in another order: the responder's segment acknowledges the initiator's.
TEST_F(DissectorTest, AResponderThatHasHeardTheInitiatorIsNotNamed) {
  Wire wire(dissector);
  wire.open();
  const Octets first = wire.fpdu(Wire::kClient, untagged(Opcode::kSend, 1, pattern(8)));
  const Octets answer = wire.fpdu(Wire::kServer, untagged(Opcode::kSend, 1, pattern(8)));
  TcpSegment early = wire.segment(Wire::kServer, answer);
  early.ack += static_cast<std::uint32_t>(first.size());
  wire.on_segment(early);
  wire.send(Wire::kClient, first);
  EXPECT_THAT(told.findings, IsEmpty());
}

TEST_F(DissectorTest, ReservedBitsOfPrivateDataAreNamed) {
  for (const std::uint8_t flags : Octets{0x00, 0x01, 0xfe}) {
    Told of_one;
    Dissector of_flags({}, of_one);
    Wire wire(of_flags);
    wire.syn(Wire::kClient);
    wire.syn(Wire::kServer);
    // Words of a provider stand in front.
    const Octets data = {1, 2, 3, 0xf6, 0xab, 0x0e, 0x18, 1, flags, 3, 3};
    wire.send(Wire::kClient, testing::startup(mpa::FrameKind::kRequest, false, true, data));
    if (flags == 0xfe) {
      EXPECT_THAT(of_one.findings, ElementsAre("R1-4.3.2-05"));
    } else {
      EXPECT_THAT(of_one.findings, IsEmpty());
    }
  }
}

TEST_F(DissectorTest, MessagesThatInvalidateNothingNameNoStag) {
  struct Case {
    Opcode opcode;
    const char* finding;
  };
  for (const Case& one : {Case{Opcode::kSend, "RDMAP-4.1-11"}, Case{Opcode::kImmediate, "EXT-4.1-07"},
                          Case{Opcode::kSendInvalidate, nullptr}}) {
    Told of_one;
    Dissector of_word({}, of_one);
    Wire wire(of_word);
    wire.open();
    Octets ulpdu = untagged(one.opcode, 1, pattern(8));
    ulpdu[5] = 7;
    wire.send(Wire::kClient, wire.fpdu(Wire::kClient, ulpdu));
    if (one.finding != nullptr) {
      EXPECT_THAT(of_one.findings, ElementsAre(one.finding));
    } else {
      EXPECT_THAT(of_one.findings, IsEmpty());
    }
  }
}

Octets enhanced(mpa::FrameKind kind, std::uint16_t ird, std::uint16_t ord) {
  const auto high = [](std::uint16_t word) { return static_cast<std::uint8_t>(word >> 8); };
  const auto low = [](std::uint16_t word) { return static_cast<std::uint8_t>(word & 0xff); };
  Octets octets;
  const Octets words = {high(ird), low(ird), high(ord), low(ord)};
  mpa::emit_startup_frame({.kind = kind, .c = true, .s = true, .rev = 2, .private_data = words}, octets);
  return octets;
}

// RFC 6581 section 9.1
TEST_F(DissectorTest, WhatIsSetByHandIsAnsweredSo) {
  constexpr std::uint16_t kManual = 0x3fff;
  struct Case {
    std::uint16_t asked_ird, asked_ord, told_ird, told_ord;
    const char* finding;
  };
  for (const Case& one : {Case{4, kManual, 4, 2, "MPA2-9.1-17"}, Case{kManual, 4, 4, 2, "MPA2-9.1-18"},
                          Case{kManual, kManual, kManual, kManual, nullptr}}) {
    Told of_one;
    Dissector of_words({}, of_one);
    Wire wire(of_words);
    wire.syn(Wire::kClient);
    wire.syn(Wire::kServer);
    wire.send(Wire::kClient, enhanced(mpa::FrameKind::kRequest, one.asked_ird, one.asked_ord));
    wire.send(Wire::kServer, enhanced(mpa::FrameKind::kReply, one.told_ird, one.told_ord));
    if (one.finding != nullptr) {
      EXPECT_THAT(of_one.findings, ElementsAre(one.finding));
    } else {
      EXPECT_THAT(of_one.findings, IsEmpty());
    }
  }
}

// Where both sides want no CRC, the field may hold anything (RFC 5044 section 4.4).
TEST_F(DissectorTest, ACrcThatIsNotInUseIsNotJudged) {
  Wire wire(dissector, false, false);
  wire.open(false, false);
  wire.send(Wire::kClient, wire.fpdu(Wire::kClient, untagged(Opcode::kSend, 1, pattern(8))));
  dissector.finish();
  EXPECT_THAT(told.findings, IsEmpty());
}

}  // namespace
}  // namespace weft::apps::dissect
