#pragma once

#include <poll.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "rpcrdma/testing/v2_vectors.h"
#include "rpcrdma/testing/wg07.h"
#include "rpcrdma/v2_cel05/header.h"
#include "rpcrdma/v2_cel05/properties.h"
#include "rpcrdma/v2_wg07/properties.h"
#include "tests/rpc/hostile_client.h"

// Hostile clients of version 2 over soft RNICs, beside well-behaved clients of every protocol that the server speaks.
namespace weft::rpcrdma::testing {

namespace wg07 = v2_wg07;
namespace cel05 = v2_cel05;

// A credit word of wg07 that never holds the server up.
inline constexpr std::size_t kKib = 1024;
inline constexpr std::size_t kMib = kKib * kKib;
inline constexpr std::size_t kGuaranteed = 64 * kKib;  // ServerConfig::min_buffered_per_connection
inline constexpr std::uint32_t kNoEndOfCredits = 30000;

// Octets of an RPC Call message.
inline Octets rpc_call(std::uint32_t xid, std::uint32_t procedure = kNull, const Octets& args = {}) {
  Octets octets;
  xdr::XdrWriter out(octets);
  emit_call(out, {xid, kTestProgram, kTestVersion, procedure, {}, {}});
  out.raw(args);
  return octets;
}

inline Octets cel05_octets(std::uint32_t xid, cel05::Body body, const Octets& payload = {}, std::uint32_t credit = 8) {
  Octets octets;
  xdr::XdrWriter out(octets);
  emit_header(out, cel05::Header{.xid = xid, .credit = credit, .body = std::move(body)});
  out.raw(payload);
  return octets;
}

// A hostile client of wg07 that knows its credits.
struct V2Peer : RawPeer {
  using RawPeer::RawPeer;

  // Messages that the server has granted and this peer has not sent.
  std::int32_t num_credits() const {
    std::uint32_t limit = 1;
    for (const Octets& octets : received) {
      if (octets.size() < 16 || word(octets, 4) != 2) continue;
      if (static_cast<std::int32_t>(word(octets, 8) - limit) > 0) limit = word(octets, 8);
    }
    return static_cast<std::int32_t>(limit - static_cast<std::uint32_t>(num_sent));
  }
  static std::uint32_t word(const Octets& octets, std::size_t at) {
    xdr::XdrReader in(octets);
    std::uint32_t value = 0;
    return in.skip(at) && in.u32(value) ? value : 0;
  }
  template <typename Body>
  void send_wg07(std::uint32_t xid, const Body& body, const Octets& payload = {}) {
    send(wg07_octets(xid, kNoEndOfCredits, body, payload));
  }
  // How many messages of this type arrived.
  template <typename Body>
  std::size_t num_received() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(received, [](const Octets& octets) { return wg07_parse(octets).is<Body>(); }));
  }
  // The error that came last.
  wg07::Error error() const {
    for (auto at = received.rbegin(); at != received.rend(); ++at) {
      const Wg07Message message = wg07_parse(*at);
      if (message.is<wg07::Error>()) return message.body<wg07::Error>();
    }
    ADD_FAILURE() << "no error arrived";
    return {};
  }
};

// The clock is the test's own. A turn is one process() of the server and of each client, so a number of turns is a
// ceiling for the work of the server, and no ceiling is one of wall time.
struct HostileV2Test : World {
  static constexpr std::size_t kEnough = 20000;  // turns for anything

  // Calls that have not ended know this object.
  ~HostileV2Test() override { good.clear(); }

  // A server of all protocols, and a good client of each.
  void open(ServerConfig config = {}) {
    config.protocols = {Protocol::k1, Protocol::k2Cel05, Protocol::k2Wg07};
    listen(std::move(config));
    for (const Protocol protocol : server_protocols()) {
      auto client = Client::connect(*client_device, server->local_addr(), {.protocols = {protocol}});
      ASSERT_TRUE(client.ok());
      good.push_back(std::move(*client));
    }
    expect_served(kEnough);
    expect_served(kEnough);
    before = server->memory();
  }
  static std::vector<Protocol> server_protocols() { return {Protocol::k1, Protocol::k2Cel05, Protocol::k2Wg07}; }

  void turn() {
    ++num_turns;
    std::size_t moved = server->process(now);
    for (const auto& client : good) moved += client->process(now);
    moved += verbs::testing::bare(*client_device).process(now);
    for (const auto& peer : peers) peer->poll();
    most_held = std::max(most_held, server->memory().calls);
    if (moved != 0) return;
    pollfd fds[2] = {{server_device->fd(), POLLIN, 0}, {client_device->fd(), POLLIN, 0}};
    ::poll(fds, 2, 1);
  }
  void run(const std::function<bool()>& done, std::size_t most = kEnough) {
    const std::size_t end = num_turns + most;
    while (!is_stuck_ && !done()) {
      is_stuck_ = num_turns == end;
      ASSERT_FALSE(is_stuck_) << "too many turns";
      turn();
    }
  }
  // Until nothing more happens.
  void settle() {
    for (int i = 0; i < 5; ++i) turn();
  }
  void advance(Duration time) {
    now += time;
    settle();
  }

  // A hostile client of wg07 whose first Call was answered.
  V2Peer& open_wg07() {
    V2Peer& peer = open_raw();
    peer.send_wg07(1, wg07::CallInline{}, rpc_call(1));
    run([&] { return peer.num_received<wg07::ReplyInline>() == 1; });
    return peer;
  }
  V2Peer& open_cel05() {
    V2Peer& peer = open_raw();
    peer.send(cel05_octets(1, cel05::Msg{}, rpc_call(1)));
    run([&] { return peer.received.size() == 1; });
    return peer;
  }
  V2Peer& open_raw() {
    peers.push_back(std::make_unique<V2Peer>(*client_device, server->local_addr()));
    most_peers = std::max(most_peers, peers.size());
    V2Peer& peer = *peers.back();
    run([&] { return peer.qp != nullptr && peer.established; });
    return peer;
  }
  // Sends a message of wg07 as soon as the credits allow it.
  template <typename Body>
  void send(V2Peer& peer, std::uint32_t xid, const Body& body, const Octets& payload = {}) {
    run([&] { return peer.num_credits() > 0 || peer.disconnected; });
    if (!peer.disconnected) peer.send_wg07(xid, body, payload);
    turn();
  }
  // Sends the first `num` parts of `len` octets, of a Call of any length. remaining: what each of them announces.
  void send_parts(V2Peer& peer, std::uint32_t xid, std::size_t num, std::size_t len, std::uint32_t remaining = 0) {
    for (std::size_t i = 0; i < num; ++i) {
      Octets part(len);
      if (i == 0) put_word(part, 0, xid);
      send(peer, xid, wg07::CallMiddle{remaining}, part);
    }
  }
  // The whole Call in parts.
  template <typename Body>
  void send_whole(V2Peer& peer, std::uint32_t xid, const Octets& call, const Body& last, std::size_t len = 4000) {
    for (std::size_t at = 0; at < call.size(); at += len) {
      const Octets part = part_of(call, at, std::min(at + len, call.size()));
      if (at + len < call.size()) {
        send(peer, xid, wg07::CallMiddle{0}, part);
      } else {
        send(peer, xid, last, part);
      }
    }
  }

  // Every good client has a short Call and one of `len` octets served within so many turns.
  void expect_served(std::size_t most_turns = kServed, std::size_t len = 20000) {
    CallSpec longer = null_call();
    longer.args = args_.emplace_back(pattern(len));
    const std::size_t before_it = num_served_;
    const auto done = [this](const Reply& reply) {
      EXPECT_EQ(reply.status, CallStatus::kSuccess) << reply.text;
      ++num_served_;
    };
    for (const auto& client : good) {
      ASSERT_TRUE(client->call(null_call(), done).ok());
      ASSERT_TRUE(client->call(longer, done).ok());
    }
    run([&] { return num_served_ == before_it + 2 * good.size(); }, most_turns);
  }
  // The hostile clients leave, and the server holds no more than before them.
  void expect_all_is_back() {
    peers.clear();
    run([&] { return server->num_connections() == good.size(); });
    run([&] { return server->memory().calls == 0 && server->buffers().in_use() == 0; });
    expect_served();
    EXPECT_LE(server->memory().promised, before.promised);
    // Memory that was kept and not used since goes in two rounds.
    for (int i = 0; i < 4; ++i) advance(std::chrono::seconds(2));
    EXPECT_EQ(server->buffers().registered(), 0u);
    EXPECT_EQ(server->memory().sends, 0u);
    // Posted Receives go as they are used: one for each connection, and one for a message of it.
    EXPECT_LE(server->memory().receives, before.receives + most_peers * 2 * 4096 + kSlabs);
  }

  // Turns of the loop within which the good clients' Calls are served.
  static constexpr std::size_t kServed = 30;
  // Receives are registered by so many octets; a few of them may be in use in part.
  static constexpr std::size_t kSlabs = 4 * 64 * 1024;

  TimePoint now = Clock::now();
  std::size_t num_turns = 0;
  std::size_t most_held = 0;  // octets
  std::size_t most_peers = 0;
  ServerMemory before;
  std::vector<std::unique_ptr<Client>> good;
  std::vector<std::unique_ptr<V2Peer>> peers;

 private:
  std::deque<Octets> args_;     // of Calls of the good clients
  std::size_t num_served_ = 0;  // of these
  bool is_stuck_ = false;       // something did not happen: the test has failed, and waits for nothing more
};

}  // namespace weft::rpcrdma::testing
