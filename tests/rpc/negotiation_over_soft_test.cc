// Which version a client of several finds, for every pair of a client's list and a server's list, over soft RNICs: what
// the wire shows, how many connections that takes, and the line of text where it fails.
#include <gmock/gmock.h>

#include <map>
#include <mutex>

#include "base/address.h"
#include "rpcrdma/known_servers.h"
#include "rpcrdma/testing/first_answers.h"
#include "rpcrdma/v2/first_message.h"
#include "tests/rpc/raw_server.h"
#include "verbs-shim/api/testing/post_tap.h"

namespace weft::rpcrdma::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using Names = std::vector<std::string>;

std::vector<Protocol> protocols(const Names& names) {
  std::vector<Protocol> all;
  for (const std::string& name : names) all.push_back(parse_protocol(name).value());
  return all;
}

// The profile of a client's first Call; empty for another message.
std::string opened_in(ConstBytes message) {
  switch (v2::classify_first_message(message)) {
    case v2::FirstMessage::kVersion1: return "1";
    case v2::FirstMessage::kCel05: return "2-cel05";
    case v2::FirstMessage::kWg07: return "2-wg07";
    case v2::FirstMessage::kUnknown: break;
  }
  return {};
}

// The Calls of each client: of its connections one after the other.
class ClientCalls final : public verbs::testing::PostObserver {
 public:
  ClientCalls() { verbs::testing::observe_posts(*this); }
  ~ClientCalls() override { verbs::testing::ignore_posts(*this); }
  ClientCalls(const ClientCalls&) = delete;
  ClientCalls& operator=(const ClientCalls&) = delete;

  void on_post(std::size_t end, const verbs::SendWr& wr) override {
    const std::scoped_lock lock(mutex_);
    if (clients_.contains(end) && wr.opcode == verbs::WrOpcode::kSend)
      clients_[end].push_back(opened_in(octets_of(wr)));
  }
  // A client connects before its server accepts.
  void on_connect(std::size_t end, ConstBytes /*private_data*/) override {
    const std::scoped_lock lock(mutex_);
    if (num_ends_++ % 2 == 0 || only_clients) clients_[end];
  }

  std::size_t num_connections() const { return clients_.size(); }
  // The profiles of the first `num` Sends over the last connection.
  Names first(std::size_t num) const {
    const Names& all = clients_.rbegin()->second;
    return {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(std::min(num, all.size()))};
  }
  const Names& last_connection() const { return clients_.rbegin()->second; }
  void clear() {
    clients_.clear();
    num_ends_ = 0;
  }

  bool only_clients = false;  // the server is not tapped

 private:
  static Octets octets_of(const verbs::SendWr& wr) {
    Octets octets;
    for (const verbs::Sge& sge : wr.sg_list) {
      const auto* at = reinterpret_cast<const std::uint8_t*>(sge.addr);
      octets.insert(octets.end(), at, at + sge.length);
    }
    return octets;
  }

  std::mutex mutex_;
  std::map<std::size_t, Names> clients_;
  std::size_t num_ends_ = 0;
};

// The client's program.
struct Answers : Service {
  void on_call(ServedCall call) override { client->reply(call.id, {}); }
  Client* client = nullptr;
};

struct NegotiationTest : World {
  std::unique_ptr<Client> client_of(const Names& names, ClientConfig config = {}) {
    config.protocols = protocols(names);
    config.known_servers = &known;
    // Where no test has another one, nothing is found by waiting: ClientNegotiationTest has the clock.
    if (config.first_answer_timeout == ClientConfig{}.first_answer_timeout) {
      config.first_answer_timeout = std::chrono::hours(1);
    }
    auto made = Client::connect(*client_device, server ? server->local_addr() : raw->listener->local_addr(), config);
    EXPECT_TRUE(made.ok()) << made.error().message;
    return std::move(*made);
  }
  void run_until_found(Client& client) {
    clients = {&client};
    run_until([&] { return client.state() != Client::State::kConnecting; });
  }
  // Calls of all forms, many at once: each has its Reply.
  void expect_all_works(Client& client) {
    const Octets data = pattern(20000);
    const Octets written = write_args(data.size());
    const Octets read = read_args(0, 20000);
    Octets room(data.size());
    std::size_t num_done = 0;
    const auto done = [&](const Reply& reply) {
      EXPECT_EQ(reply.status, CallStatus::kSuccess) << reply.text;
      ++num_done;
    };
    ASSERT_TRUE(client.call(write_call(written, data), done).ok());
    run_until([&] { return num_done == 1; });
    EXPECT_EQ(file.data, data);
    ASSERT_TRUE(client.call(read_call(read, room), done).ok());
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(client.call(null_call(), done).ok());
    run_until([&] { return num_done == 102; });
    EXPECT_EQ(room, data);
  }
  // The server calls the client.
  void expect_reverse_works(Client& client) {
    file.hold = true;
    ASSERT_TRUE(client.call(null_call(), [](const Reply&) {}).ok());
    run_until([&] { return !file.held.empty(); });
    std::vector<CallStatus> ended;
    ASSERT_TRUE(
        server->call(file.held[0].connection, null_call(), [&](const Reply& reply) { ended.push_back(reply.status); })
            .ok());
    run_until([&] { return !ended.empty(); });
    EXPECT_THAT(ended, ElementsAre(CallStatus::kSuccess));
    file.answer_held();
    run_until([&] { return client.num_outstanding() == 0; });
    file.hold = false;
  }

  KnownServers known;
  Answers answers;
  const ServedProgram reverse_programs[1] = {{&test_binding(), &answers}};
  const std::span<const ServedProgram> kNone;
  ClientCalls wire;
  std::unique_ptr<RawServer> raw;
};

const Names kAuto = {"2-wg07", "2-cel05", "1"};

// Without and with the reverse direction and transport properties.
constexpr std::pair<std::uint32_t, bool> kSettings[] = {{0, false}, {2, true}, {2, false}, {0, true}};

TEST_F(NegotiationTest, EveryPairFindsTheBestVersionOverOneConnection) {
  RecordProperty("proves", "R2-6.3-1 R2-8.2-2 W2-4.3.1-1 W2-4.3.2-2 W2-4.3.3-1");
  const struct {
    Names own, served, asked;  // asked: the last one is spoken then
  } cases[] = {
      {kAuto, {"1"}, {"2-wg07", "1"}},
      {kAuto, {"2-cel05"}, {"2-wg07", "2-cel05"}},
      {kAuto, {"2-wg07"}, {"2-wg07"}},
      {kAuto, {"2-cel05", "1"}, {"2-wg07", "2-cel05"}},
      {kAuto, {"1", "2-wg07"}, {"2-wg07"}},
      {kAuto, kAuto, {"2-wg07"}},
      {kAuto, {"1", "2-cel05", "2-wg07"}, {"2-wg07"}},
      {{"2-cel05", "2-wg07", "1"}, {"2-wg07"}, {"2-cel05", "2-wg07"}},
      {{"2-cel05", "2-wg07"}, {"2-wg07", "1"}, {"2-cel05", "2-wg07"}},
      {{"2-cel05", "1", "2-wg07"}, {"2-wg07", "1"}, {"2-cel05", "2-wg07"}},  // the server's draft goes first
      {{"2-cel05", "1"}, {"1"}, {"2-cel05", "1"}},
      {{"2-cel05", "1"}, {"2-wg07", "1"}, {"2-cel05", "1"}},
      {{"2-cel05", "1"}, kAuto, {"2-cel05"}},
      {{"2-wg07", "1"}, {"2-cel05", "1"}, {"2-wg07", "1"}},
      {{"2-wg07", "1"}, {"1"}, {"2-wg07", "1"}},
      {{"1", "2-cel05"}, {"2-cel05"}, {"1", "2-cel05"}},
      {{"1", "2-cel05"}, kAuto, {"1"}},
      {{"1", "2-cel05", "2-wg07"}, {"2-wg07"}, {"1", "2-cel05", "2-wg07"}},
      {{"1", "2-wg07", "2-cel05"}, {"2-cel05"}, {"1", "2-wg07", "2-cel05"}},
      // A client of one version asks nothing: its Calls are the first messages.
      {{"1"}, {"1"}, {"1"}},
      {{"1"}, kAuto, {"1"}},
      {{"2-cel05"}, {"2-cel05"}, {"2-cel05"}},
      {{"2-cel05"}, kAuto, {"2-cel05"}},
      {{"2-wg07"}, {"2-wg07"}, {"2-wg07"}},
      {{"2-wg07"}, kAuto, {"2-wg07"}},
  };
  for (const auto& [reverse_credits, properties] : kSettings) {
    for (const auto& [own, served, asked] : cases) {
      SCOPED_TRACE(::testing::PrintToString(own) + " and " + ::testing::PrintToString(served) +
                   (properties ? ", properties" : ""));
      listen({.protocols = protocols(served), .properties = properties, .reverse_credits = reverse_credits});
      wire.clear();
      known.forget(server->local_addr(), protocols(own));
      auto client = client_of(
          own, {.properties = properties, .reverse_programs = reverse_credits != 0 ? reverse_programs : kNone});
      answers.client = client.get();
      run_until_found(*client);
      ASSERT_EQ(client->state(), Client::State::kReady) << client->error();
      EXPECT_EQ(protocol_str(*client->protocol()), asked.back());
      expect_all_works(*client);
      // A client of wg07 is called once it has told that it serves Calls.
      const bool is_called = reverse_credits != 0 && (properties || asked.back() != "2-wg07");
      if (is_called) expect_reverse_works(*client);
      Names shown = asked;
      shown.push_back(asked.back());  // the first Call behind the answer
      EXPECT_EQ(wire.first(shown.size()), shown);
      EXPECT_EQ(wire.num_connections(), 1u);
      EXPECT_EQ(client->num_connections(), 1u);

      // The next client of the process asks for nothing else.
      auto other = client_of(own, {.properties = false});
      clients.push_back(other.get());
      run_until_ready(*other);
      expect_null_works(*other);
      EXPECT_EQ(wire.last_connection(), Names(own.size() == 1 ? 1 : 2, asked.back()));
      EXPECT_EQ(wire.num_connections(), 2u);
      clients.clear();
      client.reset();
      other.reset();
      server.reset();
    }
  }
}

TEST_F(NegotiationTest, WithoutACommonVersionTheClientSaysWhatTheServerSpeaks) {
  RecordProperty("proves", "W2-7.1.1-2");
  const struct {
    Names own, served;
    std::string text;
  } cases[] = {
      {{"2-wg07", "2-cel05"},
       {"1"},
       "the server speaks 1, and ClientConfig::protocols names 2-wg07,2-cel05; add 1 to it"},
      {{"2-cel05", "1"},
       {"2-wg07"},
       "the server speaks 2-wg07, and ClientConfig::protocols names 2-cel05,1; add 2-wg07 to it"},
      {{"1", "2-cel05"},
       {"2-wg07"},
       "the server speaks 2-wg07, and ClientConfig::protocols names 1,2-cel05; add 2-wg07 to it"},
      {{"2-wg07", "1"},
       {"2-cel05"},
       "the server speaks 2-cel05, and ClientConfig::protocols names 2-wg07,1; add 2-cel05 to it"},
  };
  for (const auto& [own, served, text] : cases) {
    listen({.protocols = protocols(served)});
    wire.clear();
    auto client = client_of(own);
    std::vector<CallStatus> ended;
    ASSERT_TRUE(client->call(null_call(), [&](const Reply& reply) { ended.push_back(reply.status); }).ok());
    run_until_found(*client);
    EXPECT_EQ(client->state(), Client::State::kClosed);
    EXPECT_EQ(client->error(), "cannot connect to " + address_str(server->local_addr()) +
                                   ": no version of RPC-over-RDMA in common: " + text);
    EXPECT_EQ(wire.num_connections(), 1u);
    EXPECT_THAT(ended, ElementsAre(CallStatus::kDisconnected));
    EXPECT_EQ(known.size(), 0u);
    clients.clear();
    client.reset();
    server.reset();
  }
}

// A server of one version alone is named by its refusal of the client's first Call, too. Reconnecting is off: the
// connection stays the only one.
TEST_F(NegotiationTest, AClientOfOneVersionAsksNothing) {
  const std::string field = "ClientConfig::protocols has the versions of this end";
  const struct {
    std::string own, served, text;
  } cases[] = {
      {"1", "2-cel05", "ERR_VERS: the peer speaks RPC-over-RDMA version 2; " + field},
      {"1", "2-wg07", "ERR_VERS: the peer speaks RPC-over-RDMA version 2; " + field},
      {"2-cel05", "1", "ERR_VERS: the peer speaks RPC-over-RDMA version 1; " + field},
      {"2-wg07", "1", "ERR_VERS: the peer speaks RPC-over-RDMA version 1; " + field},
      {"2-cel05", "2-wg07", "the peer speaks RPC-over-RDMA 2-wg07"},
      {"2-wg07", "2-cel05", "the peer speaks RPC-over-RDMA 2-cel05"},
  };
  for (const auto& [reverse_credits, properties] : kSettings) {
    for (const auto& [own, served, text] : cases) {
      SCOPED_TRACE(own + " to " + served + (properties ? ", properties" : ""));
      listen({.protocols = protocols({served}), .properties = properties, .reverse_credits = reverse_credits});
      wire.clear();
      auto client = client_of(
          {own}, {.properties = properties, .reverse_programs = reverse_credits != 0 ? reverse_programs : kNone});
      answers.client = client.get();
      run_until_found(*client);
      std::vector<std::pair<CallStatus, std::string>> ended;
      const auto keep = [&](const Reply& reply) { ended.emplace_back(reply.status, reply.text); };
      ASSERT_TRUE(client->call(null_call(), keep).ok());
      run_until([&] { return !ended.empty(); });
      EXPECT_THAT(ended, ElementsAre(Pair(CallStatus::kVersMismatch, text)));
      EXPECT_THAT(wire.last_connection(), ElementsAre(own));
      EXPECT_EQ(wire.num_connections(), 1u);
      EXPECT_EQ(client->num_connections(), 1u);
      EXPECT_EQ(known.size(), 0u);
      clients.clear();
      client.reset();
      server.reset();
    }
  }
}

// Servers on verbs alone.
struct NegotiationWithRawTest : NegotiationTest {
  NegotiationWithRawTest() {
    wire.only_clients = true;
    raw = std::make_unique<RawServer>(*server_device);
    also = [this] { turn(); };
  }
  // Each connection gets this many Receives, and an answer to each message if there is one.
  void turn() {
    raw->turn([this] {
      memory.assign(num_receives * kLen + kLen, 0);
      mr = std::move(*raw->pd->reg_mr(memory.data(), memory.size(), verbs::Access::kLocalWrite));
      for (std::size_t i = 0; i < num_receives; ++i) {
        const verbs::Sge sge = sge_of(i, kLen);
        EXPECT_TRUE(raw->qp->post_recv({.wr_id = i, .sg_list = {&sge, 1}}).ok());
      }
    });
    verbs::Wc wc[4];
    const int num = raw->cq->poll(wc);
    for (int i = 0; i < num; ++i) {
      if (wc[i].status == verbs::WcStatus::kSuccess && wc[i].opcode == verbs::WcOpcode::kRecv && answer) {
        send(answer(ConstBytes(memory).subspan(wc[i].wr_id * kLen, wc[i].byte_len)));
      }
    }
  }
  void send(const Octets& octets) {
    std::ranges::copy(octets, memory.begin() + static_cast<std::ptrdiff_t>(num_receives * kLen));
    const verbs::Sge sge = sge_of(num_receives, octets.size());
    EXPECT_TRUE(raw->qp->post_send({.sg_list = {&sge, 1}, .opcode = verbs::WrOpcode::kSend}).ok());
  }
  verbs::Sge sge_of(std::size_t i, std::size_t len) {
    return {reinterpret_cast<std::uint64_t>(memory.data() + i * kLen), static_cast<std::uint32_t>(len), mr->lkey()};
  }

  static constexpr std::size_t kLen = 4096;
  std::size_t num_receives = 8;
  std::function<Octets(ConstBytes)> answer;
  Octets memory;
  std::unique_ptr<verbs::Mr> mr;
};

TEST_F(NegotiationWithRawTest, ASilentServerGetsVersion1OverAnotherConnection) {
  RecordProperty("proves", "R2-8.2-4 W2-4.3.2-3");
  for (const Names& own : {kAuto, {"2-cel05", "1"}}) {
    wire.clear();
    auto client = client_of(own, {.first_answer_timeout = std::chrono::milliseconds(50)});
    run_until_found(*client);
    EXPECT_EQ(client->protocol(), Protocol::k1) << client->error();
    EXPECT_EQ(wire.num_connections(), 2u);
    EXPECT_THAT(wire.last_connection(), IsEmpty());
    clients.clear();
  }
}

// The Terminate for a Send without a Receive.
TEST_F(NegotiationWithRawTest, AServerThatHangsUpOnTheFirstMessageToo) {
  RecordProperty("proves", "R2-8.2-4 W2-4.3.2-3");
  num_receives = 0;
  for (const Names& own : {kAuto, {"2-cel05", "1"}}) {
    wire.clear();
    auto client = client_of(own);
    run_until_found(*client);
    EXPECT_EQ(client->protocol(), Protocol::k1) << client->error();
    EXPECT_EQ(wire.num_connections(), 2u);
    clients.clear();
  }
}

// RPC-over-RDMA version 1 of other implementations: the version word of ERR_VERS is either one.
TEST_F(NegotiationWithRawTest, ARefusalMayHaveEitherVersion) {
  for (const std::uint8_t version : Octets{1, 2}) {
    known.forget(raw->listener->local_addr(), protocols(kAuto));
    wire.clear();
    answer = [version](ConstBytes message) {
      Octets octets = *first_answer({&profile_of(Protocol::k1)}, message);
      octets[7] = message[7] == 1 ? 1 : version;
      return octets;
    };
    auto client = client_of(kAuto);
    run_until_found(*client);
    EXPECT_EQ(client->protocol(), Protocol::k1) << client->error();
    EXPECT_EQ(wire.num_connections(), 1u);
    EXPECT_THAT(wire.first(2), ElementsAre("2-wg07", "1"));
    clients.clear();
  }
}

TEST_F(NegotiationWithRawTest, RefusalsForEverEndTheClient) {
  const std::pair<std::uint32_t, std::uint32_t> ranges[] = {{0, 0xffffffff}, {7, 9}, {2, 1}};
  for (const auto& [low, high] : ranges) {
    std::size_t num_answers = 0;
    wire.clear();
    answer = [&, low = low, high = high](ConstBytes message) {
      ++num_answers;
      Octets octets(message.begin(), message.begin() + 8);
      xdr::XdrWriter out(octets);
      for (const std::uint32_t word : {32u, 4u, 1u, low, high}) out.u32(word);
      return octets;
    };
    auto client = client_of(kAuto);
    run_until_found(*client);
    EXPECT_EQ(client->state(), Client::State::kClosed);
    EXPECT_THAT(client->error(),
                HasSubstr("no version of RPC-over-RDMA in common: the server speaks " + std::to_string(low) + " to " +
                          std::to_string(high) +
                          (low == 0 ? ", and refuses " : ", and ClientConfig::protocols names ") + "2-wg07,2-cel05,1"));
    EXPECT_EQ(num_answers, low == 0 ? 3u : 1u);
    EXPECT_EQ(wire.num_connections(), 1u);
    clients.clear();
  }
}

}  // namespace
}  // namespace weft::rpcrdma::testing
