// A server that ends and starts again at the same address while Calls are under way.
#include "tests/rpc/world.h"

namespace weft::rpcrdma::testing {
namespace {

using std::chrono::milliseconds;

struct ReconnectTest : World {
  // Ends the server with all its connections, and listens again where it was.
  void restart(const ServerConfig& config = {}) {
    const sockaddr_storage addr = server->local_addr();
    file.held.clear();
    file.server = nullptr;
    server.reset();
    auto made = Server::listen(*server_device, addr, programs, with_protocol(config));
    ASSERT_TRUE(made.ok()) << made.error().message;
    server = std::move(*made);
    file.server = server.get();
  }
  static ClientConfig patient() {
    ClientConfig config;
    config.credits = 8;
    config.reconnect = {.max_time = milliseconds(8000), .first_delay = milliseconds(1), .max_delay = milliseconds(20)};
    return config;
  }
};

// READs of a whole file, eight at a time; the server is gone three times in the middle of them.
TEST_F(ReconnectTest, ATransferGoesOnWhereTheServerComesBack) {
  RecordProperty("proves", rows("R1-5.5.5-01 U1-6.7.2-04 R1-7.2.2-02 R1-4.3.2-13", "U2-5.7.2-4"));
  listen();
  auto client = connect(patient());
  clients = {client.get()};
  constexpr std::size_t kPiece = 30011;
  // Beyond the last restart more than one turn can end: at 29 ended all eight credits may be served at once.
  constexpr std::size_t kNum = 48;
  file.data = pattern(kPiece * kNum);
  Octets back(file.data.size(), 0xa5);
  std::vector<Octets> args(kNum);
  std::vector<int> times_ended(kNum);
  for (std::size_t i = 0; i < kNum; ++i) {
    args[i] = read_args(static_cast<std::uint32_t>(i * kPiece), kPiece);
    ASSERT_TRUE(client
                    ->call(read_call(args[i], MutBytes(back).subspan(i * kPiece, kPiece)),
                           [&, i](const Reply& reply) {
                             EXPECT_EQ(reply.status, CallStatus::kSuccess) << reply.text;
                             ++times_ended[i];
                           })
                    .ok());
  }
  const auto num_ended = [&] { return kNum - client->num_outstanding(); };
  for (const std::size_t until : {3u, 15u, 30u}) {
    run_until([&] { return num_ended() >= until; });
    file.hold = true;  // later Calls are lost with the server
    file.num_calls = 0;
    run_until([&] { return file.num_calls >= 4; });
    file.hold = false;
    restart({.inline_threshold = until == 15 ? 1024u : 4096u});
  }
  run_until([&] { return client->num_outstanding() == 0; });
  EXPECT_EQ(times_ended, std::vector<int>(kNum, 1));
  EXPECT_EQ(back, file.data);
  EXPECT_EQ(client->num_connections(), 4u);
  EXPECT_EQ(server->num_connections(), 1u);
}

TEST_F(ReconnectTest, AServerThatFallsSilentIsLeftForTheNextConnection) {
  RecordProperty("proves", rows("U1-6.7.2-02", "U2-3.3.1-1 U2-3.3.1-2"));
  listen();
  ClientConfig config = patient();
  config.reserve_credit = true;
  config.health_check = {.after = milliseconds(20), .answer = milliseconds(20), .when_idle = false};
  auto client = connect(config);
  clients = {client.get()};
  expect_null_works(*client);
  file.hold = true;
  bool done = false;
  ASSERT_TRUE(client->call(null_call(), [&](const Reply& reply) { done = reply.status == CallStatus::kSuccess; }).ok());
  run_until([&] { return client->state() == Client::State::kConnecting; });
  EXPECT_NE(client->error().find("health check"), std::string::npos) << client->error();
  file.hold = false;
  run_until([&] { return done; });
  EXPECT_GE(client->num_connections(), 2u);
}

TEST_F(ReconnectTest, AServerThatStaysAwayEndsEveryCallOnce) {
  listen();
  ClientConfig config = patient();
  config.reconnect.max_time = milliseconds(50);
  auto client = connect(config);
  clients = {client.get()};
  expect_null_works(*client);
  file.hold = true;
  std::vector<CallStatus> ended;
  for (int i = 0; i < 12; ++i) {
    ASSERT_TRUE(client->call(null_call(), [&](const Reply& reply) { ended.push_back(reply.status); }).ok());
  }
  run_until([&] { return file.held.size() == 8; });
  file.held.clear();
  server.reset();
  run_until([&] { return client->state() == Client::State::kClosed; });
  EXPECT_EQ(ended, std::vector<CallStatus>(12, CallStatus::kDisconnected));
}

}  // namespace
}  // namespace weft::rpcrdma::testing
