// The keys of --json, each with the value that a script needs.
#include "apps/dissect/json_lines.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "apps/common/option_words.h"
#include "apps/dissect/testing/printed.h"
#include "apps/dissect/testing/rpc.h"
#include "verbs-shim/soft/trace.h"

namespace weft::apps::dissect {
namespace {

using nlohmann::json;
using testing::message;
using testing::Octets;
using testing::pattern;
using testing::Printed;
using testing::read_args;
using testing::rpc_call;
using testing::rpc_reply;
using ::testing::SizeIs;
using testing::tagged;
using testing::untagged;
using testing::Wire;

std::string hex(ConstBytes octets) {
  std::string text;
  for (const std::uint8_t octet : octets) fmt::format_to(std::back_inserter(text), "{:02x}", octet);
  return text;
}

// Lines: a connection, and the objects that --json writes of it.
struct Lines {
  Printed printed;
  JsonLines listener{printed.file()};
  Dissector dissector{{.fields = true}, listener};
  Wire wire;

  explicit Lines(bool markers = false) : wire(dissector, markers) { wire.open(markers); }

  void send(Wire::End from, const Octets& ulpdu) { wire.send(from, wire.fpdu(from, ulpdu), 60000); }
  // The objects with this key.
  std::vector<json> end(const std::string& key, const CaptureEnd& capture = {}) {
    dissector.finish();
    listener.on_capture_end(capture);
    std::vector<json> found;
    std::istringstream lines(printed.text());
    for (std::string line; std::getline(lines, line);) {
      const json object = json::parse(line);
      if (object.contains(key)) found.push_back(object);
    }
    return found;
  }
};

TEST(JsonLinesTest, AFrameHasItsOctetsAndTheirPlaces) {
  Lines lines;
  const Octets ulpdu = untagged(rdmap::Opcode::kSend, 1, pattern(100));
  const Octets fpdu = lines.wire.fpdu(Wire::kClient, ulpdu);
  lines.wire.send(Wire::kClient, fpdu);
  const auto frames = lines.end("frame");
  ASSERT_THAT(frames, SizeIs(3));
  EXPECT_EQ(frames[0]["startup"], true);
  EXPECT_FALSE(frames[0].contains("ulpdu_at"));
  EXPECT_FALSE(frames[2].contains("startup"));
  EXPECT_EQ(frames[2]["fpdu_octets"], fpdu.size());
  EXPECT_EQ(frames[2]["captured_octets"], fpdu.size());
  EXPECT_EQ(frames[2]["fpdu_hex"], hex(fpdu));
  EXPECT_EQ(frames[2]["ulpdu_at"], 2);
  EXPECT_EQ(frames[2]["message_at"], 20);
}

TEST(JsonLinesTest, ACutFrameHasItsTrueLength) {
  Lines lines;
  const Octets fpdu = lines.wire.fpdu(Wire::kClient, tagged(rdmap::Opcode::kWrite, 1, 0, pattern(1000)));
  const Octets kept(fpdu.begin(), fpdu.begin() + 64);
  TcpSegment segment = lines.wire.segment(Wire::kClient, kept);
  segment.payload_len = fpdu.size();
  lines.wire.on_segment(segment);
  const auto frames = lines.end("frame");
  ASSERT_THAT(frames, SizeIs(3));
  EXPECT_EQ(frames[2]["fpdu_octets"], fpdu.size());
  EXPECT_EQ(frames[2]["captured_octets"], 64);
  EXPECT_EQ(frames[2]["fpdu_hex"], hex(kept));
}

// Markers stand between the octets of the ULPDU; a message of two segments stands in no FPDU.
TEST(JsonLinesTest, OctetsThatAreNoPartOfTheFpduStandBesideIt) {
  Lines marked(true);
  const Octets ulpdu = untagged(rdmap::Opcode::kSend, 1, pattern(1000));
  marked.send(Wire::kClient, ulpdu);
  const json with_markers = marked.end("frame").at(2);
  EXPECT_FALSE(with_markers.contains("ulpdu_at"));
  EXPECT_EQ(with_markers["ulpdu_hex"], hex(ulpdu));
  EXPECT_EQ(with_markers["message_hex"], hex(pattern(1000)));

  Lines split;
  const Octets whole = pattern(300);
  split.send(Wire::kClient, untagged(rdmap::Opcode::kSend, 1, {whole.begin(), whole.begin() + 100}, 0, false));
  split.send(Wire::kClient, untagged(rdmap::Opcode::kSend, 1, {whole.begin() + 100, whole.end()}, 100));
  const auto frames = split.end("frame");
  EXPECT_FALSE(frames.at(2).contains("message_hex"));
  EXPECT_EQ(frames.at(3)["ulpdu_at"], 2);
  EXPECT_EQ(frames.at(3)["message_hex"], hex(whole));
  EXPECT_EQ(frames.at(3)["fpdus"], 2);
}

TEST(JsonLinesTest, AViolationHasItsSectionItsEffectAndItsOctets) {
  Lines lines;
  lines.send(Wire::kClient, untagged(rdmap::Opcode::kSend, 3, pattern(8)));
  const auto frames = lines.end("violations");
  ASSERT_THAT(frames, SizeIs(1));
  ASSERT_THAT(frames[0]["violations"], SizeIs(1));
  const json& violation = frames[0]["violations"][0];
  EXPECT_EQ(violation["requirement"], "DDP-7.1-09");
  EXPECT_EQ(violation["section"], "RFC 5041 section 7.1");
  EXPECT_EQ(violation["what"], "MSN 3 in queue 0, where 1 is due");
  EXPECT_THAT(violation["effect"].get<std::string>(), ::testing::HasSubstr("Terminate DDP"));
  EXPECT_EQ(violation["source"], "ulpdu");
  EXPECT_EQ(violation["offset"], 10);
  EXPECT_EQ(violation["octets"], 4);
  EXPECT_EQ(violation["hex"], "00000003");
}

TEST(JsonLinesTest, ATerminateIsMarked) {
  Lines lines;
  lines.send(Wire::kServer, untagged(rdmap::Opcode::kTerminate, 1, {0x10, 0, 0, 0}));
  EXPECT_THAT(lines.end("terminate"), SizeIs(1));
}

TEST(JsonLinesTest, AnRdmaOperationNamesTheCallThatItServes) {
  Lines lines;
  rpcrdma::v1::Header call;
  call.xid = 5;
  call.credit = 1;
  call.lists.write_list = {{{.handle = 0x77, .length = 8, .offset = 0}}, {{.handle = 0x99, .length = 8, .offset = 0}}};
  lines.send(Wire::kClient, untagged(rdmap::Opcode::kSend, 1, message(call, rpc_call(5, 6, read_args()))));
  lines.send(Wire::kServer, tagged(rdmap::Opcode::kWrite, 0x99, 0, pattern(4), false));
  lines.send(Wire::kServer, tagged(rdmap::Opcode::kWrite, 0x99, 4, pattern(4)));
  rpcrdma::v1::Header reply;
  reply.xid = 5;
  reply.credit = 1;
  lines.send(Wire::kServer, untagged(rdmap::Opcode::kSend, 1, message(reply, rpc_reply(5, {0, 0, 0, 70}))));
  const auto frames = lines.end("frame");
  ASSERT_THAT(frames, SizeIs(6));
  EXPECT_EQ(frames[4]["serves"], (json{{"xid", 5}, {"use", "result"}, {"index", 2}, {"took_ns", 10000}}));
  EXPECT_FALSE(frames[2].contains("failed"));
  EXPECT_EQ(frames[5]["failed"], true) << "status 70 is NFS3ERR_STALE";
  EXPECT_FALSE(frames[5].contains("serves"));
}

TEST(JsonLinesTest, ReadsNameTheirArgument) {
  Lines lines;
  rpcrdma::v1::Header call;
  call.xid = 6;
  call.credit = 1;
  call.lists.read_list = {{136, {.handle = 0x55, .length = 16, .offset = 64}}};
  lines.send(Wire::kClient, untagged(rdmap::Opcode::kSend, 1, message(call, rpc_call(6, 7, read_args()))));
  const auto request = rdmap::emit_read_request_header(
      {.sink_stag = {0x11}, .sink_to = 0, .size = 16, .src_stag = {0x55}, .src_to = 64});
  lines.send(Wire::kServer, untagged(rdmap::Opcode::kReadRequest, 1, {request.begin(), request.end()}));
  lines.send(Wire::kClient, tagged(rdmap::Opcode::kReadResponse, 0x11, 0, pattern(16)));
  const auto served = lines.end("serves");
  ASSERT_THAT(served, SizeIs(2));
  EXPECT_EQ(served[0]["serves"], (json{{"xid", 6}, {"use", "argument"}, {"index", 136}}));
  EXPECT_EQ(served[1]["serves"]["took_ns"], 10000);
}

TEST(JsonLinesTest, TheLastLineHasTheTotals) {
  Lines lines;
  lines.send(Wire::kClient, untagged(rdmap::Opcode::kSend, 3, pattern(8)));
  const auto ends = lines.end("capture_end", {.packets = 12,
                                              .tcp_segments = 9,
                                              .unread_packets = 2,
                                              .fragments = 1,
                                              .dropped_packets = 7,
                                              .error = "truncated"});
  ASSERT_THAT(ends, SizeIs(1));
  EXPECT_EQ(ends[0]["capture_end"], (json{{"packets", 12},
                                          {"unread_packets", 2},
                                          {"dropped_packets", 7},
                                          {"tcp_segments", 9},
                                          {"ip_fragments", 1},
                                          {"connections", 1},
                                          {"given_up_connections", 0},
                                          {"frames", 3},
                                          {"violations", 1},
                                          {"error", "truncated"}}));
  Lines whole;
  EXPECT_FALSE(whole.end("capture_end").at(0)["capture_end"].contains("error"));
}

// A number of the protocol is one in JSON, with its words beside it where it has some. A name of digits is text.
TEST(JsonLinesTest, NumbersAreNumbers) {
  Lines lines;
  Octets args;
  rpcrdma::xdr::XdrWriter out(args);
  out.opaque(Octets{'f', 'i', 'l', 'e'});
  out.opaque(Octets{'1', '2', '3'});
  rpcrdma::v1::Header header;
  header.xid = 0x12345678;
  header.credit = 32;
  constexpr std::uint32_t kLookup = 3;
  lines.send(Wire::kClient, untagged(rdmap::Opcode::kSend, 1, message(header, rpc_call(0x12345678, kLookup, args))));
  const auto frames = lines.end("frame");
  ASSERT_THAT(frames, SizeIs(3));
  std::map<std::string, json> fields;
  for (const json& layer : frames[2]["layers"]) {
    for (const json& field : layer["fields"]) fields[field["name"]] = field;
  }
  EXPECT_EQ(fields["rdma_xid"]["value"], 0x12345678);
  EXPECT_EQ(fields["rdma_xid"]["text"], "0x12345678");
  EXPECT_EQ(fields["rdma_credit"]["value"], 32);
  EXPECT_FALSE(fields["rdma_credit"].contains("text"));
  EXPECT_EQ(fields["msg_type"]["value"], 0);
  EXPECT_EQ(fields["msg_type"]["text"], "0 (CALL)");
  EXPECT_EQ(fields["T (tagged)"]["value"], 0);
  EXPECT_EQ(fields["arguments"]["value"], args.size());
  EXPECT_EQ(fields["arguments"]["text"], fmt::format("{} bytes", args.size()));
  EXPECT_EQ(fields["credential flavor"]["value"], 0);
  EXPECT_EQ(fields["name"]["value"], "123");
  EXPECT_EQ(fields["CRC"]["value"], "good");
}

// A hostile message can have more fields than a reader wants.
TEST(JsonLinesTest, FieldsBeyondTheLimitAreCounted) {
  Printed printed;
  JsonLines listener(printed.file());
  Frame frame;
  Layer& layer = frame.layers.add(LayerKind::kRpcRdma);
  for (std::size_t i = 0; i < JsonLines::kMaxFields + 3; ++i) layer.fields.push_back({.name = "handle", .value = "1"});
  listener.on_frame(frame);
  const json object = json::parse(printed.text());
  EXPECT_THAT(object["layers"][0]["fields"], SizeIs(JsonLines::kMaxFields));
  EXPECT_EQ(object["fields_left_out"], 3);
}

TEST(JsonLinesTest, AViolationHasItsSideAndWhoSaysSo) {
  Lines lines;
  const Octets send = untagged(rdmap::Opcode::kSend, 3, pattern(8));
  lines.send(Wire::kClient, send);
  Octets body{0x12, 0x03, 0xc0, 0, 0, 0};
  body.insert(body.end(), send.begin(), send.begin() + 18);
  lines.send(Wire::kServer, untagged(rdmap::Opcode::kTerminate, 1, body));
  const auto all = lines.end("violations");
  ASSERT_THAT(all, SizeIs(2));
  const json first = all[0]["violations"][0], second = all[1]["violations"][0];
  EXPECT_EQ(first["by"], "client");
  EXPECT_FALSE(first.contains("told_by"));
  EXPECT_FALSE(first.contains("confirms_frame"));
  EXPECT_EQ(second["by"], "client");
  EXPECT_EQ(second["told_by"], "server");
  EXPECT_EQ(second["confirms_frame"], 3);
  Lines again;
  again.send(Wire::kClient, send);
  again.send(Wire::kServer, untagged(rdmap::Opcode::kTerminate, 1, body));
  EXPECT_EQ(again.end("capture_end").at(0)["capture_end"]["violations"], 1);
}

TEST(JsonLinesTest, SaysFromWhereAConnectionIsNotJudged) {
  Lines lines;
  lines.wire.lose(Wire::kClient, lines.wire.fpdu(Wire::kClient, untagged(rdmap::Opcode::kSend, 1, pattern(8))));
  lines.send(Wire::kServer, untagged(rdmap::Opcode::kSend, 1, pattern(8)));
  const auto unjudged = lines.end("unjudged");
  ASSERT_THAT(unjudged, SizeIs(1));
  EXPECT_EQ(unjudged[0]["unjudged"]["connection"], 1);
  EXPECT_EQ(unjudged[0]["unjudged"]["packet"], 5);
  EXPECT_THAT(unjudged[0]["unjudged"]["why"].get<std::string>(), ::testing::HasSubstr("acknowledges"));
}

TEST(JsonLinesTest, CommentsOfPacketsAreObjects) {
  Lines lines;
  const Octets fpdu = lines.wire.fpdu(Wire::kClient, untagged(rdmap::Opcode::kSend, 1, pattern(8)));
  TcpSegment segment = lines.wire.segment(Wire::kClient, fpdu);
  const std::string_view comments[] = {"sent \x1b[2J", "and more"};
  segment.comments = comments;
  lines.wire.on_segment(segment);
  const auto told = lines.end("comment");
  ASSERT_THAT(told, SizeIs(2));
  EXPECT_EQ(told[0]["comment"], "sent \\x1b[2J");
  EXPECT_EQ(told[0]["packet"], 5);
  EXPECT_EQ(told[0]["connection"], 1);
  EXPECT_EQ(told[0]["from"], "client");
  EXPECT_EQ(told[1]["comment"], "and more");
}

// The frame says itself that it was cut.
TEST(JsonLinesTest, TheNoteOfATraceAboutACutIsNoComment) {
  Lines lines;
  const Octets fpdu = lines.wire.fpdu(Wire::kClient, untagged(rdmap::Opcode::kSend, 1, pattern(8)));
  TcpSegment segment = lines.wire.segment(Wire::kClient, fpdu);
  const std::string note = in_options(verbs::kTraceCutNote), both = note + "; Send 0x1 ended: success";
  const std::string_view comments[] = {note, both};
  segment.comments = comments;
  lines.wire.on_segment(segment);
  const auto told = lines.end("comment");
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(told[0]["comment"], "Send 0x1 ended: success");
}

}  // namespace
}  // namespace weft::apps::dissect
