#include "rpcrdma/v2_wg07/header.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>

#include "rpcrdma/testing/v2_vectors.h"

namespace weft::rpcrdma::v2_wg07 {
namespace {

using testing::emit;
using testing::load_v2_vector;
using testing::load_v2_vectors;
using testing::Octets;
using testing::parse;
using testing::put_word;
using testing::V2Vector;

constexpr std::uint64_t kAddress = 0x7f0012340000;

Header message(std::uint32_t xid, std::uint32_t credit, Body body) {
  return {.xid = xid, .credit = credit, .body = std::move(body)};
}

Header error(Err err, v2::ErrorArm arm = {}) {
  return message(0x00c0ffee, 33, Error{.err = err, .arm = arm});
}

Segment segment(std::uint32_t handle, std::uint32_t length, std::uint64_t more = 0) {
  return {.handle = handle, .length = length, .offset = kAddress + more};
}

v2::Propval word(std::uint32_t which, std::uint32_t value) {
  v2::Propval property{.which = which, .data = Octets(4)};
  put_word(property.data, 0, value);
  return property;
}

// The fields of each valid vector, after the words that the vector file explains.
std::map<std::string, Header> calls() {
  const SegmentArray reply_chunk{segment(0x11000002, 4096, 0x20000), segment(0x11000003, 4096, 0x30000)};
  return {
      {"W01", message(0x00c0ffee, 32, CallInline{})},
      {"W03", message(0x00c0ffef, 33,
                      CallInline{.inv_handle = 0x11000001, .lists = {.write_list = {{segment(0x11000001, 4096)}}}})},
      {"W05", message(0x00c0fff0, 34,
                      CallInline{.inv_handle = 0x11000002,
                                 .lists = {.read_list = {{72, segment(0x11000002, 1000)},
                                                         {72, segment(0x11000003, 24, 0x10000)}}}})},
      {"W06", message(0x00c0fff1, 35,
                      CallExternal{.lists = {.call_chunk = {segment(0x11000001, 5000)},
                                             .read_list = {{72, segment(0x11000004, 8192, 0x1000)}},
                                             .reply_chunk = reply_chunk}})},
      {"W08a", message(0x00c0fff2, 36, CallMiddle{.remaining = 60})},
      {"W08b", message(0x00c0fff2, 36, CallMiddle{.remaining = 20})},
      {"W08c", message(0x00c0fff2, 36, CallInline{})},
      {"W32", message(0x5e000001, 36, CallInline{})},
      {"W45", message(0x00c0fff2, 37, CallMiddle{.remaining = 60})},
  };
}

std::map<std::string, Header> replies() {
  const SegmentArray filled{segment(0x11000002, 4096, 0x20000), segment(0x11000003, 904, 0x30000)};
  return {
      {"W02", message(0x00c0ffee, 33, ReplyInline{})},
      {"W04", message(0x00c0ffef, 34, ReplyInline{.lists = {.write_list = {{segment(0x11000001, 1234)}}}})},
      {"W07", message(0x00c0fff1, 36, ReplyExternal{.lists = {.reply_chunk = filled}})},
      {"W09a", message(0x00c0fff2, 39, ReplyMiddle{.remaining = 36})},
      {"W09b", message(0x00c0fff2, 39, ReplyInline{})},
      {"W33", message(0x5e000001, 38, ReplyInline{})},
  };
}

std::map<std::string, Header> control() {
  constexpr std::string_view kMaterial = "host-auth-material-0123456789abcdefgh";
  v2::Propval host_auth{.which = 6, .data = {0, 0, 0, 37}};
  host_auth.data.insert(host_auth.data.end(), kMaterial.begin(), kMaterial.end());
  host_auth.data.resize(44);
  return {
      {"W10", message(0, 71, Grant{})},
      {"W11", message(0xcafe0011, 32, ConnpropMiddle{.props = {host_auth}})},
      {"W12",
       message(0xcafe0012, 32,
               ConnpropFinal{.props = {word(1, 8192), word(2, 8192), word(3, 1 << 20), word(4, 32), word(5, 2)}})},
      {"W13", message(0xcafe0013, 33, ConnpropFinal{})},
      {"W14",
       message(0xcafe0014, 32, ConnpropFinal{.props = {{.which = 2}, {.which = 4711, .data = {'a', 'b', 'c'}}}})},
      {"A01", message(0xcafe0020, 32, ConnpropFinal{.props = {word(2, 1)}})},
  };
}

std::map<std::string, Header> errors() {
  Header version = error(Err::kVers, {.vers_low = 1, .vers_high = 2});
  version.vers = 3;
  return {
      {"W20", version},
      {"W21", error(Err::kBadXdr)},
      {"W22", error(Err::kBadPropval)},
      {"W23", error(Err::kInvalHtype)},
      {"W24", error(Err::kInvalCont)},
      {"W25", error(Err::kReadChunks, {.max_chunks = 1})},
      {"W26", error(Err::kWriteChunks, {.max_chunks = 1})},
      {"W27", error(Err::kSegments, {.max_segments = 16})},
      {"W28", error(Err::kWriteResource, {.chunk_index = 1, .length_needed = 8192})},
      {"W29", error(Err::kReplyResource, {.length_needed = 20000})},
      {"W30", error(Err::kVersMismatch)},
      {"W31", error(Err::kSystem)},
  };
}

std::map<std::string, Header> valid_vectors() {
  std::map<std::string, Header> all = calls();
  all.merge(replies());
  all.merge(control());
  all.merge(errors());
  return all;
}

const std::map<std::string, HeaderError> kInvalid = {
    {"W40", HeaderError::kHeaderType},    {"W41", HeaderError::kPosition},      {"W42", HeaderError::kPosition},
    {"W43", HeaderError::kPropertyValue}, {"W44", HeaderError::kPropertyValue}, {"W46", HeaderError::kBodyChunk},
    {"W47", HeaderError::kTooShort},      {"W48", HeaderError::kErrorCode},     {"W49", HeaderError::kBodyChunk},
};

TEST(Wg07Header, EveryValidVectorHasItsFieldsAndComesOutOctetForOctet) {
  RecordProperty("proves",
                 "W2-6.1-1 W2-6.2.1-1 W2-6.3.1-1 W2-6.3.5-1 W2-6.3.6-1 W2-6.3.7-1 W2-6.3.8-1 W2-6.3.9-1 W2-6.3.10-1 "
                 "W2-8.3-1 W2-8.3-2 W2-8.4-1 W2-5.1-1 W2-3.2.2.1-1 W2-6.1-3");
  const std::map<std::string, Header> fields = valid_vectors();
  std::size_t num_seen = 0;
  for (const V2Vector& vector : load_v2_vectors("wg07")) {
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

TEST(Wg07Header, EveryInvalidVectorIsRefusedWithItsError) {
  RecordProperty(
      "proves",
      "W2-4.5.1.1-1 W2-5.1-3 W2-5.1-4 W2-6.1-4 W2-6.3.5-3 W2-6.3.7-2 W2-6.3.8-2 W2-7-1 W2-7-3 W2-7.1.3-1 W2-7.2.1-1");
  std::size_t num_seen = 0;
  for (const V2Vector& vector : load_v2_vectors("wg07")) {
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

// The flags word of draft-02 was gone in draft-03: what has one is no message of this draft.
TEST(Wg07Header, MessagesWithAFlagsWordAreRefused) {
  RecordProperty("proves", "W2-6.2.1-2");
  std::size_t num_seen = 0;
  for (const V2Vector& vector : load_v2_vectors("flags")) {
    Header header;
    EXPECT_NE(parse(vector.octets, header), HeaderError::kNone) << vector.id;
    ++num_seen;
  }
  EXPECT_EQ(num_seen, 4u);
}

// An error of another document has the arm of the default, and is none that this end knows.
TEST(Wg07Header, UnknownErrorCodesHaveAVoidArm) {
  RecordProperty("proves", "W2-B.4-1");
  for (const std::uint32_t code : {0u, 12u, 99u, 101u, 0xffffffffu}) {
    Octets octets = load_v2_vector("W21").octets;
    ASSERT_EQ(octets.size(), 20u);
    put_word(octets, 16, code);
    Header header;
    EXPECT_EQ(parse(octets, header), HeaderError::kErrorCode) << code;
    EXPECT_EQ(answer(header, HeaderError::kErrorCode), std::nullopt) << code;
  }
}

TEST(Wg07Header, EveryCutIsRefused) {
  for (const V2Vector& vector : load_v2_vectors("wg07")) {
    if (vector.is_valid()) testing::expect_every_cut_refused<Header>(vector);
  }
}

TEST(Wg07Header, HostileWordsNeverLeadOutside) {
  for (const V2Vector& vector : load_v2_vectors("wg07")) testing::expect_words_harmless<Header>(vector);
}

TEST(Wg07Header, TheFirstFaultDecides) {
  RecordProperty("proves", "W2-7.1.1-1");
  Octets octets = load_v2_vector("W40").octets;
  put_word(octets, 4, 3);
  Header header;
  EXPECT_EQ(parse(octets, header), HeaderError::kVersion);
  EXPECT_EQ(answer(header, HeaderError::kVersion), Err::kVers);
  octets.resize(15);
  EXPECT_EQ(parse(octets, header), HeaderError::kTooShort);
  EXPECT_EQ(answer(header, HeaderError::kTooShort), std::nullopt);
}

TEST(Wg07Header, OnlyAnErrorAboutVersionsMayHaveAnotherVersion) {
  Header header;
  for (const char* id : {"W21", "W29"}) {
    Octets octets = load_v2_vector(id).octets;
    put_word(octets, 4, 1);
    EXPECT_EQ(parse(octets, header), HeaderError::kVersion) << id;
    EXPECT_EQ(answer(header, HeaderError::kVersion), std::nullopt) << id;
  }
  Octets octets = load_v2_vector("W30").octets;
  put_word(octets, 4, 1);
  EXPECT_EQ(parse(octets, header), HeaderError::kNone);
}

TEST(Wg07Header, APayloadStreamFollowsWhereItHasToAndNowhereElse) {
  RecordProperty("proves", "W2-6.1-2");
  Header header;
  for (const Body& body : std::vector<Body>{CallInline{}, CallMiddle{}, ReplyInline{}, ReplyMiddle{}}) {
    const Header cut = message(1, 1, body);
    for (std::size_t len = 0; len < 4; ++len) {
      EXPECT_EQ(parse(emit(cut, Octets(len)), header), HeaderError::kNoPayload);
    }
    EXPECT_EQ(parse(emit(cut, Octets(5)), header), HeaderError::kNone);
  }
  for (const char* id : {"W06", "W07", "W10", "W11", "W12", "W21"}) {
    Octets octets = load_v2_vector(id).octets;
    octets.push_back(0);
    EXPECT_EQ(parse(octets, header), HeaderError::kTrailing) << id;
  }
}

TEST(Wg07Header, GrantIsSixteenOctetsWithAnyXid) {
  Octets octets = load_v2_vector("W10").octets;
  put_word(octets, 0, 5);
  Header header;
  ASSERT_EQ(parse(octets, header), HeaderError::kNone);
  EXPECT_EQ(header, message(5, 71, Grant{}));
  octets.resize(28);  // as long as RDMA2_OPTIONAL of cel05
  EXPECT_EQ(parse(octets, header), HeaderError::kTrailing);
  EXPECT_EQ(answer(header, HeaderError::kTrailing), std::nullopt);
}

TEST(Wg07Header, OnlyTheCallChunkStandsAtPositionZero) {
  RecordProperty("proves", "W2-6.6.3-1");
  Header header;
  Octets octets = load_v2_vector("W06").octets;
  put_word(octets, 24, 4);  // of the Call chunk
  EXPECT_EQ(parse(octets, header), HeaderError::kPosition);
  octets = load_v2_vector("W06").octets;
  put_word(octets, 52, 0);  // of the Read list
  EXPECT_EQ(parse(octets, header), HeaderError::kPosition);
  EXPECT_EQ(answer(header, HeaderError::kPosition), Err::kBadXdr);
}

TEST(Wg07Header, TheChunkOfAnExternalMessageHasOctets) {
  Header header;
  Octets octets = load_v2_vector("W06").octets;
  put_word(octets, 32, 0);  // rdma_length of the Call chunk
  EXPECT_EQ(parse(octets, header), HeaderError::kBodyChunk);
  Header reply = replies().at("W07");
  for (Segment& each : *std::get<ReplyExternal>(reply.body).lists.reply_chunk) each.length = 0;
  EXPECT_EQ(parse(emit(reply), header), HeaderError::kBodyChunk);
}

TEST(Wg07Header, RepliesGrantsAndErrorsAreNeverAnswered) {
  Header header;
  for (const char* id : {"W02", "W07", "W09a", "W10", "W21"}) {
    ASSERT_EQ(parse(load_v2_vector(id).octets, header), HeaderError::kNone);
    EXPECT_EQ(answer(header, HeaderError::kTruncated), std::nullopt) << id;
  }
  for (const char* id : {"W01", "W06", "W08a", "W11", "W12"}) {
    ASSERT_EQ(parse(load_v2_vector(id).octets, header), HeaderError::kNone);
    EXPECT_EQ(answer(header, HeaderError::kTruncated), Err::kBadXdr) << id;
    EXPECT_EQ(answer(header, HeaderError::kPropertyValue), Err::kBadPropval) << id;
    EXPECT_EQ(answer(header, HeaderError::kNone), std::nullopt) << id;
  }
}

}  // namespace
}  // namespace weft::rpcrdma::v2_wg07
