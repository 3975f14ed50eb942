// What a LinkObserver hears: every message as it went over the connection, and one end for each connection.
#include "rpcrdma/link_observer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "rpcrdma/known_servers.h"
#include "rpcrdma/profiles.h"
#include "rpcrdma/server.h"
#include "rpcrdma/testing/client_life.h"
#include "rpcrdma/testing/first_answers.h"
#include "rpcrdma/testing/forms.h"
#include "rpcrdma/testing/vectors.h"

namespace weft::rpcrdma::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using Direction = LinkMessage::Direction;

struct Heard : LinkObserver {
  struct One {
    Direction direction;
    std::string profile;
    Octets octets;
    std::uint32_t credit;
    std::optional<std::uint32_t> invalidated;
    std::size_t num_views;
  };

  void on_message(const ObservedLink& link, const LinkMessage& message) override {
    EXPECT_FALSE(ended(link.id)) << "the end was told before";
    Octets octets;
    for (const ConstBytes view : message.octets) octets.insert(octets.end(), view.begin(), view.end());
    all.push_back({message.direction, std::string(message.profile), std::move(octets), message.credit,
                   message.invalidated, message.octets.size()});
  }
  void on_end(const ObservedLink& link, std::string_view why) override {
    EXPECT_FALSE(ended(link.id)) << "two ends";
    ends.emplace_back(link.id, why);
  }
  bool ended(std::uint32_t id) const {
    return std::ranges::any_of(ends, [id](const auto& end) { return end.first == id; });
  }
  std::vector<Octets> octets(Direction direction) const {
    std::vector<Octets> some;
    for (const One& one : all) {
      if (one.direction == direction) some.push_back(one.octets);
    }
    return some;
  }
  std::vector<std::string> profiles() const {
    std::vector<std::string> names;
    for (const One& one : all) names.push_back(one.profile);
    return names;
  }

  std::vector<One> all;
  std::vector<std::pair<std::uint32_t, std::string>> ends;
};

// The credit word of a message.
std::uint32_t credit_of(const Octets& message) {
  xdr::XdrReader in(message);
  std::uint32_t credit = 0;
  EXPECT_TRUE(in.skip(8) && in.u32(credit));
  return credit;
}

// ---- both engines

struct ObservedEnginesTest : FormsTest {
  ~ObservedEnginesTest() override {
    requester.reset();
    responder.reset();
  }
  void observe() {
    requester->qp.keep_sent = responder->qp.keep_sent = true;
    requester->link->observe(client, {.id = 1, .is_client = true, .peer = "192.0.2.2:2049"});
    responder->link->observe(server, {.id = 2, .peer = "192.0.2.1:700"});
  }
  // What one end sends the other one receives, and both observers hear it as the wire has it.
  void expect_whole() {
    EXPECT_THAT(client.octets(Direction::kSent), ElementsAreArray(requester->qp.sent));
    EXPECT_THAT(server.octets(Direction::kReceived), ElementsAreArray(requester->qp.sent));
    EXPECT_THAT(server.octets(Direction::kSent), ElementsAreArray(responder->qp.sent));
    EXPECT_THAT(client.octets(Direction::kReceived), ElementsAreArray(responder->qp.sent));
    for (const Heard* heard : {&client, &server}) {
      for (const Heard::One& one : heard->all) EXPECT_EQ(one.credit, credit_of(one.octets));
    }
  }

  Heard client, server;
};

TEST_F(ObservedEnginesTest, EveryMessageIsHeardAtBothEnds) {
  open();
  observe();
  answer_with([](ServedCall&) { return ServedReply{}; });
  for (int i = 0; i < 3; ++i) EXPECT_EQ(call(spec_of(0)).status, CallStatus::kSuccess);
  expect_whole();
  EXPECT_THAT(client.octets(Direction::kSent), SizeIs(3));
  EXPECT_THAT(client.profiles(), Each("1"));
}

// A Reply whose results stand in memory of their own is gathered.
TEST_F(ObservedEnginesTest, AGatheredMessageIsHeardInItsParts) {
  open({}, 4096);
  observe();
  answer_with(
      [this](ServedCall&) { return reply_with(pair_message(pattern(1500, 1), pattern(9, 2)), responder->pool); });
  const Message args = pair_message({}, {});
  CallSpec spec = spec_of(kPair, args.whole);
  spec.max_results = 2000;
  EXPECT_EQ(call(spec).status, CallStatus::kSuccess);
  expect_whole();
  EXPECT_GT(server.all.back().num_views, 1u);
}

// Parts of a Call and GRANTs belong to no engine's Send.
TEST_F(ObservedEnginesTest, MessagesOfTheLinkAreHeard) {
  protocol = Protocol::k2Wg07;
  open({.max_continued_call = 16 << 10}, 4096);
  observe();
  answer_with([](ServedCall&) { return ServedReply{}; });
  EXPECT_EQ(call(spec_of(0)).status, CallStatus::kSuccess);
  EXPECT_EQ(call(spec_of(0, pattern(14000))).status, CallStatus::kSuccess);
  expect_whole();
  EXPECT_GE(client.octets(Direction::kSent).size(), 5u) << "the Call goes in parts";
  EXPECT_THAT(server.profiles(), Each("2-wg07"));
}

TEST_F(ObservedEnginesTest, AnInvalidatedHandleIsHeard) {
  ResponderEnd::Options options;
  options.invalidates = true;
  responder = std::make_unique<ResponderEnd>(memory, options);
  requester = std::make_unique<RequesterEnd>(memory, RequesterEnd::Options{.windows = true});
  FakeQp::connect(requester->qp, responder->qp);
  observe();
  answer_with([](ServedCall&) { return ServedReply{}; });
  Octets room(9000);
  CallSpec spec = call_of(test_binding(), kRead);
  spec.result_items = room;
  spec.max_results = 8;
  (void)call(spec);
  expect_whole();
  ASSERT_THAT(responder->qp.remote_invalidations, SizeIs(1));
  const std::optional<std::uint32_t> handle = responder->qp.remote_invalidations[0];
  EXPECT_EQ(server.all.back().invalidated, handle);
  EXPECT_EQ(client.all.back().invalidated, handle);
  EXPECT_EQ(client.all.front().invalidated, std::nullopt);
}

TEST_F(ObservedEnginesTest, ASendThatCannotBePostedIsNotHeard) {
  open();
  observe();
  requester->qp.fail_post_send = true;
  ASSERT_TRUE(requester->requester->call(spec_of(0), nullptr).ok());
  EXPECT_TRUE(requester->endpoint->failure());
  EXPECT_THAT(client.all, IsEmpty());
}

TEST_F(ObservedEnginesTest, TheEndComesOnce) {
  open();
  observe();
  requester->link->end("the peer is gone");
  requester->link->end("another reason");
  answer_with([](ServedCall&) { return ServedReply{}; });
  (void)call(spec_of(0));
  EXPECT_THAT(client.all, IsEmpty()) << "the end was the last call";
  requester.reset();
  responder.reset();
  EXPECT_THAT(client.ends, ElementsAre(Pair(1u, "the peer is gone")));
  EXPECT_THAT(server.ends, ElementsAre(Pair(2u, "the connection is gone")));
}

// ---- clients

struct ObservedClientTest : ClientLifeTest {
  ~ObservedClientTest() override { client.reset(); }
  Heard heard;
};

TEST_F(ObservedClientTest, EachConnectionHasItsEnd) {
  open_and_call({.reconnect = kReconnect, .observer = &heard});
  answer(0, 0);
  EXPECT_THAT(heard.all, SizeIs(2));
  device.break_connection("the cable is cut");
  run_to_next_attempt(1);
  call();
  run(200);
  EXPECT_THAT(heard.all, SizeIs(3));
  client->disconnect();
  client.reset();
  EXPECT_THAT(heard.ends, ElementsAre(Pair(1u, HasSubstr("the cable is cut")), Pair(2u, "disconnected")));
}

TEST_F(ObservedClientTest, AConnectionThatNeverCameHasItsEnd) {
  device.on_connect = [] { return Answer::kRefuse; };
  auto made = Client::connect(device, sockaddr_storage{}, {.observer = &heard});
  ASSERT_TRUE(made.ok());
  client = std::move(*made);
  run(0);
  EXPECT_EQ(client->state(), State::kClosed);
  EXPECT_THAT(heard.ends, ElementsAre(Pair(1u, HasSubstr("cannot connect"))));
  device.fail_cq = true;
  Heard other;
  EXPECT_FALSE(Client::connect(device, sockaddr_storage{}, {.observer = &other}).ok());
  EXPECT_THAT(other.ends, ElementsAre(Pair(1u, HasSubstr("no completion queue"))));
}

// The questions of a client that looks for a version, and their answers.
TEST_F(ObservedClientTest, FirstMessagesAreHeard) {
  KnownServers servers;
  auto made =
      Client::connect(device, sockaddr_storage{},
                      {.protocols = {Protocol::k2Cel05, Protocol::k1}, .known_servers = &servers, .observer = &heard});
  ASSERT_TRUE(made.ok());
  client = std::move(*made);
  run(0);
  for (int i = 0; i < 2; ++i) {
    const auto answer = first_answer({&profile_of(Protocol::k1)}, device.qp().sent.back());
    ASSERT_TRUE(answer);
    ASSERT_TRUE(device.qp().inject(*answer));
    run(0);
  }
  EXPECT_EQ(client->state(), State::kReady);
  EXPECT_THAT(heard.octets(Direction::kSent), ElementsAreArray(device.qp().sent));
  EXPECT_THAT(heard.octets(Direction::kReceived), SizeIs(2));
  EXPECT_THAT(heard.profiles(), ElementsAre("2-cel05", "2-cel05", "1", "1"));
  client.reset();
  EXPECT_THAT(heard.ends, ElementsAre(Pair(1u, "the client is gone")));
}

// ---- servers

struct ObservedServerTest : ::testing::Test {
  ObservedServerTest() {
    ServerConfig config;
    config.observer = &heard;
    server = std::move(*Server::listen(device, sockaddr_storage{}, programs, config));
  }
  ~ObservedServerTest() override {
    service.calls.clear();
    server.reset();
  }
  void run() {
    for (int i = 0; i < 5; ++i) server->process(at(0));
  }
  void connect() {
    device.ask();
    run();
  }

  Heard heard;
  FakeMemory memory;
  FakeDevice device{memory};
  TestService service;
  std::vector<ServedProgram> programs{{&test_binding(), &service}};
  std::unique_ptr<Server> server;
};

TEST_F(ObservedServerTest, TheEndHasThePeersReason) {
  connect();
  const Octets null = load_vector("V01").octets;
  ASSERT_TRUE(device.qp().inject(null));
  run();
  device.break_connection("the peer sent a Terminate", EPROTO);
  run();
  connect();
  server.reset();
  EXPECT_THAT(heard.octets(Direction::kReceived), ElementsAre(null));
  EXPECT_THAT(heard.ends, ElementsAre(Pair(1u, "the peer sent a Terminate"), Pair(2u, "the server is gone")));
}

// Any octets at all are told.
TEST_F(ObservedServerTest, AMessageTooShortForACreditWord) {
  connect();
  ASSERT_TRUE(device.qp().inject(Octets(5, 0xff)));
  run();
  EXPECT_THAT(heard.octets(Direction::kReceived), ElementsAre(Octets(5, 0xff)));
  EXPECT_EQ(heard.all.front().credit, 0u);
}

}  // namespace
}  // namespace weft::rpcrdma::testing
