// What the RPC decoder judges, and what it leaves alone, on connections that are made by hand.
#include "apps/dissect/rpc_decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apps/dissect/testing/rpc2.h"

namespace weft::apps::dissect {
namespace {

namespace wg07 = rpcrdma::v2_wg07;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::Octets;
using testing::pattern;
using testing::reply_chunk;
using testing::rpc_call;
using testing::Talk;
using testing::untagged;
using testing::wg07_message;
using testing::Wire;

// A Call before the MPA Reply, without a CRC that shows it: it is read when the Reply has told the terms.
TEST(RpcDecoder, ACallBeforeTheMpaReplyIsAnswered) {
  Talk talk;
  talk.wire = Wire(talk.dissector, false, false);
  talk.wire.syn(Wire::kClient);
  talk.wire.syn(Wire::kServer);
  talk.wire.send(Wire::kClient, testing::startup(mpa::FrameKind::kRequest, false, false));
  rpcrdma::v1::Header header;
  header.xid = 1;
  header.credit = 1;
  Octets fpdu = talk.wire.fpdu(Wire::kClient, untagged(rdmap::Opcode::kSend, ++talk.msn[Wire::kClient],
                                                       testing::message(header, rpc_call(1, 0, {}))));
  std::fill_n(fpdu.end() - mpa::kCrcLen, mpa::kCrcLen, std::uint8_t{0});
  talk.wire.send(Wire::kClient, fpdu);
  talk.wire.send(Wire::kServer, testing::startup(mpa::FrameKind::kReply, false, false));
  talk.reply(1);
  talk.dissector.finish();
  EXPECT_THAT(talk.told.findings, ElementsAre("MPA-7.1.2-10"));
  EXPECT_THAT(talk.told.lines, Contains(HasSubstr("REPLY NFSv3 NULL")));
}

// Without CRCs, an FPDU behind octets that are none is found when more of them follow. Until then nothing is known of
// the Call in it, and its Reply is no fault of the server.
TEST(RpcDecoder, WhatAnswersUnreadableOctetsIsNotJudged) {
  Talk talk;
  talk.wire = Wire(talk.dissector, false, false);
  talk.wire.syn(Wire::kClient);
  talk.wire.syn(Wire::kServer);
  talk.wire.send(Wire::kClient, testing::startup(mpa::FrameKind::kRequest, false, false));
  talk.wire.send(Wire::kClient, pattern(100));
  talk.wire.send(Wire::kServer, testing::startup(mpa::FrameKind::kReply, false, false));
  talk.call(1);
  talk.reply(1);
  talk.dissector.finish();
  EXPECT_THAT(talk.told.findings, ElementsAre("MPA-7.1.2-10"));
  EXPECT_THAT(talk.told.unjudged, ElementsAre("bytes are missing in the capture or unreadable"));
}

// A status of success says nothing of results that are not there.
TEST(RpcDecoder, ResultsThatEndEarlyAreNoPlainSuccess) {
  constexpr std::uint32_t kRead = 6;
  Octets whole;
  rpcrdma::xdr::XdrWriter out(whole);
  out.u32(0);  // NFS3_OK
  out.u32(0);  // no attributes
  out.u32(8);
  out.u32(1);  // eof
  out.opaque(pattern(8));
  const auto told_of = [&](std::size_t len, bool is_cut) {
    Talk talk;
    talk.wire.open();
    talk.call(1, kRead, {}, testing::read_args());
    const Octets results(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(len));
    rpcrdma::v1::Header header;
    header.xid = header.credit = 1;
    const Octets fpdu = talk.wire.fpdu(
        Wire::kServer, untagged(rdmap::Opcode::kSend, 1, testing::message(header, testing::rpc_reply(1, whole))));
    if (is_cut) {
      const Octets kept(fpdu.begin(), fpdu.end() - static_cast<std::ptrdiff_t>(mpa::kCrcLen + whole.size() - len));
      TcpSegment segment = talk.wire.segment(Wire::kServer, kept);
      segment.payload_len = fpdu.size();
      talk.wire.on_segment(segment);
    } else {
      talk.reply(1, {}, Talk::kCredits, results);
    }
    talk.dissector.finish();
    EXPECT_EQ(talk.told.facts.back().rpc->truncated, len != whole.size());
    EXPECT_FALSE(talk.told.facts.back().rpc->failed);
    return talk.told.lines.back();
  };
  EXPECT_THAT(told_of(whole.size(), false), HasSubstr("NFSv3 READ NFS3_OK, "));
  for (const std::size_t len : {std::size_t{4}, std::size_t{12}, whole.size() - 4}) {
    EXPECT_THAT(told_of(len, false), HasSubstr("NFSv3 READ NFS3_OK (truncated or malformed), "));
    EXPECT_THAT(told_of(len, true), HasSubstr("NFSv3 READ NFS3_OK (truncated by the capture), "));
  }
}

// The last part of one message and the first part of the next are missing: the parts belong together no more.
TEST(RpcDecoder, PartsEndAtAGap) {
  Talk talk;
  talk.wire.open();
  const Octets rpc = rpc_call(1, 0, pattern(80));
  const auto front = ConstBytes(rpc).first(40), back = ConstBytes(rpc).subspan(40);
  talk.send(Wire::kClient, wg07_message(1, wg07::CallInline{}, rpc));
  talk.send(Wire::kServer, wg07_message(1, wg07::ReplyInline{}, testing::rpc_reply(1, {})));
  talk.send(Wire::kClient, wg07_message(2, wg07::CallMiddle{.remaining = 80}, front));
  talk.lose(Wire::kClient, wg07_message(2, wg07::CallInline{}, back));
  talk.wire.on_segment(talk.wire.segment(Wire::kServer, {}));
  const Octets other = rpc_call(3, 0, {});
  talk.send(Wire::kClient, wg07_message(3, wg07::CallInline{}, other));
  talk.send(Wire::kClient, wg07_message(4, wg07::CallInline{}, rpc_call(4, 0, {})));
  talk.dissector.finish();
  EXPECT_THAT(talk.told.lines, Contains(HasSubstr("RDMA2_CALL_INLINE, XID 0x00000004")));
  EXPECT_THAT(talk.told.findings, IsEmpty());
}

// The last part of a message whose first parts are lost is no RPC message.
TEST(RpcDecoder, ALastPartWithoutTheFirstIsNotJudged) {
  const Octets filled(80, 0x64);
  for (const bool is_call : {true, false}) {
    Talk talk;
    talk.wire.open();
    const Wire::End from = is_call ? Wire::kClient : Wire::kServer;
    const auto part = [&](std::uint32_t xid, ConstBytes octets) {
      return is_call ? wg07_message(xid, wg07::CallInline{}, octets) : wg07_message(xid, wg07::ReplyInline{}, octets);
    };
    const auto middle = [&](std::uint32_t xid, ConstBytes octets) {
      return is_call ? wg07_message(xid, wg07::CallMiddle{}, octets) : wg07_message(xid, wg07::ReplyMiddle{}, octets);
    };
    talk.send(Wire::kClient, wg07_message(1, wg07::CallInline{}, rpc_call(1, 0, {})));
    talk.send(Wire::kServer, wg07_message(1, wg07::ReplyInline{}, testing::rpc_reply(1, {})));
    talk.send(Wire::kClient, wg07_message(2, wg07::CallInline{}, rpc_call(2, 0, {})));
    talk.lose(from, middle(2, filled));
    talk.wire.on_segment(talk.wire.segment(is_call ? Wire::kServer : Wire::kClient, {}));
    talk.send(from, middle(2, filled));
    talk.send(from, part(2, filled));
    // The message behind it begins with its first part.
    talk.send(from, part(3, filled));
    talk.dissector.finish();
    EXPECT_THAT(talk.told.whats, Contains(HasSubstr("has XID 0x64646464, and the header 0x00000003")));
    EXPECT_THAT(talk.told.whats, ::testing::SizeIs(is_call ? 1 : 2));  // and no Call has the XID of the Reply
  }
}

// The RPC Call in it shows that a first message with a fault is one of RPC-over-RDMA.
TEST(RpcDecoder, AFirstMessageWithAFaultIsNamed) {
  constexpr std::size_t kProcAt = 12, kReadListAt = 16, kXidAt = 0;
  const std::pair<std::size_t, const char*> faults[] = {
      {kProcAt, "R1-5.5.2-02"}, {kReadListAt, "R1-5.3-01"}, {kXidAt, "R1-5.2.1-01"}};
  for (const auto& [at, requirement] : faults) {
    Talk talk;
    talk.wire.open();
    rpcrdma::v1::Header header;
    header.xid = 1;
    header.credit = 1;
    Octets call = testing::message(header, rpc_call(1, 0, {}));
    call[at + 3] = 9;
    talk.send(Wire::kClient, call);
    EXPECT_THAT(talk.told.findings, ElementsAre(requirement));
    talk.reply(at == kXidAt ? 9 : 1);
    talk.dissector.finish();
    EXPECT_THAT(talk.told.findings, ElementsAre(requirement));
  }
}

TEST(RpcDecoder, AReplyToAMessageThatCannotBeReadIsNotJudged) {
  Talk talk;
  talk.wire.open();
  talk.send(Wire::kClient, {0, 0, 0, 7, 0, 0, 0, 1, 9, 9, 9, 9});
  talk.reply(7);
  EXPECT_THAT(talk.told.findings, IsEmpty());
  talk.reply(8);
  EXPECT_THAT(talk.told.findings, ElementsAre("R1-3.1.2-01"));
}

TEST(RpcDecoder, ASecondReplyIsNamed) {
  Talk talk;
  talk.wire.open();
  talk.call(1);
  talk.reply(1);
  EXPECT_THAT(talk.told.findings, IsEmpty());
  talk.reply(1);
  EXPECT_THAT(talk.told.whats, ElementsAre("the Call with XID 0x00000001 has its answer already"));
  EXPECT_THAT(talk.told.lines, Contains(HasSubstr("another REPLY to a Call")));
}

// A Send of which the capture has DDP's header alone may be any part.
TEST(RpcDecoder, PartsEndAtASendThatIsCutWhole) {
  Talk talk;
  talk.wire.open();
  const Octets rpc = rpc_call(1, 0, pattern(80));
  talk.send(Wire::kClient, wg07_message(1, wg07::CallInline{}, rpc));
  talk.send(Wire::kServer, wg07_message(1, wg07::ReplyInline{}, testing::rpc_reply(1, {})));
  talk.send(Wire::kClient, wg07_message(2, wg07::CallMiddle{.remaining = 80}, ConstBytes(rpc).first(40)));
  const Octets last = wg07_message(2, wg07::CallInline{}, ConstBytes(rpc).subspan(40));
  const Octets fpdu = talk.wire.fpdu(Wire::kClient, untagged(rdmap::Opcode::kSend, ++talk.msn[0], last));
  const Octets kept(fpdu.begin(), fpdu.begin() + 20);
  TcpSegment segment = talk.wire.segment(Wire::kClient, kept);
  segment.payload_len = fpdu.size();
  talk.dissector.on_segment(segment);
  talk.wire.lose(Wire::kClient, fpdu);
  talk.send(Wire::kClient, wg07_message(3, wg07::CallInline{}, rpc_call(3, 0, {})));
  EXPECT_THAT(talk.told.lines, Contains(HasSubstr("RDMA2_CALL_INLINE, XID 0x00000003")));
  EXPECT_THAT(talk.told.findings, IsEmpty());
}

// A Reply in a Reply chunk, whose Call is not in the capture, may be the first message.
TEST(RpcDecoder, WithoutAKnownClientAReplyChunkIsOfAReply) {
  for (const bool knows_sides : {false, true}) {
    Talk talk;
    if (knows_sides) talk.wire.open();
    rpcrdma::v1::Header nomsg;
    nomsg.xid = 7;
    nomsg.credit = 1;
    nomsg.proc = rpcrdma::v1::Proc::kNomsg;
    nomsg.lists = reply_chunk(5, 100);
    talk.send(Wire::kClient, testing::message(nomsg, {}));
    talk.dissector.finish();
    if (knows_sides) {
      EXPECT_THAT(talk.told.findings, ElementsAre("R1-5.2.4-02"));
    } else {
      EXPECT_THAT(talk.told.findings, IsEmpty());
    }
  }
}

Octets gss_call(std::uint32_t xid, std::uint32_t gss_procedure, std::uint32_t service) {
  constexpr std::uint32_t kRead = 6, kSequence = 5;
  Octets credential;
  rpcrdma::xdr::XdrWriter of_credential(credential);
  for (const std::uint32_t word : {std::uint32_t{1}, gss_procedure, kSequence, service}) of_credential.u32(word);
  of_credential.opaque(Octets{'c', 't', 'x', '1'});
  rpcrdma::v1::Header header;
  header.xid = xid;
  header.credit = 1;
  Octets octets;
  rpcrdma::xdr::XdrWriter out(octets);
  emit_header(out, header);
  rpcrdma::emit_call(out, {xid, 100003, 3, kRead, {6, credential}, {6, pattern(28)}});
  out.raw(testing::read_args());
  return octets;
}

// RFC 2203 section 5: with integrity and privacy, and where a context is set up, no argument stands in its place.
TEST(RpcDecoder, ArgumentsThatRpcsecGssWrapsAreNotTold) {
  Talk talk;
  talk.wire.open();
  talk.send(Wire::kClient, gss_call(1, 0, 1));
  talk.reply(1, {}, Talk::kCredits, {0, 0, 0, 80});
  talk.send(Wire::kClient, gss_call(2, 0, 2));
  talk.send(Wire::kClient, gss_call(3, 0, 3));
  talk.send(Wire::kClient, gss_call(4, 1, 1));
  for (std::uint32_t xid = 2; xid <= 4; ++xid) talk.reply(xid, {}, Talk::kCredits, {0, 0, 0, 80});
  talk.dissector.finish();
  EXPECT_THAT(talk.told.lines, Contains(HasSubstr("CALL NFSv3 READ fh")));
  EXPECT_THAT(talk.told.lines, Contains("> CALL NFSv3 READ, RPCSEC_GSS integrity"));
  EXPECT_THAT(talk.told.lines, Contains("> CALL NFSv3 READ, RPCSEC_GSS privacy"));
  EXPECT_THAT(talk.told.lines, Contains("> CALL NFSv3 READ, RPCSEC_GSS_INIT"));
  std::vector<bool> failed;
  for (const Facts& facts : talk.told.facts) {
    if (facts.rpc && facts.rpc->is_reply) failed.push_back(facts.rpc->failed);
  }
  EXPECT_THAT(failed, ElementsAre(true, false, false, false));
  EXPECT_THAT(talk.told.findings, IsEmpty());
}

TEST(RpcDecoder, AnErrorGrantsCredits) {
  Talk talk;
  talk.wire.open();
  talk.call(1);
  talk.reply(1, {}, 1);
  talk.call(2, 1);  // a NULL cannot be refused like this
  rpcrdma::v1::Header error;
  error.xid = 2;
  error.credit = 16;
  error.proc = rpcrdma::v1::Proc::kError;
  error.err = rpcrdma::v1::Err::kChunk;
  talk.send(Wire::kServer, testing::message(error, {}));
  for (std::uint32_t xid = 3; xid < 19; ++xid) talk.call(xid);
  EXPECT_THAT(talk.told.findings, IsEmpty());
  talk.call(19);
  EXPECT_THAT(talk.told.findings, ElementsAre("R1-4.3.1-04"));
}

// Offers memory of the client for an RDMA Read.
rpcrdma::ChunkListsView call_chunk(std::initializer_list<rpcrdma::Segment> segments) {
  rpcrdma::ChunkListsView lists;
  for (const rpcrdma::Segment& segment : segments) lists.read_list.push_back({.position = 40, .target = segment});
  return lists;
}

TEST(RpcDecoder, SeveralCallsCanOfferTheSameMemory) {
  Talk talk;
  talk.wire.open();
  talk.call(1, 0, call_chunk({{.handle = 7, .length = 4096, .offset = 0x1000}}));
  talk.call(2, 0, call_chunk({{.handle = 7, .length = 4096, .offset = 0x1000}}));
  talk.told.findings.clear();  // NULL has no arguments
  talk.read(7, 0x1000, 4096);
  talk.read_response(4096);
  talk.reply(1);
  talk.read(7, 0x1000, 4096);
  talk.read_response(4096);
  EXPECT_THAT(talk.told.findings, IsEmpty());
  talk.reply(2);
  talk.read(7, 0x1000, 4096);
  EXPECT_THAT(talk.told.findings, ElementsAre("RDMAP-7.2-06"));
}

// Memory may end at 2^64, as for the engine.
TEST(RpcDecoder, ASegmentMayEndAt2To64AndNotPassIt) {
  Talk talk;
  talk.wire.open();
  rpcrdma::ChunkListsView lists;
  lists.reply_chunk = {{.handle = 7, .length = 4096, .offset = UINT64_MAX - 4095}};
  talk.call(1, 0, lists);
  EXPECT_THAT(talk.told.findings, Not(Contains("R1-5.5-02")));
  talk.reply(1);
  ++lists.reply_chunk->front().offset;
  talk.call(2, 0, lists);
  EXPECT_THAT(talk.told.findings, Contains("R1-5.5-02"));
}

// A segment can lie inside another one, and one Read can take several.
TEST(RpcDecoder, SegmentsOfAnStagCountTogether) {
  Talk talk;
  talk.wire.open();
  talk.call(1, 0, call_chunk({{.handle = 7, .length = 65536, .offset = 0x1000}}));
  talk.call(2, 0, call_chunk({{.handle = 7, .length = 512, .offset = 0x3000}}));
  talk.call(3, 0, call_chunk({{.handle = 8, .length = 100, .offset = 0}, {.handle = 8, .length = 60, .offset = 100}}));
  talk.told.findings.clear();
  for (const std::uint64_t to : {0x1000u, 0x3000u, 0x9000u}) {
    talk.read(7, to, 32768);
    talk.read_response(32768);
  }
  talk.read(8, 0, 160);
  talk.read_response(160);
  EXPECT_THAT(talk.told.findings, IsEmpty());
  talk.read(8, 0, 161);
  talk.read(8, 90, 80);
  talk.read(7, 0x10000, 4097);
  talk.read(7, 0x500, 4096);
  EXPECT_THAT(talk.told.findings, ElementsAre("RDMAP-7.2-08", "RDMAP-7.2-08", "RDMAP-7.2-08", "RDMAP-7.2-08"));
}

// An attacker's Calls make many segments with one handle: the search ends, and judges nothing.
TEST(RpcDecoder, ManySegmentsOfAnStagAreNotJudged) {
  HeldEntries held;
  CallTable::Pool pool;
  CallTable table(held, pool);
  rpcrdma::ChunkListsView lists;
  lists.write_list.emplace_back();
  for (std::uint32_t i = 0; i < 1000; ++i) {
    lists.write_list.front().push_back({.handle = 1, .length = 1, .offset = i == 0 ? 0 : 1000 + 2 * i});
  }
  table.add(1, {}, lists);
  EXPECT_FALSE(table.find_memory(1, 5000, 10).is_certain);
  EXPECT_TRUE(table.find_memory(1, 2998, 1).is_offered);
  EXPECT_TRUE(table.find_memory(1, 500, 1).is_certain);
  EXPECT_FALSE(table.find_memory(1, 500, 1).is_offered);
  EXPECT_EQ(table.find_memory(2, 500, 1).segment, nullptr);
  table.answer(1);
  EXPECT_EQ(table.find_memory(1, 2998, 1).segment, nullptr);
}

TEST(RpcDecoder, ReadResponsesAreOfTheReadsToTheirPlace) {
  Talk talk;
  talk.wire.open();
  talk.call(1, 0, call_chunk({{.handle = 7, .length = 4096, .offset = 0}}));
  talk.call(2, 0, call_chunk({{.handle = 8, .length = 4096, .offset = 0}}));
  for (const std::uint64_t second_sink : {0u, 4096u}) {
    talk.told.lines.clear();
    talk.read(7, 0, 4096, 0x99, 0);
    talk.read(8, 0, 4096, 0x99, second_sink);
    talk.read_response(4096, 0x99, 0);
    talk.read_response(4096, 0x99, second_sink);
    EXPECT_THAT(talk.told.lines, ElementsAre(HasSubstr("Call 0x00000001"), HasSubstr("Call 0x00000002"),
                                             HasSubstr("Call 0x00000001"), HasSubstr("Call 0x00000002")));
  }
}

// A client may send a Call again. Which of the two the server answers is not known.
TEST(RpcDecoder, ChunksOfARepeatedCallAreNotJudged) {
  Talk talk;
  talk.wire.open();
  const auto write_chunk = [](std::uint32_t handle) {
    rpcrdma::ChunkListsView lists;
    lists.write_list = {{{.handle = handle, .length = 4096}}};
    return lists;
  };
  talk.call(2);
  talk.reply(2);
  talk.call(1, 6, write_chunk(0x50), testing::read_args());
  talk.call(1, 6, write_chunk(0x51), testing::read_args());
  talk.write(0x50, 0, 4096);
  talk.reply(1, write_chunk(0x50));
  talk.write(0x51, 0, 4096);
  talk.reply(1, write_chunk(0x51));
  EXPECT_THAT(talk.told.findings, IsEmpty());
}

// What a Reply says of its chunks is held against the RDMA Writes before it.
TEST(RpcDecoder, ChunksComeBackWithTheOctetsThatWereWritten) {
  const auto write_chunk = [](std::uint32_t first, std::uint32_t second) {
    rpcrdma::ChunkListsView lists;
    lists.write_list = {{{.handle = 5, .length = first}, {.handle = 5, .length = second, .offset = 0x8000}}};
    return lists;
  };
  struct Case {
    std::uint32_t written, first, second;
    const char* finding;
  };
  for (const Case& one : {Case{4101, 4096, 5, nullptr}, Case{4101, 4096, 6, "R1-4.4.6.1-03"}, Case{0, 0, 0, nullptr},
                          Case{4104, 4096, 5, "R1-4.4.6.1-02"}, Case{8192, 0, 0, nullptr}}) {
    Talk talk;
    talk.wire.open();
    talk.call(1, 6, write_chunk(4096, 4096), testing::read_args());
    if (one.written != 0) talk.write(5, 0, std::min(4096u, one.written));
    if (one.written > 4096) talk.write(5, 0x8000, one.written - 4096);
    talk.reply(1, write_chunk(one.first, one.second));
    if (one.finding == nullptr) {
      EXPECT_THAT(talk.told.findings, IsEmpty()) << one.written;
    } else {
      EXPECT_THAT(talk.told.findings, ElementsAre(one.finding));
    }
  }
}

TEST(RpcDecoder, AReplyChunkComesBack) {
  Talk talk;
  talk.wire.open();
  talk.call(1, 0, reply_chunk(5, 4096));
  talk.reply(1, reply_chunk(5, 0));
  EXPECT_THAT(talk.told.findings, IsEmpty());
  talk.call(2, 0, reply_chunk(5, 4096));
  talk.reply(2);
  talk.call(3, 0, reply_chunk(5, 4096));
  talk.reply(3, reply_chunk(5, 100));
  EXPECT_THAT(talk.told.findings, ElementsAre("R1-5.3.3-05", "R1-5.3.3-05"));
}

// RFC 8797: each side says what it takes.
TEST(RpcDecoder, PrivateDataLimitsSends) {
  for (const bool server_invalidates : {false, true}) {
    Talk talk;
    talk.wire.syn(Wire::kClient);
    talk.wire.syn(Wire::kServer);
    const auto private_data = [](bool invalidates) {
      const auto octets = rpcrdma::emit_private_data({invalidates, 4096, 2048});
      return Octets(octets.begin(), octets.end());
    };
    talk.wire.send(Wire::kClient, testing::startup(mpa::FrameKind::kRequest, false, true, private_data(true)));
    talk.wire.send(Wire::kServer,
                   testing::startup(mpa::FrameKind::kReply, false, true, private_data(server_invalidates)));
    const std::size_t rest = rpcrdma::v1::kMinHeader + rpc_call(1, 0, {}).size();
    talk.call(1, 0, {}, pattern(2048 - rest));
    talk.reply(1);
    EXPECT_THAT(talk.told.findings, IsEmpty());
    talk.call(2, 0, {}, pattern(2049 - rest));
    EXPECT_THAT(talk.told.findings, ElementsAre("R1-5.2.4-05"));
    talk.told.findings.clear();
    talk.call(3, 0, reply_chunk(5, 4096));
    rpcrdma::v1::Header header;
    header.xid = 3;
    header.credit = 1;
    header.lists = reply_chunk(5, 0);
    Octets ulpdu = untagged(rdmap::Opcode::kSendInvalidate, 2, testing::message(header, testing::rpc_reply(3, {})));
    ulpdu[5] = 5;  // the STag
    talk.wire.send(Wire::kServer, talk.wire.fpdu(Wire::kServer, ulpdu));
    if (server_invalidates) {
      EXPECT_THAT(talk.told.findings, IsEmpty());
    } else {
      EXPECT_THAT(talk.told.findings, ElementsAre("R1-4.3.2-17"));
    }
  }
}

TEST(RpcDecoder, ALongNameEndsWithAWholeCharacter) {
  constexpr std::uint32_t kLookup = 3;
  for (const std::string& name : {std::string(79, 'a') + "ü", std::string(78, 'a') + "€"}) {
    Talk talk;
    talk.wire.open();
    Octets args;
    rpcrdma::xdr::XdrWriter out(args);
    out.opaque(Octets{1, 2, 3, 4});
    out.opaque(Octets(name.begin(), name.end()));
    talk.call(1, kLookup, {}, args);
    EXPECT_THAT(talk.told.lines, Contains(::testing::EndsWith("aaa...'"))) << name;
  }
}

// The results of READ (RFC 1813 section 3.3.6) with `len` octets of data, of which `inline_len` are in the Reply.
Octets read_results(std::uint32_t len, std::size_t inline_len) {
  Octets results;
  rpcrdma::xdr::XdrWriter out(results);
  for (const std::uint32_t word : {0u, 0u, len, 1u, len}) out.u32(word);
  out.raw(pattern(inline_len));
  return results;
}

TEST(RpcDecoder, EligibleResultsAreInWriteChunks) {
  const auto write_chunk = [](std::uint32_t len) {
    rpcrdma::ChunkListsView lists;
    lists.write_list = {{{.handle = 5, .length = len}}};
    return lists;
  };
  const auto findings_of = [&](std::uint32_t brought, std::size_t inline_len, std::uint32_t offered) {
    Talk talk;
    talk.wire.open();
    talk.call(1, 6, write_chunk(offered), testing::read_args());
    if (brought != 0) talk.write(5, 0, brought);
    talk.reply(1, write_chunk(brought), Talk::kCredits, read_results(400, inline_len));
    return talk.told.findings;
  };
  EXPECT_THAT(findings_of(400, 0, 4096), IsEmpty());
  EXPECT_THAT(findings_of(0, 400, 396), IsEmpty());
  EXPECT_THAT(findings_of(0, 400, 4096), ElementsAre("R1-8.1.1-04"));
  EXPECT_THAT(findings_of(400, 400, 4096), ElementsAre("R1-8.1.1-03"));
}

}  // namespace
}  // namespace weft::apps::dissect
