#include "rpcrdma/v1/receive.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "rpcrdma/testing/vectors.h"
#include "rpcrdma/v1/header.h"

namespace weft::rpcrdma::v1 {
namespace {

using testing::load_vector;
using testing::load_vectors;
using Octets = std::vector<std::uint8_t>;

constexpr ChunkLimits kLimits{.max_message = 1 << 20, .max_item = 1 << 20};

Header header_of(const std::string& id) {
  const Octets octets = load_vector(id).octets;
  xdr::XdrReader in(octets);
  Header header;
  EXPECT_EQ(parse_header(in, header), HeaderError::kNone);
  return header;
}

// Verdicts in the words of the vector file.
std::string error_str(const TransportError& error) {
  return error.code == TransportError::Code::kVersion ? "ERR_VERS" : "ERR_CHUNK";
}

std::string judge_call(const Octets& message) {
  ReceivedCall call;
  switch (receive_call(message, kLimits, call)) {
    case CallVerdict::kAccept: return "ACCEPT";
    case CallVerdict::kDiscard: return "DISCARD";
    case CallVerdict::kError: return error_str(call.error);
  }
  return "";
}

std::string judge_reply(const Octets& message, const Offered& offered) {
  ReceivedReply reply;
  switch (receive_reply(message, offered, reply)) {
    case ReplyVerdict::kReply: return "REPLY";
    case ReplyVerdict::kExternalReply: return "LONG REPLY";
    case ReplyVerdict::kDiscard: return "DISCARD";
    case ReplyVerdict::kError: return error_str(reply.error);
  }
  return "";
}

// The verdict on a Reply, for the XIDs that the vector file takes as pending.
std::string judge(const Octets& message) {
  static const Header writes = header_of("V07");
  static const Header chunk = header_of("V11");
  switch (reply_xid(message).value_or(0)) {
    case 0x11110001: return judge_reply(message, {});
    case 0x11110007: return judge_reply(message, {writes.lists.write_list, nullptr});
    case 0x1111000b: return judge_reply(message, {{}, &*chunk.lists.reply_chunk});
    default: return "DISCARD";
  }
}

TEST(ReceiveCall, WellFormedCallsAreAccepted) {
  RecordProperty("proves", "R1-5.2.4-01");
  for (const char* id : {"V01", "V03", "V05", "V06", "V07", "V09", "V11", "V16", "V17", "V21", "V23", "V24"}) {
    const Octets octets = load_vector(id).octets;
    EXPECT_EQ(judge_call(octets), "ACCEPT") << id;
  }
}

TEST(ReceiveCall, MalformedVectorsGetTheirVerdict) {
  RecordProperty("proves",
                 "R1-5.5-01 R1-5.5-02 R1-5.5.1-01 R1-5.5.2-01 R1-5.5.2-02 R1-5.5.2-03 R1-5.5.2-04 R1-5.6.1-02 "
                 "R1-5.6.2-02 R1-5.2.4-02 R1-5.2.4-04");
  int num = 0;
  for (const auto& vector : load_vectors('M')) {
    if (vector.to != "responder") continue;
    // The checks that need the binding come later.
    const std::string expected = vector.expect == "GARBAGE_ARGS" ? "ACCEPT" : vector.expect;
    EXPECT_EQ(judge_call(vector.octets), expected) << vector.id << " " << vector.title;
    ++num;
  }
  EXPECT_EQ(num, 28);
}

TEST(ReceiveReply, WellFormedRepliesAreAccepted) {
  for (const char* id : {"V02", "V08", "V13"}) EXPECT_EQ(judge(load_vector(id).octets), "REPLY") << id;
  EXPECT_EQ(judge(load_vector("V12").octets), "LONG REPLY");
}

TEST(ReceiveReply, MalformedVectorsGetTheirVerdict) {
  RecordProperty("proves", "R1-5.5-03 R1-5.5-08 R1-5.3.1-02 R1-4.4.6-05 R1-5.6.1-03 R1-5.6.2-02 R1-5.5-07 R1-5.2.1-01");
  int num = 0;
  for (const auto& vector : load_vectors('M')) {
    if (vector.to != "requester") continue;
    ++num;
    const std::string expected = vector.id == "M44" ? "ERR_CHUNK" : vector.id == "M45" ? "ERR_VERS" : "DISCARD";
    EXPECT_EQ(judge(vector.octets), expected) << vector.id << " " << vector.title;
  }
  EXPECT_EQ(num, 18);
}

TEST(ReceiveReply, AcceptsAWriteChunkReturnedWithoutSegmentsAsUnused) {
  Header offered = header_of("V07");
  Header reply = header_of("V08");
  reply.lists.write_list[1].clear();
  Octets octets;
  xdr::XdrWriter out(octets);
  emit_header(out, reply);
  out.raw(Octets{0x11, 0x11, 0, 7, 0, 0, 0, 1});
  EXPECT_EQ(judge(octets), "REPLY");
}

// Messages in which one thing is wrong, and everything behind it would do.
Octets with_payload(const Header& header, std::initializer_list<std::uint32_t> payload) {
  Octets octets;
  xdr::XdrWriter out(octets);
  emit_header(out, header);
  for (const std::uint32_t word : payload) out.u32(word);
  return octets;
}

TEST(ReceiveCall, AFaultInTheHeaderIsNotMadeGoodByWhatFollows) {
  // The Reply chunk's discriminator is 2, and could be the XID of a Payload stream.
  Header header;
  header.xid = 2;
  Octets octets = with_payload(header, {0, 2, 100003, 3, 0, 0, 0, 0, 0});
  octets[27] = 2;
  EXPECT_EQ(judge_call(octets), "ERR_CHUNK");
  // RDMA_MSG beside a Position Zero Read chunk.
  header.lists.read_list = {{0, {1, 40, 0}}};
  EXPECT_EQ(judge_call(with_payload(header, {2, 0, 2, 100003, 3, 0, 0, 0, 0, 0})), "ERR_CHUNK");
  header.lists.read_list[0].position = 40;
  EXPECT_EQ(judge_call(with_payload(header, {2, 0, 2, 100003, 3, 0, 0, 0, 0, 0})), "ACCEPT");
  // A Reply, where Calls are expected.
  EXPECT_EQ(judge_call(with_payload(header, {2, 1, 0, 0, 0, 0})), "DISCARD");
}

TEST(ReceiveCall, TheCallChunkIsWhatStandsAtPositionZero) {
  RecordProperty("proves", "R1-4.4.5-04 R1-4.4.5-06 R1-4.4.3-02");
  Header header;
  header.xid = 2;
  header.proc = Proc::kNomsg;
  header.lists.read_list = {{40, {1, 8, 0}}, {0, {2, 30, 0}}, {40, {3, 4, 0}}, {0, {4, 20, 0}}};
  ReceivedCall call;
  ASSERT_EQ(receive_call(with_payload(header, {}), {}, call), CallVerdict::kAccept);
  EXPECT_TRUE(call.external);
  ASSERT_NE(call.lists.call_chunk(), nullptr);
  EXPECT_EQ(call.lists.call_chunk()->segments, (SegmentArray{{2, 30, 0}, {4, 20, 0}}));
  EXPECT_EQ(call.lists.call_chunk()->length, 50u);
  ASSERT_EQ(call.lists.read_chunks().size(), 1u);
  EXPECT_EQ(call.lists.read_chunks()[0].segments, (SegmentArray{{1, 8, 0}, {3, 4, 0}}));
}

TEST(ReceiveReply, AFaultInTheHeaderIsNotMadeGoodByWhatFollows) {
  const SegmentArray segments{{7, 100, 4000}, {8, 100, 5000}};
  const std::vector<SegmentArray> offered{segments, segments};
  Header good;
  good.xid = 9;
  good.credit = 1;
  good.lists.write_list = offered;
  const auto verdict = [&](const Header& header, const SegmentArray* reply_chunk = nullptr, std::uint32_t type = 1) {
    return judge_reply(with_payload(header, {9, type, 0, 0, 0, 0}), {offered, reply_chunk});
  };
  EXPECT_EQ(verdict(good), "REPLY");
  EXPECT_EQ(verdict(good, nullptr, 0), "DISCARD");  // a Call
  Header bad = good;
  bad.lists.write_list[1][1].offset += 4;
  EXPECT_EQ(verdict(bad), "DISCARD");
  bad = good;
  bad.lists.write_list.pop_back();
  EXPECT_EQ(verdict(bad), "DISCARD");
  bad.lists.write_list = {segments, segments, segments};
  EXPECT_EQ(verdict(bad), "DISCARD");
  // A Reply chunk that was not offered; one that was, filled by an RDMA_MSG.
  bad = good;
  bad.lists.reply_chunk = SegmentArray{{7, 0, 4000}};
  EXPECT_EQ(verdict(bad), "DISCARD");
  const SegmentArray reply_chunk{{7, 100, 4000}};
  EXPECT_EQ(verdict(bad, &reply_chunk), "REPLY");
  bad.lists.reply_chunk->front().length = 100;
  EXPECT_EQ(verdict(bad, &reply_chunk), "DISCARD");
  for (const Proc proc : {Proc::kMsgp, Proc::kDone}) {
    bad = good;
    bad.proc = proc;
    EXPECT_EQ(verdict(bad), "DISCARD");
    const std::vector<SegmentArray> nothing;
    bad.lists = {};
    EXPECT_EQ(judge_reply(with_payload(bad, {9, 1, 0, 0, 0, 0}), {nothing, nullptr}), "DISCARD");
  }
}

TEST(ReceiveReply, OnlyAnErrorCanBeShorterThanTheSmallestHeader) {
  Octets octets = load_vector("V19").octets;
  EXPECT_EQ(reply_xid(octets), 0x11110013u);
  octets[15] = 0;  // RDMA_MSG
  EXPECT_FALSE(reply_xid(octets));
  octets.resize(27);
  EXPECT_FALSE(reply_xid(octets));
  octets.resize(28);
  EXPECT_TRUE(reply_xid(octets));
}

// Truncations and every single-word change of every message: a verdict, no read outside (ASan).
TEST(Receive, HostileMessagesOnlyEverGetAVerdict) {
  for (const char kind : {'V', 'M'}) {
    for (const auto& vector : load_vectors(kind)) {
      for (std::size_t len = 0; len <= vector.octets.size(); ++len) {
        const Octets cut(vector.octets.begin(), vector.octets.begin() + static_cast<std::ptrdiff_t>(len));
        const std::string verdict = judge_call(cut);
        if (len < kMinHeader) {
          EXPECT_EQ(verdict, "DISCARD");
        }
        judge(cut);
      }
      for (std::size_t at = 0; at + 4 <= vector.octets.size(); at += 4) {
        for (const std::uint8_t octet : Octets{0x00, 0x01, 0x7f, 0xff}) {
          Octets changed = vector.octets;
          std::fill_n(changed.begin() + static_cast<std::ptrdiff_t>(at), 4, octet);
          judge_call(changed);
          judge(changed);
        }
      }
    }
  }
}

}  // namespace
}  // namespace weft::rpcrdma::v1
