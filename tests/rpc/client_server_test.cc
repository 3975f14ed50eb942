#include <cstdlib>
#include <numeric>

#include "tests/rpc/world.h"
#include "verbs-shim/api/testing/post_tap.h"

namespace weft::rpcrdma::testing {
namespace {

struct ClientServerTest : World {};

TEST_F(ClientServerTest, NullCalls) {
  listen();
  auto client = connect();
  clients = {client.get()};
  for (int i = 0; i < 3; ++i) expect_null_works(*client);
  EXPECT_EQ(server->num_connections(), 1u);
}

// Writes the file and reads it back in pieces, eight at a time.
TEST_F(ClientServerTest, BulkDataGoesByReadAndWriteChunk) {
  RecordProperty("proves", "R1-3.2.2-02 R1-3.2.2-03 R1-4.1-01 R1-4.2-02");
  listen();
  auto client = connect({.credits = 8});
  clients = {client.get()};
  constexpr std::size_t kLen = 1 << 20;
  const Octets data = pattern(kLen);
  const Octets args = write_args(kLen);
  bool written = false;
  const auto note = [&](const Reply& reply) { written = reply.status == CallStatus::kSuccess; };
  ASSERT_TRUE(client->call(write_call(args, data), note).ok());
  run_until([&] { return client->num_outstanding() == 0; });
  ASSERT_TRUE(written);
  EXPECT_EQ(file.data, data);
  EXPECT_EQ(server->counters().read_octets_tx + server->counters().read_octets_rx, kLen);

  constexpr std::size_t kPiece = 61681;  // odd; the last one is even, one shorter
  Octets back(kLen, 0xa5);
  std::vector<Octets> pieces;  // the arguments
  for (std::size_t at = 0; at < kLen; at += kPiece) {
    pieces.push_back(
        read_args(static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(std::min(kPiece, kLen - at))));
  }
  std::size_t num_ended = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const std::size_t at = i * kPiece;
    const std::size_t len = std::min(kPiece, kLen - at);
    ASSERT_TRUE(client
                    ->call(read_call(pieces[i], MutBytes(back).subspan(at, len)),
                           [&, len](const Reply& reply) {
                             EXPECT_EQ(reply.status, CallStatus::kSuccess) << reply.text;
                             EXPECT_EQ(reply.item_len, len);
                             ++num_ended;
                           })
                    .ok());
  }
  run_until([&] { return num_ended == pieces.size(); });
  EXPECT_EQ(back, data);
  EXPECT_EQ(server->counters().write_octets_tx, kLen);
}

// Calls whose Read chunks come in one batch: a handler may take long for each.
TEST_F(ClientServerTest, WhatALongBatchOfCallsLedToLeavesBeforeItsEnd) {
  struct Watched : MemoryFile {
    void on_call(ServedCall call) override {
      if (call.procedure == kWrite) sends_seen.push_back(server->counters().sends_tx);
      MemoryFile::on_call(std::move(call));
    }
    std::vector<std::uint64_t> sends_seen;  // in handlers of this turn
  } watched;
  programs = {{&test_binding(), &watched}};
  listen();
  watched.server = server.get();
  if (std::getenv("WEFT_WORKERS") != nullptr) return;  // devices with workers do not wait for us
  auto client = connect({.credits = 32});
  clients = {client.get()};
  constexpr std::size_t kLen = 32 << 10, kPerTurn = 4;  // so many come to 128 KiB
  const Octets data = pattern(kLen);
  const Octets args = write_args(kLen);
  std::size_t num_long_batches = 0;
  also = [&] {
    for (std::size_t i = kPerTurn; i < watched.sends_seen.size(); ++i) {
      EXPECT_GT(watched.sends_seen[i], watched.sends_seen[i - kPerTurn]) << i;
      ++num_long_batches;
    }
    watched.sends_seen.clear();
  };
  // How much comes at once is TCP's affair.
  for (int round = 0; round < 50 && num_long_batches == 0; ++round) {
    std::size_t num_ended = 0;
    for (int i = 0; i < 32; ++i) {
      ASSERT_TRUE(client->call(write_call(args, data), [&](const Reply&) { ++num_ended; }).ok());
    }
    run_until([&] { return num_ended == 32; });
  }
  EXPECT_GT(num_long_batches, 0u);
}

TEST_F(ClientServerTest, LongRepliesGoByReplyChunk) {
  listen();
  auto client = connect();
  clients = {client.get()};
  CallSpec spec = null_call();
  spec.procedure = kReaddir;
  spec.max_results = 20000;
  Octets got;
  ASSERT_TRUE(client
                  ->call(spec,
                         [&](const Reply& reply) {
                           EXPECT_EQ(reply.status, CallStatus::kSuccess) << reply.text;
                           got.assign(reply.results.begin(), reply.results.end());
                         })
                  .ok());
  run_until([&] { return client->num_outstanding() == 0; });
  EXPECT_EQ(got, pattern(10000));
}

TEST_F(ClientServerTest, ThresholdsOfBothSidesAreSettledPerConnection) {
  RecordProperty("proves", "R1-4.3.2-01 R1-4.3.2-08 R1-4.3.2-09 R1-4.3.2-13");
  listen({.inline_threshold = 2048});
  for (const std::size_t own : {1024ul, 2048ul, 65536ul}) {
    auto client = connect({.inline_threshold = own, .chunks = {.max_continued_call = 0}});
    clients = {client.get()};
    run_until_ready(*client);
    // A message that fits the smaller side goes inline, so without RDMA Reads.
    const std::size_t least = profile().default_threshold;
    const std::size_t threshold = std::min(std::max(own, least), std::max<std::size_t>(2048, least));
    const std::size_t header = profile().call_lengths.empty;
    if (profile().first_threshold != 0) expect_null_works(*client);  // the first Call is short whatever the threshold
    const std::uint64_t before = server->counters().reads_tx;
    for (const std::size_t len : {threshold - header - 40 - write_position() - 8, threshold}) {
      const Octets data = pattern(len);
      const Octets args = write_args(len);
      const auto succeeds = [](const Reply& reply) { EXPECT_EQ(reply.status, CallStatus::kSuccess); };
      ASSERT_TRUE(client->call(write_call(args, data), succeeds).ok());
      run_until([&] { return client->num_outstanding() == 0; });
      EXPECT_EQ(file.data, data);
      EXPECT_EQ(server->counters().reads_tx, before + (len == threshold ? 1 : 0)) << own;
    }
  }
}

TEST_F(ClientServerTest, ARefusedConnectionIsOneClearLine) {
  listen();
  const sockaddr_storage addr = server->local_addr();
  server.reset();
  auto client = std::move(*Client::connect(*client_device, addr, {}));
  clients = {client.get()};
  std::vector<CallStatus> ends;
  ASSERT_TRUE(client->call(null_call(), [&](const Reply& reply) { ends.push_back(reply.status); }).ok());
  run_until([&] { return client->state() == Client::State::kClosed && !ends.empty(); });
  EXPECT_NE(client->error().find("127.0.0.1:"), std::string::npos) << client->error();
  EXPECT_EQ(client->error().find('\n'), std::string::npos);
  EXPECT_EQ(ends, std::vector<CallStatus>{CallStatus::kDisconnected});
  EXPECT_FALSE(client->call(null_call(), nullptr).ok());
}

TEST_F(ClientServerTest, TheServersEndEndsEveryCallOnce) {
  listen({.min_credits = 32});
  file.hold = true;
  auto client = connect();
  clients = {client.get()};
  file.hold = false;
  expect_null_works(*client);
  file.hold = true;
  std::vector<CallStatus> ends;
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(client->call(null_call(), [&](const Reply& reply) { ends.push_back(reply.status); }).ok());
  }
  run_until([&] { return file.held.size() == 32; });
  file.held.clear();
  server.reset();
  run_until([&] { return ends.size() == 50; });
  for (const CallStatus status : ends) EXPECT_EQ(status, CallStatus::kDisconnected);
  EXPECT_EQ(client->state(), Client::State::kClosed);
}

TEST_F(ClientServerTest, ClientsGoingAwayLeaveTheServerAsItWas) {
  listen();
  file.hold = true;
  auto gone = connect();
  clients = {gone.get()};
  const Octets data = pattern(100000);
  const Octets args = write_args(data.size());
  ASSERT_TRUE(gone->call(write_call(args, data), nullptr).ok());
  run_until([&] { return file.held.size() == 1; });
  gone.reset();
  clients.clear();
  run_until([&] { return server->num_connections() == 0; });
  // The answer goes nowhere, its buffers come back.
  file.hold = false;
  file.answer_held();
  EXPECT_EQ(server->buffers().in_use(), 0u);
  auto client = connect();
  clients = {client.get()};
  expect_null_works(*client);
}

TEST_F(ClientServerTest, ManyConnectionsShareTheQueues) {
  listen({.max_connections = 40, .max_connections_per_client = 40});
  std::vector<std::unique_ptr<Client>> many;
  for (int i = 0; i < 40; ++i) {
    many.push_back(connect({.credits = 4}));
    clients.push_back(many.back().get());
  }
  std::size_t num_ended = 0;
  for (auto& client : many) {
    for (int i = 0; i < 10; ++i) {
      ASSERT_TRUE(client
                      ->call(null_call(),
                             [&](const Reply& reply) {
                               EXPECT_EQ(reply.status, CallStatus::kSuccess) << reply.text;
                               ++num_ended;
                             })
                      .ok());
    }
  }
  run_until([&] { return num_ended == 400; });
  EXPECT_EQ(server->num_connections(), 40u);
  // While all have Calls under way, one gives way to one more: the client of the Call that was heard first.
  file.hold = true;
  for (auto& client : many) ASSERT_TRUE(client->call(null_call(), [&](const Reply&) { ++num_ended; }).ok());
  run_until([&] { return file.held.size() == 40; });
  auto extra = connect();
  clients.push_back(extra.get());
  run_until([&] { return num_ended == 401; });
  EXPECT_EQ(server->num_connections(), 40u);
  file.hold = false;
  file.answer_held();
  run_until([&] { return num_ended == 440; });
  std::size_t num_closed = 0;
  for (auto& client : many) {
    if (client->state() == Client::State::kClosed) {
      ++num_closed;
    } else {
      expect_null_works(*client);
    }
  }
  EXPECT_EQ(num_closed, 1u);
  expect_null_works(*extra);
}

TEST_F(ClientServerTest, MemoryLimitsSlowCallsDownAndFailNone) {
  ServerConfig config;
  config.max_call = 64 << 10;
  config.max_item = 256 << 10;
  config.max_buffered = 1 << 20;
  listen(config);
  file.data = pattern(200000);
  std::vector<std::unique_ptr<Client>> several;
  for (int i = 0; i < 3; ++i) {
    several.push_back(connect({.credits = 8}));
    clients.push_back(several.back().get());
  }
  const Octets args = read_args(0, 200000);
  std::vector<Octets> rooms(48, Octets(200000));
  std::size_t num_ended = 0;
  for (std::size_t i = 0; i < rooms.size(); ++i) {
    ASSERT_TRUE(several[i % 3]
                    ->call(read_call(args, rooms[i]),
                           [&, i](const Reply& reply) {
                             EXPECT_EQ(reply.status, CallStatus::kSuccess) << reply.text;
                             EXPECT_EQ(rooms[i], file.data);
                             ++num_ended;
                           })
                    .ok());
  }
  run_until([&] { return num_ended == rooms.size(); });
  EXPECT_EQ(file.num_without_buffer, 0u);
}

TEST_F(ClientServerTest, DisconnectFromTheClientsSide) {
  listen();
  auto client = connect();
  clients = {client.get()};
  expect_null_works(*client);
  client->disconnect();
  EXPECT_EQ(client->state(), Client::State::kClosed);
  run_until([&] { return server->num_connections() == 0; });
}

TEST_F(ClientServerTest, ClientsDeviceIsTakenAway) {
  listen();
  auto client = connect();
  clients = {client.get()};
  expect_null_works(*client);
  file.hold = true;
  CallStatus status = CallStatus::kSuccess;
  ASSERT_TRUE(client->call(null_call(), [&](const Reply& reply) { status = reply.status; }).ok());
  run_until([&] { return file.held.size() == 1; });
  verbs::unplug(verbs::testing::bare(*client_device));
  run_until([&] { return client->num_outstanding() == 0 && server->num_connections() == 0; });
  EXPECT_NE(status, CallStatus::kSuccess);
  EXPECT_EQ(client->state(), Client::State::kClosed);
  EXPECT_NE(client->error().find("the device was removed"), std::string::npos) << client->error();
  EXPECT_FALSE(Client::connect(*client_device, server->local_addr(), {}).ok());
  file.answer_held();  // no client hears it
}

TEST_F(ClientServerTest, ServersDeviceIsTakenAway) {
  listen();
  auto client = connect();
  clients = {client.get()};
  expect_null_works(*client);
  verbs::unplug(verbs::testing::bare(*server_device));
  const auto now = Clock::now();
  for (int i = 0; i < 3; ++i) server->process(now);  // the event is there, no time-out has to help
  EXPECT_EQ(server->num_connections(), 0u);
  run_until([&] { return client->state() == Client::State::kClosed; });
}

TEST_F(ClientServerTest, RefusesConfigurationsThatCannotWork) {
  const auto refused = [&](ServerConfig config) {
    auto made = Server::listen(*server_device, loopback(0), programs, config);
    return !made.ok() && made.error().errno_value == EINVAL;
  };
  EXPECT_TRUE(refused({.inline_threshold = 1000}));
  EXPECT_TRUE(refused({.inline_threshold = 512 * 1024}));
  EXPECT_TRUE(refused({.credits = 0}));
  EXPECT_TRUE(refused({.max_buffered = 1 << 20}));
  EXPECT_FALSE(Client::connect(*client_device, loopback(1), {.inline_threshold = 1500}).ok());
  EXPECT_FALSE(Client::connect(*client_device, loopback(1), {.credits = 5000}).ok());
}

// 256 MiB hold a Call of 1 MiB and three times 85 MiB.
TEST_F(ClientServerTest, HowMuchCallsMayHoldUnlessToldOtherwise) {
  EXPECT_TRUE(Server::listen(*server_device, loopback(0), programs, {.max_item = 85 << 20}).ok());
  EXPECT_FALSE(Server::listen(*server_device, loopback(0), programs, {.max_item = 86 << 20}).ok());
}

}  // namespace
}  // namespace weft::rpcrdma::testing
