#include "tests/wire_v2/transcript.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/wire_v2/fields.h"
#include "tests/wire_v2/tables.h"
#include "tests/wire_v2/talk.h"

namespace weft::wire_v2 {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::StartsWith;

constexpr std::size_t kFirst = 3, kSecond = 8;  // ends of one connection

struct WireV2Transcript : testing::TestWithParam<Profile> {
  void say(std::size_t end, const Message& message) { hear(end, Post::Kind::kSend, encode(message)); }
  void hear(std::size_t end, Post::Kind kind, const Bytes& octets) { transcript.add({end, kind, octets, {}, {}}); }
  void use(std::size_t end, Post::Kind kind, const Segment& segment) { transcript.add({end, kind, {}, {}, segment}); }
  // One RPC, from its Call to its Reply.
  void one_rpc(std::size_t client, std::size_t server) {
    say(client, talk.call(kClient, kXid));
    say(server, talk.reply(kServer, kXid));
  }
  const char* rule(const char* cel05, const char* wg07) { return GetParam() == Profile::kCel05 ? cel05 : wg07; }

  Transcript transcript;
  Talk talk{GetParam()};
};

TEST_P(WireV2Transcript, AConnectionIsOneConversation) {
  transcript.pair(kFirst, kSecond);
  one_rpc(kFirst, kSecond);
  const auto verdict = transcript.judge();
  EXPECT_THAT(verdict.faults, IsEmpty());
  EXPECT_EQ(verdict.num_messages, 2u);
  EXPECT_THAT(verdict.num_conversations, ElementsAre(std::pair(GetParam(), 1u)));
  EXPECT_FALSE(verdict.tally.occurred(GetParam()).empty());
}

TEST_P(WireV2Transcript, ACallWithoutAnAnswerIsNamed) {
  transcript.pair(kFirst, kSecond);
  one_rpc(kFirst, kSecond);
  EXPECT_THAT(transcript.judge().unanswered, IsEmpty());
  say(kFirst, talk.call(kClient, kXid + 1));
  EXPECT_THAT(transcript.judge().unanswered, ElementsAre("the client's Call 8"));
  say(kSecond, talk.error(kServer, kXid + 1, kErrBadXdr));
  EXPECT_THAT(transcript.judge().unanswered, IsEmpty());
  say(kSecond, talk.call(kServer, kXid + 2));
  EXPECT_THAT(transcript.judge().unanswered, ElementsAre("the server's Call 9"));
}

TEST_P(WireV2Transcript, TheClientIsTheEndThatConnected) {
  transcript.pair(kSecond, kFirst);
  one_rpc(kFirst, kSecond);
  EXPECT_THAT(transcript.judge().faults, Contains(StartsWith(rule("R2-8-2: ", "W2-4.3-3: "))));
}

TEST_P(WireV2Transcript, ABrokenRuleIsNamedWithTheMessage) {
  transcript.pair(kFirst, kSecond);
  const Message call = talk.call(kClient, kXid), second = talk.call(kClient, kXid + 1);
  say(kFirst, call);
  say(kFirst, second);
  const auto faults = transcript.judge().faults;
  EXPECT_THAT(faults, ElementsAre(StartsWith(rule("R2-8-1: ", "W2-4.3-1: "))));
  EXPECT_THAT(faults.at(0), testing::HasSubstr("\n0000000800000002"));
}

TEST_P(WireV2Transcript, ConnectionsDoNotMix) {
  transcript.pair(kFirst, kSecond);
  transcript.pair(kFirst + 1, kSecond + 1);
  say(kFirst, talk.call(kClient, kXid));
  say(kFirst + 1, talk.call(kClient, kXid));
  say(kSecond + 1, talk.reply(kServer, kXid));
  say(kSecond, talk.reply(kServer, kXid));
  EXPECT_THAT(transcript.judge().faults, IsEmpty());
}

TEST_P(WireV2Transcript, RdmaHasToBeWithinAnOffer) {
  const Segment offered{0x11, 4096, 0x1000};
  for (const auto kind : {Post::Kind::kRead, Post::Kind::kWrite}) {
    transcript = {};
    transcript.pair(kFirst, kSecond);
    Message call = talk.external_call(kClient, kXid, offered);
    call.reply = {{offered}};
    say(kFirst, call);
    use(kSecond, kind, offered);
    EXPECT_THAT(transcript.judge().faults, IsEmpty());
    use(kSecond, kind, {offered.handle, offered.length, offered.offset + 1});
    EXPECT_THAT(transcript.judge().faults, ElementsAre(StartsWith(rule("R1-4.1-01: ", "W2-4-1: "))));
  }
}

TEST_P(WireV2Transcript, AnEndWithoutItsPeerIsJudgedMessageByMessage) {
  say(kSecond, talk.reply(kServer, kXid));
  say(kSecond, talk.reply(kServer, kXid));
  EXPECT_THAT(transcript.judge().faults, IsEmpty());
  EXPECT_EQ(transcript.judge().tally.occurred(GetParam()).begin()->second, 2u);
  Message malformed = talk.reply(kServer, kXid);
  malformed.type = 3;
  say(kSecond, malformed);
  EXPECT_THAT(transcript.judge().faults, ElementsAre(StartsWith(rule("R2-7.2.4-4: ", "W2-6.1-4: "))));
}

// An error is the same in both drafts.
TEST_P(WireV2Transcript, WhatArrivesShowsTheDraft) {
  const Bytes error = encode(talk.error(kServer, kXid, kErrBadXdr));
  hear(kSecond, Post::Kind::kSend, error);
  EXPECT_EQ(transcript.judge().num_messages, 1u);
  for (const Profile profile : {Profile::kCel05, Profile::kWg07}) {
    EXPECT_THAT(transcript.judge().tally.occurred(profile), IsEmpty());
  }
  transcript = {};
  hear(kSecond, Post::Kind::kArrival, encode(talk.call(kClient, kXid)));
  hear(kSecond, Post::Kind::kSend, error);
  EXPECT_EQ(transcript.judge().tally.count(GetParam(), "RDMA2_ERROR"), 1u);
}

TEST_P(WireV2Transcript, VersionOneIsJudgedByItsOwnDecoder) {
  Bytes call = encode(talk.call(kClient, kXid));
  call[7] = 1;
  call.resize(12);
  for (const bool paired : {false, true}) {
    transcript = {};
    if (paired) transcript.pair(kFirst, kSecond);
    hear(kFirst, Post::Kind::kSend, call);
    const auto verdict = transcript.judge();
    EXPECT_THAT(verdict.faults, ElementsAre(StartsWith("R1-5-01: ")));
    EXPECT_EQ(verdict.num_messages, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Drafts, WireV2Transcript, testing::Values(Profile::kCel05, Profile::kWg07),
                         [](const auto& info) { return std::string(name_of(info.param)); });

}  // namespace
}  // namespace weft::wire_v2
