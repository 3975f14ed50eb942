// Hostile clients of RPC-over-RDMA version 2 that lie about their transport properties.
#include <gmock/gmock.h>

#include "tests/rpc/hostile_v2.h"

namespace weft::rpcrdma::testing {
namespace {

constexpr std::uint32_t kLies[] = {0, 1, 3, 1023, 1024, 0x7fffffff, 0x80000000, 0xffffffff};
constexpr std::uint32_t kLastProperty = 8;  // more than either draft has
constexpr std::size_t kThreshold = 4096;
constexpr std::size_t kLeastReceive = 1024;  // what every client takes, whatever it says

v2::Propval property(std::uint32_t which, std::uint32_t value) {
  Octets data(4);
  put_word(data, 0, value);
  return {which, data};
}

struct HostilePropertiesTest : HostileV2Test {
  // A READ whose Reply is longer than a message of the server can be, and its answer.
  void send_read_wg07(V2Peer& peer, std::uint32_t xid) {
    send(peer, xid, wg07::CallInline{}, rpc_call(xid, kRead, read_args(0, 6000)));
    run([&] { return answered(peer, xid); }, kServed);
  }
  void send_read_cel05(V2Peer& peer, std::uint32_t xid) {
    peer.send(cel05_octets(xid, cel05::Msg{}, rpc_call(xid, kRead, read_args(0, 6000))));
    run([&] { return answered(peer, xid); }, kServed);
  }
  // A whole answer: a Reply, its last part or an error.
  static bool answered(const V2Peer& peer, std::uint32_t xid) {
    return std::ranges::any_of(peer.received, [xid](const Octets& octets) {
      const std::uint32_t type = V2Peer::word(octets, 12);
      return V2Peer::word(octets, 0) == xid && type != static_cast<std::uint32_t>(wg07::Htype::kReplyMiddle);
    });
  }
  static std::size_t longest(const V2Peer& peer) {
    std::size_t len = 0;
    for (const Octets& octets : peer.received) len = std::max(len, octets.size());
    return len;
  }
};

TEST_F(HostilePropertiesTest, EveryLieInWg07) {
  RecordProperty("proves", "W2-5.2-2");
  file.data = pattern(8000);
  open();
  for (std::uint32_t which = 0; which <= kLastProperty; ++which) {
    for (const std::uint32_t lie : kLies) {
      V2Peer& peer = open_wg07();
      send(peer, 3, wg07::ConnpropFinal{{property(which, lie)}});
      settle();
      EXPECT_FALSE(peer.disconnected) << which << " " << lie;
      send_read_wg07(peer, 7);
      EXPECT_LE(longest(peer), kThreshold) << which << " " << lie;
    }
    expect_served();
    peers.clear();
  }
  expect_all_is_back();
}

// The server's messages are no longer than the least that every client takes if the client says less.
TEST_F(HostilePropertiesTest, SmallReceivesAreKeptTo) {
  file.data = pattern(8000);
  open();
  for (const std::uint32_t lie : {0u, 1u, 1023u}) {
    V2Peer& wg = open_wg07();
    const Properties said{.receive_size = lie};
    send(wg, 3, wg07::ConnpropFinal{v2::make_propset(said, wg07::kProperties)});
    settle();
    wg.received.erase(wg.received.begin() + 1, wg.received.end());
    const std::size_t num_sent = wg.num_sent;
    send_read_wg07(wg, 7);
    EXPECT_LE(longest(wg), kLeastReceive) << lie;
    EXPECT_GT(wg.num_sent, num_sent);
    V2Peer& cel = open_cel05();
    cel.send(cel05_octets(3, cel05::Connprop{.start = v2::make_propset(said, cel05::kProperties)}));
    settle();
    send_read_cel05(cel, 7);
    EXPECT_LE(longest(cel), kLeastReceive) << lie;
    expect_served();
  }
  expect_all_is_back();
}

// In one list the later value counts; a second list is refused.
TEST_F(HostilePropertiesTest, TwiceAndAgainInWg07) {
  RecordProperty("proves", "W2-6.3.4-2");
  file.data = pattern(8000);
  open();
  V2Peer& peer = open_wg07();
  v2::Propset twice;
  for (std::uint32_t which = 1; which <= 4; ++which) {
    twice.push_back(property(which, 0xffffffff));
    twice.push_back(property(which, 0));
  }
  send(peer, 3, wg07::ConnpropFinal{twice});
  settle();
  for (std::uint32_t xid = 10; xid < 20; ++xid) {
    send(peer, xid, wg07::ConnpropFinal{twice});
    settle();
    EXPECT_NE(peer.num_received<wg07::Error>(), 0u);
  }
  EXPECT_EQ(peer.num_received<wg07::ConnpropFinal>(), 1u) << "the server tells its own once";
  send_read_wg07(peer, 7);
  expect_served();
  expect_all_is_back();
}

// Lists without an end: each takes the place of the one before it, and Calls between them are refused.
TEST_F(HostilePropertiesTest, ListsOfPropertiesThatNeverEnd) {
  RecordProperty("proves", "W2-6.3.3-3");
  open();
  V2Peer& peer = open_wg07();
  most_held = 0;
  const v2::Propset material = v2::make_propset(Properties{.host_auth = pattern(3900)}, wg07::kProperties);
  v2::Propset set;
  for (std::uint32_t i = 0; i < 50; ++i) set.push_back({i, Octets(60)});
  for (std::size_t i = 0; i < 300; ++i) {
    send(peer, 3, wg07::ConnpropMiddle{{property(100, 1), property(1, kLies[i % std::size(kLies)])}});
    send(peer, 3, wg07::ConnpropMiddle{material});
    if (i % 100 == 0) {
      send(peer, 9, wg07::CallInline{}, rpc_call(9));
      settle();
      EXPECT_EQ(peer.error().err, wg07::Err::kInvalCont);
      send(peer, 3, wg07::ConnpropMiddle{set});
      expect_served();
    }
  }
  EXPECT_FALSE(peer.disconnected);
  EXPECT_EQ(peer.num_received<wg07::ReplyInline>(), 1u);
  EXPECT_LE(server->memory().calls, 0u);
  expect_all_is_back();
}

// Calls in parts between the messages of a list, while the list goes on.
TEST_F(HostilePropertiesTest, CallsInPartsBetweenListsOfProperties) {
  RecordProperty("proves", "W2-6.3.3-3");
  open();
  V2Peer& peer = open_wg07();
  send(peer, 3, wg07::ConnpropMiddle{});
  for (std::uint32_t xid = 10; xid < 50; ++xid) {
    send_whole(peer, xid, rpc_call(xid, kNull, pattern(8000)), wg07::CallInline{});
    settle();
    EXPECT_EQ(peer.error().err, wg07::Err::kInvalCont);
  }
  EXPECT_FALSE(peer.disconnected);
  EXPECT_EQ(peer.num_received<wg07::Error>(), 40u);
  EXPECT_EQ(server->memory().calls, 0u) << "while the peer stays";
  expect_all_is_back();
}

// Properties stand inside a sequence of parts, and change while a Reply is under way.
TEST_F(HostilePropertiesTest, PropertiesInsideACallOfWg07) {
  RecordProperty("proves", "W2-6.3.6-3");
  open();
  V2Peer& peer = open_wg07();
  const Octets call = rpc_call(7, kNull, pattern(8000));
  send(peer, 7, wg07::CallMiddle{}, part_of(call, 0, 4000));
  send(peer, 3, wg07::ConnpropFinal{{property(2, 0)}});
  settle();
  EXPECT_EQ(peer.error().err, wg07::Err::kInvalCont);
  send(peer, 7, wg07::CallMiddle{}, part_of(call, 4000, 8000));
  send(peer, 7, wg07::CallInline{}, part_of(call, 8000, call.size()));
  run([&] { return answered(peer, 7); }, kServed);
  expect_all_is_back();
}

TEST_F(HostilePropertiesTest, EveryLieInCel05) {
  file.data = pattern(8000);
  open();
  for (std::uint32_t which = 0; which <= kLastProperty; ++which) {
    for (const std::uint32_t lie : kLies) {
      V2Peer& peer = open_cel05();
      peer.send(cel05_octets(3, cel05::Connprop{.start = {property(which, lie)}}));
      peer.send(cel05_octets(3, cel05::Updprop{.now = {property(which, ~lie), property(which, lie)}}));
      peer.send(cel05_octets(3, cel05::Reqprop{.want = {property(which, lie)}}));
      peer.send(cel05_octets(3, cel05::Resprop{.other = {property(which, lie)}}));
      settle();
      EXPECT_FALSE(peer.disconnected) << which << " " << lie;
      send_read_cel05(peer, 7);
      EXPECT_LE(longest(peer), kThreshold) << which << " " << lie;
    }
    expect_served();
    peers.clear();
  }
  expect_all_is_back();
}

// The size of the client's Receives falls while the server has its Calls, and while Replies leave.
TEST_F(HostilePropertiesTest, PropertiesOfCel05ChangeInFlight) {
  file.data = pattern(8000);
  open();
  V2Peer& peer = open_cel05();
  const auto said = [](std::uint32_t receive_size) {
    return v2::make_propset(Properties{.receive_size = receive_size}, cel05::kProperties);
  };
  peer.send(cel05_octets(3, cel05::Connprop{.start = said(0xffffffff)}));
  settle();
  file.hold = true;
  for (std::uint32_t xid = 10; xid < 14; ++xid) {
    peer.send(cel05_octets(xid, cel05::Msg{}, rpc_call(xid, kRead, read_args(0, 3000))));
  }
  run([&] { return file.held.size() == 4; });
  peer.received.clear();
  for (const std::uint32_t size : {1024u, 0xffffffffu, 0u, 4096u, 1u}) {
    peer.send(cel05_octets(3, cel05::Updprop{.now = said(size)}));
    settle();
  }
  file.hold = false;
  file.answer_held();
  run([&] { return answered(peer, 13); }, kServed);
  EXPECT_LE(longest(peer), kLeastReceive) << "the value that came last counts";
  EXPECT_FALSE(peer.disconnected);
  expect_served();
  expect_all_is_back();
}

// Each answer holds the Receive of its question, so a client that asks much is bounded by its Receives.
TEST_F(HostilePropertiesTest, AFloodOfQuestionsInCel05) {
  open({.credits = 8});
  V2Peer& peer = open_cel05();
  const Octets question = cel05_octets(3, cel05::Reqprop{.want = {property(1, 5)}});
  for (std::size_t num = 1; num <= 60; ++num) {
    peer.send(question);
    run([&] { return peer.received.size() == 1 + num; }, kServed);
  }
  for (int i = 0; i < 60; ++i) peer.send(question);
  expect_served();
  EXPECT_LE(server->memory().sends, 4 * std::size_t{64} * (kThreshold + 64));
  expect_all_is_back();
}

// Messages that cost their sender nothing, many at once: those of the other clients find their Receives.
TEST_F(HostilePropertiesTest, FloodsOfMessagesWithoutAnAnswer) {
  if (!server_device->caps().srq_reserve) return;  // without a reserve a flood takes all Receives
  const Octets messages[] = {
      cel05_octets(3, cel05::Updprop{.now = {property(99, 5000)}}),
      cel05_octets(3, cel05::Resprop{.other = {property(1, 5)}}),
      cel05_octets(9, cel05::Error{.err = cel05::Err::kSystem}),
      cel05_octets(9, cel05::Msg{.direction = cel05::Direction::kReply}, rpc_reply(9)),
  };
  for (const std::uint32_t reverse_credits : {0u, 4u}) {
    good.clear();
    server.reset();
    open({.credits = 8, .reverse_credits = reverse_credits});
    for (const Octets& message : messages) {
      V2Peer& peer = open_cel05();
      peer.send(cel05_octets(3, cel05::Connprop{.start = {property(1, 5000)}}));
      settle();
      for (int i = 0; i < 60; ++i) peer.send(message);
      verbs::testing::bare(*client_device).process(now);
      expect_served();
      run([&] { return peer.disconnected; });
    }
    expect_all_is_back();
  }
}

// Good messages about properties need no answer either, and no rule bounds them. They cost what others' messages cost,
// and end no connection.
TEST_F(HostilePropertiesTest, ManyGoodPropertiesInOneTurn) {
  RecordProperty("proves", "R2-6.3.4-1");
  if (!server_device->caps().srq_reserve) return;  // without a reserve a flood takes all Receives
  const Octets messages[] = {
      cel05_octets(3, cel05::Updprop{.now = {property(1, 1024)}}),
      cel05_octets(3, cel05::Connprop{.start = {property(1, 1024)}}),
  };
  open({.credits = 8});
  file.data = pattern(8000);
  for (const Octets& message : messages) {
    for (const int num : {12, 60}) {
      V2Peer& peer = open_cel05();
      peer.send(cel05_octets(3, cel05::Connprop{.start = {property(1, 5000)}}));
      settle();
      // Turn after turn.
      for (int round = 0; round < 20; ++round) {
        for (int i = 0; i < num; ++i) peer.send(message);
        verbs::testing::bare(*client_device).process(now);
        expect_served();
      }
      EXPECT_FALSE(peer.disconnected) << num;
      send_read_cel05(peer, 7);
      EXPECT_LE(longest(peer), kLeastReceive) << "the value that came last counts";
    }
  }
  expect_all_is_back();
}

}  // namespace
}  // namespace weft::rpcrdma::testing
