// The endpoint over loopback, with clients that behave badly.
#include "apps/metrics/metrics_endpoint.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"

namespace weft::metrics {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kGet = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";

// TcpClient is a raw client, with blocking calls.
class TcpClient {
 public:
  explicit TcpClient(const sockaddr_storage& to, in_addr_t from = INADDR_LOOPBACK)
      : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in source{};
    source.sin_family = AF_INET;
    source.sin_addr.s_addr = htonl(from);
    EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&source), sizeof source), 0);
    EXPECT_EQ(::connect(fd_.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(sockaddr_in)), 0);
  }
  void send(const std::string& text) { (void)::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL); }
  // Reads to the end, which a reset also is.
  std::string read_all() {
    std::string text;
    std::array<char, 65536> room;
    for (ssize_t num = 0; (num = ::recv(fd_.get(), room.data(), room.size(), 0)) > 0;) {
      text.append(room.data(), static_cast<std::size_t>(num));
    }
    return text;
  }

 private:
  Fd fd_;
};

struct MetricsEndpointTest : ::testing::Test {
  MetricsEndpointTest() {
    config.program = "serve";
    config.snapshot_every = std::chrono::milliseconds(1);
    auto& listen = reinterpret_cast<sockaddr_in&>(config.listen);
    listen.sin_family = AF_INET;
    listen.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  }
  ~MetricsEndpointTest() override { stop_loop(); }

  void start() {
    auto made = MetricsEndpoint::start(config);
    ASSERT_TRUE(made.ok()) << made.status();
    endpoint = std::move(*made);
  }
  // The loop of a program that has served `num_snapshots` snapshots.
  void start_loop() {
    loop = std::thread([this] {
      while (!stop) {
        pollfd polled{.fd = endpoint->fd(), .events = POLLIN, .revents = 0};
        ::poll(&polled, 1, 10);
        if (!endpoint->is_wanted()) continue;
        Snapshot snapshot;
        snapshot.num_clients = ++num_snapshots;
        endpoint->deliver(std::move(snapshot));
      }
    });
  }
  void stop_loop() {
    stop = true;
    if (loop.joinable()) loop.join();
  }
  std::string ask(const std::string& request) {
    TcpClient client(endpoint->local_addr());
    client.send(request);
    return client.read_all();
  }

  EndpointConfig config;
  std::unique_ptr<MetricsEndpoint> endpoint;
  std::thread loop;
  std::atomic<bool> stop{false};
  std::atomic<std::size_t> num_snapshots{0};
};

TEST_F(MetricsEndpointTest, AnswersWithASnapshotThatWasMadeForTheRequest) {
  start();
  start_loop();
  const std::string first = ask(kGet);
  EXPECT_THAT(first, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(first, HasSubstr("Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n"));
  EXPECT_THAT(first, AllOf(HasSubstr("\nweft_clients 1\n"), ::testing::EndsWith("# EOF\n")));
  EXPECT_THAT(ask(kGet), HasSubstr("\nweft_clients 2\n"));
  EXPECT_THAT(ask("GET /metrics?name=x HTTP/1.0\r\n\r\n"), HasSubstr("\nweft_clients 3\n"));
}

TEST_F(MetricsEndpointTest, RequestsThatComeTogetherShareASnapshot) {
  start();
  std::vector<std::unique_ptr<TcpClient>> clients;
  for (int i = 0; i < 5; ++i) {
    clients.push_back(std::make_unique<TcpClient>(endpoint->local_addr()));
    clients.back()->send(kGet);
  }
  // The endpoint refuses this request after it has seen all others.
  EXPECT_THAT(ask("GET / HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 404"));
  start_loop();
  for (const auto& client : clients) EXPECT_THAT(client->read_all(), HasSubstr("# EOF\n"));
  EXPECT_LE(num_snapshots, 2u);
}

TEST_F(MetricsEndpointTest, HasOnlyGetMetrics) {
  start();
  EXPECT_THAT(ask("GET / HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(ask("GET /metrics/x HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(ask("POST / HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(ask("HEAD / HTTP/1.1\r\n\r\n"), AllOf(StartsWith("HTTP/1.1 404 "), EndsWith("\r\n\r\n")));
  for (const char* method : {"POST", "PUT", "DELETE", "HEAD", "OPTIONS"}) {
    const std::string answer = ask(std::string(method) + " /metrics HTTP/1.1\r\nContent-Length: 0\r\n\r\n");
    EXPECT_THAT(answer, AllOf(StartsWith("HTTP/1.1 405 "), HasSubstr("Allow: GET\r\n"))) << method;
  }
  EXPECT_FALSE(endpoint->is_wanted()) << "none of these needs a snapshot";
}

TEST_F(MetricsEndpointTest, RefusesWhatIsNoRequest) {
  start();
  EXPECT_THAT(ask("hello\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(ask(std::string("\0\xff\x01\r\n\r\n", 7)), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(ask("GET /" + std::string(config.max_request, 'x')), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(ask("GET /metrics HTTP/1.1\r\nA: " + std::string(config.max_request, 'x')), StartsWith("HTTP/1.1 400 "));
}

TEST_F(MetricsEndpointTest, EndsAClientThatSendsItsRequestTooSlowly) {
  config.request_time = std::chrono::milliseconds(1);
  start();
  TcpClient silent(endpoint->local_addr()), slow(endpoint->local_addr());
  slow.send("GET /met");
  EXPECT_EQ(silent.read_all(), "");
  EXPECT_EQ(slow.read_all(), "");
}

TEST_F(MetricsEndpointTest, SaysSoIfTheProgramGivesNoSnapshot) {
  config.snapshot_time = std::chrono::milliseconds(1);
  start();
  EXPECT_THAT(ask(kGet), StartsWith("HTTP/1.1 503 "));
  EXPECT_TRUE(endpoint->is_wanted());
  start_loop();
  std::string answer;
  for (int i = 0; i < 10'000 && !answer.starts_with("HTTP/1.1 200 "); ++i) answer = ask(kGet);
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 "));
}

TEST_F(MetricsEndpointTest, SilentClientsMakePlaceForOthers) {
  config.request_time = std::chrono::hours(1);
  start();
  start_loop();
  std::vector<std::unique_ptr<TcpClient>> silent;
  for (std::size_t i = 0; i < 4 * config.max_connections; ++i) {
    silent.push_back(std::make_unique<TcpClient>(endpoint->local_addr()));
  }
  EXPECT_THAT(ask(kGet), StartsWith("HTTP/1.1 200 "));
  EXPECT_EQ(silent.front()->read_all(), "");
}

// Clients that wait for their answer stay, and silent ones make place.
TEST_F(MetricsEndpointTest, WhoHasAskedIsAnsweredBesideSilentClients) {
  config.request_time = std::chrono::hours(1);
  start();
  std::vector<std::unique_ptr<TcpClient>> asking, silent;
  for (std::size_t i = 0; i < config.max_per_address - 1; ++i) {
    asking.push_back(std::make_unique<TcpClient>(endpoint->local_addr()));
    asking.back()->send(kGet);
  }
  // Behind this answer the server has read what was sent before.
  EXPECT_THAT(ask("GET /other HTTP/1.1\r\nHost: localhost\r\n\r\n"), StartsWith("HTTP/1.1 404 "));
  for (std::size_t i = 0; i < 2 * config.max_connections; ++i) {
    silent.push_back(std::make_unique<TcpClient>(endpoint->local_addr()));
  }
  EXPECT_EQ(silent.front()->read_all(), "");
  start_loop();
  for (const auto& client : asking) EXPECT_THAT(client->read_all(), StartsWith("HTTP/1.1 200 "));
}

// Two addresses that fill all places, with requests or without, take them from each other.
TEST_F(MetricsEndpointTest, TwoAddressesTogetherEndNoConnectionOfAThird) {
  config.request_time = config.snapshot_time = std::chrono::hours(1);
  for (const bool others_ask : {false, true}) {
    start();
    TcpClient third(endpoint->local_addr(), INADDR_LOOPBACK + 3);
    std::vector<std::unique_ptr<TcpClient>> others;
    for (std::size_t i = 0; i < 4 * config.max_connections; ++i) {
      others.push_back(std::make_unique<TcpClient>(endpoint->local_addr(), INADDR_LOOPBACK + 1 + i % 2));
      if (others_ask) others.back()->send(kGet);
    }
    // One connection of the first two addresses ended for each newcomer, also after all had asked.
    EXPECT_EQ(others.front()->read_all(), "");
    start_loop();
    third.send(kGet);
    EXPECT_THAT(third.read_all(), StartsWith("HTTP/1.1 200 ")) << others_ask;
    stop_loop();
    stop = false;
  }
}

TEST_F(MetricsEndpointTest, TheTargetMayBeAWholeUrl) {
  start();
  start_loop();
  EXPECT_THAT(ask("GET http://localhost:9450/metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"),
              StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(ask("GET http://localhost HTTP/1.1\r\nHost: localhost\r\n\r\n"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(ask("POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000000\r\n\r\n"),
              StartsWith("HTTP/1.1 405 "));
}

// The end of a client must not touch the snapshot that others wait for.
TEST_F(MetricsEndpointTest, ClientsMayGoAtAnyTime) {
  start();
  for (int i = 0; i < 50; ++i) {
    TcpClient client(endpoint->local_addr());
    client.send(i % 2 == 0 ? kGet : "GET /metr");
  }
  start_loop();
  EXPECT_THAT(ask(kGet), StartsWith("HTTP/1.1 200 "));
}

TEST_F(MetricsEndpointTest, EndsWithClientsThatWait) {
  start();
  TcpClient client(endpoint->local_addr());
  client.send(kGet);
  while (!endpoint->is_wanted()) std::this_thread::yield();
  endpoint.reset();
  EXPECT_EQ(client.read_all(), "");
}

TEST_F(MetricsEndpointTest, AnAddressInUseIsAnErrorThatNamesTheOption) {
  start();
  EndpointConfig same = config;
  same.listen = endpoint->local_addr();
  const auto second = MetricsEndpoint::start(same);
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("choose another --metrics"));
}

// The endpoint ends each connection first, so they stay in TIME_WAIT at its port for a minute.
TEST_F(MetricsEndpointTest, ThePortIsFreeAgainAtOnce) {
  start();
  EXPECT_THAT(ask("GET / HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 404 "));
  config.listen = endpoint->local_addr();
  endpoint.reset();
  start();
  ASSERT_TRUE(endpoint);
  EXPECT_THAT(ask("GET / HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 404 "));
}

}  // namespace
}  // namespace weft::metrics
