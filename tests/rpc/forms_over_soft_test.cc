// Calls over soft RNICs: items in several pieces both ways, and Calls without success.
#include "tests/rpc/world.h"

namespace weft::rpcrdma::testing {
namespace {

// Answers MANY with its arguments, the items in the memory where they arrived. It can hold Calls.
class Echo : public Service {
 public:
  void on_call(ServedCall call) override {
    if (hold) {
      held.push_back(std::move(call));
    } else {
      answer(call);
    }
  }
  void answer(ServedCall& call) {
    ServedReply reply;
    reply.results = copy_of(call.args);
    std::size_t operation = 0;
    for (ServedItem& item : call.items) {
      reply.items.push_back({item.position, operation++, {item.data.octets(), item.data.lkey()}});
      reply.buffers.push_back(std::move(item.data));
    }
    server->reply(call.id, std::move(reply));
  }

  Server* server = nullptr;
  bool hold = false;
  std::vector<ServedCall> held;
};

struct FormsOverSoft : World {
  void listen_to_all() {
    programs.push_back({&synthetic_binding(), &echo});
    listen({.min_credits = 32});
    echo.server = server.get();
  }
  ~FormsOverSoft() override { echo.held.clear(); }
  static CallSpec many(const Message& message, const std::vector<ArgumentItem>& items) {
    CallSpec spec;
    spec.program = kSyntheticProgram;
    spec.version = kSyntheticVersion;
    spec.procedure = kMany;
    spec.binding = &synthetic_binding();
    spec.args = message.without;
    spec.items = items;
    return spec;
  }

  Echo echo;
};

TEST_F(FormsOverSoft, ItemsInPiecesThereAndBack) {
  listen_to_all();
  auto client = connect({.chunks = {.max_read_chunks = 2, .max_write_chunks = 2}});
  clients = {client.get()};
  const Octets first = pattern(300001, 1);
  const Octets second = pattern(70003, 2);
  const Message message = many_message({&first, &second});
  std::vector<ConstBytes> pieces;
  for (std::size_t at = 0; at < first.size(); at += 20001) {
    pieces.push_back(ConstBytes(first).subspan(at, std::min<std::size_t>(20001, first.size() - at)));
  }
  const std::vector<ArgumentItem> items{{message.items[0].offset, pieces}, {message.items[1].offset, second}};
  Octets room_a(first.size());
  Octets room_b(second.size());
  const std::vector<MutBytes> halves{MutBytes(room_b).first(33333), MutBytes(room_b).subspan(33333)};
  const std::vector<ScatteredBytes> rooms{MutBytes(room_a), halves};
  CallSpec spec = many(message, items);
  spec.result_items = rooms;
  spec.max_results = message.without.size();
  std::optional<CallStatus> status;
  ASSERT_TRUE(client
                  ->call(spec,
                         [&](const Reply& reply) {
                           status = reply.status;
                           EXPECT_EQ(copy_of(reply.results), message.without) << reply.text;
                         })
                  .ok());
  run_until([&] { return status.has_value(); });
  EXPECT_EQ(status, CallStatus::kSuccess);
  EXPECT_EQ(room_a, first);
  EXPECT_EQ(room_b, second);
  EXPECT_EQ(server->counters().reads_tx, pieces.size() + 1);
  EXPECT_EQ(server->counters().writes_tx, 3u);
}

TEST_F(FormsOverSoft, ACancelledCallsMemoryIsTheCallersAgain) {
  RecordProperty("proves", "R1-10.1.3-02 R1-5.4.1-03");
  listen_to_all();
  auto client = connect();
  clients = {client.get()};
  expect_null_works(*client);
  file.data = pattern(50000);
  file.hold = true;
  const Octets args = read_args(0, 50000);
  Octets room(50000, 0xa5);
  std::vector<CallStatus> ends;
  const auto called = client->call(read_call(args, room), [&](const Reply& reply) { ends.push_back(reply.status); });
  ASSERT_TRUE(called.ok());
  run_until([&] { return file.held.size() == 1; });
  EXPECT_TRUE(client->cancel(called.value()));
  EXPECT_FALSE(client->cancel(called.value()));
  EXPECT_TRUE(ends.empty());
  std::fill(room.begin(), room.end(), 0x5a);
  file.answer_held();
  // The server writes to memory that is gone: that ends the connection, and changes nothing.
  run_until([&] { return client->state() == Client::State::kClosed && !ends.empty(); });
  EXPECT_EQ(ends, std::vector<CallStatus>{CallStatus::kCancelled});
  EXPECT_EQ(room, Octets(50000, 0x5a));
}

TEST_F(FormsOverSoft, ALateReplyWithoutChunksToACancelledCallDoesNoHarm) {
  listen_to_all();
  auto client = connect();
  clients = {client.get()};
  expect_null_works(*client);
  echo.hold = true;
  const Message message = many_message({});
  std::vector<CallStatus> ends;
  const auto called = client->call(many(message, {}), [&](const Reply& reply) { ends.push_back(reply.status); });
  ASSERT_TRUE(called.ok());
  run_until([&] { return echo.held.size() == 1; });
  client->cancel(called.value());
  echo.answer(echo.held[0]);
  expect_null_works(*client);
  EXPECT_EQ(ends, std::vector<CallStatus>{CallStatus::kCancelled});
  EXPECT_EQ(client->state(), Client::State::kReady);
}

TEST_F(FormsOverSoft, TheClientsEndEndsEveryCallOnce) {
  listen_to_all();
  auto client = connect();
  clients = {client.get()};
  expect_null_works(*client);
  echo.hold = true;
  const Message message = many_message({});
  std::vector<CallStatus> ends;
  bool refused = false;
  for (int i = 0; i < 50; ++i) {
    const auto called = client->call(many(message, {}), [&](const Reply& reply) {
      ends.push_back(reply.status);
      refused = !clients[0]->call(null_call(), nullptr).ok() && clients[0]->num_outstanding() < 50;
    });
    ASSERT_TRUE(called.ok());
  }
  run_until([&] { return echo.held.size() == 32; });
  client.reset();
  clients.clear();
  EXPECT_EQ(ends, std::vector<CallStatus>(50, CallStatus::kDisconnected));
  EXPECT_TRUE(refused);
}

TEST_F(FormsOverSoft, ACallsOwnTimeIsKept) {
  listen_to_all();
  auto client = connect();
  clients = {client.get()};
  expect_null_works(*client);
  echo.hold = true;
  const Message message = many_message({});
  CallSpec spec = many(message, {});
  spec.timeout = std::chrono::milliseconds(20);
  std::optional<CallStatus> status;
  ASSERT_TRUE(client->call(spec, [&](const Reply& reply) { status = reply.status; }).ok());
  run_until([&] { return status.has_value(); });
  EXPECT_EQ(status, CallStatus::kTimeout);
  expect_null_works(*client);
}

TEST_F(FormsOverSoft, ServersTakeNoLessThanEveryServerMust) {
  const auto refused = [&](ServerConfig config) {
    auto made = Server::listen(*server_device, loopback(0), programs, config);
    return !made.ok() && made.error().errno_value == EINVAL;
  };
  EXPECT_FALSE(refused({.max_segments = 32, .max_read_chunks = 1, .max_write_chunks = 1, .max_items = 1}));
  EXPECT_TRUE(refused({.max_segments = 31}));
  EXPECT_TRUE(refused({.max_read_chunks = 0}));
  EXPECT_TRUE(refused({.max_write_chunks = 0}));
  EXPECT_TRUE(refused({.max_items = 0}));
  EXPECT_TRUE(refused({.credits = 8, .min_credits = 9}));
  EXPECT_TRUE(refused({.max_connections = 0}));
}

}  // namespace
}  // namespace weft::rpcrdma::testing
