// Hostile clients of RPC-over-RDMA version 2: sequences of parts, credit words, floods, messages of the wrong direction
// and cut ones. Beside them clients of every protocol are served, and the memory of the server has a ceiling.
#include <gmock/gmock.h>

#include "tests/rpc/hostile_v2.h"

namespace weft::rpcrdma::testing {
namespace {

constexpr std::size_t kKib = 1024;
constexpr std::size_t kMib = kKib * kKib;
constexpr std::size_t kGuaranteed = 64 * kKib;  // ServerConfig::min_buffered_per_connection

using HostilePartsTest = HostileV2Test;

// The length that a part announces reserves nothing.
TEST_F(HostilePartsTest, FourGibibytesAreAnnounced) {
  RecordProperty("proves", "W2-6.3.6-2 W2-11.1-1");
  open();
  most_held = 0;
  for (int i = 0; i < 40; ++i) send_parts(open_wg07(), 7, 1, 4);
  settle();
  EXPECT_EQ(server->memory().calls, 40u * 2 * 4) << "twice what arrived";
  expect_served();
  // The good clients' own long Calls are above it.
  EXPECT_LE(most_held, 40u * 2 * 4 + 3 * kMib);
  expect_all_is_back();
}

// Four octets a message: the number of messages ends it.
TEST_F(HostilePartsTest, FourOctetsAMessage) {
  RecordProperty("proves", "W2-6.6.2-1");
  open();
  V2Peer& peer = open_wg07();
  most_held = 0;
  send_parts(peer, 7, 1024, 4);
  settle();
  EXPECT_EQ(peer.num_received<wg07::Error>(), 0u);
  EXPECT_LE(most_held, 2u * 4 * 1024);
  expect_served();
  send_parts(peer, 7, 1, 4);
  settle();
  EXPECT_EQ(peer.error().err, wg07::Err::kSystem);
  EXPECT_EQ(server->memory().calls, 0u);
  // The rest is discarded, and the peer may go on.
  send(peer, 7, wg07::CallInline{}, Octets(4));
  send(peer, 8, wg07::CallInline{}, rpc_call(8));
  settle();
  EXPECT_EQ(peer.num_received<wg07::ReplyInline>(), 2u);
  expect_all_is_back();
}

// A part every now and then does not prolong the time of a sequence.
TEST_F(HostilePartsTest, ADripEndsInTime) {
  open();
  V2Peer& peer = open_wg07();
  for (int s = 0; s < 29; ++s) {
    send_parts(peer, 7, s == 0 ? 2 : 1, s == 0 ? 4000 : 4);
    advance(std::chrono::seconds(1));
  }
  EXPECT_EQ(peer.num_received<wg07::Error>(), 0u);
  EXPECT_NE(server->memory().calls, 0u);
  advance(std::chrono::seconds(1));
  EXPECT_EQ(peer.error().err, wg07::Err::kSystem);
  EXPECT_EQ(server->memory().calls, 0u);
  expect_all_is_back();
}

TEST_F(HostilePartsTest, SequencesWithoutAnEnd) {
  RecordProperty("proves", "W2-6.6.2-1");
  open();
  for (int i = 0; i < 3; ++i) open_wg07();
  most_held = 0;
  for (int i = 0; i < 40; ++i) {
    for (const auto& peer : peers) send_parts(*peer, 7, 8, 4000);
    if (i % 10 == 0) expect_served();
    EXPECT_LE(most_held, 6 * kMib);
  }
  for (const auto& peer : peers) {
    EXPECT_EQ(peer->error().err, wg07::Err::kSystem);
    EXPECT_EQ(peer->num_received<wg07::Error>(), 1u) << "the rest is discarded";
    EXPECT_FALSE(peer->disconnected);
  }
  settle();
  EXPECT_EQ(server->memory().calls, 0u);
  expect_all_is_back();
}

TEST_F(HostilePartsTest, MixedXids) {
  RecordProperty("proves", "W2-6.3.6-4 W2-7.1.4-1");
  open();
  V2Peer& peer = open_wg07();
  const Octets call = rpc_call(7, kNull, pattern(8000));
  send(peer, 7, wg07::CallMiddle{}, part_of(call, 0, 4000));
  most_held = 0;
  for (std::uint32_t xid = 100; xid < 400; ++xid) send_parts(peer, xid, 1, 4000);
  settle();
  EXPECT_LE(most_held, kGuaranteed);
  EXPECT_EQ(peer.num_received<wg07::Error>(), 300u);
  EXPECT_EQ(peer.error().err, wg07::Err::kInvalCont);
  expect_served();
  // The first sequence goes on.
  send(peer, 7, wg07::CallMiddle{}, part_of(call, 4000, 8000));
  send(peer, 7, wg07::CallInline{}, part_of(call, 8000, call.size()));
  settle();
  EXPECT_EQ(peer.num_received<wg07::ReplyInline>(), 2u);
  expect_all_is_back();
}

// Within the guarantee of each connection: no Call waits, and all memory goes back in time.
TEST_F(HostilePartsTest, HalfDoneOnHundredsOfConnections) {
  open();
  constexpr std::size_t kPeers = 200;
  for (std::size_t i = 0; i < kPeers; ++i) send_parts(open_wg07(), 7, 8, 4000);
  settle();
  EXPECT_LE(server->memory().calls, kPeers * kGuaranteed);
  EXPECT_GE(server->memory().calls, kPeers * 32000);
  expect_served(4 * kServed);
  expect_served(4 * kServed, 500 * kKib);
  advance(std::chrono::seconds(31));
  EXPECT_EQ(server->memory().calls, 0u);
  for (const auto& peer : peers) EXPECT_EQ(peer->error().err, wg07::Err::kSystem);
  expect_all_is_back();
}

// Beyond the guarantee they hold all that their address may have. Short Calls and continued ones within the guarantee
// are served at once, the longer ones of neighbours as soon as the pause of the hostile clients is over.
TEST_F(HostilePartsTest, HalfDoneCallsThatHoldTheirAddresssMemory) {
  open({.max_item = 256 * kKib, .max_buffered = 64 * kMib, .max_buffered_per_client = 16 * kMib});
  for (std::size_t i = 0; i < 20; ++i) send_parts(open_wg07(), 7, 17, 4000);
  settle();
  EXPECT_LE(server->memory().calls, 16 * kMib + (20 + 3) * kGuaranteed);
  EXPECT_GE(server->memory().calls, 14 * kMib);
  expect_served(kServed, 12000);
  const Octets args = pattern(600 * kKib);
  CallSpec spec = null_call();
  spec.args = args;
  std::size_t num_done = 0;
  for (const auto& client : good) {
    ASSERT_TRUE(client
                    ->call(spec,
                           [&](const Reply& reply) {
                             EXPECT_EQ(reply.status, CallStatus::kSuccess) << reply.text;
                             ++num_done;
                           })
                    .ok());
  }
  for (int i = 0; i < 50; ++i) turn();
  EXPECT_LT(num_done, 3u) << "there is memory";
  expect_served(kServed, 0);
  advance(std::chrono::milliseconds(2001));
  run([&] { return num_done == 3; }, 10 * kServed);
  expect_all_is_back();
}

struct WaitingPartsTest : HostileV2Test {
  // READs that may have results of 1 MiB hold the memory of their address at the service.
  void hold_the_memory() {
    open({.max_call = 64 * kKib, .max_item = kMib, .max_buffered = 16 * kMib, .max_buffered_per_client = 4 * kMib});
    file.data = pattern(1000);
    file.hold = true;
    for (Octets& room : rooms) {
      ASSERT_TRUE(good[0]->call(read_call(args, room), [&](const Reply&) { ++num_done; }).ok());
    }
    run([&] { return file.held.size() == rooms.size(); });
    held = std::exchange(file.held, {});
    file.hold = false;
  }
  void answer() {
    file.held = std::exchange(held, {});
    file.answer_held();
    run([&] { return num_done == rooms.size(); });
  }
  // Sends parts until the credits are used up.
  void fill(V2Peer& peer) {
    for (int i = 0; i < 60 && peer.num_credits() > 0; ++i) send_parts_unasked(peer, i == 0);
    EXPECT_LE(peer.num_credits(), 0) << "its parts wait";
  }
  void send_parts_unasked(V2Peer& peer, bool is_first) {
    Octets part(4000);
    if (is_first) put_word(part, 0, 7);
    peer.send_wg07(7, wg07::CallMiddle{}, part);
    settle();
  }

  const Octets args = read_args(0, 1000);
  std::vector<Octets> rooms = std::vector<Octets>(3, Octets(kMib));
  std::size_t num_done = 0;
  std::vector<ServedCall> held;
};

// The parts of several connections wait in the middle of their Calls. They go on when the memory is back, although
// their connections hear of nothing.
TEST_F(WaitingPartsTest, PartsInTheMiddleOfACallGetTheirTurn) {
  hold_the_memory();
  for (int i = 0; i < 2; ++i) fill(open_wg07());
  advance(std::chrono::seconds(1));
  for (const auto& peer : peers) EXPECT_LE(peer->num_credits(), 0);
  answer();
  for (const auto& peer : peers) {
    run([&] { return peer->num_credits() > 0; }, kServed);
    EXPECT_EQ(peer->num_received<wg07::Error>(), 0u);
  }
  expect_all_is_back();
}

// A first part waits, because a Call of its own connection holds the guarantee.
TEST_F(WaitingPartsTest, AFirstPartGetsItsTurn) {
  hold_the_memory();
  V2Peer& peer = open_wg07();
  wg07::CallInline read;
  read.lists.write_list = {{Segment{1, kGuaranteed, 0}}};
  file.hold = true;
  send(peer, 5, read, rpc_call(5, kRead, args));
  run([&] { return file.held.size() == 1; });
  std::vector<ServedCall> own = std::exchange(file.held, {});
  file.hold = false;
  fill(peer);
  answer();
  run([&] { return peer.num_credits() > 0; }, kServed);
  EXPECT_EQ(peer.num_received<wg07::Error>(), 0u);
  own.clear();
  expect_all_is_back();
}

TEST_F(WaitingPartsTest, AFirstPartThatWaitsForTooLongIsRefused) {
  hold_the_memory();
  V2Peer& peer = open_wg07();
  wg07::CallInline read;
  read.lists.write_list = {{Segment{1, kGuaranteed, 0}}};
  file.hold = true;
  send(peer, 5, read, rpc_call(5, kRead, args));
  run([&] { return file.held.size() == 1; });
  std::vector<ServedCall> own = std::exchange(file.held, {});
  file.hold = false;
  fill(peer);
  advance(std::chrono::seconds(29));
  EXPECT_EQ(peer.num_received<wg07::Error>(), 0u);
  advance(std::chrono::seconds(2));
  EXPECT_EQ(peer.error().err, wg07::Err::kSystem);
  EXPECT_GT(peer.num_credits(), 0);
  answer();
  own.clear();
  expect_all_is_back();
}

// Calls that came in parts hold memory while they wait for the memory of their chunks: all of them would wait for each
// other.
TEST_F(HostilePartsTest, WholeCallsThatWaitForEachOther) {
  open({.max_item = kMib, .max_buffered = 16 * kMib, .max_buffered_per_client = 4 * kMib});
  wg07::CallInline last;
  last.lists.write_list = {{Segment{1, kMib, 0}}};
  constexpr std::size_t kPart = 4000;
  for (int i = 0; i < 3; ++i) open_wg07();
  Octets call = rpc_call(8, kRead, read_args(0, 1000));
  call.resize(151 * kPart);
  for (std::size_t at = 0; at < 150 * kPart; at += kPart) {
    for (const auto& peer : peers) send(*peer, 8, wg07::CallMiddle{}, part_of(call, at, at + kPart));
  }
  for (const auto& peer : peers) send(*peer, 8, last, part_of(call, 150 * kPart, call.size()));
  settle();
  EXPECT_GE(server->memory().calls, 3 * call.size());
  EXPECT_LE(server->memory().calls, 4 * kMib + 6 * kGuaranteed);
  expect_served(kServed, 12000);
  for (int i = 0; i < 3; ++i) advance(std::chrono::milliseconds(2001));
  EXPECT_EQ(server->memory().calls, 0u) << "Calls wait for each other";
  for (const auto& peer : peers) EXPECT_EQ(peer->error().err, wg07::Err::kSystem);
  expect_served(kServed, 600 * kKib);
  expect_all_is_back();
}

// A Call may be larger than what a connection may hold besides other Calls. Its own parts are no other Calls.
TEST_F(HostilePartsTest, ALongCallWithTheLargestChunkIsServed) {
  open();
  V2Peer& peer = open_wg07();
  wg07::CallInline last;
  last.lists.write_list = {{Segment{1, 4 * kMib, 0}}};
  file.hold = true;
  Octets call = rpc_call(7, kRead, read_args(0, 0));
  call.resize(100000);
  send_whole(peer, 7, call, last);
  run([&] { return file.held.size() == 1; }, kServed);
  file.held.clear();
  file.hold = false;
  expect_all_is_back();
}

using HostileCreditsTest = HostileV2Test;

TEST_F(HostileCreditsTest, WordsOfWg07LeapFallAndWrap) {
  RecordProperty("proves", "W2-4.2.1-9 W2-4.2.1-10 W2-4.2.1-11");
  open();
  V2Peer& peer = open_wg07();
  std::uint32_t xid = 10;
  std::size_t num_replies = 1;
  for (const std::uint32_t word :
       {0u, 0xffffffffu, 0x7fffffffu, 0x80000000u, 0x80000001u, 1u, 2u, 0xfffffffeu, 0x7ffffffeu, 70000u, 3u}) {
    run([&] { return peer.num_credits() > 0; });
    peer.send(wg07_octets(xid, word, wg07::CallInline{}, rpc_call(xid)));
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

// Parts of Calls, of Replies to no Call, and malformed messages: each costs a credit.
TEST_F(HostileCreditsTest, FloodsThatStayWithinTheGrantCostOneTurnEach) {
  open();
  V2Peer& peer = open_wg07();
  Octets unknown = wg07_octets(5, kManyCredits, wg07::Grant{});
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

using CutTest = HostileV2Test;

Octets call_of_wg07() {
  wg07::CallInline body;
  body.lists.read_list = {{72, Segment{9, 400, 0}}};
  body.lists.write_list = {{Segment{7, 400, 0}}};
  body.lists.reply_chunk = SegmentArray{Segment{8, 400, 0}};
  return wg07_octets(5, kManyCredits, body, rpc_call(5, kWrite, write_args(400)));
}

Octets call_of_cel05() {
  cel05::Msg body;
  body.lists.read_list = {{72, Segment{9, 400, 0}}};
  body.lists.write_list = {{Segment{7, 400, 0}}};
  body.lists.reply_chunk = SegmentArray{Segment{8, 400, 0}};
  return cel05_octets(5, body, rpc_call(5, kWrite, write_args(400)));
}

// Each cut is answered or dropped.
TEST_F(CutTest, EveryCutOfACallOfWg07) {
  open();
  V2Peer& peer = open_wg07();
  const Octets whole = call_of_wg07();
  const std::size_t before_it = file.num_calls;
  for (std::size_t len = 1; len < whole.size(); ++len) {
    run([&] { return peer.num_credits() > 0 || peer.disconnected; });
    ASSERT_FALSE(peer.disconnected) << len;
    peer.send(part_of(whole, 0, len));
    turn();
  }
  settle();
  EXPECT_EQ(file.num_calls, before_it) << "no cut is a Call";
  const std::size_t num_replies = peer.num_received<wg07::ReplyInline>();  // GARBAGE_ARGS
  send(peer, 6, wg07::CallInline{}, rpc_call(6));
  run([&] { return peer.num_received<wg07::ReplyInline>() == num_replies + 1; }, kServed);
  expect_served();
  expect_all_is_back();
}

TEST_F(CutTest, EveryCutOfAClientsFirstCall) {
  open();
  const std::size_t before_it = file.num_calls;
  for (const Octets& whole : {call_of_wg07(), call_of_cel05()}) {
    for (std::size_t len = 1; len < whole.size(); ++len) {
      open_raw().send(part_of(whole, 0, len));
      settle();
      if (peers.size() == 40) peers.clear();
    }
    expect_served();
  }
  EXPECT_EQ(file.num_calls, before_it + 2 * 2 * good.size()) << "no cut is a Call";
  expect_all_is_back();
}

TEST_F(CutTest, EveryCutOfAPart) {
  open();
  V2Peer& peer = open_wg07();
  const Octets first = wg07_octets(5, kManyCredits, wg07::CallMiddle{400}, rpc_call(5));
  const std::size_t before_it = file.num_calls;
  for (std::size_t len = 1; len < first.size(); ++len) {
    run([&] { return peer.num_credits() > 0 || peer.disconnected; });
    ASSERT_FALSE(peer.disconnected) << len;
    peer.send(part_of(first, 0, len));
    turn();
    send(peer, 5, wg07::CallInline{}, Octets(3));
  }
  settle();
  EXPECT_EQ(file.num_calls, before_it) << "no cut is a Call";
  EXPECT_EQ(server->memory().calls, 0u);
  send(peer, 6, wg07::CallInline{}, rpc_call(6));
  run([&] { return peer.num_received<wg07::ReplyInline>() == 2; }, kServed);
  expect_served();
  expect_all_is_back();
}

TEST_F(CutTest, EveryCutOfACallOfCel05) {
  open();
  V2Peer& peer = open_cel05();
  const Octets whole = call_of_cel05();
  const std::size_t before_it = file.num_calls;
  for (std::size_t len = 1; len < whole.size(); ++len) {
    peer.send(part_of(whole, 0, len));
    settle();
    ASSERT_FALSE(peer.disconnected) << len;
  }
  EXPECT_EQ(file.num_calls, before_it) << "no cut is a Call";
  const std::size_t num = peer.received.size();
  peer.send(cel05_octets(6, cel05::Msg{}, rpc_call(6)));
  run([&] { return peer.received.size() == num + 1; }, kServed);
  expect_served();
  expect_all_is_back();
}

}  // namespace
}  // namespace weft::rpcrdma::testing
