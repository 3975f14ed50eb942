#include "rpcrdma/v2_cel05/header.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "rpcrdma/testing/v2_vectors.h"

namespace weft::rpcrdma::v2_cel05 {
namespace {

using testing::emit;
using testing::load_v2_vector;
using testing::load_v2_vectors;
using testing::Octets;
using testing::parse;
using testing::put_word;
using testing::V2Vector;

constexpr std::uint64_t kAddress = 0x7f0012340000;
constexpr Direction kCall = Direction::kCall;
constexpr Direction kReply = Direction::kReply;

Header client(std::uint32_t xid, Body body) {
  return {.xid = xid, .credit = 32, .body = std::move(body)};
}

Header server(std::uint32_t xid, Body body) {
  return {.xid = xid, .credit = 16, .body = std::move(body)};
}

Header error(Err err, v2::ErrorArm arm = {}) {
  return server(0x00c0ffee, Error{.err = err, .arm = arm});
}

Segment segment(std::uint32_t handle, std::uint32_t length, std::uint64_t more = 0) {
  return {.handle = handle, .length = length, .offset = kAddress + more};
}

v2::Propval word(std::uint32_t which, std::uint32_t value) {
  v2::Propval property{.which = which, .data = Octets(4)};
  put_word(property.data, 0, value);
  return property;
}

Header backward(Direction direction) {
  return {.xid = 0x5e000001, .credit = 4, .body = Msg{.direction = direction}};
}

// The fields of each valid vector, after the words that the vector file explains.
std::map<std::string, Header> messages() {
  const SegmentArray reply_chunk{segment(0x11000002, 4096, 0x20000), segment(0x11000003, 4096, 0x30000)};
  const SegmentArray filled{segment(0x11000002, 4096, 0x20000), segment(0x11000003, 904, 0x30000)};
  return {
      {"S01", client(0x00c0ffee, Msg{})},
      {"S02", server(0x00c0ffee, Msg{.direction = kReply})},
      {"S03",
       client(0x00c0ffef, Msg{.inv_handle = 0x11000001, .lists = {.write_list = {{segment(0x11000001, 4096)}}}})},
      {"S04", server(0x00c0ffef, Msg{.direction = kReply, .lists = {.write_list = {{segment(0x11000001, 1234)}}}})},
      {"S05", client(0x00c0fff0, Msg{.inv_handle = 0x11000002,
                                     .lists = {.read_list = {{72, segment(0x11000002, 1000)},
                                                             {72, segment(0x11000003, 24, 0x10000)}}}})},
      {"S06",
       client(0x00c0fff1, Nomsg{.lists = {.read_list = {{0, segment(0x11000001, 5000)}}, .reply_chunk = reply_chunk}})},
      {"S07", server(0x00c0fff1, Nomsg{.direction = kReply, .lists = {.reply_chunk = filled}})},
      {"S08", client(0x00c0fff2, Nomsg{.inv_handle = 0x11000004,
                                       .lists = {.read_list = {{0, segment(0x11000001, 128)},
                                                               {72, segment(0x11000002, 8192, 0x1000)}},
                                                 .write_list = {{segment(0x11000003, 65536, 0x100000)}, {}},
                                                 .reply_chunk = SegmentArray{segment(0x11000004, 16384, 0x200000)}}})},
      {"S09", backward(kCall)},
      {"S10", backward(kReply)},
      {"S11", server(0x00c0ffef, Msg{.direction = kReply, .lists = {.write_list = {{segment(0x11000001, 0)}}}})},
      {"S83",
       client(0x00c0fff0, Msg{.lists = {.read_list = {{72, segment(0x11000001, 8)}, {40, segment(0x11000002, 8)}}}})},
  };
}

std::map<std::string, Header> errors() {
  Header version = error(Err::kVers, {.vers_low = 1, .vers_high = 2});
  version.vers = 3;
  return {
      {"S20", version},
      {"S21", error(Err::kBadXdr)},
      {"S22", error(Err::kInvalProc)},
      {"S23", error(Err::kReadChunks)},
      {"S24", error(Err::kReadChunks, {.max_chunks = 1})},
      {"S25", error(Err::kWriteChunks, {.max_chunks = 1})},
      {"S26", error(Err::kSegments, {.max_segments = 16})},
      {"S27", error(Err::kWriteResource, {.chunk_index = 1, .length_needed = 8192})},
      {"S28", error(Err::kWriteResource)},
      {"S29", error(Err::kReplyResource, {.length_needed = 20000})},
      {"S30", error(Err::kInvalOption)},
      {"S31", error(Err::kSystem)},
  };
}

std::map<std::string, Header> options() {
  return {
      {"S40", client(0x0b000001, Optional{.opttype = 0x100, .optinfo = {'h', 'e', 'l', 'l', 'o'}})},
      {"S41", server(0x0b000001, Optional{.optdir = kReply, .opttype = 0x100})},
      {"S42", client(0x00c0fff3, Optional{.opttype = 0x101, .optinfo = {1, 2, 3, 4}})},
  };
}

std::map<std::string, Header> properties() {
  const v2::Propval unknown{.which = 0xffffff00, .data = {'o', 'p', 'a', 'q', 'u', 'e'}};
  return {
      {"S43", client(0xcafe0001, Connprop{.start = {word(1, 8192), word(2, 2)}, .nochg = {{1}}})},
      {"S44", server(0xcafe0002, Connprop{.start = {{.which = 1}}})},
      {"S45", client(0xcafe0003, Connprop{.start = {word(1, 16384), unknown, word(2, 1)}, .nochg = {{5}}})},
      {"S46", client(0xcafe0004, Reqprop{.want = {word(1, 16384), word(2, 0)}})},
      {"S47", server(0xcafe0004, Resprop{.done = {{1}}, .rejected = {{2}}})},
      {"S48", server(0xcafe0004, Resprop{.rejected = {{2}}, .other = {word(1, 12288)}})},
      {"S49", server(0xcafe0005, Resprop{.done = {{0, 2}}, .rejected = {{0x80000001}}})},
      {"S50", server(0xcafe0004, Resprop{.done = {{1, 0}}, .rejected = {{2}}})},
      {"S51", server(0xcafe0006, Updprop{.now = {word(1, 65536)}})},
      {"S52", client(0xcafe0007, Connprop{})},
      {"A01", client(0xcafe0020, Reqprop{.want = {word(2, 1)}})},
  };
}

std::map<std::string, Header> valid_vectors() {
  std::map<std::string, Header> all = messages();
  all.merge(errors());
  all.merge(options());
  all.merge(properties());
  return all;
}

const std::map<std::string, HeaderError> kInvalid = {
    {"S70", HeaderError::kHeaderType},    {"S71", HeaderError::kDirection},     {"S72", HeaderError::kDiscriminator},
    {"S73", HeaderError::kCount},         {"S74", HeaderError::kCount},         {"S75", HeaderError::kPayloadXid},
    {"S76", HeaderError::kPayloadType},   {"S77", HeaderError::kPropertyValue}, {"S78", HeaderError::kPropertyValue},
    {"S79", HeaderError::kPropertyValue}, {"S80", HeaderError::kBodyChunk},     {"S81", HeaderError::kTooShort},
    {"S82", HeaderError::kErrorCode},
};

TEST(Cel05Header, EveryValidVectorHasItsFieldsAndComesOutOctetForOctet) {
  RecordProperty(
      "proves",
      "R2-5.1-1 R2-5.2-2 R2-6.1.1-1 R2-6.1.1-2 R2-7.2-1 R2-7.2-2 R2-7.2-3 R2-7.2-4 R2-7.2-5 R2-7.2-6 R2-7.2-7 "
      "R2-7.2-8 R2-7.2-9 R2-6.3.1-1 R2-6.3.2-1 R2-6.3.3-1 R2-7.2.1-2");
  const std::map<std::string, Header> fields = valid_vectors();
  std::size_t num_seen = 0;
  for (const V2Vector& vector : load_v2_vectors("cel05")) {
    if (!vector.is_valid()) continue;
    ASSERT_TRUE(fields.contains(vector.id)) << vector.id;
    testing::expect_both_ways(vector, fields.at(vector.id));
    ++num_seen;
  }
  EXPECT_EQ(num_seen, fields.size());
}

// The answer has the layout of the vector that `reply` names, with the XID of the message.
void expect_answer(const V2Vector& vector, const Header& header, HeaderError refused) {
  const std::optional<Err> err = answer(header, refused);
  ASSERT_EQ(err.has_value(), !vector.reply.empty()) << vector.id;
  if (!err) return;
  Header reply = error(*err);
  Octets octets = load_v2_vector(vector.reply).octets;
  std::copy_n(vector.octets.begin(), 4, octets.begin());
  reply.xid = header.xid;
  EXPECT_EQ(emit(reply), octets) << vector.id;
}

TEST(Cel05Header, EveryInvalidVectorIsRefusedWithItsError) {
  RecordProperty("proves", "R2-6.1.1-4 R2-6.1.1-5 R2-6.1.1-6 R2-7.2-11 R2-7.2.4-4 R2-7.2.4-5 R2-7.2.4-28");
  std::size_t num_seen = 0;
  for (const V2Vector& vector : load_v2_vectors("cel05")) {
    if (vector.is_valid()) continue;
    ASSERT_TRUE(kInvalid.contains(vector.id)) << vector.id;
    Header header;
    const HeaderError refused = parse(vector.octets, header);
    EXPECT_EQ(refused, kInvalid.at(vector.id)) << vector.id << ": " << v2::header_error_str(refused);
    expect_answer(vector, header, refused);
    ++num_seen;
  }
  EXPECT_EQ(num_seen, kInvalid.size());
}

TEST(Cel05Header, EveryCutIsRefused) {
  for (const V2Vector& vector : load_v2_vectors("cel05")) {
    if (vector.is_valid()) testing::expect_every_cut_refused<Header>(vector);
  }
}

TEST(Cel05Header, HostileWordsNeverLeadOutside) {
  for (const V2Vector& vector : load_v2_vectors("cel05")) testing::expect_words_harmless<Header>(vector);
}

// Length, version, type and body are judged in this order.
TEST(Cel05Header, TheFirstFaultDecides) {
  RecordProperty("proves", "R2-7.2.4-8");
  Octets octets = load_v2_vector("S70").octets;
  put_word(octets, 4, 7);
  put_word(octets, 12, 99);
  Header header;
  EXPECT_EQ(parse(octets, header), HeaderError::kVersion);
  EXPECT_EQ(answer(header, HeaderError::kVersion), Err::kVers);
  octets.resize(15);
  EXPECT_EQ(parse(octets, header), HeaderError::kTooShort);
  EXPECT_EQ(answer(header, HeaderError::kTooShort), std::nullopt);
}

TEST(Cel05Header, OnlyAnErrorAboutVersionsMayHaveAnotherVersion) {
  for (const char* id : {"S21", "S29"}) {
    Octets octets = load_v2_vector(id).octets;
    put_word(octets, 4, 3);
    Header header;
    EXPECT_EQ(parse(octets, header), HeaderError::kVersion) << id;
    EXPECT_EQ(answer(header, HeaderError::kVersion), std::nullopt) << id;
  }
}

TEST(Cel05Header, APayloadStreamFollowsWhereItHasToAndNowhereElse) {
  RecordProperty("proves", "R2-7.2.1-1 R2-7.2.1-4 R2-6.3-6");
  Octets octets = load_v2_vector("S01").octets;
  octets.resize(36);
  Header header;
  EXPECT_EQ(parse(octets, header), HeaderError::kNoPayload);
  EXPECT_EQ(answer(header, HeaderError::kNoPayload), Err::kBadXdr);
  for (const char* id : {"S06", "S21", "S43", "S46", "S47", "S51"}) {
    octets = load_v2_vector(id).octets;
    octets.resize(octets.size() + 4);
    EXPECT_EQ(parse(octets, header), HeaderError::kTrailing) << id;
  }
}

TEST(Cel05Header, ThePayloadStreamOfAnExternalMessageNeedsItsChunk) {
  Header call = messages().at("S06");
  Header header;
  std::get<Nomsg>(call.body).lists.read_list[0].position = 4;
  EXPECT_EQ(parse(emit(call), header), HeaderError::kBodyChunk);
  Header reply = messages().at("S07");
  for (Segment& each : *std::get<Nomsg>(reply.body).lists.reply_chunk) each.length = 0;
  EXPECT_EQ(parse(emit(reply), header), HeaderError::kBodyChunk);
  EXPECT_EQ(answer(header, HeaderError::kBodyChunk), std::nullopt);
}

TEST(Cel05Header, AnInlineMessageHasNoPositionZeroAndAReplyNoReadList) {
  Header call = messages().at("S05");
  Header header;
  std::get<Msg>(call.body).lists.read_list[0].position = 0;
  EXPECT_EQ(parse(emit(call), header), HeaderError::kPosition);
  for (const char* id : {"S04", "S07"}) {
    Header reply = messages().at(id);
    const auto add = [](auto& body) {
      if constexpr (requires { body.lists; }) body.lists.read_list = {{72, segment(1, 4)}};
    };
    std::visit(add, reply.body);
    EXPECT_EQ(parse(emit(reply), header), HeaderError::kReadList) << id;
  }
}

TEST(Cel05Header, TheCallChunkIsWrittenInFrontOfTheReadList) {
  Header call = messages().at("S08");
  ChunkListsView& lists = std::get<Nomsg>(call.body).lists;
  lists.call_chunk = {lists.read_list[0].target};
  lists.read_list.erase(lists.read_list.begin());
  EXPECT_EQ(emit(call), load_v2_vector("S08").octets);
}

TEST(Cel05Header, AnOptionIsNotLookedInto) {
  RecordProperty("proves", "R2-7.2.1-3");
  Octets octets = load_v2_vector("S42").octets;
  Header header;
  ConstBytes payload;
  ASSERT_EQ(parse_message(octets, header, payload), HeaderError::kNone);
  EXPECT_EQ(payload.size(), 40u);
  octets[octets.size() - 41] ^= 0xff;  // the last octet of rdma_optinfo
  EXPECT_EQ(parse(octets, header), HeaderError::kNone);
  octets = load_v2_vector("S40").octets;
  octets.back() = 1;  // of the roundup
  EXPECT_EQ(parse(octets, header), HeaderError::kOpaque);
}

TEST(Cel05Header, RepliesAndErrorsAreNeverAnswered) {
  for (const char* id : {"S02", "S07", "S21", "S41", "S47"}) {
    Header header;
    ASSERT_EQ(parse(load_v2_vector(id).octets, header), HeaderError::kNone);
    EXPECT_EQ(answer(header, HeaderError::kTruncated), std::nullopt) << id;
  }
  for (const char* id : {"S01", "S06", "S40", "S43", "S46", "S51"}) {
    Header header;
    ASSERT_EQ(parse(load_v2_vector(id).octets, header), HeaderError::kNone);
    EXPECT_EQ(answer(header, HeaderError::kTruncated), Err::kBadXdr) << id;
    EXPECT_EQ(answer(header, HeaderError::kNone), std::nullopt) << id;
  }
}

// The drafts between the two put a flags word where cel05 has the direction: MSG and NOMSG are the same octets.
TEST(Cel05Header, MessagesOfTheFlagsDraftsAreReadWhereTheyAreTheSame) {
  EXPECT_EQ(load_v2_vector("F01").octets, load_v2_vector("S01").octets);
  EXPECT_EQ(load_v2_vector("F02").octets, load_v2_vector("S02").octets);
  Header header;
  EXPECT_EQ(parse(load_v2_vector("F03").octets, header), HeaderError::kTrailing);
  EXPECT_EQ(parse(load_v2_vector("F04").octets, header), HeaderError::kDirection);
}

}  // namespace
}  // namespace weft::rpcrdma::v2_cel05
