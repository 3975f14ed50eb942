#include <map>
#include <set>

#include "tests/rpc/world.h"

// Calls from the server on its client's connection (RFC 8167), while the client calls the server.
namespace weft::rpcrdma::testing {
namespace {

constexpr std::uint32_t kCallback = 0x40000000;

const Binding& callback_binding() {
  static const Binding binding{kCallback, 1, nullptr, nullptr, nullptr};
  return binding;
}

// Answers with the arguments, from the client's thread; or keeps them where it is told to hold.
struct Echo : Service {
  void on_call(ServedCall call) override {
    ++num_calls;
    if (hold) {
      held.push_back(std::move(call));
      return;
    }
    answer(call);
  }
  void on_end(ConnectionId) override { ++num_ends; }
  void answer(const ServedCall& call) const {
    ServedReply reply;
    reply.results = copy_of(call.args);
    client->reply(call.id, std::move(reply));
  }

  Client* client = nullptr;
  bool hold = false;
  std::size_t num_calls = 0, num_ends = 0;
  std::vector<ServedCall> held;
};

// A server's program that remembers which connections called.
struct Known : Service {
  void on_call(ServedCall call) override {
    connections.insert(call.connection.value);
    server->reply(call.id, {});
  }
  void on_end(ConnectionId connection) override { ended.insert(connection.value); }

  Server* server = nullptr;
  std::set<std::uint32_t> connections, ended;
};

struct ReverseOverSoft : World {
  ReverseOverSoft() {
    programs.push_back({&known_binding, &known});
    reverse_programs.push_back({&callback_binding(), &echo});
  }
  ~ReverseOverSoft() override {
    echo.held.clear();
    client.reset();
    server.reset();
  }
  // A server and its client, each of which knows the other.
  void open(std::uint32_t server_credits = 4, std::uint32_t client_credits = 4, ClientConfig config = {}) {
    ServerConfig server_config;
    server_config.reverse_credits = server_credits;
    server_config.reverse_timeout = std::chrono::milliseconds(5000);
    listen(server_config);
    known.server = server.get();
    config.reverse_programs = reverse_programs;
    config.reverse_credits = client_credits;
    client = connect(config);
    clients = {client.get()};
    echo.client = client.get();
    run_until_ready(*client);
    call_server(known_call());
    run_until([&] { return forward_ended.size() == 1; });
    ASSERT_EQ(known.connections.size(), 1u);
    connection = {*known.connections.begin()};
  }
  CallSpec known_call() const {
    CallSpec spec;
    spec.program = known_binding.program;
    spec.version = known_binding.version;
    spec.binding = &known_binding;
    return spec;
  }
  static CallSpec callback(ConstBytes args = {}) {
    CallSpec spec;
    spec.program = kCallback;
    spec.version = 1;
    spec.procedure = 1;
    spec.binding = &callback_binding();
    spec.args = args;
    spec.max_results = args.size();
    return spec;
  }
  void call_server(const CallSpec& spec) {
    ASSERT_TRUE(client->call(spec, [this](const Reply& reply) { forward_ended.push_back(reply.status); }).ok());
  }
  void call_client(const CallSpec& spec = callback()) {
    const auto called =
        server->call(connection, spec, [this](const Reply& reply) { reverse_ended.push_back(reply.status); });
    ASSERT_TRUE(called.ok()) << called.error().message;
  }
  void expect_all_succeeded() {
    for (const CallStatus status : forward_ended) EXPECT_EQ(status, CallStatus::kSuccess);
    for (const CallStatus status : reverse_ended) EXPECT_EQ(status, CallStatus::kSuccess);
  }

  Binding known_binding{400000, 1, nullptr, nullptr, nullptr};
  Known known;
  Echo echo;
  std::vector<Program> reverse_programs;
  std::unique_ptr<Client> client;
  ConnectionId connection;
  std::vector<CallStatus> forward_ended, reverse_ended;
};

TEST_F(ReverseOverSoft, BothCallTheOtherAtOnce) {
  RecordProperty("proves", "R1-7.1.2-01 R1-7.1.4-01 R1-7.2.1-02");
  open(4, 2);
  constexpr std::uint32_t kNum = 500;
  std::vector<Octets> args(kNum);
  std::size_t num_wrong = 0;
  for (std::uint32_t i = 0; i < kNum; ++i) {
    args[i] = pattern(4 * (i % 700), static_cast<std::uint8_t>(i));
    CallSpec forward = known_call(), reverse = callback(args[i]);
    forward.xid = reverse.xid = 0x700 + i;
    call_server(forward);
    ASSERT_TRUE(server
                    ->call(connection, reverse,
                           [&, i](const Reply& reply) {
                             reverse_ended.push_back(reply.status);
                             if (copy_of(reply.results) != args[i]) ++num_wrong;
                           })
                    .ok());
  }
  run_until([&] { return forward_ended.size() == kNum + 1 && reverse_ended.size() == kNum; });
  expect_all_succeeded();
  EXPECT_EQ(num_wrong, 0u);
  EXPECT_EQ(echo.num_calls, kNum);
}

TEST_F(ReverseOverSoft, AClientThatHoldsItsAnswersIsServedAllTheSame) {
  RecordProperty("proves", "R1-7.2.1-01");
  open(4, 4);
  call_client();
  run_until([&] { return reverse_ended.size() == 1; });
  echo.hold = true;
  for (int i = 0; i < 8; ++i) call_client();
  for (int i = 0; i < 100; ++i) call_server(null_call());
  run_until([&] { return forward_ended.size() == 101 && echo.held.size() == 4; });
  EXPECT_EQ(reverse_ended.size(), 1u);
  echo.hold = false;
  for (const ServedCall& call : std::exchange(echo.held, {})) echo.answer(call);
  run_until([&] { return reverse_ended.size() == 9; });
  expect_all_succeeded();
}

TEST_F(ReverseOverSoft, AServerThatHoldsItsAnswersIsServedAllTheSame) {
  RecordProperty("proves", "R1-7.2.1-01");
  open(4, 4);
  file.hold = true;
  for (int i = 0; i < 40; ++i) call_server(null_call());
  run_until([&] { return file.held.size() == 32; });
  for (int i = 0; i < 100; ++i) call_client();
  run_until([&] { return reverse_ended.size() == 100; });
  EXPECT_EQ(forward_ended.size(), 1u);
  file.hold = false;
  file.answer_held();
  run_until([&] { return forward_ended.size() == 41; });
  expect_all_succeeded();
}

TEST_F(ReverseOverSoft, ACallEndsOnceWithItsConnection) {
  RecordProperty("proves", "R1-7.3.2-01");
  open();
  echo.hold = true;
  for (int i = 0; i < 6; ++i) call_client();
  run_until([&] { return !echo.held.empty(); });
  client->disconnect();
  EXPECT_EQ(echo.num_ends, 1u);
  run_until([&] { return reverse_ended.size() == 6 && !known.ended.empty(); });
  EXPECT_EQ(reverse_ended, std::vector<CallStatus>(6, CallStatus::kDisconnected));
  EXPECT_EQ(server->num_connections(), 0u);
  const auto late = server->call(connection, callback(), {});
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().errno_value, ENOTCONN);
  // An answer that comes too late goes nowhere, and nobody is called again on another connection.
  client->reply(echo.held[0].id, {});
  echo.held.clear();
  const std::size_t num_calls = echo.num_calls;
  client = connect({.reverse_programs = reverse_programs});
  echo.client = client.get();
  clients = {client.get()};
  run_until_ready(*client);
  expect_null_works(*client);
  EXPECT_EQ(echo.num_calls, num_calls);
  EXPECT_EQ(reverse_ended.size(), 6u);
}

TEST_F(ReverseOverSoft, OpenCallsEndWithTheServer) {
  open();
  echo.hold = true;
  call_client();
  call_client();
  run_until([&] { return !echo.held.empty(); });
  server.reset();
  EXPECT_EQ(reverse_ended, std::vector<CallStatus>(2, CallStatus::kDisconnected));
}

TEST_F(ReverseOverSoft, TheServersOwnEndOfAConnectionEndsItsCalls) {
  open();
  echo.hold = true;
  call_client();
  run_until([&] { return !echo.held.empty(); });
  server->disconnect(connection);
  EXPECT_FALSE(server->call(connection, callback(), {}).ok());
  run_until([&] { return !reverse_ended.empty() && client->state() == Client::State::kClosed; });
  EXPECT_EQ(reverse_ended, std::vector{CallStatus::kDisconnected});
  EXPECT_EQ(echo.num_ends, 1u);
}

// A callback that calls again, and one that ends the connection it came from.
TEST_F(ReverseOverSoft, CallbacksMayCallAndDisconnect) {
  open();
  int left = 10;
  ReplyCallback again = [&](const Reply& reply) {
    reverse_ended.push_back(reply.status);
    if (--left > 0) {
      EXPECT_TRUE(server->call(connection, callback(), again).ok());
    } else {
      server->disconnect(connection);
    }
  };
  ASSERT_TRUE(server->call(connection, callback(), again).ok());
  run_until([&] { return client->state() == Client::State::kClosed && server->num_connections() == 0; });
  EXPECT_EQ(reverse_ended, std::vector<CallStatus>(10, CallStatus::kSuccess));
}

TEST_F(ReverseOverSoft, WithoutCreditsNobodyIsCalled) {
  open(0);
  const auto called = server->call(connection, callback(), {});
  ASSERT_FALSE(called.ok());
  EXPECT_EQ(called.error().errno_value, EOPNOTSUPP);
}

// A server calls nobody unless it is told to: that the client is ready is for its program to know.
TEST_F(ReverseOverSoft, NothingIsCalledUnasked) {
  RecordProperty("proves", "R1-7.3.1-01");
  open();
  for (int i = 0; i < 20; ++i) expect_null_works(*client);
  EXPECT_EQ(echo.num_calls, 0u);
  EXPECT_EQ(server->counters().sends_tx, 21u);
}

// Nothing under way for two days, and the server still reaches its client.
TEST_F(ReverseOverSoft, AnIdleClientKeepsItsConnection) {
  RecordProperty("proves", "R1-7.3.2-02");
  open();
  for (int hours = 1; hours <= 48; ++hours) {
    const auto later = Clock::now() + std::chrono::hours(hours);
    server->process(later);
    client->process(later);
  }
  EXPECT_EQ(client->state(), Client::State::kReady);
  call_client();
  run_until([&] { return reverse_ended.size() == 1; });
  expect_all_succeeded();
}

TEST_F(ReverseOverSoft, LongCallsWhereBothEndsTakeChunks) {
  RecordProperty("proves", "R1-7.3.4-03");
  ServerConfig server_config;
  server_config.reverse_credits = 4;
  server_config.reverse_chunks = true;
  server_config.ird = 4;
  listen(server_config);
  known.server = server.get();
  ClientConfig config;
  config.ord = 4;
  config.reverse_programs = reverse_programs;
  config.reverse_chunks = true;
  client = connect(config);
  clients = {client.get()};
  echo.client = client.get();
  run_until_ready(*client);
  call_server(known_call());
  run_until([&] { return forward_ended.size() == 1; });
  connection = {*known.connections.begin()};
  const Octets args = pattern(40000);
  Octets results;
  bool ended = false;
  ASSERT_TRUE(server
                  ->call(connection, callback(args),
                         [&](const Reply& reply) {
                           EXPECT_EQ(reply.status, CallStatus::kSuccess) << reply.text;
                           results = copy_of(reply.results);
                           ended = true;
                         })
                  .ok());
  run_until([&] { return ended; });
  EXPECT_EQ(results, args);
}

TEST_F(ReverseOverSoft, CreditsAreHeldAgainstTheirBounds) {
  listen();
  ClientConfig config;
  config.reverse_programs = reverse_programs;
  for (const std::uint32_t credits : {0u, 17u}) {
    config.reverse_credits = credits;
    EXPECT_FALSE(Client::connect(*client_device, server->local_addr(), config).ok());
  }
  ServerConfig server_config;
  server_config.reverse_credits = 17;
  EXPECT_FALSE(Server::listen(*server_device, loopback(0), programs, server_config).ok());
}

}  // namespace
}  // namespace weft::rpcrdma::testing
