#include "tests/rpc/world.h"

// Many clients of one server: their shared memory, and the share of each.
namespace weft::rpcrdma::testing {
namespace {

struct ScaleTest : World {
  // `num` clients that have had an answer to a Call or two.
  void open_idle(std::size_t num) {
    for (std::size_t i = 0; i < num; ++i) {
      idle.push_back(connect({.credits = 32}));
      clients.push_back(idle.back().get());
      expect_null_works(*idle.back());
      expect_null_works(*idle.back());
    }
  }
  std::vector<std::unique_ptr<Client>> idle;
};

TEST_F(ScaleTest, AnIdleClientHoldsNoMoreThanItsFewReceives) {
  listen();
  open_idle(1);
  const ServerMemory one = server->memory();
  ASSERT_TRUE(one.has_shared_receives);
  EXPECT_EQ(one.promised, 8u);
  open_idle(64);
  const ServerMemory many = server->memory();
  EXPECT_EQ(many.promised, 65u * 8);
  EXPECT_LE(many.receives - one.receives + many.sends - one.sends, 64 * kIdleReceives);
  EXPECT_EQ(many.sends, one.sends);
  EXPECT_GT(one.sends, 0u);  // where the answers came from
}

TEST_F(ScaleTest, WhoIsBusyIsGrantedMoreAndLeavesItBehind) {
  RecordProperty("proves", "R1-4.3.1-07 R1-4.3.1-09");
  listen();
  open_idle(1);
  std::size_t num_ended = 0;
  for (int i = 0; i < 400; ++i) {
    ASSERT_TRUE(idle[0]->call(null_call(), [&](const Reply&) { ++num_ended; }).ok());
  }
  run_until([&] { return num_ended == 400; });
  EXPECT_EQ(server->memory().promised, 32u);
  // Calls one by one need less, and so it comes back.
  for (int i = 0; i < 400; ++i) expect_null_works(*idle[0]);
  EXPECT_EQ(server->memory().promised, 8u);
  clients.clear();
  idle.clear();
  run_until([&] { return server->num_connections() == 0; });
  run_until([&] { return server->memory().promised == 0; });
}

// After many Calls of all clients at the same time. Granted credits stay granted.
TEST_F(ScaleTest, ClientsThatWereBusyOnceCostLittleAgain) {
  constexpr std::size_t kNum = 40, kDepth = 32;
  listen();
  open_idle(1);
  const ServerMemory one = server->memory();
  open_idle(kNum);
  const auto grown = [&] {
    const ServerMemory now = server->memory();
    return static_cast<long>(now.receives + now.sends) - static_cast<long>(one.receives + one.sends);
  };
  const auto call_all = [&](std::size_t& num_ended) {
    for (std::size_t i = 0; i < kNum; ++i) {
      for (std::size_t j = 0; j < kDepth; ++j) {
        ASSERT_TRUE(idle[i + 1]
                        ->call(null_call(),
                               [&](const Reply& reply) {
                                 EXPECT_EQ(reply.status, CallStatus::kSuccess) << reply.text;
                                 ++num_ended;
                               })
                        .ok());
      }
    }
  };
  // Calls are held until each client used all of a grant: how many of them the server sees at once then depends on no
  // thread of the device, and every client has kDepth credits.
  std::size_t warm = 0, num_ended = 0;
  file.hold = true;
  call_all(warm);
  for (std::size_t granted = 16; granted <= kDepth; granted *= 2) {
    run_until([&] { return server->memory().promised == kNum * granted + 8; });
    file.hold = granted != kDepth;
    file.answer_held();
  }
  run_until([&] { return warm == kNum * kDepth; });
  file.hold = true;
  call_all(num_ended);
  run_until([&] { return file.held.size() == kNum * kDepth; });
  EXPECT_GE(server->memory().receives, kNum * kDepth * 4096) << "each held Call has its Receive";
  file.hold = false;
  file.answer_held();
  run_until([&] { return num_ended == kNum * kDepth; });
  EXPECT_EQ(server->memory().promised, kNum * kDepth + 8);
  server->process(Clock::now() + std::chrono::seconds(2));
  // A device with threads has all that was granted posted.
  if (server_device->caps().srq_reserve) {
    EXPECT_LE(grown(), static_cast<long>(kNum * kIdleReceives));
  }
  for (std::size_t i = 0; i <= kNum; ++i) expect_null_works(*idle[i]);
}

TEST_F(ScaleTest, WhenReceivesAreLowGrantsFall) {
  listen({.credits = 32, .max_shared_receives = 64 * 4096, .max_connections = 4, .max_connections_per_client = 4});
  open_idle(4);
  std::size_t num_ended = 0;
  for (int i = 0; i < 4000; ++i) {
    ASSERT_TRUE(idle[static_cast<std::size_t>(i) % 4]
                    ->call(null_call(),
                           [&](const Reply& reply) {
                             EXPECT_EQ(reply.status, CallStatus::kSuccess) << reply.text;
                             ++num_ended;
                           })
                    .ok());
  }
  std::size_t most = 0, least = SIZE_MAX;  // promised at once; after the most
  run_until([&] {
    const std::size_t promised = server->memory().promised;
    least = promised < most ? std::min(least, promised) : least;
    most = std::max(most, promised);
    return num_ended == 4000;
  });
  EXPECT_LE(most, 4u * 8 + 32) << "an address leaves as much as it takes";
  EXPECT_LT(least, most);
}

TEST_F(ScaleTest, AnAddressMayHaveSoManyConnections) {
  listen({.max_connections_per_client = 2});
  open_idle(2);
  file.hold = true;
  std::size_t num_ended = 0;
  for (auto& client : idle) ASSERT_TRUE(client->call(null_call(), [&](const Reply&) { ++num_ended; }).ok());
  run_until([&] { return file.held.size() == 2; });
  // The third takes the place of one of the two.
  file.hold = false;
  open_idle(1);
  EXPECT_EQ(server->num_connections(), 2u);
  run_until([&] { return num_ended == 1; });
  file.answer_held();
  run_until([&] { return num_ended == 2; });
}

TEST_F(ScaleTest, APeerThatIsNotAdmittedIsRejected) {
  bool admitted = false;
  std::vector<std::string> asked;
  ServerConfig config;
  config.admits = [&](const sockaddr_storage& peer) {
    char text[INET_ADDRSTRLEN] = {};
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(peer).sin_addr, text, sizeof text);
    asked.emplace_back(text);
    return admitted;
  };
  listen(config);
  auto refused = connect();
  clients.push_back(refused.get());
  run_until([&] { return refused->state() == Client::State::kClosed; });
  EXPECT_EQ(server->num_connections(), 0u);
  clients.clear();
  admitted = true;
  open_idle(1);
  expect_null_works(*idle[0]);
  EXPECT_EQ(asked, (std::vector<std::string>{"127.0.0.1", "127.0.0.1"}));
}

TEST_F(ScaleTest, WithoutSharedReceivesEachConnectionHasItsOwn) {
  listen({.max_shared_receives = 0});
  open_idle(2);
  EXPECT_FALSE(server->memory().has_shared_receives);
  std::size_t num_ended = 0;
  for (int i = 0; i < 400; ++i) {
    ASSERT_TRUE(idle[0]->call(null_call(), [&](const Reply&) { ++num_ended; }).ok());
  }
  run_until([&] { return num_ended == 400; });
}

}  // namespace
}  // namespace weft::rpcrdma::testing
