// A Client that finds out which version its server speaks, and what it does then. The test is the server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "rpcrdma/testing/client_negotiation.h"
#include "rpcrdma/v2_cel05/header.h"

namespace weft::rpcrdma::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
namespace cel05 = v2_cel05;

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
    EXPECT_EQ(sends().size(), 3u) << "the word that came last counts, also a lower one (W2-A-01)";
    ASSERT_TRUE(device.qp().inject(grant));
    run(0);
    EXPECT_EQ(sends().size(), 5u);
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
