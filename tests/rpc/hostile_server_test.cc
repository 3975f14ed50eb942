// A client of a hostile server: its words to its user when the connection ends.
#include <sys/socket.h>
#include <unistd.h>

#include "tests/rpc/raw_server.h"

namespace weft::rpcrdma::testing {
namespace {

struct HostileServerTest : World {
  // A peer that accepts every connection and posts no Receive, so that the first Call ends the connection.
  void listen_raw() {
    raw = std::make_unique<RawServer>(*server_device);
    also = [this] { raw->turn(); };
  }

  std::unique_ptr<RawServer> raw;
};

TEST_F(HostileServerTest, ATerminateReachesTheUserInWords) {
  listen_raw();
  auto made = Client::connect(*client_device, raw->listener->local_addr(), {});
  ASSERT_TRUE(made.ok());
  const std::unique_ptr<Client> client = std::move(*made);
  clients = {client.get()};
  run_until_ready(*client);
  std::string text;
  ASSERT_TRUE(client->call(null_call(), [&](const Reply& reply) { text = reply.text; }).ok());
  run_until([&] { return client->state() == Client::State::kClosed; });
  for (const std::string& said : {client->error(), text}) {
    for (const char* part : {"received a Terminate: DDP: ", "(1/2/02)", "a Send: queue 0 MSN 1",
                             "Likely cause: ", "ClientConfig::credits"}) {
      EXPECT_NE(said.find(part), std::string::npos) << part << ": " << said;
    }
    EXPECT_EQ(said.find('\n'), std::string::npos) << said;
  }
  clients.clear();
}

// The test itself as a peer: it accepts, answers the first octets of Full Operation with a Terminate, and never closes.
TEST_F(HostileServerTest, APeerThatNeverClosesHidesNoReason) {
  verbs::SoftConfig config;
  config.crc = false;
  client_device = verbs::testing::tapped(std::move(*verbs::open_soft_device(config)));
  const int listening = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_storage addr = loopback(0);
  socklen_t len = sizeof(sockaddr_in);
  ASSERT_EQ(::bind(listening, reinterpret_cast<const sockaddr*>(&addr), len), 0);
  ASSERT_EQ(::listen(listening, 1), 0);
  ASSERT_EQ(::getsockname(listening, reinterpret_cast<sockaddr*>(&addr), &len), 0);
  auto made = Client::connect(*client_device, addr, {});
  ASSERT_TRUE(made.ok());
  const std::unique_ptr<Client> client = std::move(*made);
  clients = {client.get()};

  int fd = -1;
  run_until([&] { return (fd = ::accept4(listening, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0; });
  const auto heard = [fd] {
    char octets[4096];
    return ::recv(fd, octets, sizeof(octets), 0) > 0;
  };
  const auto say = [fd](const Octets& octets) {
    EXPECT_EQ(::send(fd, octets.data(), octets.size(), MSG_NOSIGNAL), static_cast<ssize_t>(octets.size()));
  };
  run_until(heard);
  Octets reply = {'M', 'P', 'A', ' ', 'I', 'D', ' ', 'R', 'e', 'p', ' ', 'F', 'r', 'a', 'm', 'e', 0x10, 2, 0, 4};
  reply.insert(reply.end(), {0, 16, 0, 16});
  say(reply);
  run_until_ready(*client);
  ASSERT_TRUE(client->call(null_call(), [](const Reply&) {}).ok());
  run_until(heard);
  // Its ULPDU of 22 octets: queue 2, MSN 1, "remote operation: catastrophic error, global"; no pad, an unused CRC.
  say({0, 22, 0x41, 0x47, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0x02, 0x08, 0, 0, 0, 0, 0, 0});

  run_until([&] { return client->state() == Client::State::kClosed; });
  EXPECT_NE(client->error().find("(0/2/08)"), std::string::npos) << client->error();
  clients.clear();
  ::close(fd);
  ::close(listening);
}

}  // namespace
}  // namespace weft::rpcrdma::testing
