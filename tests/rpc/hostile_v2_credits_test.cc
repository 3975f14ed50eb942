// Hostile clients of RPC-over-RDMA version 2: credit words, floods, and messages of the wrong direction.
#include <gmock/gmock.h>

#include "tests/rpc/hostile_v2.h"

namespace weft::rpcrdma::testing {
namespace {

using HostileCreditsTest = HostileV2Test;

TEST_F(HostileCreditsTest, WordsOfWg07LeapFallAndWrap) {
  RecordProperty("proves", "W2-4.2.1-6 W2-4.2.1-9 W2-4.2.1-10 W2-4.2.1-11");
  open();
  V2Peer& peer = open_wg07();
  std::uint32_t xid = 10;
  std::size_t num_replies = 1;
  for (const std::uint32_t word :
       {0u, 0xffffffffu, 0x7fffffffu, 0x80000000u, 0x80000001u, 1u, 2u, 0xfffffffeu, 0x7ffffffeu, 70000u, 3u}) {
    // The last word counts, so the answer leaves if this one allows another message after the last one.
    const auto num_sent = static_cast<std::uint32_t>(peer.received.size());
    const bool is_answered = static_cast<std::int32_t>(word - num_sent) > 0;
    run([&] { return peer.num_credits() > 0; });
    peer.send(wg07_octets(xid, word, wg07::CallInline{}, rpc_call(xid)));
    settle();
    EXPECT_EQ(peer.num_received<wg07::ReplyInline>(), num_replies + (is_answered ? 1 : 0)) << word;
    run([&] { return peer.num_credits() > 0; });
    peer.send(wg07_octets(0, kNoEndOfCredits, wg07::Grant{}));
    ++xid;
    ++num_replies;
    run([&] { return peer.num_received<wg07::ReplyInline>() == num_replies; }, kServed);
    expect_served();
  }
  EXPECT_FALSE(peer.disconnected);
  expect_all_is_back();
  // Nor does this end offer so many.
  for (const std::uint32_t credits : {0x7fffffffu, 0x80000000u, 0xffffffffu}) {
    const auto made =
        Server::listen(*server_device, loopback(0), programs, {.credits = credits, .protocols = {Protocol::k2Wg07}});
    ASSERT_FALSE(made.ok());
    EXPECT_THAT(made.error().message, ::testing::HasSubstr("credits must be from 1 to"));
    const auto asked =
        Client::connect(*client_device, server->local_addr(), {.credits = credits, .protocols = {Protocol::k2Wg07}});
    ASSERT_FALSE(asked.ok());
    EXPECT_THAT(asked.error().message, ::testing::HasSubstr("credits must be from 1 to"));
  }
}

// One that gives no credits makes its answers wait. In time its connection ends.
TEST_F(HostileCreditsTest, AnswersThatGetNoCreditsEndTheConnection) {
  open();
  V2Peer& peer = open_raw();
  peer.send(wg07_octets(1, 1, wg07::CallInline{}, rpc_call(1)));
  run([&] { return peer.num_received<wg07::ReplyInline>() == 1; });
  for (std::uint32_t xid = 2; peer.num_credits() > 0 && xid < 50; ++xid) {
    peer.send(wg07_octets(xid, 1, wg07::CallInline{}, rpc_call(xid)));
  }
  settle();
  EXPECT_EQ(peer.num_received<wg07::ReplyInline>(), 1u);
  expect_served();
  EXPECT_LE(server->memory().calls, 34 * kContinuedResults);
  advance(std::chrono::seconds(31));
  run([&] { return peer.disconnected; });
  expect_all_is_back();
}

// So does one that gives credits for a part of a Reply, and has nothing else under way.
TEST_F(HostileCreditsTest, AReplyThatWaitsInItsMiddleEndsTheConnection) {
  open();
  file.listing = 500 * kKib;
  V2Peer& peer = open_raw();
  peer.send(wg07_octets(1, 1, wg07::CallInline{}, rpc_call(1)));
  run([&] { return peer.num_received<wg07::ReplyInline>() == 1; });
  peer.send(wg07_octets(2, 3, wg07::CallInline{}, rpc_call(2, kReaddir)));
  run([&] { return peer.num_received<wg07::ReplyMiddle>() >= 1; });
  settle();
  EXPECT_GE(server->memory().calls, file.listing);
  advance(std::chrono::seconds(31));
  run([&] { return peer.disconnected; });
  EXPECT_EQ(server->memory().calls, 0u);
  expect_all_is_back();
}

// Credits that drip: each part that leaves is progress, and the Reply has its time all the same.
TEST_F(HostileCreditsTest, AReplyThatDripsEndsTheConnection) {
  open();
  file.listing = 500 * kKib;
  V2Peer& peer = open_raw();
  peer.send(wg07_octets(1, 1, wg07::CallInline{}, rpc_call(1)));
  run([&] { return peer.num_received<wg07::ReplyInline>() == 1; });
  peer.send(wg07_octets(2, 2, wg07::CallInline{}, rpc_call(2, kReaddir)));
  std::uint32_t credit = 3;
  for (int s = 0; s < 40 && !peer.disconnected; ++s) {
    advance(std::chrono::seconds(1));
    if (peer.num_credits() > 0) peer.send(wg07_octets(0, credit++, wg07::Grant{}));
    settle();
  }
  EXPECT_GE(peer.num_received<wg07::ReplyMiddle>(), 20u);
  run([&] { return peer.disconnected; });
  EXPECT_EQ(server->memory().calls, 0u);
  expect_all_is_back();
}

// Replies without a chunk are as long as the service makes them. While they wait for credits they count.
TEST_F(HostileCreditsTest, LongRepliesThatGetNoCreditsAreBounded) {
  constexpr std::size_t kMaxHeld = 4 * kMib + kGuaranteed;  // ServerConfig::max_buffered_per_connection
  open();
  file.listing = 500 * kKib;
  std::vector<V2Peer*> hostile{&open_raw(), &open_raw(), &open_raw()};
  for (V2Peer* peer : hostile) {
    peer->send(wg07_octets(1, 1, wg07::CallInline{}, rpc_call(1)));
    run([&] { return peer->num_received<wg07::ReplyInline>() == 1; });
    for (std::uint32_t xid = 2; xid < 50; ++xid) {
      for (int i = 0; i < 5 && peer->num_credits() <= 0; ++i) turn();
      if (peer->num_credits() > 0) peer->send(wg07_octets(xid, 1, wg07::CallInline{}, rpc_call(xid, kReaddir)));
    }
  }
  settle();
  EXPECT_GE(server->memory().calls, 3 * 7 * file.listing);
  EXPECT_LE(server->memory().calls, 3 * kMaxHeld);
  expect_served();
  advance(std::chrono::seconds(31));
  for (V2Peer* peer : hostile) run([&] { return peer->disconnected; });
  expect_all_is_back();
}

TEST_F(HostileCreditsTest, WordsOfCel05LeapFallAndWrap) {
  open();
  V2Peer& peer = open_cel05();
  std::uint32_t xid = 10;
  std::size_t num = 1;
  for (const std::uint32_t word : {0u, 0xffffffffu, 1u, 0x80000000u, 0x7fffffffu, 0u, 32u}) {
    peer.send(cel05_octets(xid, cel05::Msg{}, rpc_call(xid), word));
    ++xid;
    ++num;
    run([&] { return peer.received.size() == num; }, kServed);
    const std::uint32_t granted = V2Peer::word(peer.received.back(), 8);
    EXPECT_GE(granted, 1u);
    EXPECT_LE(granted, 32u);
    expect_served();
  }
  EXPECT_FALSE(peer.disconnected);
  expect_all_is_back();
}

// More parts at once than there are Receives of all clients, with a good client's Calls right behind them.
TEST_F(HostileCreditsTest, AFloodBeyondTheGrantInParts) {
  RecordProperty("proves", "W2-4.2.1-8 U2-5.7.2-2");
  open({.credits = 8});
  for (int round = 0; round < 3; ++round) {
    V2Peer& peer = open_wg07();
    Octets part(400);
    put_word(part, 0, 7);
    for (int i = 0; i < 60; ++i) peer.send_wg07(7, wg07::CallMiddle{}, part);
    verbs::testing::bare(*client_device).process(now);
    expect_served();
    run([&] { return peer.disconnected; });
  }
  expect_all_is_back();
}

TEST_F(HostileCreditsTest, AFloodOfGrants) {
  open({.credits = 8});
  V2Peer& peer = open_wg07();
  // One a turn, so that Receives are there: no GRANT is answered, and each costs a credit.
  for (int i = 0; i < 60 && !peer.disconnected; ++i) {
    peer.send_wg07(0, wg07::Grant{});
    turn();
  }
  EXPECT_TRUE(peer.disconnected);
  expect_served();
  expect_all_is_back();
}

// W2-A-02: a client has one credit until it hears of more (W2-4.3-1), so the server says how many it gives. That is no
// conversation of GRANTs: the next one is not answered.
TEST_F(HostileCreditsTest, AGrantThatComesFirstShowsTheDraftAndIsAnsweredOnce) {
  open();
  V2Peer& peer = open_raw();
  EXPECT_EQ(peer.num_credits(), 1);
  peer.send_wg07(0, wg07::Grant{});
  run([&] { return peer.num_received<wg07::Grant>() == 1; });
  EXPECT_GT(peer.num_credits(), 0);
  peer.send_wg07(0, wg07::Grant{});
  settle();
  EXPECT_EQ(peer.received.size(), 1u);
  send(peer, 7, wg07::CallInline{}, rpc_call(7));
  run([&] { return peer.num_received<wg07::ReplyInline>() == 1; }, kServed);
  // 2-cel05 has no message of these octets. The connection keeps its draft (W2-4.3.3-1).
  run([&] { return peer.num_credits() > 0; });
  peer.send(cel05_octets(8, cel05::Msg{}, rpc_call(8)));
  run([&] { return peer.num_received<wg07::Error>() == 1; }, kServed);
  EXPECT_EQ(peer.error().err, wg07::Err::kInvalHtype);
  EXPECT_FALSE(peer.disconnected);
  expect_all_is_back();
}

// Parts of Calls, of Replies to no Call, and malformed messages: each costs a credit.
TEST_F(HostileCreditsTest, FloodsThatStayWithinTheGrantCostOneTurnEach) {
  open();
  V2Peer& peer = open_wg07();
  Octets unknown = wg07_octets(5, kNoEndOfCredits, wg07::Grant{});
  unknown[15] = 99;
  most_held = 0;
  for (int i = 0; i < 400; ++i) {
    run([&] { return peer.num_credits() > 0; });
    switch (i % 4) {
      case 0: peer.send_wg07(7, wg07::ReplyMiddle{9}, Octets(400)); break;
      case 1: peer.send(unknown); break;
      case 2: peer.send_wg07(7, wg07::ReplyInline{}, Octets(400)); break;
      case 3: peer.send_wg07(7, wg07::CallMiddle{9}, Octets(400)); break;
    }
    turn();
    if (i % 50 == 0) expect_served();
  }
  settle();
  EXPECT_FALSE(peer.disconnected);
  EXPECT_EQ(server->memory().calls, 0u) << "nothing of it is kept";
  expect_all_is_back();
}

using HostileDirectionTest = HostileV2Test;

TEST_F(HostileDirectionTest, ErrorsAndRepliesToAServer) {
  open();
  for (const bool has_reverse : {false, true}) {
    if (has_reverse) {
      peers.clear();
      good.clear();
      server.reset();
      open({.reverse_credits = 4});
    }
    file.hold = true;
    V2Peer& wg = open_raw();
    wg.send_wg07(5, wg07::CallInline{}, rpc_call(5));
    V2Peer& cel = open_raw();
    cel.send(cel05_octets(5, cel05::Msg{}, rpc_call(5)));
    run([&] { return file.held.size() == 2; });
    // XIDs of Calls that the server has, and of none; also of its own version.
    for (const std::uint32_t xid : {5u, 6u}) {
      for (const std::uint32_t err : {1u, 2u, 5u, 8u, 10u, 11u, 100u, 0u, 0xffffffffu}) {
        cel.send(cel05_octets(xid, cel05::Error{.err = static_cast<cel05::Err>(err)}));
        turn();
      }
      cel.send(cel05_octets(xid, cel05::Msg{.direction = cel05::Direction::kReply}, rpc_reply(xid)));
      turn();
    }
    file.hold = false;
    file.answer_held();
    run([&] { return cel.received.size() == 1 && wg.num_received<wg07::ReplyInline>() == 1; });
    for (const std::uint32_t xid : {5u, 6u}) {
      for (const std::uint32_t err : {1u, 2u, 5u, 8u, 10u, 11u, 100u, 0u, 0xffffffffu}) {
        send(wg, xid, wg07::Error{.err = static_cast<wg07::Err>(err)});
      }
      send(wg, xid, wg07::ReplyInline{}, rpc_reply(xid));
      send(wg, xid, wg07::ReplyMiddle{4}, rpc_reply(xid));
      send(wg, xid, wg07::ReplyInline{}, Octets(4));
    }
    settle();
    EXPECT_EQ(cel.received.size(), 1u) << "none of them is answered";
    EXPECT_EQ(wg.num_received<wg07::Error>(), 0u);
    EXPECT_FALSE(wg.disconnected || cel.disconnected);
    expect_served();
    send(wg, 8, wg07::CallInline{}, rpc_call(8));
    cel.send(cel05_octets(8, cel05::Msg{}, rpc_call(8)));
    run([&] { return cel.received.size() == 2 && wg.num_received<wg07::ReplyInline>() == 2; }, kServed);
  }
  expect_all_is_back();
}

}  // namespace
}  // namespace weft::rpcrdma::testing
