// A Client that finds out which version its server speaks, and what it does then. The test is the server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "rpcrdma/known_servers.h"
#include "rpcrdma/profiles.h"
#include "rpcrdma/testing/client_life.h"
#include "rpcrdma/testing/first_answers.h"
#include "rpcrdma/testing/v2_vectors.h"
#include "rpcrdma/v2_cel05/header.h"

namespace weft::rpcrdma::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
namespace cel05 = v2_cel05;

const Profiles kServes1 = {&profile_of(Protocol::k1)};
const Profiles kServesCel05 = {&profile_of(Protocol::k2Cel05)};
const Profiles kServesWg07 = {&profile_of(Protocol::k2Wg07)};
const Profiles kServesBoth = {&profile_of(Protocol::k2Cel05), &profile_of(Protocol::k1)};
const std::vector<Protocol> kBoth = {Protocol::k2Cel05, Protocol::k1};

// XID, version and credit are words 0 to 2 of each header.
std::uint32_t word_of(const Octets& octets, std::size_t i) {
  xdr::XdrReader in(octets);
  std::uint32_t word = 0;
  EXPECT_TRUE(in.skip(4 * i) && in.u32(word));
  return word;
}

struct ClientNegotiationTest : ClientLifeTest {
  // A client that is connected and has asked.
  void ask(ClientConfig config = {}) {
    if (config.protocols == ClientConfig{}.protocols) config.protocols = own;
    config.credits = 8;
    config.properties = has_properties;
    config.log = lines.log();
    config.known_servers = &servers;
    auto made = Client::connect(device, sockaddr_storage{}, config);
    ASSERT_TRUE(made.ok()) << made.error().message;
    client = std::move(*made);
    run(0);
  }
  const std::vector<Octets>& sends() { return device.qp().sent; }
  // As a server of these versions does.
  void answer_last(const Profiles& server, int ms, std::uint32_t credit = 8) {
    const auto answer = first_answer(server, sends().back(), credit);
    ASSERT_TRUE(answer);
    ASSERT_TRUE(device.qp().inject(*answer));
    run(ms);
  }
  // The versions of all Sends of this connection.
  std::vector<std::uint32_t> versions() {
    std::vector<std::uint32_t> all;
    for (const Octets& octets : sends()) all.push_back(word_of(octets, 1));
    return all;
  }
  void call_with(const Octets& args) {
    CallSpec spec = call_of(test_binding(), kNull, args);
    ASSERT_TRUE(client->call(spec, [this](const Reply& reply) { ended.emplace_back(0, reply.status); }).ok());
    run(0);
  }

  KnownServers servers;
  bool has_properties = false;
  std::vector<Protocol> own = kBoth;
};

// The same with each draft as the version that is tried first.
struct EachDraftTest : ClientNegotiationTest, ::testing::WithParamInterface<Protocol> {
  EachDraftTest() { own = {GetParam(), Protocol::k1}; }
  // The requirement's row in the table of the draft.
  static const char* row(const char* cel05, const char* wg07) { return GetParam() == Protocol::k2Cel05 ? cel05 : wg07; }
};

INSTANTIATE_TEST_SUITE_P(Version2, EachDraftTest, ::testing::Values(Protocol::k2Cel05, Protocol::k2Wg07),
                         [](const auto& draft) { return draft.param == Protocol::k2Cel05 ? "cel05" : "wg07"; });

TEST_F(ClientNegotiationTest, TheServersAnswerOpensTheConnection) {
  RecordProperty("proves", "R2-8-2 R2-8.1-2");
  ask();
  call();
  call();
  run(0);
  EXPECT_EQ(client->state(), State::kConnecting);
  EXPECT_EQ(client->protocol(), std::nullopt);
  EXPECT_THAT(versions(), ElementsAre(2u));
  EXPECT_LE(sends()[0].size(), 1024u);
  answer_last(kServesCel05, 0, 3);
  EXPECT_EQ(client->state(), State::kReady);
  EXPECT_EQ(client->protocol(), Protocol::k2Cel05);
  EXPECT_THAT(versions(), ElementsAre(2u, 2u, 2u)) << "the grant of the answer holds at once";
  call();
  call();
  run(0);
  EXPECT_THAT(versions(), ElementsAre(2u, 2u, 2u, 2u)) << "three credits";
  EXPECT_EQ(device.num_attempts(), 1u);
  EXPECT_EQ(client->num_connections(), 1u);
}

TEST_F(ClientNegotiationTest, PropertiesAreToldBehindTheAnswer) {
  has_properties = true;
  std::map<std::string_view, std::vector<Protocol>> lists = {
      {"2-cel05", kBoth}, {"2-wg07", {Protocol::k2Wg07, Protocol::k1}}, {"1", {Protocol::k1, Protocol::k2Cel05}}};
  for (const Profiles& server : {kServesCel05, kServesWg07, kServes1}) {
    ask({.protocols = lists[server[0]->name]});
    EXPECT_EQ(sends().size(), 1u);
    answer_last(server, 0);
    const bool has_them = server[0]->make_exchange != nullptr;
    ASSERT_EQ(sends().size(), has_them ? 2u : 1u);
    EXPECT_TRUE(!has_them || server[0]->make_exchange({})->is_mine(sends()[1]));
    call();
    run(0);
    EXPECT_EQ(sends().size(), has_them ? 3u : 2u);
    client.reset();
  }
}

TEST_F(ClientNegotiationTest, AfterTheAnswerCallsMayBeLong) {
  RecordProperty("proves", "R2-8.1-2");
  ask();
  answer_last(kServesCel05, 0);
  const Octets args = pattern(3900);
  call_with(args);
  ASSERT_EQ(sends().size(), 2u);
  EXPECT_GT(sends()[1].size(), 3900u);
}

TEST_P(EachDraftTest, AVersion1ServerIsAskedInItsOwnVersion) {
  RecordProperty("proves", row("R2-8.2-2 R2-8.2-6", "W2-4.3.2-2 W2-4.3-2 W2-7.1.1-3"));
  ask();
  for (int i = 0; i < 4; ++i) call();
  answer_last(kServes1, 0, 99);
  EXPECT_EQ(client->state(), State::kConnecting);
  EXPECT_THAT(versions(), ElementsAre(2u, 1u)) << "the credits of ERR_VERS mean nothing";
  answer_last(kServes1, 0, 2);
  EXPECT_EQ(client->protocol(), Protocol::k1);
  EXPECT_THAT(versions(), ElementsAre(2u, 1u, 1u, 1u));
  EXPECT_EQ(device.num_attempts(), 1u);
}

TEST_F(ClientNegotiationTest, TheThresholdIsTheOneOfTheVersionThatWasFound) {
  RecordProperty("proves", "R2-8.2-5");
  ask();
  answer_last(kServes1, 0);
  answer_last(kServes1, 0);
  const Octets args = pattern(1200);
  call_with(args);
  ASSERT_EQ(sends().size(), 3u);
  EXPECT_LE(sends()[2].size(), 1024u);
  EXPECT_EQ(parse(sends()[2]).proc, v1::Proc::kNomsg);
}

TEST_F(ClientNegotiationTest, OneProtocolIsNotAsked) {
  open({.protocols = {Protocol::k2Cel05}, .known_servers = &servers});
  EXPECT_EQ(client->protocol(), Protocol::k2Cel05);
  EXPECT_THAT(sends(), IsEmpty());
  EXPECT_EQ(servers.size(), 0u);
}

TEST_P(EachDraftTest, ASilentServerGetsVersion1OverAnotherConnection) {
  RecordProperty("proves", row("R2-8.2-4", "W2-4.3.2-3"));
  ask();
  call();
  run(999);
  EXPECT_EQ(device.num_attempts(), 1u);
  expect_wakes_at(1000);
  run(1000);
  EXPECT_EQ(client->state(), State::kReady);
  EXPECT_EQ(client->protocol(), Protocol::k1);
  EXPECT_EQ(device.num_attempts(), 2u);
  EXPECT_THAT(versions(), ElementsAre(1u)) << "the Call itself";
  answer(0, 1001);
  EXPECT_THAT(ended, ElementsAre(Pair(0, CallStatus::kSuccess)));
  EXPECT_THAT(lines.all(), ElementsAre(HasSubstr("no answer to a first message of RPC-over-RDMA " +
                                                 std::string(protocol_str(GetParam())) + " within 1000 ms"),
                                       HasSubstr("connecting again, with version 1")));
  // The end of that connection is the end of a client that does not reconnect.
  device.break_connection();
  run(1002);
  EXPECT_EQ(client->state(), State::kClosed);
  EXPECT_EQ(device.num_attempts(), 2u);
}

TEST_P(EachDraftTest, AServerThatHangsUpGetsVersion1OverAnotherConnection) {
  RecordProperty("proves", row("R2-8.2-4", "W2-4.3.2-3"));
  ask();
  device.break_connection("hung up");
  run(1);
  EXPECT_EQ(client->protocol(), Protocol::k1);
  EXPECT_EQ(device.num_attempts(), 2u);
  EXPECT_THAT(sends(), IsEmpty());
}

TEST_P(EachDraftTest, AServerThatHangsUpBehindItsRefusalToo) {
  RecordProperty("proves", row("R2-8.2-3", "W2-4.3.2-3"));
  ask({.reconnect = kReconnect});
  answer_last(kServes1, 0);
  EXPECT_THAT(versions(), ElementsAre(2u, 1u));
  device.break_connection("hung up");
  run(1);
  EXPECT_EQ(client->protocol(), Protocol::k1);
  EXPECT_EQ(device.num_attempts(), 2u);
  EXPECT_THAT(sends(), IsEmpty());
  // And from then on.
  call();
  run(1);
  device.break_connection();
  run(1);
  run(101);
  EXPECT_EQ(device.num_attempts(), 3u);
  EXPECT_THAT(versions(), ElementsAre(1u));
}

TEST_F(ClientNegotiationTest, TheLastResortIsTriedOnce) {
  for (const Answer no : {Answer::kRefuse, Answer::kReject, Answer::kNone}) {
    device.on_connect = [] { return Answer::kAccept; };
    const std::size_t before = device.num_attempts();
    ask();
    call();
    device.on_connect = [no] { return no; };
    device.break_connection("hung up");
    run(1);
    run(20000);
    EXPECT_EQ(client->state(), State::kClosed);
    EXPECT_EQ(device.num_attempts(), before + 2);
    EXPECT_EQ(ended.back().second, CallStatus::kDisconnected);
    EXPECT_EQ(servers.size(), 0u);
  }
}

TEST_F(ClientNegotiationTest, ADeviceThatCannotConnectAgainEndsTheClient) {
  ask();
  device.fail_event_channel = true;
  device.break_connection("hung up");
  run(1);
  expect_closed("hung up; no other in its place: cannot connect to unknown address: no descriptor");
  EXPECT_EQ(client->next_timeout(), std::nullopt);
}

TEST_F(ClientNegotiationTest, AfterARefusalOfVersion1SilenceIsTheEnd) {
  ask({.protocols = {Protocol::k1, Protocol::k2Cel05}});
  answer_last(kServesCel05, 0);
  EXPECT_THAT(versions(), ElementsAre(1u, 2u));
  run(1000);
  expect_closed(
      "cannot connect to unknown address: no answer to a first message of RPC-over-RDMA 2-cel05 within 1000 ms");
  EXPECT_EQ(device.num_attempts(), 1u);
}

TEST_F(ClientNegotiationTest, NoCommonVersionIsSaidInOneLine) {
  ask();
  call();
  answer_last(kServesWg07, 0);
  EXPECT_THAT(versions(), ElementsAre(2u, 1u));
  answer_last(kServesWg07, 0);
  EXPECT_EQ(client->state(), State::kClosed);
  EXPECT_EQ(client->error(),
            "cannot connect to unknown address: no version of RPC-over-RDMA in common: the server speaks 2-wg07, and "
            "ClientConfig::protocols names 2-cel05,1; add 2-wg07 to it");
  EXPECT_EQ(device.num_attempts(), 1u);
  EXPECT_THAT(ended, ElementsAre(Pair(0, CallStatus::kDisconnected)));
}

TEST_F(ClientNegotiationTest, EachQuestionHasItsTime) {
  ask();
  answer_last(kServes1, 900);
  expect_wakes_at(1900);
  run(1899);
  EXPECT_EQ(device.num_attempts(), 1u);
  run(1900);
  EXPECT_EQ(device.num_attempts(), 2u);
  EXPECT_EQ(client->protocol(), Protocol::k1);
}

TEST_F(ClientNegotiationTest, TheTimeForAnAnswerIsTheUsers) {
  ask({.first_answer_timeout = milliseconds(50)});
  expect_wakes_at(50);
  run(50);
  EXPECT_EQ(client->protocol(), Protocol::k1);
}

// Garbage is no answer, and gets no more time.
TEST_F(ClientNegotiationTest, GarbageIsSilence) {
  ask();
  for (int ms = 0; ms < 1000; ms += 10) {
    if (!device.qp().inject(Octets(static_cast<std::size_t>(ms % 60)))) break;
    run(ms);
    ASSERT_EQ(device.qp().num_receives(), 8 + kExtraReceives + 2u);
  }
  EXPECT_EQ(device.num_attempts(), 1u);
  run(1000);
  EXPECT_EQ(client->protocol(), Protocol::k1);
}

// ERR_VERS over and over, from a server that names every version.
TEST_F(ClientNegotiationTest, EndlessRefusalsEnd) {
  ask();
  std::size_t num_refusals = 0;
  while (client->state() == State::kConnecting && num_refusals < 10) {
    Octets octets(sends().back().begin(), sends().back().begin() + 8);
    xdr::XdrWriter out(octets);
    for (const std::uint32_t word : {0xffffffffu, 4u, 1u, 0u, 0xffffffffu}) out.u32(word);
    ASSERT_TRUE(device.qp().inject(octets));
    run(0);
    ++num_refusals;
  }
  EXPECT_EQ(num_refusals, 2u);
  expect_closed("no version of RPC-over-RDMA in common: the server speaks 0 to 4294967295");
  EXPECT_EQ(device.num_attempts(), 1u);
}

TEST_F(ClientNegotiationTest, AGrantOfNoneIsOneAndALeapIsNoMoreThanAsked) {
  for (const auto& [credit, num] : {std::pair{0u, 1u}, {0xffffffffu, 8u}}) {
    servers.forget({}, kBoth);
    ask();
    for (int i = 0; i < 12; ++i) call();
    answer_last(kServesCel05, 0, credit);
    EXPECT_EQ(sends().size(), 1 + num) << credit;
    client.reset();
  }
}

// Receives of a connection, without the reserve: what its first message gives the server. A list with cel05 adds two.
constexpr std::uint32_t kWindow = 8 + kExtraReceives - 1;

TEST_F(ClientNegotiationTest, TheProbeIsAMessageAndItsAnswerGivesCreditsForMessages) {
  RecordProperty("proves", "W2-4.2.1-3 W2-4.2.1-8");
  ask({.protocols = {Protocol::k2Wg07, Protocol::k1}});
  EXPECT_EQ(word_of(sends()[0], 2), kWindow);
  for (int i = 0; i < 6; ++i) call();
  answer_last(kServesWg07, 0, 3);
  EXPECT_EQ(client->protocol(), Protocol::k2Wg07);
  ASSERT_EQ(sends().size(), 3u) << "the server has room for three messages";
  EXPECT_EQ(word_of(sends()[1], 2), kWindow + 1);
}

// W2-4.2.1-3 and -4 count all Sends and Receives of a connection.
TEST_F(ClientNegotiationTest, RefusedProbesCountForTheCreditsOfMessages) {
  RecordProperty("proves", "W2-4.2.1-3 W2-4.2.1-4 W2-4.3-2");
  ask({.protocols = {Protocol::k1, Protocol::k2Cel05, Protocol::k2Wg07}});
  for (int i = 0; i < 6; ++i) call();
  answer_last(kServesWg07, 0);
  EXPECT_THAT(versions(), ElementsAre(1u, 2u));
  answer_last(kServesWg07, 0);
  EXPECT_THAT(versions(), ElementsAre(1u, 2u, 2u));
  EXPECT_EQ(word_of(sends()[2], 2), kWindow + 2 + 2);
  answer_last(kServesWg07, 0, 5);
  EXPECT_EQ(client->protocol(), Protocol::k2Wg07);
  EXPECT_EQ(sends().size(), 5u) << "three messages were sent before";
}

// Messages that came before the answer need credits, too. The Endpoint fails, and that is as if the server hung up.
TEST_F(ClientNegotiationTest, AFloodOfGrantsIsAHangUp) {
  RecordProperty("proves", "W2-4.2.1-8");
  ask({.protocols = {Protocol::k2Wg07, Protocol::k1}});
  Octets grant;
  xdr::XdrWriter out(grant);
  for (const std::uint32_t word : {0u, 2u, 5u, 5u}) out.u32(word);  // RDMA2_GRANT
  std::uint32_t num = 0;
  for (; num < 100 && device.num_attempts() == 1; ++num) {
    ASSERT_TRUE(device.qp().inject(grant));
    run(0);
  }
  EXPECT_EQ(num, kWindow + 2) << "one GRANT may come beyond the limit";
  EXPECT_EQ(client->protocol(), Protocol::k1);
  EXPECT_EQ(device.num_attempts(), 2u);
  EXPECT_THAT(lines.all(), ::testing::Contains(HasSubstr("the peer sends more messages than it was granted")));
}

// With Receives to keep it in, and without.
TEST_F(ClientNegotiationTest, AGrantBeforeTheAnswerCounts) {
  for (const auto& protocols : {std::vector{Protocol::k2Wg07, Protocol::k1}, all_protocols()}) {
    ask({.protocols = protocols});
    for (int i = 0; i < 6; ++i) call();
    Octets grant;
    xdr::XdrWriter out(grant);
    for (const std::uint32_t word : {0u, 2u, 5u, 5u}) out.u32(word);
    ASSERT_TRUE(device.qp().inject(grant));
    run(0);
    EXPECT_EQ(sends().size(), 1u);
    answer_last(kServesWg07, 0, 3);
    EXPECT_EQ(sends().size(), 5u) << "the higher word counts";
    client.reset();
  }
}

TEST_F(ClientNegotiationTest, WhatWasLearntIsAskedFirst) {
  ask();
  answer_last(kServes1, 0);
  answer_last(kServes1, 0);
  client.reset();
  ask();  // another client of the process
  EXPECT_THAT(versions(), ElementsAre(1u));
  answer_last(kServes1, 0);
  EXPECT_EQ(client->state(), State::kReady);
  EXPECT_THAT(versions(), ElementsAre(1u));
}

// The server was replaced by one of another version.
TEST_F(ClientNegotiationTest, WhatIsWrongIsUnlearnt) {
  servers.learn({}, kBoth, Protocol::k1, at(0));
  ask();
  answer_last(kServesCel05, 0);
  EXPECT_EQ(servers.find({}, kBoth, at(0)), std::nullopt);
  EXPECT_THAT(versions(), ElementsAre(1u, 2u));
  answer_last(kServesCel05, 0);
  EXPECT_EQ(client->protocol(), Protocol::k2Cel05);
  EXPECT_EQ(servers.find({}, kBoth, at(0)), Protocol::k2Cel05);
  client.reset();

  ask();
  EXPECT_THAT(versions(), ElementsAre(2u));
  device.break_connection("hung up");
  run(0);
  EXPECT_THAT(versions(), ElementsAre(2u)) << "one lost answer proves nothing";
  EXPECT_EQ(servers.find({}, kBoth, at(0)), Protocol::k2Cel05);
  device.break_connection("hung up");
  device.on_connect = [] { return Answer::kNone; };
  run(0);
  EXPECT_EQ(servers.find({}, kBoth, at(0)), std::nullopt);
}

TEST_F(ClientNegotiationTest, EachConnectionOfAClientIsAsked) {
  ask({.reconnect = kReconnect});
  call();
  answer_last(kServesBoth, 0);
  EXPECT_EQ(client->protocol(), Protocol::k2Cel05);
  device.break_connection();
  run(0);
  EXPECT_EQ(client->protocol(), std::nullopt);
  run(100);
  EXPECT_EQ(client->state(), State::kConnecting);
  EXPECT_THAT(versions(), ElementsAre(2u)) << "the Call waits for the version";
  // Meanwhile the server became one of version 1.
  answer_last(kServes1, 100);
  answer_last(kServes1, 100);
  EXPECT_EQ(client->protocol(), Protocol::k1);
  EXPECT_THAT(versions(), ElementsAre(2u, 1u, 1u));
  answer(2, 101);
  EXPECT_THAT(ended, ElementsAre(Pair(0, CallStatus::kSuccess)));
}

// A late or lost answer is no proof that the server speaks its newer version no more.
TEST_P(EachDraftTest, AServerThatSpokeTheVersionIsAskedForItAgain) {
  for (const bool hangs_up : {false, true}) {
    ask({.reconnect = kReconnect});
    answer_last(GetParam() == Protocol::k2Cel05 ? kServesCel05 : kServesWg07, 0);
    ASSERT_EQ(client->protocol(), GetParam());
    device.break_connection();
    const auto end_unanswered = [&](int& ms) {
      const std::size_t before = device.num_attempts();
      for (const int end = ms + 5000; device.num_attempts() == before && ms < end;) run(++ms);
      ASSERT_EQ(device.num_attempts(), before + 1);
      run(ms);
    };
    int ms = 0;
    end_unanswered(ms);
    EXPECT_THAT(versions(), ElementsAre(2u));
    if (hangs_up) device.break_connection("hung up");
    end_unanswered(ms);
    EXPECT_THAT(versions(), ElementsAre(2u)) << "asked again";
    if (hangs_up) device.break_connection("hung up");
    end_unanswered(ms);
    EXPECT_EQ(client->protocol(), Protocol::k1) << "twice is enough";
    client.reset();
    servers.forget({}, own);
  }
}

// One late or lost answer made the client speak version 1, and the server's refusal shows that this was wrong.
TEST_P(EachDraftTest, ARefusalOfVersion1LeadsBackToTheNewerOne) {
  const Profiles server = {&profile_of(GetParam())};
  for (const bool hangs_up : {false, true}) {
    ended.clear();
    const std::size_t first = num_calls, attempts = device.num_attempts();
    ask();
    call();
    call();
    run(0);
    if (hangs_up) device.break_connection("hung up");
    run(1000);
    EXPECT_THAT(versions(), ElementsAre(1u)) << "the first Call";
    const std::uint32_t xid = sent(0).xid;
    answer_last(server, 1001);
    EXPECT_EQ(device.num_attempts(), attempts + 3);
    EXPECT_EQ(client->state(), State::kConnecting);
    EXPECT_THAT(versions(), ElementsAre(2u));
    EXPECT_THAT(ended, IsEmpty());
    answer_last(server, 1002);
    EXPECT_EQ(client->protocol(), GetParam());
    EXPECT_EQ(servers.find({}, own, at(1002)), GetParam());
    ASSERT_THAT(versions(), ElementsAre(2u, 2u, 2u));
    EXPECT_EQ(*profile_of(GetParam()).reply_xid(sends()[1]), xid) << "the server never ran it";
    client.reset();
    EXPECT_THAT(ended, ElementsAre(Pair(first, CallStatus::kDisconnected), Pair(first + 1, CallStatus::kDisconnected)));
    servers.forget({}, own);
  }
  EXPECT_THAT(lines.all(), ::testing::Contains(HasSubstr("refuses RPC-over-RDMA version 1")));
}

// The server ends the connection right behind its refusal.
TEST_P(EachDraftTest, ARefusalOfVersion1CountsAlsoWhereTheConnectionEndsWithIt) {
  ask();
  call();
  run(1000);
  ASSERT_TRUE(device.qp().inject(*first_answer({&profile_of(GetParam())}, sends().back())));
  device.break_connection("hung up");
  run(1001);
  EXPECT_EQ(device.num_attempts(), 3u);
  EXPECT_THAT(versions(), ElementsAre(2u));
  EXPECT_THAT(ended, IsEmpty());
}

// A client that does not reconnect gives such a server one more question, and no more.
TEST_P(EachDraftTest, AServerThatRefusesVersion1AndIsSilentIsNotAskedForEver) {
  for (const bool is_known : {false, true}) {
    ended.clear();
    const std::size_t first = num_calls, attempts = device.num_attempts();
    if (is_known) servers.learn({}, own, GetParam(), at(0));
    ask();
    call();
    int ms = is_known ? 1000 : 0;
    run(ms);
    run(ms += 1000);
    answer_last({&profile_of(GetParam())}, ++ms);
    for (int i = 0; i < 2; ++i) run(ms += 1000);
    expect_closed("no answer to a first message of RPC-over-RDMA");
    EXPECT_EQ(device.num_attempts(), attempts + (is_known ? 5 : 4));
    EXPECT_THAT(ended, ElementsAre(Pair(first, CallStatus::kDisconnected)));
  }
}

// A client that reconnects goes on asking within its policy, and never in version 1.
TEST_P(EachDraftTest, AClientThatReconnectsKeepsToTheVersionsThatTheServerNamed) {
  const Profiles server = {&profile_of(GetParam())};
  ReconnectPolicy reconnect = kReconnect;
  reconnect.max_time = milliseconds(60000);
  ask({.reconnect = reconnect});
  call();
  run(1000);
  answer_last(server, 1001);
  int ms = 1001;
  while (device.num_attempts() < 8 && ms < 60000) {
    EXPECT_THAT(versions(), ElementsAre(2u)) << ms;
    const std::size_t before = device.num_attempts();
    while (device.num_attempts() == before && ms < 60000) run(++ms);
  }
  ASSERT_EQ(device.num_attempts(), 8u);
  answer_last(server, ms);
  EXPECT_EQ(client->protocol(), GetParam());
  EXPECT_THAT(ended, IsEmpty());
}

// A connection in a version that the server refuses is of no use, so the time of the policy goes on.
TEST_P(EachDraftTest, ARefusalOfVersion1GivesAServerNoMoreTime) {
  const Profiles server = {&profile_of(GetParam())};
  ask({.reconnect = kReconnect});
  answer_last(server, 0);
  call();
  device.break_connection("hung up");
  int ms = 0;
  while (client->protocol() != Protocol::k1 && ms < 5000) run(++ms);
  ASSERT_EQ(ms, 2101) << "the delay, and two questions";
  answer_last(server, ms);
  EXPECT_EQ(client->state(), State::kConnecting);
  for (int i = 0; i < 2; ++i) run(ms += 1000);
  expect_closed("no answer to a first message of RPC-over-RDMA");
}

// What a server does with a message. The numbers are the version that its ERR_VERS names. kAnswers: it hangs up behind
// its Reply.
enum class Whim { kSilent, kHangsUp, kNames1, kNames2, kAnswers };

struct Whims {
  Whim newer, question_of_1, call_of_1;
};

// A server on the device, whose draft of version 2 is `draft`.
class CapriciousServer {
 public:
  CapriciousServer(FakeDevice& device, Protocol draft, const Whims& whims)
      : device_(device), draft_(draft), whims_(whims) {}

  // Whether there was a message that it had not taken yet.
  bool take_message() {
    if (std::exchange(connection_, device_.num_attempts()) != device_.num_attempts()) num_taken_ = 0;
    if (!device_.has_connection() || num_taken_ == device_.qp().sent.size()) return false;
    const Octets message = device_.qp().sent[num_taken_++];
    switch (whim(message)) {
      case Whim::kSilent: break;
      case Whim::kHangsUp: device_.break_connection("hung up"); break;
      case Whim::kNames1: refuse(message, 1); break;
      case Whim::kNames2: refuse(message, 2); break;
      case Whim::kAnswers: answer_once(message); break;
    }
    return true;
  }

 private:
  Whim whim(const Octets& message) const {
    if (word_of(message, 1) == 2) return whims_.newer;
    // Seven words of version 1's header without chunks, then the XID, CALL and 2, then the program.
    return word_of(message, 10) == 0 ? whims_.question_of_1 : whims_.call_of_1;
  }
  // Later messages of this version meet a hang-up.
  void answer_once(const Octets& message) {
    const bool answers = !std::exchange(has_answered_, true);
    EXPECT_TRUE(!answers || device_.qp().inject(*first_answer({&profile_of(draft_)}, message)));
    device_.break_connection("hung up");
  }
  void refuse(const Octets& message, std::uint32_t named) {
    rpcrdma::Message error;
    error.type = rpcrdma::Message::Type::kError;
    error.xid = word_of(message, 0);
    error.version = word_of(message, 1);
    error.credit = 8;
    error.error = {.code = TransportError::Code::kVersion, .low = named, .high = named};
    Octets octets;
    xdr::XdrWriter out(octets);
    profile_of(error.version == 2 ? draft_ : Protocol::k1).emit(out, error);
    ASSERT_TRUE(device_.qp().inject(octets));
  }

  FakeDevice& device_;
  Protocol draft_;
  Whims whims_;
  std::size_t connection_ = 0;
  std::size_t num_taken_ = 0;
  bool has_answered_ = false;
};

// Whatever a server answers to whichever message, a client without an answer makes a bounded number of connections.
TEST_P(EachDraftTest, AServerThatContradictsItselfIsNotAskedForEver) {
  constexpr Whim kAll[] = {Whim::kSilent, Whim::kHangsUp, Whim::kNames1, Whim::kNames2, Whim::kAnswers};
  std::map<bool, std::size_t> most;  // by whether the server was known
  for (unsigned i = 0; i < 5 * 4 * 4 * 2 * 2; ++i) {
    const Whims whims{kAll[i % 5], kAll[i / 5 % 4], kAll[i / 20 % 4]};
    const bool is_known = i / 80 % 2 != 0, reconnects = i / 160 != 0;
    SCOPED_TRACE(::testing::Message() << int(whims.newer) << int(whims.question_of_1) << int(whims.call_of_1)
                                      << (is_known ? " known" : "") << (reconnects ? " reconnects" : ""));
    servers.forget({}, own);
    if (is_known) servers.learn({}, own, GetParam(), at(0));
    const std::size_t attempts = device.num_attempts();
    lines.clear();
    ended.clear();
    ask(reconnects ? ClientConfig{.reconnect = kReconnect} : ClientConfig{});
    call();
    CapriciousServer server(device, GetParam(), whims);
    for (int ms = 0; ms < 8000 && ended.empty(); ms += 10) {
      run(ms);
      while (server.take_message()) {
        run(ms);
        ASSERT_LT(device.num_attempts() - attempts, 40u);
      }
    }
    const std::size_t num = device.num_attempts() - attempts;
    // An answer makes the next attempt of the policy one to a server that spoke a newer version.
    const std::size_t after_answer = whims.newer == Whim::kAnswers ? 3 : 0;
    EXPECT_LE(num, (is_known ? 5u : 4u) + 2 * lines.num_with("connecting again in") + after_answer);
    if (!reconnects) most[is_known] = std::max(most[is_known], num);
    client.reset();
  }
  EXPECT_EQ(most[false], 4u) << "what the README says";
  EXPECT_EQ(most[true], 5u);
}

// The range is the one of a server that speaks none of the client's other versions.
TEST_F(ClientNegotiationTest, ARefusalThatNamesNoVersionOfTheClientEndsTheCall) {
  ask();
  call();
  run(1000);
  Octets octets(sends().back().begin(), sends().back().begin() + 8);
  xdr::XdrWriter out(octets);
  for (const std::uint32_t word : {1u, 4u, 1u, 3u, 9u}) out.u32(word);
  ASSERT_TRUE(device.qp().inject(octets));
  run(1001);
  EXPECT_THAT(ended, ElementsAre(Pair(0, CallStatus::kVersMismatch)));
  EXPECT_EQ(device.num_attempts(), 2u);
}

// ERR_CHUNK in version 1 shows that the server speaks version 1.
TEST_F(ClientNegotiationTest, ARefusalBehindAnErrorEndsItsCallAlone) {
  ask();
  call();
  run(1000);
  Octets octets(sends().back().begin(), sends().back().begin() + 8);
  xdr::XdrWriter out(octets);
  for (const std::uint32_t word : {8u, 4u, 2u}) out.u32(word);  // ERR_CHUNK
  ASSERT_TRUE(device.qp().inject(octets));
  run(1001);
  EXPECT_EQ(ended.back().second, CallStatus::kTransportError);
  call();
  run(1002);
  answer_last(kServesCel05, 1003);
  EXPECT_EQ(ended.back(), std::pair(std::size_t{1}, CallStatus::kVersMismatch));
  EXPECT_EQ(device.num_attempts(), 2u);
}

// A server that has answered in version 1 speaks it, whatever it says later.
TEST_F(ClientNegotiationTest, ARefusalBehindAReplyEndsItsCallAlone) {
  ask();
  call();
  run(1000);
  answer(0, 1001);
  call();
  run(1002);
  answer_last(kServesCel05, 1003);
  EXPECT_EQ(ended.back(), std::pair(std::size_t{1}, CallStatus::kVersMismatch));
  EXPECT_EQ(device.num_attempts(), 2u);
  EXPECT_EQ(client->protocol(), Protocol::k1);
}

// There is no last resort, so silence and a hang-up are those of any connection.
TEST_F(ClientNegotiationTest, AListWithoutVersion1IsAskedAgainByTheReconnectPolicy) {
  own = {Protocol::k2Wg07, Protocol::k2Cel05};
  for (const bool hangs_up : {false, true}) {
    const std::size_t attempts = device.num_attempts();
    ask({.reconnect = kReconnect});
    call();
    if (hangs_up) device.break_connection("hung up");
    int ms = hangs_up ? 0 : 1000;
    run(ms);
    EXPECT_EQ(client->state(), State::kConnecting);
    EXPECT_EQ(device.num_attempts(), attempts + 1);
    run(ms += 100);
    EXPECT_EQ(device.num_attempts(), attempts + 2);
    EXPECT_THAT(versions(), ElementsAre(2u));
    answer_last(kServesWg07, ms);
    EXPECT_EQ(client->protocol(), Protocol::k2Wg07);
    client.reset();
    servers.forget({}, own);
  }
}

TEST_F(ClientNegotiationTest, ASilentServerIsGivenUpWhereVersion1IsNotInTheList) {
  own = {Protocol::k2Wg07, Protocol::k2Cel05};
  ask({.reconnect = kReconnect});
  for (int ms = 0; ms < 20000 && client->state() != State::kClosed; ++ms) run(ms);
  expect_closed("no answer to a first message of RPC-over-RDMA 2-wg07 within 1000 ms");
  expect_closed("ClientConfig::protocols does not name it");
  EXPECT_GT(device.num_attempts(), 1u);
}

TEST_F(ClientNegotiationTest, NoVersionInCommonIsTheEndWhateverThePolicy) {
  ask({.reconnect = kReconnect});
  answer_last(kServesWg07, 0);
  answer_last(kServesWg07, 0);
  expect_closed("no version of RPC-over-RDMA in common");
  EXPECT_EQ(device.num_attempts(), 1u);
}

// A Call of the server, in the version of the probe.
Octets call_of_server(std::uint32_t xid) {
  Octets octets;
  xdr::XdrWriter out(octets);
  cel05::emit_header(out, {.xid = xid, .credit = 1, .body = cel05::Msg{.direction = cel05::Direction::kCall}});
  emit_call(out, {xid, kTestProgram, kTestVersion, kNull, {}, {}});
  return octets;
}

TEST_F(ClientNegotiationTest, CallsOfTheServerWaitForTheAnswer) {
  ask();
  const std::size_t receives = device.qp().num_receives();
  const Octets probe = sends()[0];
  const std::uint32_t xid = *profile_of(Protocol::k2Cel05).reply_xid(probe);
  ASSERT_TRUE(device.qp().inject(call_of_server(xid)));  // Calls of the two directions may share an XID
  ASSERT_TRUE(device.qp().inject(call_of_server(7)));
  run(0);
  EXPECT_EQ(sends().size(), 1u);
  const auto answer = first_answer(kServesCel05, probe);
  ASSERT_TRUE(device.qp().inject(*answer));
  run(0);
  ASSERT_EQ(sends().size(), 3u);
  for (const std::size_t i : {1u, 2u}) {
    cel05::Header header;
    ConstBytes payload;
    ASSERT_EQ(parse_message(sends()[i], header, payload), v2::HeaderError::kNone);
    EXPECT_EQ(header.xid, i == 1 ? xid : 7);
    EXPECT_EQ(std::get<cel05::Msg>(header.body).direction, cel05::Direction::kReply);
  }
  EXPECT_EQ(device.qp().num_receives(), receives);
}

// More of them than the server was granted are lost, and take no Receive of the answer.
TEST_F(ClientNegotiationTest, AFloodOfTheServersCallsHidesNoAnswer) {
  ask();
  const Octets probe = sends()[0];
  for (std::uint32_t i = 0; i < 100; ++i) {
    ASSERT_TRUE(device.qp().inject(call_of_server(i)));
    run(0);
  }
  const auto answer = first_answer(kServesCel05, probe);
  ASSERT_TRUE(device.qp().inject(*answer));
  run(0);
  EXPECT_EQ(client->state(), State::kReady);
  EXPECT_EQ(sends().size(), 1u + 2) << "a client without programs has Receives for two";
}

// The error ends its Call before the end of the connection could make it go out again.
TEST_F(ClientNegotiationTest, ACallThatGotAnErrorIsNotSentAgain) {
  RecordProperty("proves", "U2-5.7.2-3");
  for (const auto& [own, server] : {std::pair{Protocol::k2Cel05, kServesCel05}, {Protocol::k2Wg07, kServesWg07}}) {
    ended.clear();
    const std::size_t number = num_calls;
    ask({.protocols = {own, Protocol::k1}, .reconnect = kReconnect});
    answer_last(server, 0, 100);
    call();
    ASSERT_EQ(sends().size(), 2u);
    const rpcrdma::Message error{.type = rpcrdma::Message::Type::kError,
                                 .xid = *profile_of(own).reply_xid(sends()[1]),
                                 .version = 2,
                                 .credit = 100,
                                 .lists = {},
                                 .error = {.code = TransportError::Code::kSystem}};
    Octets octets;
    xdr::XdrWriter out(octets);
    profile_of(own).emit(out, error);
    ASSERT_TRUE(device.qp().inject(octets));
    device.break_connection();
    run(0);
    EXPECT_THAT(ended, ElementsAre(Pair(number, CallStatus::kTransportError)));
    run_to_next_attempt(1);
    answer_last(server, 200, 100);
    EXPECT_EQ(client->state(), State::kReady);
    EXPECT_EQ(sends().size(), 1u) << "the question for the version";
    client.reset();
  }
}

TEST_F(ClientNegotiationTest, ALateAnswerMeansNothing) {
  ask();
  const Octets probe = sends()[0];
  run(1000);
  ASSERT_EQ(client->protocol(), Protocol::k1);
  ASSERT_TRUE(device.qp().inject(*first_answer(kServesCel05, probe)));
  run(1001);
  EXPECT_EQ(client->state(), State::kReady);
  EXPECT_EQ(client->replies().discarded, 1u);
}

TEST_F(ClientNegotiationTest, TheEndOfTheClientEndsTheSearch) {
  ask();
  call();
  client->disconnect();
  run(5000);
  EXPECT_EQ(client->state(), State::kClosed);
  EXPECT_EQ(device.num_attempts(), 1u);
  EXPECT_THAT(ended, ElementsAre(Pair(0, CallStatus::kDisconnected)));
}

TEST_F(ClientNegotiationTest, ARemovedDeviceHasNoLastResort) {
  ask();
  device.remove();
  run(0);
  expect_closed("taken away");
  EXPECT_EQ(device.num_attempts(), 1u);
}

TEST_F(ClientNegotiationTest, ListsWithoutSenseAreRefused) {
  for (const std::vector<Protocol>& list :
       {std::vector<Protocol>{}, {Protocol::k1, Protocol::k1}, {Protocol::k1, Protocol::k2Cel05, Protocol::k1}}) {
    ClientConfig config;
    config.protocols = list;
    const auto made = Client::connect(device, sockaddr_storage{}, config);
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.error().errno_value, EINVAL);
  }
}

}  // namespace
}  // namespace weft::rpcrdma::testing
