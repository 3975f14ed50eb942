#include "rpcrdma/v2/first_message.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "rpcrdma/testing/v2_vectors.h"
#include "rpcrdma/v1/header.h"
#include "rpcrdma/v2_cel05/header.h"
#include "rpcrdma/v2_wg07/header.h"

namespace weft::rpcrdma::v2 {
namespace {

using testing::load_v2_vector;
using testing::Octets;
using testing::put_word;
using Meaning = Refusal::Meaning;

FirstMessage classify(const std::string& id) {
  return classify_first_message(load_v2_vector(id).octets);
}

TEST(FirstMessage, EveryVectorOfAClientIsPutIntoItsProtocol) {
  const std::map<FirstMessage, std::vector<std::string>> expected = {
      {FirstMessage::kVersion1, {"S61"}},
      {FirstMessage::kCel05, {"S01", "S03", "S05", "S06", "S08", "S40", "S42", "S43", "S45", "S52", "S71", "S72",
                              "S73", "S74", "S75", "S76", "S77", "S78", "S79", "S80", "S83", "F01", "F04"}},
      {FirstMessage::kWg07,
       {"W01", "W03", "W05", "W06", "W08a", "W10", "W11", "W12", "W14", "W41", "W42", "W43", "W44", "W45", "W46", "A01",
        "S46"}},
      {FirstMessage::kUnknown, {"S70", "S81", "W47", "S21", "W21", "S20", "W07"}},
  };
  for (const auto& [protocol, ids] : expected) {
    for (const std::string& id : ids) EXPECT_EQ(classify(id), protocol) << id;
  }
}

TEST(FirstMessage, TypesWithTwoMeaningsAreToldApartByTheirOctets) {
  Octets grant = load_v2_vector("W10").octets;
  grant.resize(20);
  EXPECT_EQ(classify_first_message(grant), FirstMessage::kUnknown);
  grant.resize(28);
  EXPECT_EQ(classify_first_message(grant), FirstMessage::kCel05);

  Octets middle = load_v2_vector("W08a").octets;
  put_word(middle, 20, 1);  // not the XID of the message
  EXPECT_EQ(classify_first_message(middle), FirstMessage::kCel05);
  middle = load_v2_vector("W08a").octets;
  put_word(middle, 24, 1);  // an RPC Reply
  EXPECT_EQ(classify_first_message(middle), FirstMessage::kCel05);
  EXPECT_EQ(classify("S51"), FirstMessage::kCel05);
}

TEST(FirstMessage, VersionsAreToldApart) {
  Octets octets = load_v2_vector("W01").octets;
  for (const auto& [version, protocol] : {std::pair{0u, FirstMessage::kUnknown},
                                          {1u, FirstMessage::kVersion1},
                                          {2u, FirstMessage::kWg07},
                                          {3u, FirstMessage::kUnknown}}) {
    put_word(octets, 4, version);
    EXPECT_EQ(classify_first_message(octets), protocol) << version;
  }
}

constexpr std::uint32_t kXid = 0x00c0ffee;
constexpr Opening kCel05Call{.draft = Draft::kCel05, .xid = kXid, .is_call = true};
constexpr Opening kCel05Properties{.draft = Draft::kCel05, .xid = kXid, .is_call = false};
constexpr Opening kWg07Call{.draft = Draft::kWg07, .xid = kXid, .is_call = true};
constexpr Opening kWg07Properties{.draft = Draft::kWg07, .xid = kXid, .is_call = false};
constexpr Opening kAll[] = {kCel05Call, kCel05Properties, kWg07Call, kWg07Properties};

Octets answer(const std::string& id) {
  Octets octets = load_v2_vector(id).octets;
  put_word(octets, 0, kXid);
  return octets;
}

TEST(Refusal, ARangeOfVersionsIsOneInBothDrafts) {
  for (const Opening& opening : kAll) {
    EXPECT_EQ(refusal(opening, answer("S60")), (Refusal{Meaning::kVersions, 1, 1}));
    EXPECT_EQ(refusal(opening, answer("S20")), (Refusal{Meaning::kVersions, 1, 2}));
  }
}

// Meaning for each opening, in the order of kAll.
TEST(Refusal, EveryErrorMeansWhatItsCodeAndLengthSay) {
  constexpr Meaning kNone = Meaning::kNone;
  constexpr Meaning kCel05 = Meaning::kCel05;
  constexpr Meaning kWg07 = Meaning::kWg07;
  constexpr Meaning kUnclear = Meaning::kUnclear;
  const std::map<std::string, std::array<Meaning, 4>> expected = {
      {"S21", {kNone, kUnclear, kUnclear, kUnclear}},  // BAD_XDR
      {"S22", {kNone, kUnclear, kCel05, kUnclear}},    // INVAL_PROC, or BAD_PROPVAL
      {"S24", {kNone, kNone, kCel05, kCel05}},
      {"S25", {kNone, kNone, kCel05, kCel05}},
      {"S26", {kNone, kNone, kNone, kNone}},  // SEGMENTS, or READ_CHUNKS
      {"S27", {kNone, kNone, kCel05, kCel05}},
      {"S29", {kNone, kNone, kNone, kNone}},    // REPLY_RESOURCE, or SEGMENTS
      {"S30", {kNone, kNone, kCel05, kCel05}},  // INVAL_OPTION
      {"S31", {kNone, kNone, kCel05, kCel05}},
      {"W23", {kWg07, kWg07, kNone, kNone}},  // INVAL_HTYPE
      {"W24", {kWg07, kWg07, kNone, kNone}},
      {"W26", {kWg07, kWg07, kNone, kNone}},
      {"W28", {kWg07, kWg07, kNone, kNone}},
      {"W29", {kWg07, kWg07, kNone, kNone}},
      {"W30", {kWg07, kWg07, kNone, kNone}},
      {"W31", {kWg07, kWg07, kNone, kNone}},
      {"S82", {kNone, kNone, kNone, kNone}},  // unknown in both
  };
  for (const auto& [id, meanings] : expected) {
    for (std::size_t i = 0; i < meanings.size(); ++i) {
      EXPECT_EQ(refusal(kAll[i], answer(id)).meaning, meanings[i]) << id << " for opening " << i;
    }
  }
}

TEST(Refusal, AnAnswerToRequestedPropertiesComesFromCel05) {
  EXPECT_EQ(refusal(kWg07Properties, answer("S47")).meaning, Meaning::kCel05);
  EXPECT_EQ(refusal(kWg07Call, answer("S47")).meaning, Meaning::kNone);
  EXPECT_EQ(refusal(kCel05Properties, answer("S47")).meaning, Meaning::kNone);
}

TEST(Refusal, RepliesAndErrorsForOthersAreNone) {
  for (const Opening& opening : kAll) {
    for (const char* id : {"S02", "W02", "W10", "W13", "S44", "S81"}) {
      EXPECT_EQ(refusal(opening, load_v2_vector(id).octets).meaning, Meaning::kNone) << id;
    }
    Octets other = answer("S60");
    put_word(other, 0, kXid + 1);
    EXPECT_EQ(refusal(opening, other).meaning, Meaning::kNone);
  }
}

// The signals are what each draft's own receiver makes of the other draft's opening.
TEST(Refusal, EachDraftsAnswerToTheOtherTellsTheClient) {
  v2_cel05::Header cel05;
  HeaderError error = testing::parse(load_v2_vector("W01").octets, cel05);
  const Octets from_cel05 = testing::emit(
      v2_cel05::Header{.xid = kXid, .body = v2_cel05::Error{.err = v2_cel05::answer(cel05, error).value()}});
  EXPECT_EQ(refusal(kWg07Call, from_cel05).meaning, Meaning::kCel05);

  v2_wg07::Header wg07;
  error = testing::parse(load_v2_vector("S01").octets, wg07);
  const Octets from_wg07 =
      testing::emit(v2_wg07::Header{.xid = kXid, .body = v2_wg07::Error{.err = v2_wg07::answer(wg07, error).value()}});
  EXPECT_EQ(refusal(kCel05Call, from_wg07).meaning, Meaning::kWg07);
}

// The two vectors of version 1 go through its codec; its ERR_VERS is read by all three.
TEST(FirstMessage, VectorsOfVersionOneComeOutOctetForOctet) {
  RecordProperty("proves", "R2-7.2.4-3 R2-7.2.4-7");
  EXPECT_EQ(static_cast<std::uint32_t>(v2_cel05::Err::kVers), static_cast<std::uint32_t>(v1::Err::kVers));
  EXPECT_EQ(static_cast<std::uint32_t>(v2_cel05::Err::kBadXdr), static_cast<std::uint32_t>(v1::Err::kChunk));
  for (const char* id : {"S60", "S61"}) {
    const Octets octets = load_v2_vector(id).octets;
    xdr::XdrReader in(octets);
    v1::Header header;
    ASSERT_EQ(v1::parse_header(in, header), v1::HeaderError::kNone) << id;
    EXPECT_EQ(testing::emit(header, in.rest()), octets) << id;
  }
  const testing::V2Vector range = load_v2_vector("S60");
  const ErrorArm arm{.vers_low = 1, .vers_high = 1};
  testing::expect_both_ways(
      range,
      v2_cel05::Header{.xid = kXid, .credit = 32, .body = v2_cel05::Error{.err = v2_cel05::Err::kVers, .arm = arm}});
  testing::expect_both_ways(
      range,
      v2_wg07::Header{.xid = kXid, .credit = 32, .body = v2_wg07::Error{.err = v2_wg07::Err::kVers, .arm = arm}});
}

}  // namespace
}  // namespace weft::rpcrdma::v2
