// Transport properties between a Client and a Server, in both drafts of version 2, over soft RNICs.
#include <gmock/gmock.h>

#include "tests/rpc/world.h"

namespace weft::rpcrdma::testing {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::SizeIs;

struct PropertiesOverSoft : World, ::testing::WithParamInterface<Protocol> {
  void listen(ServerConfig config) {
    config.protocols = {Protocol::k1, Protocol::k2Cel05, Protocol::k2Wg07};
    World::listen(config);
  }
  void connect(ClientConfig config) {
    config.protocols = {GetParam()};
    client = World::connect(config);
    clients = {client.get()};
    expect_null_works(*client);
    expect_null_works(*client);  // the second Reply follows the server's properties
  }
  // A WRITE of so many octets. Returns the RDMA Reads that the server needed.
  std::uint64_t write(std::size_t len) {
    const Octets data = pattern(len);
    const Octets args = write_args(len);
    const std::uint64_t before = server->counters().reads_tx;
    std::optional<CallStatus> status;
    EXPECT_TRUE(client->call(write_call(args, data), [&](const Reply& reply) { status = reply.status; }).ok());
    run_until([&] { return status.has_value(); });
    EXPECT_EQ(status, CallStatus::kSuccess);
    EXPECT_EQ(file.data, data);
    return server->counters().reads_tx - before;
  }

  std::unique_ptr<Client> client;
};

// Without continuation, a Call or Reply longer than a message goes by chunks.
TEST_P(PropertiesOverSoft, BothEndsMeetAtTheSmallerSize) {
  listen({.inline_threshold = 16384});
  for (const std::size_t own : {8192ul, 16384ul, 65536ul}) {
    connect({.inline_threshold = own, .chunks = {.max_continued_call = 0}});
    const std::size_t threshold = std::min<std::size_t>(own, 16384);
    EXPECT_EQ(write(threshold - 200), 0u) << own;
    EXPECT_NE(write(threshold), 0u) << own;
  }
}

TEST_P(PropertiesOverSoft, AnEndThatTellsNothingGetsTheDefaults) {
  for (const bool at_server : {false, true}) {
    server.reset();
    listen({.inline_threshold = 16384, .properties = at_server});
    connect({.inline_threshold = 16384, .properties = !at_server, .chunks = {.max_continued_call = 0}});
    EXPECT_EQ(write(3000), 0u);
    EXPECT_NE(write(9000), 0u);
  }
}

TEST_P(PropertiesOverSoft, LongItemsAreInSegmentsThatThePeerTakes) {
  listen({});
  connect({});
  for (const std::size_t len : {1ul << 20, (4ul << 20) - 3}) write(len);
}

// The types of all messages of one connection.
struct TypesHeard : LinkObserver {
  void on_message(const ObservedLink& /*link*/, const LinkMessage& message) override {
    xdr::XdrReader in(message.octets.front());
    std::uint32_t type = 0;
    if (in.skip(12) && in.u32(type)) types.push_back(type);
  }
  void on_end(const ObservedLink& /*link*/, std::string_view /*why*/) override {}

  std::vector<std::uint32_t> types;
};

// Longer messages of the client are no reason to ask Weft's server: its properties are constant.
TEST_P(PropertiesOverSoft, EachEndSendsOneMessageAboutProperties) {
  const std::uint32_t last = GetParam() == Protocol::k2Cel05 ? 9 : 7;
  TypesHeard heard;
  listen({.inline_threshold = 16384});
  connect({.inline_threshold = 65536, .observer = &heard});
  const auto is_about_properties = [last](std::uint32_t type) { return type >= 6 && type <= last; };
  EXPECT_EQ(std::ranges::count_if(heard.types, is_about_properties), 2);
  clients.clear();
  client.reset();
}

INSTANTIATE_TEST_SUITE_P(Drafts, PropertiesOverSoft, ::testing::Values(Protocol::k2Cel05, Protocol::k2Wg07));

// The reverse direction of wg07 begins with the client's word.
struct ReverseProperties : World {
  void open(ClientConfig client_config, ServerConfig server_config = {}) {
    server_config.protocols = {Protocol::k2Wg07};
    server_config.reverse_credits = 4;
    listen(server_config);
    client_config.protocols = {Protocol::k2Wg07};
    client = World::connect(client_config);
    clients = {client.get()};
    run_until_ready(*client);
  }
  // A Call of the client without arguments. It tells the server the name of the connection.
  void call_server() {
    file.hold = true;
    ASSERT_TRUE(client->call(null_call(), [](const Reply&) {}).ok());
    run_until([&] { return !file.held.empty(); });
    connection = file.held[0].connection;
    file.answer_held();
    file.hold = false;
  }
  void call_client(const Octets& args = {}) {
    CallSpec spec = call_of(plain_binding(), kNull, args);
    spec.max_results = args.size();
    ASSERT_TRUE(server
                    ->call(connection, spec,
                           [this](const Reply& reply) {
                             ended.push_back(reply.status);
                             text = reply.text;
                           })
                    .ok());
  }
  void run_until_ended(std::size_t num) {
    run_until([&] { return ended.size() == num; });
  }

  struct Callbacks : Service {
    void on_call(ServedCall call) override {
      args.push_back(copy_of(call.args));
      client->reply(call.id, {});
    }
    Client* client = nullptr;
    std::vector<Octets> args;
  } callbacks;
  std::vector<ServedProgram> reverse_programs{{&plain_binding(), &callbacks}};
  std::unique_ptr<Client> client;
  ConnectionId connection{};
  std::vector<CallStatus> ended;
  std::string text;
};

TEST_F(ReverseProperties, CallsWaitForTheClientsWord) {
  RecordProperty("proves", "W2-5.2-5");
  open({.reverse_programs = reverse_programs});
  callbacks.client = client.get();
  call_server();
  call_client();  // the client's properties are under way
  run_until_ended(1);
  EXPECT_EQ(ended[0], CallStatus::kSuccess) << text;
}

TEST_F(ReverseProperties, AClientWithoutProgramsIsNotCalled) {
  open({});
  call_server();
  call_client();
  call_client();
  run_until_ended(2);
  EXPECT_THAT(ended, Each(CallStatus::kDisconnected));
  EXPECT_THAT(text, HasSubstr("takes no Calls"));
  expect_null_works(*client);
}

TEST_F(ReverseProperties, LongCallsGoInSeveralMessagesWithoutChunks) {
  RecordProperty("proves", "W2-5.2.5-2 U2-5.5.2-1 U2-5.5.2-6");
  open({.reverse_programs = reverse_programs});
  callbacks.client = client.get();
  call_server();
  const Octets args = pattern(10000);
  call_client(args);
  run_until_ended(1);
  EXPECT_EQ(ended[0], CallStatus::kSuccess) << text;
  ASSERT_THAT(callbacks.args, SizeIs(1));
  EXPECT_EQ(callbacks.args[0], args);
  EXPECT_EQ(server->counters().reads_tx + client->counters().reads_tx, 0u);
}

// Only a client can connect, and its server may have Calls for it although it has none itself.
TEST_F(ReverseProperties, AnIdleClientConnectsAgain) {
  RecordProperty("proves", "W2-4.6.5-1");
  open({.reverse_programs = reverse_programs,
        .reconnect = {.max_time = std::chrono::seconds(20), .first_delay = std::chrono::milliseconds(1)}});
  callbacks.client = client.get();
  call_server();
  run_until([&] { return client->num_outstanding() == 0; });
  server->disconnect(connection);
  run_until([&] { return client->num_connections() == 2 && server->num_connections() == 1; });
  EXPECT_EQ(client->num_outstanding(), 0u) << "it had nothing to send";
  run_until_ready(*client);
  call_server();  // as an NFS client names its session
  call_client();
  run_until_ended(1);
  EXPECT_EQ(ended[0], CallStatus::kSuccess) << text;
}

// Calls without a Reply give their Receives back when the service has them.
TEST_F(World, AStreamOfCallsWithoutRepliesNeverStalls) {
  RecordProperty("proves", "W2-4.2.1.1-4");
  struct Sink : Service {
    void on_call(ServedCall call) override {
      ++num;
      server->finish(call.id);
    }
    Server* server = nullptr;
    std::size_t num = 0;
  } sink;
  programs = {{&plain_binding(), &sink}};
  listen({.credits = 4, .protocols = {Protocol::k2Wg07}});
  sink.server = server.get();
  auto client = connect({.credits = 4, .protocols = {Protocol::k2Wg07}});
  clients = {client.get()};
  CallSpec spec = call_of(plain_binding());
  spec.call_only = true;
  std::size_t num_ended = 0;
  constexpr std::size_t kNum = 1000;
  for (std::size_t i = 0; i < kNum; ++i) {
    ASSERT_TRUE(client
                    ->call(spec,
                           [&](const Reply& reply) {
                             EXPECT_EQ(reply.status, CallStatus::kSuccess) << reply.text;
                             ++num_ended;
                           })
                    .ok());
  }
  run_until([&] { return num_ended == kNum && sink.num == kNum; });
  EXPECT_LE(server->counters().sends_tx, kNum) << "one GRANT serves several Calls";
}

// Two connections of one address send the same Calls without a Reply. The second one of each waits for the first one.
TEST_F(World, ACallThatWaitedForOneWithoutAReplyEndsWithIt) {
  constexpr std::uint32_t kHeld = 7;
  struct Holding : Service {
    void on_call(ServedCall call) override {
      if (call.procedure == kHeld) {
        held.push_back(call.id);
      } else {
        server->reply(call.id, {});
      }
    }
    Server* server = nullptr;
    std::vector<ServedCallId> held;
  } holding;
  programs = {{.binding = &plain_binding(), .service = &holding, .keeps_replies = true}};
  listen({.credits = 4, .protocols = {Protocol::k2Wg07}});
  holding.server = server.get();
  const auto first = connect({.credits = 4, .protocols = {Protocol::k2Wg07}});
  const auto second = connect({.credits = 4, .protocols = {Protocol::k2Wg07}});
  clients = {first.get(), second.get()};
  bool is_answered = false;                              // then the Call before it has arrived
  for (std::uint32_t round = 1; round <= 40; ++round) {  // far more than there are Receives
    CallSpec spec = call_of(plain_binding(), kHeld);
    spec.call_only = true;
    spec.xid = round;
    ASSERT_TRUE(first->call(spec, {}).ok());
    run_until([&] { return holding.held.size() == 1; });
    ASSERT_TRUE(second->call(spec, {}).ok());
    is_answered = false;
    ASSERT_TRUE(second->call(call_of(plain_binding()), [&](const Reply&) { is_answered = true; }).ok());
    run_until([&] { return is_answered; });
    ASSERT_TRUE(is_answered) << round;
    ASSERT_EQ(holding.held.size(), 1u) << "it ran again";
    server->finish(holding.held[0]);
    holding.held.clear();
  }
}

}  // namespace
}  // namespace weft::rpcrdma::testing
