// Classic mistakes that have a name of their own: Markers against the other side's word, CRCs of zero, messages without
// L, results that may not be reduced, RPC messages with another XID than their header.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "apps/dissect/testing/rpc2.h"

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
using testing::startup;
using testing::tagged;
using testing::Talk;
using testing::Told;
using testing::untagged;
using testing::Wire;

// ---- MPA

// wants: Markers, as the server's Reply says. sends: whether the client's stream has them.
Told with_markers(bool wants, bool sends, bool crc = true) {
  Told told;
  Dissector dissector({}, told);
  Wire wire(dissector);
  wire.syn(Wire::kClient);
  wire.syn(Wire::kServer);
  wire.send(Wire::kClient, startup(mpa::FrameKind::kRequest, false, crc));
  wire.send(Wire::kServer, startup(mpa::FrameKind::kReply, wants, crc));
  mpa::testing::NaiveFramer framer(crc, sends);
  for (std::uint32_t msn = 1; msn <= 20; ++msn) {
    wire.send(Wire::kClient, framer.frame(untagged(Opcode::kSend, msn, pattern(20 + msn * 37))), 700);
  }
  dissector.finish();
  return told;
}

TEST(NamedMistakes, MarkersThatAreNotWantedAreNamedAndReadAllTheSame) {
  for (const bool crc : {true, false}) {
    const Told told = with_markers(false, true, crc);
    EXPECT_THAT(told.findings, ElementsAre("MPA-7.1.1-07")) << crc;
    EXPECT_THAT(told.lines, Contains("> Send, MSN 20, 760 bytes")) << crc;
  }
}
TEST(NamedMistakes, MarkersThatAreMissingAreNamedAndTheStreamIsRead) {
  for (const bool crc : {true, false}) {
    const Told told = with_markers(true, false, crc);
    EXPECT_THAT(told.findings, ElementsAre("MPA-7.1.1-08")) << crc;
    EXPECT_THAT(told.lines, Contains("> Send, MSN 20, 760 bytes")) << crc;
  }
}
// Of the client's first FPDU, the capture has these octets alone. Two further FPDUs repeat an MSN.
Told with_front(bool wants, bool sends, std::size_t front) {
  Told told;
  Dissector dissector({}, told);
  Wire wire(dissector);
  wire.syn(Wire::kClient);
  wire.syn(Wire::kServer);
  wire.send(Wire::kClient, startup(mpa::FrameKind::kRequest));
  wire.send(Wire::kServer, startup(mpa::FrameKind::kReply, wants));
  mpa::testing::NaiveFramer framer(true, sends);
  const Octets first = framer.frame(untagged(Opcode::kSend, 1, pattern(600)));
  TcpSegment cut = wire.segment(Wire::kClient, first);
  cut.payload = cut.payload.first(front);
  wire.on_segment(cut);
  wire.lose(Wire::kClient, first);
  for (const std::uint32_t msn : {2u, 3u, 3u, 4u}) {
    wire.send(Wire::kClient, framer.frame(untagged(Opcode::kSend, msn, pattern(40))));
  }
  dissector.finish();
  return told;
}
// The header of a cut FPDU is enough to see where the Markers are.
TEST(NamedMistakes, MarkersOfACutFpduAreNamedAndTheStreamIsRead) {
  for (const bool sends : {false, true}) {
    for (const std::size_t front : {24u, 60u, 120u, 500u}) {
      const Told told = with_front(!sends, sends, front);
      EXPECT_THAT(told.findings, ElementsAre(sends ? "MPA-7.1.1-07" : "MPA-7.1.1-08", "DDP-7.1-09"))
          << sends << ' ' << front;
      EXPECT_THAT(told.lines, Contains("> Send, MSN 4, 40 bytes")) << sends << ' ' << front;
    }
  }
}
// With fewer octets the length of the FPDU is unknown, and a search finds the next FPDU.
TEST(NamedMistakes, AFrontThatTellsNoLengthHidesNothingBehindIt) {
  for (const std::size_t front : {6u, 12u, 23u}) {
    const Told told = with_front(false, true, front);
    EXPECT_THAT(told.findings, ElementsAre("DDP-7.1-09")) << front;
    EXPECT_THAT(told.lines, Contains("> Send, MSN 4, 40 bytes")) << front;
  }
}
TEST(NamedMistakes, MarkersAsWantedAreNone) {
  EXPECT_THAT(with_markers(true, true).findings, IsEmpty());
  EXPECT_THAT(with_markers(false, false).findings, IsEmpty());
}

// What --check says of an FPDU whose CRC field is this one.
std::string with_crc(bool is_zero) {
  Told told;
  Dissector dissector({}, told);
  Wire wire(dissector);
  wire.open();
  Octets fpdu = wire.fpdu(Wire::kClient, untagged(Opcode::kSend, 1, pattern(40)));
  if (is_zero) std::fill(fpdu.end() - 4, fpdu.end(), 0);
  if (!is_zero) std::reverse(fpdu.end() - 4, fpdu.end());
  wire.send(Wire::kClient, fpdu);
  EXPECT_THAT(told.findings, ElementsAre("MPA-4.4-20"));
  return told.whats.empty() ? "" : told.whats.front();
}
TEST(NamedMistakes, ACrcOfZeroAndOneInTheOtherByteOrderAreSaid) {
  EXPECT_THAT(with_crc(true), HasSubstr("the field is zero"));
  EXPECT_THAT(with_crc(false), HasSubstr("the other byte order"));
}

// ---- DDP

TEST(NamedMistakes, AMessageOfOneSegmentWithoutLIsNamed) {
  struct One {
    Opcode opcode;
    std::size_t len;
  };
  for (const One& one : {One{Opcode::kReadRequest, 28}, One{Opcode::kTerminate, 4}, One{Opcode::kTerminate, 24},
                         One{Opcode::kImmediate, 8}, One{Opcode::kImmediateSe, 8}, One{Opcode::kAtomicRequest, 52},
                         One{Opcode::kAtomicResponse, 12}}) {
    for (const bool last : {false, true}) {
      Told told;
      Dissector dissector({}, told);
      Wire wire(dissector);
      wire.open();
      wire.send(Wire::kClient, wire.fpdu(Wire::kClient, untagged(one.opcode, 1, Octets(one.len), 0, last)));
      const auto named = Contains("DDP-4.1-04");
      if (last) {
        EXPECT_THAT(told.findings, Not(named)) << static_cast<int>(one.opcode);
      } else {
        EXPECT_THAT(told.findings, ElementsAre("DDP-4.1-04")) << static_cast<int>(one.opcode);
      }
    }
  }
}

// The control bytes of a Terminate say how long it is.
TEST(NamedMistakes, ATerminateOfSeveralSegmentsEndsWhereItsControlBytesSay) {
  const Octets request = untagged(Opcode::kReadRequest, 1, Octets(28));
  const Octets written = tagged(Opcode::kWrite, 7, 0, Octets(8));
  const auto body_of = [](const Octets& named, bool has_rdma_header) {
    const bool is_tagged = (named[0] & 0x80) != 0;
    const auto bits = static_cast<std::uint8_t>(has_rdma_header ? 0xe0 : 0xc0);
    Octets body = {static_cast<std::uint8_t>(has_rdma_header ? 0x01 : 0x11), 0, bits, 0};
    body.insert(body.end(), {0, static_cast<std::uint8_t>(named.size())});
    body.insert(body.end(), named.begin(), named.begin() + (has_rdma_header ? 46 : is_tagged ? 14 : 18));
    return body;
  };
  for (const Octets& body : {body_of(request, true), body_of(request, false), body_of(written, false)}) {
    for (const std::size_t cut : {std::size_t{2}, std::size_t{4}, std::size_t{6}, body.size() - 1}) {
      for (const bool last : {true, false}) {
        Told told;
        Dissector dissector({}, told);
        Wire wire(dissector);
        wire.open();
        wire.send(Wire::kClient, wire.fpdu(Wire::kClient, request));
        wire.send(Wire::kClient, wire.fpdu(Wire::kClient, written));
        const auto middle = body.begin() + static_cast<std::ptrdiff_t>(cut);
        const auto send = [&](const Octets& part, std::size_t mo, bool is_last) {
          wire.send(Wire::kServer, wire.fpdu(Wire::kServer, untagged(Opcode::kTerminate, 1, part,
                                                                     static_cast<std::uint32_t>(mo), is_last)));
        };
        send({body.begin(), middle}, 0, false);
        EXPECT_THAT(told.findings, Not(Contains("DDP-4.1-04"))) << cut << " of " << body.size();
        send({middle, body.end()}, cut, last);
        EXPECT_EQ(std::ranges::count(told.findings, "DDP-4.1-04"), last ? 0 : 1) << cut << " of " << body.size();
      }
    }
  }
}

// ---- results

constexpr std::uint32_t kGetattr = 1, kRead = 6, kCompound = 1;

rpcrdma::ChunkListsView chunks(std::vector<std::uint32_t> lens) {
  rpcrdma::ChunkListsView lists;
  std::uint32_t handle = 0x50;
  for (const std::uint32_t len : lens) lists.write_list.push_back({{.handle = handle++, .length = len}});
  return lists;
}

Octets words(std::initializer_list<std::uint32_t> all) {
  Octets octets;
  rpcrdma::xdr::XdrWriter out(octets);
  for (const std::uint32_t word : all) out.u32(word);
  return octets;
}

// A Call with one chunk of 100 octets, of which the Reply says that it has `used`.
std::vector<std::string> of_reply(std::uint32_t procedure, const Octets& args, const Octets& results,
                                  std::uint32_t used = 100) {
  Talk talk;
  talk.wire.open();
  talk.call(1, procedure, chunks({100}), args);
  if (used != 0) talk.write(0x50, 0, used);
  talk.reply(1, chunks({used}), Talk::kCredits, results);
  return talk.told.findings;
}

TEST(NamedMistakes, AResultThatMayNotBeReducedIsNamed) {
  // GETATTR, whose attributes went into the chunk.
  EXPECT_THAT(of_reply(kGetattr, words({4, 0x66696c65}), words({0})), ElementsAre("R1-8.1.1-03"));
}
TEST(NamedMistakes, AFailedReadUsesNoChunk) {
  constexpr std::uint32_t kStale = 70;
  EXPECT_THAT(of_reply(kRead, testing::read_args(), words({kStale, 0})), ElementsAre("R1-8.1.1-03"));
  EXPECT_THAT(of_reply(kRead, testing::read_args(), words({kStale, 0}), 0), IsEmpty());
  EXPECT_THAT(of_reply(kRead, testing::read_args(), words({0, 0, 100, 1, 100})), IsEmpty());
}

Octets compound_call(std::uint32_t xid, const Octets& args) {
  Octets octets;
  rpcrdma::xdr::XdrWriter out(octets);
  rpcrdma::emit_call(out, {xid, 100003, 4, kCompound, {}, {}});
  out.raw(args);
  return octets;
}

// A COMPOUND with the operations of `args`, and a Reply with two chunks of these lengths.
std::vector<std::string> of_compound(const Octets& args, const Octets& results, std::uint32_t first,
                                     std::uint32_t second) {
  Talk talk;
  talk.wire.open();
  rpcrdma::v1::Header header;
  header.xid = 1;
  header.credit = Talk::kCredits;
  header.lists = chunks({200, 200});
  talk.send(Wire::kClient, testing::message(header, compound_call(1, args)));
  if (first != 0) talk.write(0x50, 0, first);
  if (second != 0) talk.write(0x51, 0, second);
  talk.reply(1, chunks({first, second}), Talk::kCredits, results);
  return talk.told.findings;
}

constexpr std::uint32_t kOpRead = 25, kOpReadPlus = 68;

TEST(NamedMistakes, WriteChunksBelongToReadsInTheirOrder) {
  const Octets args = words({0, 0, 2, kOpRead, 0, 0, 0, 0, 0, 0, 100, kOpRead, 0, 0, 0, 0, 0, 0, 60});
  const Octets results = words({0, 0, 2, kOpRead, 0, 1, 100, kOpRead, 0, 1, 60});
  EXPECT_THAT(of_compound(args, results, 100, 60), IsEmpty());
  EXPECT_THAT(of_compound(args, results, 60, 100), ElementsAre("U1-6.4.1-03"));
}
TEST(NamedMistakes, ReadPlusIsNotReduced) {
  const Octets args = words({0, 2, 1, kOpReadPlus, 0, 0, 0, 0, 0, 0, 100});
  const Octets results = words({0, 0, 1, kOpReadPlus, 0, 1, 1, 0, 0, 0, 100});
  EXPECT_THAT(of_compound(args, results, 100, 0), ElementsAre("R1-8.1.1-03"));
}

// ---- XIDs

TEST(NamedMistakes, ACallInAChunkHasTheXidOfItsHeader) {
  for (const std::uint32_t xid : {7u, 8u}) {
    Talk talk;
    talk.wire.open();
    talk.call(1);
    talk.reply(1);
    const Octets rpc = testing::rpc_call(xid, 0, {});
    rpcrdma::v1::Header header;
    header.xid = 7;
    header.credit = Talk::kCredits;
    header.proc = rpcrdma::v1::Proc::kNomsg;
    header.lists.call_chunk = {{.handle = 0x50, .length = static_cast<std::uint32_t>(rpc.size())}};
    talk.send(Wire::kClient, testing::message(header, {}));
    talk.read(0x50, 0, static_cast<std::uint32_t>(rpc.size()));
    talk.wire.send(Wire::kClient, talk.wire.fpdu(Wire::kClient, testing::tagged(Opcode::kReadResponse, 0x99, 0, rpc)),
                   60000);
    if (xid == 7) {
      EXPECT_THAT(talk.told.findings, IsEmpty());
    } else {
      EXPECT_THAT(talk.told.findings, ElementsAre("R1-5.2.1-01"));
    }
  }
}

// A message with msg_type 1 (REPLY) that answers nothing: a server may take it for a faulty Call.
TEST(NamedMistakes, AnErrorMayAnswerAReplyThatNobodyAskedFor) {
  Talk talk;
  talk.wire.open();
  talk.call(1);
  talk.reply(1);
  rpcrdma::v1::Header header;
  header.xid = 2;
  header.credit = Talk::kCredits;
  talk.send(Wire::kClient, testing::message(header, testing::rpc_reply(2, {})));
  talk.told.findings.clear();
  rpcrdma::v1::Header error;
  error.xid = 2;
  error.credit = Talk::kCredits;
  error.proc = rpcrdma::v1::Proc::kError;
  talk.send(Wire::kServer, testing::message(error, {}));
  EXPECT_THAT(talk.told.findings, IsEmpty());
}

}  // namespace
}  // namespace weft::apps::dissect
