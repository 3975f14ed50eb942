#include <map>
#include <set>

#include "rpcrdma/testing/reverse.h"
#include "rpcrdma/testing/vectors.h"
#include "tests/rpc/raw_server.h"

// Calls from the server on its client's connection (RFC 8167), while the client calls the server.
namespace weft::rpcrdma::testing {
namespace {

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
  void on_end(const ConnectionEnd&) override { ++num_ends; }
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
  void on_end(const ConnectionEnd& end) override { ended.insert(end.connection.value); }

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
    server_config.min_credits = 32;
    server_config.reverse_credits = server_credits;
    server_config.reverse_timeout = std::chrono::milliseconds(5000);
    listen(server_config);
    known.server = server.get();
    config.reverse_programs = reverse_programs;
    config.reverse_credits = client_credits;
    connect_known(config);
  }
  void connect_known(const ClientConfig& config) {
    client = connect(config);
    clients = {client.get()};
    echo.client = client.get();
    run_until_ready(*client);
    call_server(known_call());
    run_until([&] { return forward_ended.size() == 1; });
    ASSERT_EQ(known.connections.size(), 1u);
    connection = {*known.connections.begin()};
  }
  CallSpec known_call() const { return call_of(known_binding); }
  static CallSpec callback(ConstBytes args = {}) {
    CallSpec spec = call_of(callback_binding(), 1, args);
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
  std::vector<ServedProgram> reverse_programs;
  std::unique_ptr<Client> client;
  ConnectionId connection;
  std::vector<CallStatus> forward_ended, reverse_ended;
};

TEST_F(ReverseOverSoft, BothCallTheOtherAtOnce) {
  RecordProperty("proves", "R1-7.1.2-01 R1-7.1.4-01 R1-7.2.1-02 R1-3.1.3-01");
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
  // All of it on the one connection that the client made.
  EXPECT_EQ(client->num_connections(), 1u);
  EXPECT_EQ(server->num_connections(), 1u);
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
  // An answer that comes too late goes nowhere. The client is not called again on another connection.
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

// A server makes no reverse Call by itself: its program has to know that the client is ready.
TEST_F(ReverseOverSoft, NothingIsCalledUnasked) {
  RecordProperty("proves", "R1-7.3.1-01");
  open();
  for (int i = 0; i < 20; ++i) expect_null_works(*client);
  EXPECT_EQ(echo.num_calls, 0u);
  // Besides its Replies the server tells its properties, in versions that have them.
  const unsigned num_properties = profile().make_exchange != nullptr ? 1 : 0;
  EXPECT_EQ(server->counters().sends_tx, 21u + num_properties);
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
  connect_known(config);
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

// A hostile server: it sends any octets.
struct HostileReverse : ReverseOverSoft {
  static constexpr std::size_t kLen = 4096, kNum = 64;

  ~HostileReverse() override {
    client.reset();
    raw.qp.reset();  // which has Receives in `mr`
  }
  void open_raw(std::uint32_t client_credits) {
    also = [this] { turn(); };
    ClientConfig config;
    config.reverse_programs = reverse_programs;
    config.reverse_credits = client_credits;
    config.max_discards = UINT32_MAX;
    client = std::move(*Client::connect(*client_device, raw.listener->local_addr(), config));
    clients = {client.get()};
    echo.client = client.get();
    run_until_ready(*client);
    // Over MPA the side that accepted may not be the first to send.
    call_server(null_call());
    run_until([&] { return heard.size() == 1; });
    heard.clear();
  }
  verbs::Sge buffer(std::size_t i) const {
    return {reinterpret_cast<std::uintptr_t>(buffers.data() + i * kLen), kLen, mr->lkey()};
  }
  void receive(std::size_t i) {
    const verbs::Sge sge = buffer(i);
    verbs::RecvWr wr;
    wr.wr_id = i;
    wr.sg_list = std::span(&sge, 1);
    (void)raw.qp->post_recv(wr);
  }
  void turn() {
    raw.turn([this] {
      for (std::size_t i = 0; i < kNum; ++i) receive(i);
    });
    verbs::Wc wc;
    while (raw.cq->poll(std::span(&wc, 1)) == 1) {
      if (wc.status != verbs::WcStatus::kSuccess || wc.opcode != verbs::WcOpcode::kRecv) continue;
      const std::uint8_t* octets = buffers.data() + wc.wr_id * kLen;
      heard.emplace_back(octets, octets + wc.byte_len);
      receive(wc.wr_id);
    }
  }
  void say(const Octets& message) {
    const std::size_t i = kNum + next_send++ % kNum;
    std::copy(message.begin(), message.end(), buffers.begin() + static_cast<std::ptrdiff_t>(i * kLen));
    verbs::Sge sge = buffer(i);
    sge.length = static_cast<std::uint32_t>(message.size());
    verbs::SendWr wr;
    wr.sg_list = std::span(&sge, 1);
    wr.opcode = verbs::WrOpcode::kSend;
    wr.send_flags = verbs::SendFlags::kSignaled;
    (void)raw.qp->post_send(wr);
  }
  static Octets call_message(std::uint8_t xid) {
    Octets octets = load_vector("V21").octets;
    octets[3] = octets[31] = xid;
    return octets;
  }

  Octets buffers = Octets(2 * kNum * kLen);
  std::size_t next_send = 0;
  std::vector<Octets> heard;
  RawServer raw{*server_device};
  std::unique_ptr<verbs::Mr> mr =
      std::move(*raw.pd->reg_mr(buffers.data(), buffers.size(), verbs::Access::kLocalWrite));
};

TEST_F(HostileReverse, CallsBeyondTheGrantEndTheConnection) {
  open_raw(2);
  for (std::uint8_t i = 0; i < 40; ++i) {
    say(call_message(i));
    if (i % 2 == 1) run_until([&] { return heard.size() == i + 1u; });
  }
  EXPECT_EQ(client->state(), Client::State::kReady) << client->error();
  echo.hold = true;
  for (std::uint8_t i = 0; i < 3; ++i) say(call_message(i));
  run_until([&] { return client->state() == Client::State::kClosed; });
  EXPECT_NE(client->error().find("more Calls than it was granted"), std::string::npos) << client->error();
  EXPECT_EQ(echo.held.size(), 2u);
  EXPECT_EQ(echo.num_ends, 1u);
}

// A header with a word changed gets an answer, or none; the client goes on in both directions.
TEST_F(HostileReverse, ChangedHeadersOfCallsHarmNobody) {
  RecordProperty("proves", "R1-7.3.4-04");
  open_raw(4);
  std::size_t num = 0;
  for (const char* id : {"V21", "V24"}) {
    const Octets octets = load_vector(id).octets;
    for (std::size_t at = 0; at + 4 <= octets.size(); at += 4) {
      for (const std::uint8_t value : Octets{0, 1, 2, 4, 0x80, 0xff}) {
        Octets changed = octets;
        changed[at + 3] = value;
        if (value >= 0x80) changed[at] = changed[at + 1] = changed[at + 2] = value;
        say(changed);
        say(call_message(1));
        num += 1;
        run_until([&] { return echo.num_calls >= num || client->state() == Client::State::kClosed; });
        ASSERT_EQ(client->state(), Client::State::kReady) << id << " " << at << " " << int{value} << client->error();
        num = echo.num_calls;
      }
    }
  }
  say(load_vector("V24").octets);
  // V25 with the grant of this connection.
  run_until([&] { return to_hex(heard.back()) == "2222000400000001000000040000000400000002"; });
}

}  // namespace
}  // namespace weft::rpcrdma::testing
