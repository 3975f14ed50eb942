// Hostile clients of RPC-over-RDMA version 2: sequences of parts. Beside them, in this file and the other hostile_v2
// files, the server serves clients of every protocol, and its memory has a ceiling.
#include <gmock/gmock.h>

#include "tests/rpc/hostile_v2.h"

namespace weft::rpcrdma::testing {
namespace {

using HostilePartsTest = HostileV2Test;

// Such a Call is refused when its first part is there. The clock stands still.
TEST_F(HostilePartsTest, FourGibibytesAreAnnounced) {
  RecordProperty("proves", "W2-6.6.2-1");
  open();
  for (const std::uint32_t remaining : {0xffffffffu, std::uint32_t{kMaxContinued}}) {
    V2Peer& peer = open_wg07();
    most_held = 0;
    send_parts(peer, 7, 1, 4, remaining);
    settle();
    EXPECT_EQ(peer.error().err, wg07::Err::kSystem);
    EXPECT_EQ(most_held, 0u);
    // The rest is discarded, and the peer may go on.
    send_parts(peer, 7, 3, 4, remaining);
    send(peer, 7, wg07::CallInline{}, Octets(4));
    send(peer, 8, wg07::CallInline{}, rpc_call(8));
    settle();
    EXPECT_EQ(peer.num_received<wg07::Error>(), 1u);
    EXPECT_EQ(peer.num_received<wg07::ReplyInline>(), 2u);
  }
  expect_all_is_back();
}

// The length that a part announces reserves nothing.
TEST_F(HostilePartsTest, AsMuchIsAnnouncedAsACallMayHave) {
  RecordProperty("proves", "W2-6.3.6-2 W2-11.1-1");
  open();
  most_held = 0;
  for (int i = 0; i < 40; ++i) send_parts(open_wg07(), 7, 1, 4, kMaxContinued - 4);
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

// The error that answers the message has ended the RPC, so the Call does not run.
TEST_F(HostilePartsTest, AMessageThatDoesNotDecodeEndsTheCallOfItsXid) {
  RecordProperty("proves", "W2-7.1.4-1");
  for (const std::size_t at : {std::size_t{4}, std::size_t{12}}) {  // its version, its type
    open();
    V2Peer& peer = open_wg07();
    const std::size_t num_replies = peer.num_received<wg07::ReplyInline>();
    const Octets call = rpc_call(7, kNull, pattern(4000));
    send(peer, 7, wg07::CallMiddle{}, part_of(call, 0, 2000));
    Octets broken = wg07_octets(7, kNoEndOfCredits, wg07::CallInline{}, {});
    broken[at + 3] = 99;
    peer.send(broken);
    send(peer, 7, wg07::CallInline{}, part_of(call, 2000, call.size()));
    settle();
    EXPECT_EQ(peer.num_received<wg07::Error>(), 1u) << at;
    EXPECT_EQ(peer.num_received<wg07::ReplyInline>(), num_replies) << at;
    expect_served();
    expect_all_is_back();
    peers.clear();
    good.clear();
  }
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
  advance(EarnedTime::Terms{}.grace);
  run([&] { return num_done == 3; }, 10 * kServed);
  expect_all_is_back();
}

struct WaitingPartsTest : HostileV2Test {
  // READs that may have results of 1 MiB hold the memory of their address at the service.
  void hold_the_memory() {
    open({.max_call = 64 * kKib, .max_item = kMib, .max_buffered = 16 * kMib, .max_buffered_per_client = 4 * kMib});
    file.data = pattern(1000);
    file.hold = true;
    for (std::size_t i = 0; i < rooms.size(); ++i) {
      ASSERT_TRUE(good[i]->call(read_call(args, rooms[i]), [&](const Reply&) { ++num_done; }).ok());
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

// Calls that came in parts hold memory while they wait for the memory of their chunks. None of them waits for another
// for ever, and none is given up while it waits: they get through one after the other.
TEST_F(HostilePartsTest, WholeCallsThatWaitForEachOther) {
  open({.max_item = kMib, .max_buffered = 32 * kMib, .max_buffered_per_client = 8 * kMib});
  wg07::CallInline last;
  last.lists.write_list = {{Segment{1, kMib, 0}}};
  constexpr std::size_t kPart = 4000, kPeers = 7;
  for (std::size_t i = 0; i < kPeers; ++i) open_wg07();
  file.data = pattern(1000);
  file.hold = true;
  Octets call = rpc_call(8, kRead, read_args(0, 1000));
  call.resize(151 * kPart);
  for (std::size_t at = 0; at < 150 * kPart; at += kPart) {
    for (const auto& peer : peers) send(*peer, 8, wg07::CallMiddle{}, part_of(call, at, at + kPart));
  }
  for (const auto& peer : peers) send(*peer, 8, last, part_of(call, 150 * kPart, call.size()));
  settle();
  EXPECT_GE(server->memory().calls, kPeers * call.size());
  EXPECT_GT(file.held.size(), 0u);
  EXPECT_LT(file.held.size(), kPeers) << "there is memory";
  advance(std::chrono::seconds(5));
  std::size_t num_through = 0;
  run(
      [&] {
        num_through += file.held.size();
        file.answer_held();
        return num_through == kPeers;
      },
      10 * kServed);
  for (const auto& peer : peers) EXPECT_EQ(peer->num_received<wg07::Error>(), 0u);
  file.hold = false;
  expect_served(kServed, 600 * kKib);
  expect_all_is_back();
}

// Honest clients, all at once, with a Call of 1 MiB each whose parts need more memory than the server has.
struct ManyWritesTest : HostileV2Test {
  // Each of `num` clients sends one, without chunks.
  void expect_all_served(std::size_t num, std::size_t max_buffered) {
    open({.max_item = kMib, .max_buffered = max_buffered});
    most_peers = num;
    std::vector<std::unique_ptr<Client>> writers;
    for (std::size_t i = 0; i < num; ++i) {
      auto client = Client::connect(*client_device, server->local_addr(), {.protocols = {Protocol::k2Wg07}});
      ASSERT_TRUE(client.ok());
      writers.push_back(std::move(*client));
    }
    std::vector<Octets> args(num, pattern(kMib - kKib));
    std::size_t num_done = 0;
    for (std::size_t i = 0; i < num; ++i) {
      CallSpec spec = null_call();
      spec.args = args[i];
      const auto done = [&](const Reply& reply) {
        EXPECT_EQ(reply.status, CallStatus::kSuccess) << reply.text;
        ++num_done;
      };
      ASSERT_TRUE(writers[i]->call(spec, done).ok());
    }
    most_held = 0;
    run([&] {
      for (const auto& writer : writers) writer->process(now);
      now += std::chrono::milliseconds(1);
      return num_done == num;
    });
    EXPECT_LE(most_held, max_buffered + (num + 3) * kGuaranteed);
    EXPECT_LT(num_turns, kEnough);
    writers.clear();
    expect_all_is_back();
  }
};

TEST_F(ManyWritesTest, TenBesideSixteenMebibytes) {
  expect_all_served(10, 16 * kMib);
}

TEST_F(ManyWritesTest, SeventyBesideSixtyFourMebibytes) {
  expect_all_served(70, 64 * kMib);
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

}  // namespace
}  // namespace weft::rpcrdma::testing
