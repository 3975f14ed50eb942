// How a client finds out which version its server speaks: every kind of server, and servers that break the rules.
#include "rpcrdma/negotiation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "rpcrdma/profiles.h"
#include "rpcrdma/testing/engines.h"
#include "rpcrdma/testing/first_answers.h"
#include "rpcrdma/testing/v2_vectors.h"

namespace weft::rpcrdma::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Kind = Negotiation::Step::Kind;

constexpr std::uint32_t kXid = 0x00c0ffee;
constexpr std::uint32_t kCredit = 8;

const Profile& named(std::string_view name) {
  return profile_of(parse_protocol(name).value());
}

Profiles profiles(const std::vector<std::string>& names) {
  Profiles all;
  for (const std::string& name : names) all.push_back(&named(name));
  return all;
}

Octets probe_of(const Negotiation& negotiation) {
  Octets octets(4096, 0xa5);
  octets.resize(negotiation.emit_probe(octets));
  return octets;
}

// Octets of RDMA2_ERR_VERS, or of ERR_VERS, in answer to the probe.
Octets versions(const Octets& probe, std::uint32_t low, std::uint32_t high, std::uint32_t credit = 77) {
  Octets octets(probe.begin(), probe.begin() + 8);
  xdr::XdrWriter out(octets);
  for (const std::uint32_t word : {credit, 4u, 1u, low, high}) out.u32(word);
  return octets;
}

// An error of version 2 with a void arm.
Octets error_2(const Octets& probe, std::uint32_t code) {
  Octets octets(probe.begin(), probe.begin() + 8);
  xdr::XdrWriter out(octets);
  for (const std::uint32_t word : {77u, 4u, code}) out.u32(word);
  return octets;
}

// A negotiation with a server, until it has an end.
struct Talk {
  std::vector<std::string> asked;
  Negotiation::Step end;
};
Talk talk(Negotiation negotiation, const Profiles& server) {
  Talk talk;
  do {
    talk.asked.emplace_back(negotiation.asked().name);
    const auto answer = first_answer(server, probe_of(negotiation), kCredit);
    talk.end = answer ? negotiation.on_message(*answer) : negotiation.on_end("silence");
  } while (talk.end.kind == Kind::kProbe);
  return talk;
}
Talk talk(const std::vector<std::string>& own, const std::vector<std::string>& server) {
  return talk(Negotiation({.profiles = profiles(own), .first_xid = kXid}), profiles(server));
}

TEST(Negotiation, EveryProbeIsANullCallThatAnyServerCanAnswer) {
  RecordProperty("proves", "R2-6.3.1-5 W2-4.3-4");
  for (const char* name : {"1", "2-cel05", "2-wg07"}) {
    const Negotiation negotiation({.profiles = profiles({name}), .credits = 5, .first_xid = kXid});
    const Octets probe = probe_of(negotiation);
    EXPECT_GE(probe.size(), 28u) << name;
    EXPECT_LE(probe.size(), 1024u) << name;
    ReceivedCall call;
    ASSERT_EQ(named(name).receive_call(probe, {}, call), CallVerdict::kAccept) << name;
    EXPECT_TRUE(named(name).is_first(probe)) << name;
    xdr::XdrReader in(call.payload);
    CallHeaderView rpc;
    ASSERT_EQ(parse_call(in, rpc), CallParse::kOk) << name;
    EXPECT_EQ(rpc.xid, kXid);
    EXPECT_EQ(rpc.program, 0u);
    EXPECT_EQ(rpc.procedure, 0u);
    EXPECT_TRUE(in.at_end());
    xdr::XdrReader words(probe);
    std::uint32_t credit = 0;
    EXPECT_TRUE(words.skip(8) && words.u32(credit));
    EXPECT_EQ(credit, 5u) << name;
    // Each engine answers it, whatever it speaks.
    for (const char* server : {"1", "2-cel05", "2-wg07"}) {
      EXPECT_TRUE(first_answer(profiles({server}), probe)) << name << " to " << server;
    }
  }
}

// The versions that a client asks each kind of server for. It speaks the last one then.
TEST(Negotiation, EveryServerIsAskedUntilItIsFound) {
  using Names = std::vector<std::string>;
  const Names kAll = {"2-wg07", "2-cel05", "1"};
  const struct {
    Names own, server, asked;
  } cases[] = {
      {kAll, {"1"}, {"2-wg07", "1"}},
      {kAll, {"2-cel05"}, {"2-wg07", "2-cel05"}},
      {kAll, {"2-wg07"}, {"2-wg07"}},
      {kAll, {"1", "2-cel05"}, {"2-wg07", "2-cel05"}},
      {kAll, {"1", "2-wg07"}, {"2-wg07"}},
      {kAll, kAll, {"2-wg07"}},
      {{"2-cel05", "2-wg07", "1"}, {"2-wg07"}, {"2-cel05", "2-wg07"}},
      {{"2-cel05", "1", "2-wg07"}, {"2-wg07", "1"}, {"2-cel05", "2-wg07"}},  // the server's draft goes first
      {{"2-cel05", "1"}, {"1"}, {"2-cel05", "1"}},
      {{"2-cel05", "1"}, {"1", "2-wg07"}, {"2-cel05", "1"}},
      {{"1", "2-cel05"}, {"2-cel05"}, {"1", "2-cel05"}},
      {{"1", "2-cel05"}, {"2-cel05", "1"}, {"1"}},
      {{"1", "2-wg07", "2-cel05"}, {"2-cel05"}, {"1", "2-wg07", "2-cel05"}},
  };
  for (const auto& [own, server, asked] : cases) {
    const Talk result = talk(own, server);
    EXPECT_EQ(result.asked, asked);
    ASSERT_EQ(result.end.kind, Kind::kDecided) << ::testing::PrintToString(server);
    EXPECT_EQ(result.end.profile->name, asked.back());
    EXPECT_EQ(result.end.credit, kCredit);
  }
}

TEST(Negotiation, WithoutACommonVersionItSaysWhatTheServerSpeaks) {
  const auto why = [](const std::vector<std::string>& own, const std::vector<std::string>& server) {
    const Talk result = talk(own, server);
    EXPECT_EQ(result.end.kind, Kind::kFailed);
    return result.end.why;
  };
  const std::string none = "no version of RPC-over-RDMA in common: ";
  EXPECT_EQ(why({"2-wg07", "2-cel05"}, {"1"}),
            none + "the server speaks 1, and ClientConfig::protocols names 2-wg07,2-cel05; add 1 to it");
  EXPECT_EQ(why({"2-cel05", "1"}, {"2-wg07"}),
            none + "the server speaks 2-wg07, and ClientConfig::protocols names 2-cel05,1; add 2-wg07 to it");
  EXPECT_EQ(why({"1", "2-cel05"}, {"2-wg07"}),
            none + "the server speaks 2-wg07, and ClientConfig::protocols names 1,2-cel05; add 2-wg07 to it");
}

// The answer of Linux to a message of version 2: svc_rdma_xdr_encode_error repeats the version, and grants.
TEST(Negotiation, AVersion1ServersCreditsInItsRefusalMeanNothing) {
  Negotiation negotiation({.profiles = profiles({"2-cel05", "1"}), .first_xid = kXid});
  const auto step = negotiation.on_message(versions(probe_of(negotiation), 1, 1, 128));
  EXPECT_EQ(step.kind, Kind::kProbe);
  EXPECT_EQ(step.credit, 0u);
  EXPECT_EQ(negotiation.asked().name, "1");
  const Octets second = probe_of(negotiation);
  EXPECT_EQ(*profile_1().reply_xid(second), kXid + 1);
  EXPECT_EQ(negotiation.on_message(versions(second, 1, 1)).kind, Kind::kFailed) << "each version is asked once";
}

TEST(Negotiation, NoVersionOutsideTheServersRangeIsAsked) {
  const struct {
    std::uint32_t low, high;
    std::string asked;  // next; empty: none
  } cases[] = {{1, 1, "1"}, {1, 2, "1"}, {2, 2, "2-cel05"}, {0, 0xffffffff, "1"}, {3, 9, ""}, {2, 1, ""}, {0, 0, ""}};
  for (const auto& [low, high, asked] : cases) {
    Negotiation negotiation({.profiles = profiles({"2-wg07", "2-cel05", "1"}), .first_xid = kXid});
    const auto step = negotiation.on_message(versions(probe_of(negotiation), low, high));
    EXPECT_EQ(step.kind, asked.empty() ? Kind::kFailed : Kind::kProbe) << low << " to " << high;
    if (!asked.empty()) {
      EXPECT_EQ(negotiation.asked().name, asked) << low << " to " << high;
    } else {
      EXPECT_THAT(step.why, ::testing::HasSubstr("the server speaks " + std::to_string(low)));
    }
  }
}

// W2-A-03: ERR_VERS refuses the version of the message, whatever its range says. A version that the server has not
// refused goes first, and the other draft of version 2 only when none is left.
TEST(Negotiation, AServerThatRefusesAVersionOfItsOwnRangeIsAskedForTheOthersFirst) {
  const Profiles all = profiles({"2-wg07", "2-cel05", "1"});
  Negotiation negotiation({.profiles = all, .first_xid = kXid});
  EXPECT_EQ(negotiation.on_message(versions(probe_of(negotiation), 1, 2)).kind, Kind::kProbe);
  EXPECT_EQ(negotiation.asked().name, "1");
  EXPECT_EQ(negotiation.on_message(versions(probe_of(negotiation), 1, 2)).kind, Kind::kProbe);
  EXPECT_EQ(negotiation.asked().name, "2-cel05");
  EXPECT_EQ(negotiation.on_message(versions(probe_of(negotiation), 1, 2)).kind, Kind::kFailed);

  Negotiation without({.profiles = profiles({"2-wg07", "2-cel05"}), .first_xid = kXid});
  EXPECT_EQ(without.on_message(versions(probe_of(without), 1, 2)).kind, Kind::kProbe);
  EXPECT_EQ(without.asked().name, "2-cel05");
}

// The facts known about the server are wrong: it speaks the other draft now.
TEST(Negotiation, AStaleMemoryIsCorrectedOverTheSameConnection) {
  const Profiles own = profiles({"2-wg07", "2-cel05", "1"});
  Negotiation negotiation({.profiles = own, .known = &named("2-cel05"), .first_xid = kXid});
  EXPECT_EQ(negotiation.asked().name, "2-cel05");
  const Octets probe = probe_of(negotiation);
  EXPECT_EQ(first_answer(profiles({"2-wg07"}), probe)->size(), 20u);  // RDMA2_ERR_INVAL_HTYPE
  EXPECT_EQ(negotiation.on_message(error_2(probe, 4)).kind, Kind::kProbe);
  EXPECT_EQ(negotiation.asked().name, "2-wg07");

  for (const auto& [known, server] : {std::pair{"1", "2-cel05"}, {"2-wg07", "1"}, {"1", "1"}}) {
    const Talk result =
        talk(Negotiation({.profiles = own, .known = &named(known), .first_xid = kXid}), profiles({server}));
    EXPECT_EQ(result.asked.front(), known);
    ASSERT_EQ(result.end.kind, Kind::kDecided);
    EXPECT_EQ(result.end.profile->name, server);
  }
}

// An error that names no version refuses the version that was asked, and no other one.
TEST(Negotiation, AnyOtherErrorLeadsToTheNextVersion) {
  for (const std::uint32_t code : {2u, 3u, 9u}) {  // RDMA2_ERR_BAD_XDR, INVAL_PROC, INVAL_OPTION
    Negotiation negotiation({.profiles = profiles({"2-cel05", "1"}), .first_xid = kXid});
    const Octets probe = probe_of(negotiation);
    EXPECT_EQ(negotiation.on_message(error_2(probe, code)).kind, Kind::kProbe) << code;
    EXPECT_EQ(negotiation.asked().name, "1");
  }
  Negotiation negotiation({.profiles = profiles({"2-cel05"}), .first_xid = kXid});
  const auto step = negotiation.on_message(error_2(probe_of(negotiation), 2));
  EXPECT_EQ(step.why, "no version of RPC-over-RDMA in common: the server refuses 2-cel05");
}

// RDMA2_ERR_SYSTEM ends one RPC, and says nothing of versions (W2-7.4.1-2).
TEST(Negotiation, AfterATroubleOfTheServerItsVersionIsAskedOnceMore) {
  const std::pair<const char*, std::uint32_t> kCodes[] = {{"2-cel05", 10}, {"2-wg07", 100}};
  for (const auto& [name, code] : kCodes) {
    Negotiation negotiation({.profiles = profiles({name, "1"}), .first_xid = kXid});
    const Octets first = probe_of(negotiation);
    EXPECT_EQ(negotiation.on_message(error_2(first, code)).kind, Kind::kProbe) << name;
    EXPECT_EQ(negotiation.asked().name, name);
    const Octets second = probe_of(negotiation);
    EXPECT_NE(first, second) << "another XID";
    EXPECT_EQ(negotiation.on_message(error_2(second, code)).kind, Kind::kProbe);
    EXPECT_EQ(negotiation.asked().name, "1");
  }
}

// A server that refuses each version in turn, and one that goes on refusing.
TEST(Negotiation, NoServerCanMakeItAskForEver) {
  const Profiles own = profiles({"2-wg07", "2-cel05", "1"});
  for (const std::uint32_t code : {1u, 2u}) {
    Negotiation negotiation({.profiles = own, .first_xid = kXid});
    std::vector<std::string_view> asked;
    Negotiation::Step step{.kind = Kind::kProbe};
    Octets probe;
    while (step.kind == Kind::kProbe && asked.size() < 10) {
      asked.push_back(negotiation.asked().name);
      probe = probe_of(negotiation);
      step = negotiation.on_message(code == 1 ? versions(probe, 0, 0xffffffff) : error_2(probe, code));
      // Version 1 has another layout for its other error, so the server falls silent here.
      if (step.kind == Kind::kIgnore) step = negotiation.on_end("silence");
    }
    EXPECT_EQ(asked.size(), 3u);
    EXPECT_NE(step.kind, Kind::kDecided);
    for (int i = 0; i < 3; ++i) EXPECT_NE(negotiation.on_message(versions(probe, 1, 2)).kind, Kind::kProbe);
  }
}

TEST(Negotiation, SilenceAndAHangUpMeanVersion1) {
  Negotiation negotiation({.profiles = profiles({"2-cel05", "1"}), .first_xid = kXid});
  EXPECT_EQ(negotiation.on_end("no answer").kind, Kind::kLastResort);

  // The connection is lost right behind ERR_VERS.
  Negotiation told({.profiles = profiles({"2-cel05", "1"}), .first_xid = kXid});
  EXPECT_EQ(told.on_message(versions(probe_of(told), 1, 1)).kind, Kind::kProbe);
  EXPECT_EQ(told.on_end("hung up").kind, Kind::kLastResort);

  Negotiation without({.profiles = profiles({"2-wg07", "2-cel05"}), .first_xid = kXid});
  auto step = without.on_end("no answer");
  EXPECT_EQ(step.kind, Kind::kUnanswered);
  EXPECT_EQ(step.why, "no answer; version 1 is the last resort, and ClientConfig::protocols does not name it");

  Negotiation refused({.profiles = profiles({"1", "2-cel05"}), .first_xid = kXid});
  EXPECT_EQ(refused.on_message(versions(probe_of(refused), 2, 2)).kind, Kind::kProbe);
  step = refused.on_end("hung up");
  EXPECT_EQ(step.kind, Kind::kUnanswered);
  EXPECT_EQ(step.why, "hung up");
}

// A refusal of version 1 over an earlier connection.
TEST(Negotiation, WhatTheServerNamedBeforeIsAskedForAlone) {
  const auto own = profiles({"1", "2-cel05", "2-wg07"});
  for (const Profile* known : {static_cast<const Profile*>(nullptr), &named("1"), &named("2-wg07")}) {
    Negotiation negotiation({.profiles = own, .known = known, .first_xid = kXid, .range = VersionRange{2, 2}});
    EXPECT_EQ(negotiation.asked().name, known == &named("2-wg07") ? "2-wg07" : "2-cel05");
    EXPECT_EQ(negotiation.on_end("no answer").kind, Kind::kUnanswered);
    EXPECT_EQ(negotiation.on_end("no answer").kind, Kind::kFailed);
  }
  // The server was replaced by one of version 1.
  const Talk result =
      talk(Negotiation({.profiles = own, .first_xid = kXid, .range = VersionRange{2, 2}}), profiles({"1"}));
  EXPECT_THAT(result.asked, ElementsAre("2-cel05", "1"));
  EXPECT_EQ(result.end.kind, Kind::kDecided);
}

// Messages that are no answer: Calls of the server, answers to nothing, and octets without meaning.
TEST(Negotiation, OnlyAnAnswerDecides) {
  Negotiation negotiation({.profiles = profiles({"2-cel05", "1"}), .first_xid = kXid});
  const Octets probe = probe_of(negotiation);
  EXPECT_EQ(negotiation.on_message(probe).kind, Kind::kKeep) << "a Call with the XID of the probe";
  const Negotiation another({.profiles = profiles({"2-cel05", "1"}), .first_xid = kXid + 1});
  EXPECT_EQ(negotiation.on_message(*first_answer(profiles({"2-cel05"}), probe_of(another))).kind, Kind::kIgnore);
  EXPECT_EQ(negotiation.on_message({}).kind, Kind::kIgnore);
  Octets spoiled = *first_answer(profiles({"2-cel05"}), probe);
  put_word(spoiled, 24, 2);  // the discriminator of a list
  EXPECT_EQ(negotiation.on_message(spoiled).kind, Kind::kIgnore);
  const Octets call = load_v2_vector("S01").octets;
  EXPECT_EQ(negotiation.on_message(call).kind, Kind::kKeep);
  EXPECT_EQ(negotiation.on_message(*first_answer(profiles({"2-cel05"}), probe)).kind, Kind::kDecided);
}

// Every octet of every answer may be anything: nothing is read outside (ASan), and only the answers above decide.
TEST(Negotiation, SpoiledAnswersAreHarmless) {
  for (const char* own : {"2-wg07", "2-cel05", "1"}) {
    const Negotiation fresh({.profiles = profiles({own, "1"}), .first_xid = kXid});
    const Octets probe = probe_of(fresh);
    for (const char* server : {"2-wg07", "2-cel05", "1"}) {
      const Octets good = first_answer(profiles({server}), probe).value();
      for (std::size_t at = 0; at <= good.size(); ++at) {
        Negotiation cut = fresh;
        (void)cut.on_message(ConstBytes(good).first(at));
        for (const std::uint8_t value : std::initializer_list<std::uint8_t>{0, 1, 2, 4, 0x7f, 0xff}) {
          if (at == good.size()) break;
          Octets octets = good;
          octets[at] = value;
          Negotiation spoiled = fresh;
          (void)spoiled.on_message(octets);
        }
      }
    }
  }
}

}  // namespace
}  // namespace weft::rpcrdma::testing
