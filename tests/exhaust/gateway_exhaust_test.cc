// Each kind of resource that peers hold of `weft gateway` is exhausted, as exhaust_test.cc does with `weft serve`.
#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "apps/gateway/ledger_kinds.h"
#include "tests/exhaust/from.h"
#include "tests/exhaust/record.h"
#include "tests/exhaust/siege.h"
#include "tests/exhaust/v1_message.h"
#include "tests/gateway/to_rdma_world.h"
#include "tests/gateway/to_tcp_world.h"

namespace weft::exhaust {
namespace {

using namespace std::chrono_literals;
using namespace gateway::testing;

constexpr std::size_t kMib = 1 << 20;
constexpr std::size_t kPlaces = 48;  // of the gateway under test
constexpr std::uint32_t kRemove = 12;
constexpr auto kMost = 1s;
constexpr std::size_t kMaxBuffered = 64 << 20, kMaxBufferedPerAddress = 32 << 20;

Octets rpc_call(std::uint32_t xid, std::uint32_t procedure, const Octets& args) {
  return call_message(xid, nfsulb::kNfsProgram, nfsulb::kNfsV3, procedure, args);
}
Octets null_call(std::uint32_t xid) {
  return rpc_call(xid, kNull, {});
}
// A Call that must not run twice, and that the servers here never answer.
Octets remove_call(std::uint32_t xid) {
  return rpc_call(xid, kRemove, read_args(0));
}
Octets read_call(std::uint32_t xid) {
  return rpc_call(xid, kRead, read_args(kMib));
}
Octets short_read_call(std::uint32_t xid) {
  return rpc_call(xid, kRead, read_args(kMib / 4));
}
// A READDIRPLUS, which the servers here never answer.
Octets list_call(std::uint32_t xid) {
  return rpc_call(xid, kReaddirplus, readdirplus_args(kMib));
}
// What a READ or its Call asks for: the last word of it (RFC 1813 section 3.3.6).
std::size_t count_of(ConstBytes message) {
  std::size_t count = 0;
  for (const std::uint8_t octet : message.last(4)) count = count << 8 | octet;
  return count;
}
constexpr std::string_view kTurns = "turns of Calls and Replies that wait for memory, over TCP and over RDMA";

// Attackers over TCP of the gateway to a server over RDMA.
std::vector<Attack> attacks_over_tcp() {
  constexpr std::string_view kConnections = "connections (a descriptor and about 15 KB each at rest)";
  constexpr std::string_view kWaiting =
      "newcomers that wait until a client of their own address ends for them (a descriptor each)";
  constexpr std::uint32_t kLongest = (4 << 20) - 4;
  using enum Attack::Over;
  return {
      {.name = "connections, resting",
       .kinds = {kConnections},
       .connections = kPlaces + 20,
       .over = kRecords,
       .depth = 1,
       .message = null_call},
      {.name = "connections, Calls under way",
       .kinds = {kConnections, kWaiting},
       .connections = kPlaces + 20,
       .over = kRecords,
       .depth = 2,
       .message = remove_call},
      {.name = "announced records",
       .kinds = {"memory of Calls before their first byte arrived"},
       .connections = kPlaces - 8,
       .over = kTcp,
       .raw = part_of_a_record(kLongest, 0)},
      {.name = "parts of records",
       .kinds = {"memory of Calls"},
       .connections = kPlaces - 8,
       .over = kTcp,
       .raw = part_of_a_record(kLongest, kMib + (100 << 10))},
      {.name = "Replies that nobody reads",
       .kinds = {"memory of Replies, from the Call to the last byte sent"},
       .connections = kPlaces - 8,
       .over = kRecords,
       .depth = 40,
       .message = read_call,
       .is_deaf = true},
      {.name = "listings",
       .kinds = {"memory of Replies of more than 128 KiB without an item: listings of directories"},
       .connections = kPlaces - 8,
       .over = kRecords,
       .depth = 8,
       .message = list_call},
      {.name = "small Calls",
       .kinds = {"turns of clients whose Calls have come over TCP"},
       .connections = kPlaces - 8,
       .over = kRecords,
       .pace = Attack::Pace::kAgain,
       .depth = 20,
       .message = null_call},
      {.name = "Replies that all read",
       .kinds = {kTurns},
       .connections = kPlaces - 8,
       .over = kRecords,
       .pace = Attack::Pace::kAgain,
       .depth = 8,
       .message = short_read_call},
  };
}

// Attackers over RDMA of the gateway to a server over TCP.
std::vector<Attack> attacks_over_rdma() {
  const auto null = [](std::uint32_t xid) { return v1_message(xid, null_call(xid)); };
  const auto read_to_chunk = [](std::uint32_t xid, const Octets& call, std::uint32_t len) {
    rpcrdma::ChunkListsView lists;
    lists.write_list = {{{.handle = 0x7777, .length = len, .offset = 0}}};
    return v1_message(xid, call, std::move(lists));
  };
  const auto read = [=](std::uint32_t xid) { return read_to_chunk(xid, read_call(xid), kMib); };
  const auto short_read = [=](std::uint32_t xid) { return read_to_chunk(xid, short_read_call(xid), kMib / 4); };
  const auto remove = [](std::uint32_t xid) { return v1_message(xid, remove_call(xid)); };
  const auto list = [](std::uint32_t xid) {
    rpcrdma::ChunkListsView lists;
    lists.reply_chunk = {{.handle = 0x7777, .length = kMib / 4, .offset = 0}};
    return v1_message(xid, list_call(xid), std::move(lists));
  };
  return {
      {.name = "connections, resting", .kinds = {"connections over RDMA"}, .connections = kPlaces + 20, .first = null},
      {.name = "connections, Calls under way",
       .kinds = {"connections over RDMA"},
       .connections = kPlaces + 20,
       .depth = 2,
       .first = null,
       .message = remove},
      {.name = "lost clients",
       .kinds = {"TCP connections of lost clients, whose Calls must not run twice"},
       .connections = kPlaces - 8,
       .depth = 1,
       .per_second = 2100,
       .first = null,
       .message = remove},
      {.name = "Replies that nobody takes",
       .kinds = {"memory of Replies"},
       .connections = kPlaces - 8,
       .depth = 16,
       .first = null,
       .message = read,
       .is_deaf = true},
      {.name = "listings",
       .kinds = {"memory of Replies"},
       .connections = kPlaces - 8,
       .depth = 8,
       .first = null,
       .message = list},
      {.name = "Replies that all take",
       .kinds = {kTurns},
       .connections = kPlaces - 8,
       .pace = Attack::Pace::kAgain,
       .depth = 8,
       .first = null,
       .message = short_read},
  };
}

using Param = std::tuple<std::size_t, From>;

// Besieged is a world of a gateway's tests that runs by the clock of a Siege.
template <typename GatewayWorld>
class Besieged : public GatewayWorld, public ::testing::WithParamInterface<Param> {
 protected:
  ~Besieged() override { siege_.end(); }

  void turn() {
    std::size_t moved = 0;
    for (const auto& process : this->engines) moved += process(siege_.now());
    this->io.restart();
    moved += this->io.poll();
    siege_.turn(moved);
  }
  void run_until(const std::function<bool()>& done) {
    const auto give_up = std::chrono::steady_clock::now() + 60s;
    while (!done()) {
      ASSERT_LT(std::chrono::steady_clock::now(), give_up) << "nothing more happens";
      turn();
    }
  }
  void attack(const std::vector<Attack>& attacks, const sockaddr_in& at) {
    const auto& [kind, from] = GetParam();
    siege_.begin(attacks[kind], at, addresses_of(from));
    for (std::size_t i = 0; i < kTurnsBefore; ++i) turn();
    ASSERT_GT(siege_.done().ready, 0u) << "the attack has not begun";
  }
  template <typename F>
  void within_a_second(const char* what, F request) {
    const TimePoint start = siege_.now();
    request();
    EXPECT_LE(siege_.now() - start, kMost) << what;
  }

  static constexpr std::size_t kTurnsBefore = 150;
  static constexpr std::size_t kRounds = 3;
  Siege siege_;
};

class ToRdmaExhaust : public Besieged<ToRdmaTest> {
 protected:
  void SetUp() override {
    config.max_connections = config.max_connections_per_address = kPlaces;
    config.max_buffered = kMaxBuffered;
    config.max_buffered_per_address = kMaxBufferedPerAddress;
    ToRdmaTest::SetUp();
  }
  void on_call(rpcrdma::ServedCall call) override {
    if (call.procedure == kRemove || call.procedure == kReaddirplus) return;
    rpcrdma::ServedReply reply;
    if (call.procedure == kWrite) reply.results = write_results(static_cast<std::uint32_t>(kMib));
    if (call.procedure == kRead) {
      const std::size_t count = count_of(call.args);
      reply.results = read_results(Octets(count));
      reply.results.resize(20);  // without the data and their roundup
      reply.add_item(server->buffers().take(count), count);
    }
    server->reply(call.id, std::move(reply));
  }
  sockaddr_in gateway_addr() const { return loopback_at(gateway->local_endpoint().port()); }
  // As NFS clients do, this one connects again and sends its Call again.
  void ask(TcpEnd*& client, const Octets& message) {
    for (std::size_t before = 0;;) {
      if (client == nullptr || client->ended) client = &connect();
      before = client->records.size();
      client->send(message);
      run_until([&] { return client->records.size() > before || client->ended; });
      if (HasFatalFailure()) return;
      if (client->records.size() > before) break;
    }
    EXPECT_EQ(xid_of(client->records.back()), xid_of(message));
  }
  void ask_as_newcomer(const Octets& message) {
    TcpEnd* newcomer = nullptr;
    ask(newcomer, message);
  }
  static std::uint32_t xid_of(const Octets& message) { return ToTcpTest::xid_of(message); }
};

TEST_P(ToRdmaExhaust, ASecondClientIsServed) {
  TcpEnd* honest = nullptr;
  ask(honest, null_call(1));
  attack(attacks_over_tcp(), gateway_addr());
  const bool promises_a_read =
      promises_newcomers_a_read(attacks_over_tcp()[std::get<0>(GetParam())], std::get<1>(GetParam()));
  for (std::uint32_t round = 0; round < kRounds && !HasFailure(); ++round) {
    const std::uint32_t xid = 100 + 10 * round;
    within_a_second("NULL", [&] { ask(honest, null_call(xid)); });
    within_a_second("READ of 1 MiB", [&] { ask(honest, read_call(xid + 1)); });
    within_a_second("WRITE of 1 MiB", [&] { ask(honest, rpc_call(xid + 2, kWrite, write_args(Octets(kMib)))); });
    within_a_second("a newcomer's NULL", [&] { ask_as_newcomer(null_call(xid + 3)); });
    if (promises_a_read) within_a_second("a newcomer's READ of 1 MiB", [&] { ask_as_newcomer(read_call(xid + 4)); });
  }
}

class ToTcpExhaust : public Besieged<ToTcpTest> {
 protected:
  void SetUp() override {
    ToTcpTest::SetUp();
    config.rpc.max_connections = kPlaces;
    config.max_replies = kMaxBuffered;
    config.max_replies_per_address = kMaxBufferedPerAddress;
    config.max_lost = 8;
    start_gateway();
    answer = [](TcpEnd& end, const Octets& call) {
      constexpr std::size_t kProcedure = 23;  // the last octet of it (RFC 5531 section 9)
      if (call[kProcedure] == kRemove || call[kProcedure] == kReaddirplus) return;
      const Octets results = call[kProcedure] == kRead    ? read_results(Octets(count_of(call)))
                             : call[kProcedure] == kWrite ? write_results(static_cast<std::uint32_t>(kMib))
                                                          : Octets();
      end.send(reply_message(xid_of(call), results));
    };
  }
  sockaddr_in gateway_addr() const {
    sockaddr_in addr =
        reinterpret_cast<const sockaddr_in&>(static_cast<const sockaddr_storage&>(gateway->local_addr()));
    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return addr;
  }
  rpcrdma::Client& connect_honest() {
    rpcrdma::ClientConfig honest;
    honest.call_timeout = honest.connect_timeout = 10s;
    honest.reconnect.max_time = 60s;
    honest.reserve_credit = true;
    return connect(honest);
  }
  void ask(rpcrdma::Client& client, std::uint32_t procedure, const Octets& args, rpcrdma::CallSpec spec = {}) {
    run_until([&] { return client.state() == rpcrdma::Client::State::kReady; });
    if (HasFatalFailure()) return;
    const auto ended = call(client, procedure, args, std::move(spec));
    run_until([&] { return ended->has_value(); });
    if (HasFatalFailure()) return;
    EXPECT_EQ((*ended)->status, rpcrdma::CallStatus::kSuccess);
  }
  void read(rpcrdma::Client& client) {
    Octets room(kMib);
    rpcrdma::CallSpec spec;
    spec.result_items = rpcrdma::ScatteredBytes(MutBytes(room));
    ask(client, kRead, read_args(kMib), std::move(spec));
  }
  void write(rpcrdma::Client& client) {
    const Octets data(kMib), args = write_args(data, true);
    rpcrdma::CallSpec spec;
    spec.items = rpcrdma::ArgumentItem{args.size(), ConstBytes(data)};
    ask(client, kWrite, args, std::move(spec));
  }
};

TEST_P(ToTcpExhaust, ASecondClientIsServed) {
  rpcrdma::Client& honest = connect_honest();
  ask(honest, kNull, {});
  attack(attacks_over_rdma(), gateway_addr());
  const bool promises_a_read =
      promises_newcomers_a_read(attacks_over_rdma()[std::get<0>(GetParam())], std::get<1>(GetParam()));
  for (std::size_t round = 0; round < kRounds && !HasFailure(); ++round) {
    within_a_second("NULL", [&] { ask(honest, kNull, {}); });
    within_a_second("READ of 1 MiB", [&] { read(honest); });
    within_a_second("WRITE of 1 MiB", [&] { write(honest); });
    within_a_second("a newcomer's NULL", [&] { ask(connect_honest(), kNull, {}); });
    clients.pop_back();
    if (!promises_a_read) continue;
    within_a_second("a newcomer's READ of 1 MiB", [&] { read(connect_honest()); });
    clients.pop_back();
  }
}

template <auto kAttacks>
std::string name_of(const ::testing::TestParamInfo<Param>& info) {
  return test_name(kAttacks()[std::get<0>(info.param)].name, std::get<1>(info.param));
}
INSTANTIATE_TEST_SUITE_P(Kinds, ToRdmaExhaust,
                         ::testing::Combine(::testing::Range(std::size_t{0}, attacks_over_tcp().size()),
                                            ::testing::ValuesIn(kFrom)),
                         name_of<attacks_over_tcp>);
INSTANTIATE_TEST_SUITE_P(Kinds, ToTcpExhaust,
                         ::testing::Combine(::testing::Range(std::size_t{0}, attacks_over_rdma().size()),
                                            ::testing::ValuesIn(kFrom)),
                         name_of<attacks_over_rdma>);

TEST(GatewayExhaustKinds, EveryKindHasAnAttack) {
  std::set<std::string_view> kinds, attacked;
  for (const LedgerKind& kind : gateway::kLedgerKinds) kinds.insert(kind.name);
  for (const auto& attacks : {attacks_over_tcp(), attacks_over_rdma()})
    for (const Attack& attack : attacks) attacked.insert(attack.kinds.begin(), attack.kinds.end());
  EXPECT_EQ(attacked, kinds);
}

}  // namespace
}  // namespace weft::exhaust
