#include "apps/dissect/dissector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apps/dissect/testing/dissector.h"
#include "apps/dissect/testing/rpc.h"
#include "apps/dissect/testing/wire.h"

namespace weft::apps::dissect {
namespace {

using rdmap::Opcode;
using ::testing::Contains;
using testing::DissectorTest;
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
  // Status, no attributes, count, eof, and the length of the data that the chunk has.
  const Octets results = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 100, 0, 0, 0, 1, 0, 0, 0, 100};
  wire.send(Wire::kServer,
            wire.fpdu(Wire::kServer, untagged(Opcode::kSend, 1, message(reply, rpc_reply(0x77, results)))));
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
      if (layer.kind == LayerKind::kRpc) rpc_lines.emplace_back(layer.line.str());
      for (const Field& field : layer.fields) {
        const ConstBytes octets = field.source == Source::kWire    ? frame.wire
                                  : field.source == Source::kUlpdu ? frame.ulpdu
                                                                   : frame.message;
        EXPECT_LE(std::uint64_t{field.at} + field.len, octets.size()) << layer.line.str() << ": " << field.name;
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

// Where more connections are open than are followed, those that are given up are counted.
TEST(Dissector, ConnectionsThatAreGivenUpAreCounted) {
  Told told;
  Dissector dissector({}, told, 4);
  std::uint16_t port = 40000;
  for (int i = 0; i < 10; ++i) {
    ++port;
    Wire wire([&](const TcpSegment& segment) {
      TcpSegment other = segment;
      (segment.src.port == 40000 ? other.src : other.dst).port = port;
      other.time += std::chrono::seconds(i);
      dissector.on_segment(other);
    });
    wire.open();
  }
  EXPECT_EQ(dissector.num_connections(), 10u);
  EXPECT_EQ(dissector.num_given_up(), told.counters.size());
  EXPECT_GE(dissector.num_given_up(), 6u);
  dissector.finish();
  EXPECT_EQ(told.counters.size(), 10u);
}

}  // namespace
}  // namespace weft::apps::dissect
