#include "apps/dissect/dissector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>

#include "apps/dissect/testing/rpc.h"
#include "apps/dissect/testing/wire.h"
#include "mpa/crc32c.h"
#include "mpa/fpdu.h"

namespace weft::apps::dissect {
namespace {

using rdmap::Opcode;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::message;
using testing::Octets;
using testing::pattern;
using testing::read_args;
using testing::rpc_call;
using testing::rpc_reply;
using ::testing::SizeIs;
using testing::tagged;
using testing::Told;
using testing::untagged;
using testing::Wire;

struct DissectorTest : ::testing::Test {
  Told told;
  Dissector dissector{{}, told};
};

TEST_F(DissectorTest, TellsOfTheStartAndOfEachMessage) {
  Wire wire(dissector);
  wire.open();
  wire.send(Wire::kClient, wire.fpdu(Wire::kClient, untagged(Opcode::kSend, 1, pattern(100))));
  wire.send(Wire::kServer, wire.fpdu(Wire::kServer, tagged(Opcode::kWrite, 0x1234, 0x1000, pattern(5000))));
  dissector.finish();
  EXPECT_THAT(told.connections, ElementsAre("10.0.0.1:40000 to 10.0.0.2:20049"));
  EXPECT_THAT(told.lines, ElementsAre("> MPA Request, revision 1, CRC on, Markers off",
                                      "< MPA Reply, revision 1, CRC on, Markers off", "> Send, MSN 1, 100 bytes",
                                      "< RDMA Write, STag 0x00001234, TO 0x1000, 5000 bytes"));
  EXPECT_THAT(told.findings, IsEmpty());
  EXPECT_THAT(told.counters, SizeIs(1));
}

// Each way to cut the octets into segments gives the same lines.
TEST_F(DissectorTest, SegmentsAreNoFrames) {
  std::vector<std::string> whole;
  for (const bool markers : {false, true}) {
    for (const std::size_t cut : {100000u, 1448u, 61u, 3u, 1u}) {
      Told one;
      Dissector of_one({}, one);
      Wire wire(of_one, markers);
      wire.open(markers);
      Octets octets;
      const auto add = [&](const Octets& ulpdu) {
        const Octets fpdu = wire.fpdu(Wire::kClient, ulpdu);
        octets.insert(octets.end(), fpdu.begin(), fpdu.end());
      };
      add(untagged(Opcode::kSend, 1, pattern(700), 0, false));
      add(untagged(Opcode::kSend, 1, pattern(301), 700));
      add(tagged(Opcode::kWrite, 7, 0, pattern(2000), false));
      add(tagged(Opcode::kWrite, 7, 2000, pattern(1)));
      wire.send(Wire::kClient, octets, cut);
      of_one.finish();
      EXPECT_THAT(one.findings, IsEmpty());
      ASSERT_THAT(one.lines, SizeIs(4));
      if (whole.empty()) whole = {one.lines.begin() + 2, one.lines.end()};
      EXPECT_EQ(std::vector(one.lines.begin() + 2, one.lines.end()), whole) << markers << " " << cut;
    }
  }
  EXPECT_THAT(whole, ElementsAre("> Send, MSN 1, 1001 bytes in 2 segments",
                                 "> RDMA Write, STag 0x00000007, TO 0x0, 2001 bytes in 2 segments"));
}

TEST_F(DissectorTest, GoesOnBehindWhatTheCaptureLost) {
  for (const bool markers : {false, true}) {
    Told one;
    Dissector of_one({}, one);
    Wire wire(of_one, markers);
    wire.open(markers);
    wire.send(Wire::kClient, wire.fpdu(Wire::kClient, untagged(Opcode::kSend, 1, pattern(1000))));
    const Octets lost = wire.fpdu(Wire::kClient, untagged(Opcode::kSend, 2, pattern(3000)));
    // Its first and last octets are there.
    wire.send(Wire::kClient, {lost.begin(), lost.begin() + 500});
    wire.lose(Wire::kClient, {lost.begin() + 500, lost.end() - 600});
    const Octets ack;
    TcpSegment acknowledges = wire.segment(Wire::kServer, ack);
    wire.on_segment(acknowledges);
    wire.send(Wire::kClient, {lost.end() - 600, lost.end()});
    wire.send(Wire::kClient, wire.fpdu(Wire::kClient, untagged(Opcode::kSend, 3, pattern(1000))));
    of_one.finish();
    EXPECT_THAT(one.lines, Contains("> Send, MSN 3, 1000 bytes")) << markers;
    EXPECT_THAT(one.findings, IsEmpty());
    EXPECT_EQ(one.counters.at(0).client.lost, lost.size() - 1100);
  }
}

// Whole FPDUs are lost, and the capture goes on in the middle of one.
TEST_F(DissectorTest, FindsTheNextFpduByMarkersOrByItsCrc) {
  for (const bool markers : {false, true}) {
    Told one;
    Dissector of_one({}, one);
    Wire wire(of_one, markers);
    wire.open(markers);
    wire.send(Wire::kClient, wire.fpdu(Wire::kClient, untagged(Opcode::kSend, 1, pattern(901))));
    Octets octets;
    for (std::uint32_t msn = 2; msn <= 6; ++msn) {
      const Octets fpdu = wire.fpdu(Wire::kClient, untagged(Opcode::kSend, msn, pattern(900 + msn)));
      octets.insert(octets.end(), fpdu.begin(), fpdu.end());
    }
    wire.lose(Wire::kClient, {octets.begin(), octets.begin() + 2000});
    wire.on_segment(wire.segment(Wire::kServer, {}));
    wire.send(Wire::kClient, {octets.begin() + 2000, octets.end()}, 700);
    of_one.finish();
    EXPECT_THAT(one.lines, Contains("> Send, MSN 5, 905 bytes")) << markers;
    EXPECT_THAT(one.lines, Contains("> Send, MSN 6, 906 bytes")) << markers;
    EXPECT_THAT(one.lines, Contains(HasSubstr("bytes are missing"))) << markers;
    EXPECT_THAT(one.findings, IsEmpty());
  }
}

TEST_F(DissectorTest, BeginsInTheMiddleOfAConnection) {
  Wire wire(dissector);
  wire.framers[0].frame(pattern(500));
  const Octets first = wire.fpdu(Wire::kClient, untagged(Opcode::kSend, 8, pattern(1000)));
  wire.send(Wire::kClient, {first.begin() + 333, first.end()});
  wire.send(Wire::kClient, wire.fpdu(Wire::kClient, untagged(Opcode::kSend, 9, pattern(50))));
  wire.send(Wire::kServer, wire.fpdu(Wire::kServer, untagged(Opcode::kSend, 4, pattern(60))));
  dissector.finish();
  EXPECT_THAT(told.lines, Contains("> Send, MSN 9, 50 bytes"));
  EXPECT_THAT(told.lines, Contains("< Send, MSN 4, 60 bytes"));
  EXPECT_THAT(told.findings, IsEmpty());
}

TEST_F(DissectorTest, HeadersOfCutPacketsAreEnough) {
  Wire wire(dissector);
  wire.open();
  for (std::uint32_t msn = 1; msn <= 3; ++msn) {
    const Octets fpdu = wire.fpdu(Wire::kClient, untagged(Opcode::kSend, msn, pattern(1000)));
    const Octets kept(fpdu.begin(), fpdu.begin() + 100);
    TcpSegment segment = wire.segment(Wire::kClient, kept);
    segment.payload_len = fpdu.size();
    dissector.on_segment(segment);
    wire.lose(Wire::kClient, fpdu);
  }
  dissector.finish();
  EXPECT_THAT(told.lines, Contains("> Send, MSN 3, 1000 bytes"));
  EXPECT_THAT(told.findings, IsEmpty());
}

TEST_F(DissectorTest, OtherConnectionsAreNotTold) {
  Wire wire(dissector);
  wire.syn(Wire::kClient);
  wire.syn(Wire::kServer);
  wire.send(Wire::kClient, {'G', 'E', 'T', ' ', '/', ' ', 'H', 'T', 'T', 'P'});
  wire.send(Wire::kServer, pattern(3000));
  dissector.finish();
  EXPECT_THAT(told.connections, IsEmpty());
  EXPECT_THAT(told.lines, IsEmpty());
}

// A retransmission of the last FIN begins no connection.
TEST_F(DissectorTest, ForgetsConnectionsThatHaveEnded) {
  constexpr std::size_t kMore = 5;
  std::uint16_t port = 1000;
  const auto close = [](Wire& wire, Wire::End end) {
    const Octets none;
    TcpSegment fin = wire.segment(end, none);
    fin.fin = true;
    wire.on_segment(fin);
    return fin;
  };
  for (std::size_t i = 0; i < Dissector::kMaxEnded + kMore; ++i) {
    ++port;
    TcpSegment last;
    Wire wire([&](TcpSegment segment) {
      (segment.src.address[3] == 1 ? segment.src : segment.dst).port = port;
      last = segment;
      dissector.on_segment(segment);
    });
    wire.open();
    close(wire, Wire::kClient);
    close(wire, Wire::kServer);
    dissector.on_segment(last);
  }
  EXPECT_THAT(told.connections, SizeIs(Dissector::kMaxEnded + kMore));
  EXPECT_THAT(told.counters, SizeIs(kMore));
  dissector.finish();
  EXPECT_THAT(told.counters, SizeIs(Dissector::kMaxEnded + kMore));
}

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

// ---- RPC-over-RDMA

TEST_F(DissectorTest, JoinsACallWithItsReplyAndItsRdmaOperations) {
  Wire wire(dissector);
  wire.open();
  rpcrdma::v1::Header call;
  call.xid = 0x77;
  call.credit = 32;
  call.lists.write_list = {{{.handle = 0xabc, .length = 65536, .offset = 0x5000}}};
  wire.send(Wire::kClient,
            wire.fpdu(Wire::kClient, untagged(Opcode::kSend, 1, message(call, rpc_call(0x77, 6, read_args())))));
  wire.send(Wire::kServer, wire.fpdu(Wire::kServer, tagged(Opcode::kWrite, 0xabc, 0x5000, pattern(100))));
  rpcrdma::v1::Header reply;
  reply.xid = 0x77;
  reply.credit = 8;
  reply.lists.write_list = {{{.handle = 0xabc, .length = 100, .offset = 0x5000}}};
  wire.send(Wire::kServer,
            wire.fpdu(Wire::kServer, untagged(Opcode::kSend, 1, message(reply, rpc_reply(0x77, {0, 0, 0, 0})))));
  dissector.finish();
  EXPECT_THAT(told.lines, Contains(HasSubstr("RDMA_MSG, XID 0x00000077, 32 credits, Write chunk 65536 bytes in 1")));
  EXPECT_THAT(told.lines, Contains(::testing::MatchesRegex("> CALL NFSv3 READ fh [0-9a-f]+ offset 4096 count 65536")));
  EXPECT_THAT(
      told.lines,
      Contains("< RDMA Write, STag 0x00000abc, TO 0x5000, 100 bytes (result 1 of Call 0x00000077, NFSv3 READ)"));
  EXPECT_THAT(told.lines, Contains("< REPLY NFSv3 READ NFS3_OK, 20.00 us"));
  EXPECT_THAT(told.findings, IsEmpty());
}

TEST_F(DissectorTest, ACallInAReadChunkIsNamedByItsFirstOctets) {
  Wire wire(dissector);
  wire.open();
  const Octets rpc = rpc_call(5, 6, read_args());
  rpcrdma::v1::Header call;
  call.xid = 5;
  call.credit = 1;
  call.proc = rpcrdma::v1::Proc::kNomsg;
  call.lists.read_list = {{.position = 0, .target = {.handle = 0x99, .length = 112, .offset = 0}}};
  wire.send(Wire::kClient, wire.fpdu(Wire::kClient, untagged(Opcode::kSend, 1, message(call, {}))));
  const auto request = rdmap::emit_read_request_header(
      {.sink_stag = {0x11}, .sink_to = 0x40, .size = static_cast<std::uint32_t>(rpc.size()), .src_stag = {0x99}});
  wire.send(Wire::kServer,
            wire.fpdu(Wire::kServer, untagged(Opcode::kReadRequest, 1, {request.begin(), request.end()})));
  wire.send(Wire::kClient, wire.fpdu(Wire::kClient, tagged(Opcode::kReadResponse, 0x11, 0x40, rpc)));
  dissector.finish();
  EXPECT_THAT(told.lines, Contains(HasSubstr("(Call 0x00000005)")));
  EXPECT_THAT(told.lines, Contains(HasSubstr("> CALL NFSv3 READ")));
}

// A Read chunk has the octets of its argument, with the roundup of XDR or without it.
TEST_F(DissectorTest, AReadChunkMayHaveTheRoundup) {
  Octets args;  // of a WRITE of 5 octets, up to these
  rpcrdma::xdr::XdrWriter out(args);
  out.opaque(Octets{'f', 'i', 'l', 'e'});
  out.u64(0);
  for (const std::uint32_t word : {5u, 0u, 5u}) out.u32(word);  // count, stable, length
  for (const std::uint32_t len : {4u, 5u, 6u, 7u, 8u, 9u, 12u}) {
    Told one;
    Dissector of_one({}, one);
    Wire wire(of_one);
    wire.open();
    const Octets rpc = rpc_call(5, 7, args);
    rpcrdma::v1::Header call;
    call.xid = 5;
    call.credit = 1;
    call.lists.read_list = {
        {.position = static_cast<std::uint32_t>(rpc.size()), .target = {.handle = 0x99, .length = len, .offset = 0}}};
    wire.send(Wire::kClient, wire.fpdu(Wire::kClient, untagged(Opcode::kSend, 1, message(call, rpc))));
    of_one.finish();
    if (len == 5 || len == 8) {
      EXPECT_THAT(one.findings, IsEmpty()) << len;
    } else {
      EXPECT_THAT(one.findings, ElementsAre("R1-4.4.4.1-03")) << len;
    }
  }
}

// Placed: hears of every field, which stands in its octets. Those of an RPC message in a chunk stand nowhere.
struct Placed final : Listener {
  std::vector<std::string> rpc_lines;
  std::size_t num_nowhere = 0;  // fields of RPC

  void on_connection(const Connection&) override {}
  void on_frame(const Frame& frame) override {
    for (const Layer& layer : frame.layers) {
      if (layer.kind == LayerKind::kRpc) rpc_lines.push_back(layer.line);
      for (const Field& field : layer.fields) {
        const ConstBytes octets = field.source == Source::kWire    ? frame.wire
                                  : field.source == Source::kUlpdu ? frame.ulpdu
                                                                   : frame.message;
        EXPECT_LE(std::uint64_t{field.at} + field.len, octets.size()) << layer.line << ": " << field.name;
        if (layer.kind == LayerKind::kRpc && field.at == 0 && field.len == 0) ++num_nowhere;
      }
    }
  }
  void on_connection_end(std::uint32_t, const TcpCounters&) override {}
};

TEST_F(DissectorTest, AReplyInAReplyChunkIsNamedByItsFirstOctets) {
  Placed placed;
  Dissector of_fields({.fields = true}, placed);
  Wire wire(of_fields);
  wire.open();
  const Octets rpc = rpc_reply(5, {0, 0, 0, 0});
  rpcrdma::v1::Header call;
  call.xid = 5;
  call.credit = 1;
  call.lists.reply_chunk = {{.handle = 0x99, .length = 1000, .offset = 0x40}};
  wire.send(Wire::kClient,
            wire.fpdu(Wire::kClient, untagged(Opcode::kSend, 1, message(call, rpc_call(5, 6, read_args())))));
  wire.send(Wire::kServer, wire.fpdu(Wire::kServer, tagged(Opcode::kWrite, 0x99, 0x40, rpc)));
  rpcrdma::v1::Header reply = call;
  reply.proc = rpcrdma::v1::Proc::kNomsg;
  reply.lists.reply_chunk->at(0).length = static_cast<std::uint32_t>(rpc.size());
  wire.send(Wire::kServer, wire.fpdu(Wire::kServer, untagged(Opcode::kSend, 1, message(reply, {}))));
  of_fields.finish();
  ASSERT_THAT(placed.rpc_lines, SizeIs(2));
  EXPECT_THAT(placed.rpc_lines[0], HasSubstr("CALL NFSv3 READ"));
  EXPECT_THAT(placed.rpc_lines[1], HasSubstr("REPLY NFSv3 READ NFS3_OK"));
  EXPECT_GE(placed.num_nowhere, 3u);
}

// The octets of a name are the peer's.
TEST_F(DissectorTest, NamesCannotControlATerminal) {
  Wire wire(dissector);
  wire.open();
  Octets args;
  rpcrdma::xdr::XdrWriter out(args);
  out.opaque(Octets{1, 2, 3, 4});
  out.opaque(Octets{0x1b, '[', '2', 'J'});
  rpcrdma::v1::Header call;
  call.xid = 9;
  call.credit = 1;
  wire.send(Wire::kClient, wire.fpdu(Wire::kClient, untagged(Opcode::kSend, 1, message(call, rpc_call(9, 3, args)))));
  dissector.finish();
  EXPECT_THAT(told.lines, Contains(HasSubstr("'\\x1b[2J'")));
}

// A capture that begins with a whole FPDU misses nothing that could be counted.
TEST_F(DissectorTest, NothingIsMissingBeforeTheFirstFpdu) {
  Wire wire(dissector);
  wire.send(Wire::kClient, wire.fpdu(Wire::kClient, untagged(Opcode::kSend, 8, pattern(100))));
  wire.send(Wire::kClient, wire.fpdu(Wire::kClient, untagged(Opcode::kSend, 9, pattern(100))));
  dissector.finish();
  EXPECT_THAT(told.lines, ElementsAre("> Send, MSN 8, 100 bytes", "> Send, MSN 9, 100 bytes"));
}

struct Comments final : Listener {
  std::vector<std::string> texts;

  void on_connection(const Connection&) override {}
  void on_frame(const Frame&) override {}
  void on_connection_end(std::uint32_t, const TcpCounters&) override {}
  void on_comment(const Comment& comment) override { texts.push_back(comment.text); }
};

TEST_F(DissectorTest, CommentsAreBounded) {
  Comments comments;
  Dissector of_comments({}, comments);
  Wire wire(of_comments);
  wire.open();
  const Octets none;
  TcpSegment segment = wire.segment(Wire::kClient, none);
  const std::string longest(Comment::kMaxText, 'x'), longer(Comment::kMaxText + 1, 'x');
  const std::string_view texts[] = {longest, longer};
  segment.comments = texts;
  wire.on_segment(segment);
  EXPECT_THAT(comments.texts, ElementsAre(longest, longest + " (cut)"));
}

// A Key with a wrong octet anywhere is a Key.
TEST(StartupKey, EachOctetCounts) {
  constexpr std::size_t kKeyLen = 16;
  for (const bool is_reply : {false, true}) {
    for (std::size_t at = 0; at < kKeyLen; ++at) {
      Told told;
      Dissector dissector({}, told);
      testing::Wire wire(dissector);
      wire.syn(Wire::kClient);
      wire.syn(Wire::kServer);
      Octets request = testing::startup(mpa::FrameKind::kRequest), reply = testing::startup(mpa::FrameKind::kReply);
      (is_reply ? reply : request)[at] ^= 0x20;
      wire.send(Wire::kClient, request);
      wire.send(Wire::kServer, reply);
      EXPECT_THAT(told.findings, ::testing::Contains("MPA-7.1.2-15"))
          << (is_reply ? "Reply, octet " : "Request, octet ") << at;
    }
  }
}

}  // namespace
}  // namespace weft::apps::dissect
