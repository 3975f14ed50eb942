// A Server's log lines about hostile peers, over soft RNICs.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "rpcrdma/testing/log_lines.h"
#include "tests/rpc/hostile_client.h"

namespace weft::rpcrdma::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

struct LogTest : HostileClientTest {
  ~LogTest() override {
    clients.clear();
    peer.reset();
    server.reset();
  }
  // ServerConfig with a log.
  ServerConfig logged(ServerConfig config = {}) {
    config.log = lines.log();
    return config;
  }

  LogLines lines;
};

TEST_F(LogTest, AWrongCallHasItsReason) {
  listen(logged());
  open_peer();
  peer->send(read_to(7, 3000, Segment{0xa001, 3000, ~std::uint64_t{0} - 2998}));
  run_until([this] { return peer->received.size() == 1; });
  EXPECT_THAT(lines.all(), ElementsAre(AllOf(StartsWith("client 127.0.0.1:"),
                                             HasSubstr(": XID 0x7: ERR_CHUNK: a segment that ends beyond 2^64"))));
}

TEST_F(LogTest, BrokenCreditsHaveTheirLine) {
  listen(logged({.credits = 4}));
  open_peer();
  file.hold = true;
  for (int i = 0; i < 10; ++i) peer->send(load_vector("V01").octets);
  run_until_ended();
  EXPECT_THAT(lines.warnings(), ElementsAre(HasSubstr("the connection ends: the peer sends more than it was granted")));
}

// Messages that cost their sender nothing must not take the Receives of other clients.
struct NeedlessTest : LogTest {
  void open_two(ServerConfig config) {
    listen(logged(config));
    good = connect();
    clients = {good.get()};
    expect_null_works(*good);
    open_peer();
  }
  // A device with workers may give the server one burst in several turns. So there is more than one.
  void send_until_the_peer_goes(const Octets& octets) {
    run_until([&] {
      for (int i = 0; i < kMany && peer->may_send() && !peer->disconnected; ++i) peer->send(octets);
      return peer->disconnected;
    });
  }
  void expect_only_the_peer_goes() {
    run_until([this] { return peer->disconnected && server->num_connections() == 1; });
    EXPECT_EQ(lines.num_with("the peer sends only messages that are to be discarded"), 1u);
    expect_null_works(*good);
  }

  static constexpr int kMany = 12;  // more than the share of a connection with a grant of 4
  std::unique_ptr<Client> good;
};

TEST_F(NeedlessTest, MessagesWithoutAHeader) {
  open_two({.credits = 4});
  const Octets nothing(8);
  for (std::size_t i = 1; i <= kMany; ++i) {
    peer->send(nothing);
    peer->send(load_vector("V01").octets);
    run_until([&] { return peer->received.size() == i; });
  }
  EXPECT_FALSE(peer->disconnected) << "one in a turn harms nobody";
  send_until_the_peer_goes(nothing);
  expect_only_the_peer_goes();
}

TEST_F(NeedlessTest, RetransmissionsOfOneCall) {
  for (ServedProgram& program : programs) program.keeps_replies = true;
  open_two({.credits = 4});
  file.hold = true;
  Octets payload;
  xdr::XdrWriter out(payload);
  emit_call(out, {7, kTestProgram, kTestVersion, kWrite, {}, {}});
  out.raw(write_args(0));
  v1::Header header;
  header.xid = 7;
  send_until_the_peer_goes(message(header, payload));
  EXPECT_EQ(file.held.size(), 1u);
  file.hold = false;
  file.answer_held();
  expect_only_the_peer_goes();
}

TEST_F(LogTest, ARefusedReadIsNamed) {
  listen(logged());
  open_peer();
  peer->send(load_vector("V03").octets);  // its handles mean nothing here
  run_until_ended();
  const v1::Header header = parse(load_vector("V03").octets);
  const Segment& refused = header.lists.read_list.front().target;
  EXPECT_THAT(lines.warnings(), ElementsAre(HasSubstr(fmt::format("the peer refused: an RDMA Read of handle {:#x} at "
                                                                  "offset {:#x}",
                                                                  refused.handle, refused.offset))));
  EXPECT_EQ(lines.num_with("the connection ends: "), 1u);
}

TEST_F(LogTest, ARefusedWriteIsNamed) {
  file.data = pattern(4000);
  listen(logged());
  open_peer();
  peer->send(read_to(7, 3000, Segment{0xa001, 3000, 0x10000}));
  run_until_ended();
  EXPECT_THAT(lines.warnings(),
              ElementsAre(HasSubstr("XID 0x7: the peer refused: an RDMA Write of handle 0xa001 at offset 0x10000")));
  EXPECT_EQ(lines.num_with("the connection ends: "), 1u);
}

// The peer is asked for octets and does not move any more.
TEST_F(LogTest, AStallHasItsLine) {
  if (client_device->caps().own_progress) return;  // it moves by itself
  listen(logged({.stall_timeout = std::chrono::milliseconds(50)}));
  open_peer();
  Octets data = pattern(5000);
  auto mr = std::move(*peer->pd->reg_mr(data.data(), data.size(), verbs::Access::kRemoteRead));
  v1::Header header;
  header.xid = 7;
  header.credit = 32;
  header.lists.read_list = {{static_cast<std::uint32_t>(40 + write_position()),
                             {mr->rkey(), 5000, reinterpret_cast<std::uintptr_t>(data.data())}}};
  Octets payload;
  xdr::XdrWriter out(payload);
  emit_call(out, {7, kTestProgram, kTestVersion, kWrite, {}, {}});
  out.raw(write_args(5000));
  peer->send(message(header, payload));
  client_device->process(Clock::now());
  const auto give_up = Clock::now() + std::chrono::seconds(10);
  while (lines.all().empty() && Clock::now() < give_up) {
    pollfd fd{server_device->fd(), POLLIN, 0};
    if (server->process(Clock::now()) == 0) ::poll(&fd, 1, 10);
  }
  EXPECT_THAT(lines.warnings(),
              ElementsAre(HasSubstr("the connection ends: the peer takes or gives no data: stalled")));
}

TEST_F(LogTest, WhoGivesWayHasItsLine) {
  listen(logged({.max_connections = 1}));
  auto one = connect();
  clients = {one.get()};
  expect_null_works(*one);
  auto two = connect();
  clients = {one.get(), two.get()};
  file.hold = true;
  bool done = false;
  ASSERT_TRUE(two->call(null_call(), [&](const Reply&) { done = true; }).ok());
  run_until([this] { return file.held.size() == 1; });
  EXPECT_THAT(lines.warnings(), ElementsAre(HasSubstr("the connection ends: it gives way to 127.0.0.1:")));
  file.hold = false;
  file.answer_held();
  run_until([&] { return done; });
}

TEST_F(LogTest, APeerWritesNoMoreThanTheBudget) {
  listen(logged());
  open_peer();
  const auto begin = Clock::now();
  for (std::size_t i = 1; i <= 300; ++i) {
    peer->send(read_to(7, 3000, Segment{0xa001, 3000, ~std::uint64_t{0} - 2998}));
    run_until([&] { return peer->received.size() == i; });
  }
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(Clock::now() - begin).count();
  EXPECT_GE(lines.all().size(), 50u);
  EXPECT_LE(lines.all().size(), 50u + 10u * static_cast<std::size_t>(seconds));
}

// Success writes no line at the default level.
TEST_F(LogTest, AnOrdinaryLifeWarnsOfNothing) {
  listen(logged());
  LogLines clients_lines;
  ClientConfig config;
  config.log = clients_lines.log();
  auto client = connect(config);
  clients = {client.get()};
  expect_null_works(*client);
  client->disconnect();
  run_until([this] { return server->num_connections() == 0; });
  EXPECT_THAT(lines.warnings(), IsEmpty());
  EXPECT_THAT(clients_lines.warnings(), IsEmpty());
}

}  // namespace
}  // namespace weft::rpcrdma::testing
