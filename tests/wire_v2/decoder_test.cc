// The cases that the vectors do not have: one spoiled message for each rule that a message alone can break.

#include "tests/wire_v2/decoder.h"

#include <gtest/gtest.h>

#include "tests/wire_v2/fields.h"
#include "tests/wire_v2/tables.h"
#include "tests/wire_v2/talk.h"

namespace weft::wire_v2 {
namespace {

constexpr Segment kBody = {0x5001, 4096, 0x10000};

std::string rule_of(const Bytes& octets, Profile profile) {
  const auto got = decode(octets, profile);
  return std::holds_alternative<Fault>(got) ? std::get<Fault>(got).rule : "";
}

// Spoiled: a good message, and what makes it a bad one.
struct Spoiled {
  const char* name = nullptr;
  Profile profile = Profile::kCel05;
  const char* rule = nullptr;
  Message (*good)(const Talk&) = nullptr;
  void (*spoil)(Message&) = nullptr;
};

Message call(const Talk& talk) {
  Message call = talk.call(kClient, kXid, 32);
  call.reads = {{40, kBody}, {60, kBody}};
  call.writes = {{kBody}};
  return call;
}
Message reply(const Talk& talk) {
  Message reply = talk.reply(kServer, kXid, 32);
  reply.writes = {{kBody}};
  return reply;
}
Message external_call(const Talk& talk) {
  return talk.external_call(kClient, kXid, kBody);
}
Message external_reply(const Talk& talk) {
  return talk.external_reply(kServer, kXid, kBody);
}
Message grant(const Talk& talk) {
  return talk.message(kServer, wg07::kGrant);
}
Message versions(const Talk& talk) {
  return talk.error(kServer, kXid, kErrVers);
}
Message bad_xdr(const Talk& talk) {
  return talk.error(kServer, kXid, kErrBadXdr);
}
Message option(const Talk& talk) {
  Message option = talk.message(kClient, cel05::kOptional, kXid);
  option.direction = Direction::kCall;
  option.payload = rpc_call(kXid);
  return option;
}
Message connprop(const Talk& talk) {
  return talk.properties(kClient, cel05::kConnprop, {{cel05::kRbsiz, word(8192)}});
}
Message final_properties(const Talk& talk) {
  Bytes hostauth = word(4);
  hostauth.resize(8);
  return talk.properties(kClient, wg07::kConnpropFinal,
                         {{wg07::kHostauth, hostauth}, {wg07::kBrs, word(3)}, {wg07::kRssiz, word(1)}});
}

void add_word(Message& message) {
  message.payload.resize(message.payload.size() + 4);
}

constexpr Profile kCel05 = Profile::kCel05, kWg07 = Profile::kWg07;

const Spoiled kSpoiled[] = {
    {"Version", kCel05, "R2-7.2-1", call, [](Message& m) { m.version = 3; }},
    {"Version", kWg07, "W2-8.3-1", call, [](Message& m) { m.version = 3; }},
    {"VersionOfAnError", kWg07, "W2-8.3-1", bad_xdr, [](Message& m) { m.version = 3; }},
    {"Credit", kCel05, "R2-7.2.2-10", call, [](Message& m) { m.credit = 0; }},
    {"SegmentsWrap", kCel05, "R2-7.2-3", call, [](Message& m) { m.writes[0][0].offset = UINT64_MAX - 4094; }},
    {"SegmentsWrap", kWg07, "W2-3.2.2.1-1", call, [](Message& m) { m.writes[0][0].offset = UINT64_MAX - 4094; }},
    {"PositionsAreOfWords", kCel05, "R1-4.4.5-05", call, [](Message& m) { m.reads[1].position = 62; }},
    {"PositionsAreOfWords", kWg07, "W2-4.5.1-2", call, [](Message& m) { m.reads[1].position = 62; }},
    {"PositionsBehindTheHeader", kCel05, "R1-4.4.5-02", call, [](Message& m) { m.reads[0].position = 36; }},
    {"PositionsWithinTheStream", kCel05, "R1-4.4.5-02", call, [](Message& m) { m.reads[1].position = 72 + 4096 + 4; }},
    {"PositionsOfALongCall", kCel05, "R1-4.4.5-02", external_call,
     [](Message& m) {
       m.reads.push_back({36, kBody});
     }},
    {"PositionsOfALongCall", kWg07, "W2-4.5.1-1", external_call,
     [](Message& m) {
       m.reads = {{4100, kBody}};
     }},
    {"PositionZero", kCel05, "R2-3.1-3", call, [](Message& m) { m.reads[0].position = 0; }},
    {"PositionsOfTheCallChunk", kWg07, "W2-6.6.3-1", external_call, [](Message& m) { m.call[0].position = 4; }},
    {"RepliesHaveNoReadList", kCel05, "R1-5.3.1-02", reply,
     [](Message& m) {
       m.reads = {{40, kBody}};
     }},
    {"RepliesNameNoHandle", kCel05, "R2-7.2.3-7", reply, [](Message& m) { m.inv_handle = kBody.handle; }},
    {"InlineRepliesLeaveTheReplyChunk", kCel05, "R1-5.3.3-05", reply, [](Message& m) { m.reply = {kBody}; }},
    {"TheNamedHandleIsThere", kCel05, "R2-7.2.3-1", call, [](Message& m) { m.inv_handle = 1; }},
    {"TheNamedHandleIsThere", kWg07, "W2-6.5-1", call, [](Message& m) { m.inv_handle = 1; }},
    {"VersionsAreARange", kCel05, "R2-7.2.4-3", versions,
     [](Message& m) {
       m.error.words = {2, 1};
     }},
    {"VersionsAreARange", kWg07, "W2-7.1.1-1", versions,
     [](Message& m) {
       m.error.words = {2, 1};
     }},
    {"GrantsHaveNoXid", kWg07, "W2-6.3.2-1", grant, [](Message& m) { m.xid = 1; }},
    {"OptionsHaveTheirDirection", kCel05, "R2-7.2.2-5", option, [](Message& m) { m.direction = Direction::kReply; }},
    {"PropertiesHaveNothingMore", kCel05, "R2-6.1.1-5", connprop, [](Message& m) { m.properties[0].value.resize(8); }},
    {"PropertiesOfAKnownLevel", kWg07, "W2-5.1-4", final_properties,
     [](Message& m) { m.properties[1].value = word(4); }},
    {"PropertiesHaveNothingMore", kWg07, "W2-5.1-4", final_properties,
     [](Message& m) { m.properties[2].value.resize(8); }},
    {"PropertiesHoldOpaques", kWg07, "W2-5.1-4", final_properties, [](Message& m) { m.properties[0].value = word(4); }},
    {"BodiesHoldACall", kCel05, "R2-3.1-3", external_call, [](Message& m) { m.reads[0].target.length = 36; }},
    {"BodiesHoldACall", kWg07, "W2-4.5.3-1", external_call, [](Message& m) { m.call[0].target.length = 36; }},
    {"BodiesHoldAReply", kWg07, "W2-4.5.3-1", external_reply, [](Message& m) { m.reply->at(0).length = 16; }},
    {"BodiesAreOfWords", kCel05, "R2-3.1-3", external_reply, [](Message& m) { m.reply->at(0).length = 4095; }},
    {"BodiesAreOfWords", kWg07, "W2-4.5.3-1", external_call, [](Message& m) { m.call[0].target.length = 4095; }},
    {"NothingFollowsALongCall", kCel05, "R2-7.2.1-4", external_call, add_word},
    {"NothingFollowsALongCall", kWg07, "W2-6.1-2", external_call, add_word},
    {"NothingFollowsAnError", kCel05, "R2-7.2.1-2", bad_xdr, add_word},
    {"NothingFollowsAnError", kWg07, "W2-6.1-2", bad_xdr, add_word},
    {"NothingFollowsProperties", kCel05, "R2-6.3-6", connprop, add_word},
    {"NothingFollowsProperties", kWg07, "W2-6.1-2", final_properties, add_word},
    {"NothingFollowsAGrant", kWg07, "W2-6.3.2-1", grant, add_word},
    {"RpcMessagesAreOfWords", kCel05, "R2-7.2.1-1", call, [](Message& m) { m.payload.push_back(0); }},
    {"RpcMessagesAreThere", kCel05, "R2-7.2.1-1", reply, [](Message& m) { m.payload.clear(); }},
    {"CallsAreOfRpcVersion2", kCel05, "R2-7.2.1-1", call, [](Message& m) { m.payload[11] = 3; }},
    {"CredentialsAreShort", kCel05, "R2-7.2.1-1", call,
     [](Message& m) { m.payload.resize(1000), m.payload[30] = 1, m.payload[31] = 0x94; }},
    {"RepliesHaveAStatus", kCel05, "R2-7.2.1-1", reply, [](Message& m) { m.payload[23] = 6; }},
    {"NothingFollowsAFailure", kCel05, "R2-7.2.1-1", reply, [](Message& m) { m.payload[23] = 5; }},
    {"DirectionOfAReply", kCel05, "R2-7.2.2-4", reply, [](Message& m) { m.direction = Direction::kCall; }},
};

struct WireV2Decoder : testing::TestWithParam<Spoiled> {};

TEST_P(WireV2Decoder, RefusesWhatIsSpoiled) {
  const Talk talk(GetParam().profile);
  Message message = GetParam().good(talk);
  EXPECT_EQ(rule_of(encode(message), GetParam().profile), "");
  GetParam().spoil(message);
  EXPECT_EQ(rule_of(encode(message), GetParam().profile), GetParam().rule);
}

INSTANTIATE_TEST_SUITE_P(Rules, WireV2Decoder, testing::ValuesIn(kSpoiled), [](const auto& info) {
  return std::string(name_of(info.param.profile)) + "_" + info.param.name;
});

// libtirpc's decoder reads over it: any padding, any word for TRUE.
TEST(WireV2DecoderOf, OctetsThatNoEncoderMakes) {
  const Talk talk(Profile::kCel05);
  Message option = talk.message(kClient, cel05::kOptional, kXid);
  option.direction = Direction::kCall;
  option.option_info = {1};
  Bytes octets = encode(option);
  EXPECT_EQ(rule_of(octets, Profile::kCel05), "");
  octets.back() = 1;
  EXPECT_EQ(rule_of(octets, Profile::kCel05), "R2-7.2.4-5");

  constexpr std::size_t kReads = 23;  // the last octet of the discriminator
  octets = encode(Talk(Profile::kWg07).call(kClient, kXid));
  octets.at(kReads) = 2;
  EXPECT_EQ(rule_of(octets, Profile::kWg07), "W2-7.2.1-1");
}

// These two tell of the version, and copy the one that they refuse.
TEST(WireV2DecoderOf, ErrorsOfTheVersionHaveAnyVersion) {
  for (const std::uint32_t code : {kErrVers, wg07::kErrVersMismatch}) {
    Message error = Talk(Profile::kWg07).error(kServer, kXid, code);
    error.version = 1;
    EXPECT_EQ(rule_of(encode(error), Profile::kWg07), "");
  }
}

// A header that is longer than any real one ends the decoder, not the stack.
TEST(WireV2DecoderOf, HugeLists) {
  for (const Profile profile : {Profile::kCel05, Profile::kWg07}) {
    Message call = Talk(profile).call(kClient, kXid);
    call.writes.resize(100000, {});
    EXPECT_NE(rule_of(encode(call), profile), "");
    call.writes.resize(4000);
    EXPECT_EQ(rule_of(encode(call), profile), "");
  }
}

}  // namespace
}  // namespace weft::wire_v2
