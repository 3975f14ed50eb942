#include "tests/wire_v2/conversation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "tests/vectors/vector_file.h"
#include "tests/wire_v2/conversation_cases.h"
#include "tests/wire_v2/tables.h"

namespace weft::wire_v2 {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<Case> all_cases() {
  std::vector<Case> all = shared_cases();
  for (const auto& cases : {cel05_cases(), wg07_cases()}) all.insert(all.end(), cases.begin(), cases.end());
  return all;
}

struct WireV2Conversation : testing::TestWithParam<Case> {};

TEST_P(WireV2Conversation, HealthyOneBreaksNothing) {
  Talk talk(GetParam().profile);
  GetParam().healthy(talk);
  EXPECT_THAT(talk.rules(), IsEmpty()) << talk.conversation().violations().at(0).text;
}

TEST_P(WireV2Conversation, BrokenOneBreaksThisRuleAlone) {
  Talk talk(GetParam().profile);
  GetParam().broken(talk);
  EXPECT_THAT(talk.rules(), ElementsAre(GetParam().rule));
  for (const Violation& violation : talk.conversation().violations()) {
    EXPECT_GT(violation.event, 0u);
    SCOPED_TRACE(violation.text);
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, WireV2Conversation, testing::ValuesIn(all_cases()), [](const auto& info) {
  return std::string(name_of(info.param.profile)) + "_" + info.param.name;
});

std::map<std::string, Bytes> read_vectors() {
  std::map<std::string, Bytes> octets;
  std::ifstream in("tests/vectors/rpcrdma2-vectors.txt");
  std::string id;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("id: ")) id = line.substr(4);
    if (line.starts_with("hex: ")) octets[id] = vectors::from_hex(line.substr(5));
  }
  return octets;
}

// Two ends that keep every rule, through every kind of message.
TEST(WireV2ConversationOf, TheVectorsOfWg07) {
  const auto octets = read_vectors();
  Conversation conversation(Profile::kWg07);
  const auto client = [&](const char* name) { conversation.send(kClient, octets.at(name)); };
  const auto server = [&](const char* name, std::optional<std::uint32_t> invalidated = {}) {
    conversation.send(kServer, octets.at(name), invalidated);
  };
  client("W01");
  server("W02");
  client("W03");
  conversation.rdma_write(kServer, {0x11000001, 1234, 0x7f0012340000});
  server("W04", 0x11000001);
  client("W06");
  conversation.rdma_read(kServer, {0x11000001, 5000, 0x7f0012340000});
  conversation.rdma_read(kServer, {0x11000004, 0x2000, 0x7f0012341000});
  conversation.rdma_write(kServer, {0x11000002, 4096, 0x7f0012360000});
  conversation.rdma_write(kServer, {0x11000003, 904, 0x7f0012370000});
  server("W07");
  client("W08a");
  client("W08b");
  client("W08c");
  server("W09a");
  server("W09b");
  server("W10");
  for (const Violation& violation : conversation.violations()) ADD_FAILURE() << violation.rule << " " << violation.text;
  EXPECT_THAT(conversation.unanswered(kClient), IsEmpty());
}

// The server knows version 1 only; what the client goes on with is judged by version 1's decoder.
TEST(WireV2ConversationOf, TheVectorsOfAServerOfVersion1) {
  auto octets = read_vectors();
  for (const char* last : {"S61", "broken"}) {
    Conversation conversation(Profile::kCel05);
    conversation.send(kClient, octets.at("S01"));
    conversation.send(kServer, octets.at("S60"));
    octets["broken"] = octets.at("S61");
    octets["broken"][15] = 2;  // RDMA_MSGP
    conversation.send(kClient, octets.at(last));
    const bool is_broken = last == std::string("broken");
    EXPECT_EQ(conversation.violations().size(), is_broken ? 1u : 0u) << last;
    if (is_broken) {
      EXPECT_EQ(conversation.violations().at(0).rule, "R1-5-01");
    }
  }
}

// Until the server's first answer in version 1 it is one message at a time.
TEST(WireV2ConversationOf, VersionOneStartsWithOneMessage) {
  const auto octets = read_vectors();
  Conversation conversation(Profile::kWg07);
  conversation.send(kClient, octets.at("W01"));
  conversation.send(kServer, octets.at("S60"));
  conversation.send(kClient, octets.at("S61"));
  EXPECT_THAT(conversation.violations(), IsEmpty());
  conversation.send(kClient, octets.at("S61"));
  ASSERT_EQ(conversation.violations().size(), 1u);
  EXPECT_EQ(conversation.violations().at(0).rule, "W2-4.3-1");
}

TEST(WireV2ConversationOf, TellsOfCallsWithoutAnAnswer) {
  Talk talk(Profile::kCel05);
  talk.open();
  talk.say(kClient, talk.call(kClient, 7));
  talk.say(kClient, talk.call(kClient, 8));
  talk.say(kServer, talk.error(kServer, 7, 10));
  EXPECT_THAT(talk.conversation().unanswered(kClient), ElementsAre(8u));
}

// The message of a peer that keeps no rules at all: one violation, and an error may answer it.
TEST(WireV2ConversationOf, AMalformedMessageIsOneViolation) {
  for (const Profile profile : {Profile::kCel05, Profile::kWg07}) {
    Talk talk(profile);
    talk.open();
    Message call = talk.call(kClient, 7);
    call.type = 3;
    talk.say(kClient, call);
    talk.say(kServer, talk.error(kServer, 7, kErrBadXdr));
    EXPECT_THAT(talk.rules(), ElementsAre(profile == Profile::kCel05 ? "R2-7.2.4-4" : "W2-6.1-4"));
  }
}

}  // namespace
}  // namespace weft::wire_v2
