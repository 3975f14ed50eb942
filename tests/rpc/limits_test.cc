#include <netinet/in.h>

#include <set>

#include "tests/rpc/world.h"

// Bounds on the connections and the memory that one client, or all clients of one address, can keep from the others.
namespace weft::rpcrdma::testing {
namespace {

constexpr std::size_t kMib = std::size_t{1} << 20;

// A peer that connects from an address of its own choice and never says more.
class SilentPeer {
 public:
  SilentPeer(verbs::Device& device, const sockaddr_storage& to, const std::string& from)
      : pd_(std::move(*device.alloc_pd())),
        cq_(std::move(*device.create_cq(200, nullptr))),
        events_(std::move(*device.create_event_channel())),
        id_(std::move(*events_->create_id())) {
    sockaddr_storage source = loopback(0);
    EXPECT_EQ(inet_pton(AF_INET, from.c_str(), &reinterpret_cast<sockaddr_in&>(source).sin_addr), 1);
    EXPECT_TRUE(id_->bind_addr(source).ok());
    EXPECT_TRUE(id_->resolve_addr(to, std::chrono::seconds(5)).ok());
  }
  ~SilentPeer() { qp_.reset(); }

  void turn() {
    while (const auto event = events_->get_event()) {
      switch (event->type) {
        case verbs::CmEventType::kAddrResolved: EXPECT_TRUE(id_->resolve_route(std::chrono::seconds(5)).ok()); break;
        case verbs::CmEventType::kRouteResolved: {
          verbs::QpInitAttr attr;
          attr.send_cq = attr.recv_cq = cq_.get();
          qp_ = std::move(*id_->create_qp(*pd_, attr));
          EXPECT_TRUE(id_->connect({}).ok());
          break;
        }
        case verbs::CmEventType::kEstablished: is_open_ = true; break;
        case verbs::CmEventType::kRejected:
        case verbs::CmEventType::kUnreachable:
        case verbs::CmEventType::kConnectError:
        case verbs::CmEventType::kDisconnected:
          is_open_ = false;
          is_over_ = true;
          break;
        default: break;
      }
    }
  }
  bool is_open() const { return is_open_; }
  bool is_over() const { return is_over_; }

 private:
  std::unique_ptr<verbs::Pd> pd_;
  std::unique_ptr<verbs::Cq> cq_;
  std::unique_ptr<verbs::CmChannel> events_;
  std::unique_ptr<verbs::CmId> id_;
  std::unique_ptr<verbs::Qp> qp_;
  bool is_open_ = false;
  bool is_over_ = false;
};

struct LimitsTest : World {
  LimitsTest() {
    also = [this] {
      client_device->process(Clock::now());
      for (auto& peer : silent) peer->turn();
    };
  }
  ~LimitsTest() override {
    clients.clear();
    silent.clear();
  }
  // Another silent peer, once the server has answered it.
  SilentPeer& open_silent(const std::string& from) {
    silent.push_back(std::make_unique<SilentPeer>(*client_device, server->local_addr(), from));
    SilentPeer& peer = *silent.back();
    run_until([&] { return peer.is_open() || peer.is_over(); });
    return peer;
  }
  Client& open_client(ClientConfig config = {}) {
    open.push_back(connect(config));
    clients.push_back(open.back().get());
    run_until_ready(*open.back());
    return *open.back();
  }
  std::size_t num_silent_open() const {
    return static_cast<std::size_t>(std::ranges::count_if(silent, [](const auto& peer) { return peer->is_open(); }));
  }
  void start_read(Client& client, std::vector<Octets>& rooms, std::size_t len, std::size_t& num_ended) {
    static const Octets args = read_args(0, 1000);
    rooms.emplace_back(len);
    ASSERT_TRUE(client.call(read_call(args, rooms.back()), [&num_ended](const Reply&) { ++num_ended; }).ok());
  }

  std::vector<std::unique_ptr<SilentPeer>> silent;
  std::vector<std::unique_ptr<Client>> open;
};

// The server is full of connections of one address that never made a Call: each newcomer takes the place of one.
TEST_F(LimitsTest, SilentConnectionsGiveWayToClientsOfTheirAddress) {
  listen({.max_connections = 8});
  for (int i = 0; i < 30; ++i) open_silent("127.0.0.1");
  EXPECT_LE(server->num_connections(), 8u);
  Client &one = open_client(), &two = open_client();
  // The connections with Calls stay. Here they never rest for a second, however slow the machine is.
  for (int i = 0; i < 30; ++i) {
    expect_null_works(one);
    expect_null_works(two);
    open_silent("127.0.0.1");
  }
  expect_null_works(one);
  expect_null_works(two);
  EXPECT_LE(server->num_connections(), 8u);
}

TEST_F(LimitsTest, AnAddressThatFillsItsPartTakesNobodyElsesPlace) {
  listen({.max_connections = 8});
  Client& client = open_client();
  expect_null_works(client);
  for (int i = 0; i < 60; ++i) open_silent(i % 2 == 0 ? "127.0.0.2" : "127.0.0.3");
  EXPECT_LE(server->num_connections(), 8u);
  expect_null_works(client);
  // One more connection finds a place: the address with the most connections gives it up.
  Client& another = open_client();
  expect_null_works(another);
  expect_null_works(client);
}

// Without silent ones the one goes that was silent longest.
TEST_F(LimitsTest, TheClientThatWasSilentLongestGivesWay) {
  listen({.max_connections = 4, .max_connections_per_client = 4});
  for (int i = 0; i < 4; ++i) expect_null_works(open_client());
  expect_null_works(*open[0]);
  Client& another = open_client();
  expect_null_works(another);
  run_until([&] { return open[1]->state() == Client::State::kClosed; });
  for (const std::size_t i : {0u, 2u, 3u}) expect_null_works(*open[i]);
}

// On a device that moves by itself (workers), the queue pairs of ended connections are kept for a tenth of a second.
TEST_F(LimitsTest, ConnectionsThatEndTogetherTakeNoPlaceOfOthers) {
  listen();
  for (int i = 0; i < 100; ++i) open_silent("127.0.0.2");
  ASSERT_EQ(server->num_connections(), 100u);
  silent.clear();
  run_until([&] { return server->num_connections() == 0; });
  EXPECT_TRUE(open_silent("127.0.0.3").is_open());
  EXPECT_TRUE(open_silent("127.0.0.2").is_open()) << "its own part has room for them";
}

// A client whose connection ends sends its Call again.
TEST_F(LimitsTest, WhereAllAreBusyANewcomerIsServed) {
  listen({.max_connections = 3, .max_connections_per_client = 3});
  file.data = pattern(1000);
  std::vector<Octets> rooms;
  std::size_t num_ended = 0;
  file.hold = true;
  for (int i = 0; i < 3; ++i) start_read(open_client(), rooms, 1000, num_ended);
  run_until([&] { return file.held.size() == 3; });
  EXPECT_TRUE(open_silent("127.0.0.1").is_open());
  EXPECT_EQ(server->num_connections(), 3u);
  run_until([&] { return num_ended == 1; });
  file.hold = false;
  file.answer_held();
  run_until([&] { return num_ended == 3; });
}

// Forty connections of one address, each with Calls of a few hundred bytes that may hold megabytes. A neighbour of the
// same address has its small Calls served while all of these are held.
TEST_F(LimitsTest, CallsThatMayHoldMegabytesHoldUpNoSmallOnes) {
  listen();
  file.data = pattern(5000);
  std::vector<Octets> rooms;
  rooms.reserve(200);
  std::size_t num_ended = 0;
  file.hold = true;
  for (int i = 0; i < 40; ++i) {
    Client& client = open_client({.credits = 8});
    for (int j = 0; j < 4; ++j) start_read(client, rooms, 4 * kMib, num_ended);
  }
  std::size_t num_before = 0;
  run_until([&] { return std::exchange(num_before, file.held.size()) == file.held.size() && num_before >= 8; });
  EXPECT_LT(file.held.size(), 40u) << "the limit is not reached";
  file.hold = false;
  Client& neighbour = open_client();
  for (int i = 0; i < 20; ++i) expect_null_works(neighbour);
  Octets room(5000);
  bool done = false;
  const Octets args = read_args(0, 5000);
  ASSERT_TRUE(neighbour
                  .call(read_call(args, room),
                        [&](const Reply& reply) {
                          EXPECT_EQ(reply.status, CallStatus::kSuccess) << reply.text;
                          done = true;
                        })
                  .ok());
  run_until([&] { return done; });
  EXPECT_EQ(room, file.data);
  EXPECT_EQ(num_ended, 0u);
  file.answer_held();
  run_until([&] { return num_ended == 160; });
}

// A Call that waits for memory ends with its connection. A device with workers keeps the queue pair for a while longer.
TEST_F(LimitsTest, ACallThatWaitsForMemoryEndsWithItsConnection) {
  listen({.max_call = 64 << 10, .max_item = kMib, .max_buffered = 3 * kMib + kMib / 4});
  file.data = pattern(1000);
  std::vector<Octets> rooms;
  rooms.reserve(2);
  std::size_t num_ended = 0, num_given_up = 0;
  Client &first = open_client(), &leaver = open_client();
  expect_null_works(leaver);  // now it has credits for two
  file.hold = true;
  start_read(first, rooms, kMib, num_ended);
  run_until([&] { return file.held.size() == 1; });
  start_read(leaver, rooms, kMib, num_given_up);
  ASSERT_TRUE(leaver.call(null_call(), [&](const Reply&) { ++num_given_up; }).ok());
  run_until([&] { return file.held.size() == 2; });
  ASSERT_EQ(file.held.at(1).procedure, kNull) << "it passes the READ, which has to wait";
  clients.pop_back();
  open.pop_back();
  EXPECT_EQ(num_given_up, 2u);
  run_until([&] { return server->num_connections() == 1; });
  file.hold = false;
  file.answer_held();
  run_until([&] { return num_ended == 1; });
  expect_null_works(first);
  EXPECT_EQ(file.num_calls, 4u) << "all but the READ that waited";
}

// Clients ask for much, and leave before it comes. The memory is given back, with polling and with workers.
TEST_F(LimitsTest, MemoryIsFlatAfterClientsThatLeave) {
  listen();
  file.data = pattern(4 * kMib);
  const Octets args = read_args(0, static_cast<std::uint32_t>(file.data.size()));
  std::set<std::size_t> after;
  std::size_t most = 0;
  also = [&] { most = std::max(most, server->buffers().registered()); };
  for (int storm = 0; storm < 3; ++storm) {
    for (int i = 0; i < 16; ++i) {
      auto client = connect({.credits = 8});
      clients = {client.get()};
      run_until_ready(*client);
      std::vector<Octets> rooms(4, Octets(file.data.size()));
      const std::size_t before = file.num_calls;
      for (Octets& room : rooms) ASSERT_TRUE(client->call(read_call(args, room), [](const Reply&) {}).ok());
      run_until([&] { return file.num_calls > before; });
      clients.clear();
      client.reset();
    }
    run_until([&] { return server->num_connections() == 0 && server->buffers().in_use() == 0; });
    EXPECT_GE(most, 4 * kMib);
    // Memory that was kept and not used since goes in two rounds.
    const auto later = Clock::now() + std::chrono::seconds(100 * (storm + 1));
    for (int s = 2; s < 8; s += 2) server->process(later + std::chrono::seconds(s));
    after.insert(server->buffers().registered());
    EXPECT_EQ(server->memory().sends, 0u);
  }
  EXPECT_EQ(after, std::set<std::size_t>{0});
  also = nullptr;
}

}  // namespace
}  // namespace weft::rpcrdma::testing
