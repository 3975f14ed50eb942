#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "rpcrdma/client.h"
#include "rpcrdma/profiles.h"
#include "rpcrdma/server.h"
#include "rpcrdma/testing/engines.h"
#include "rpcrdma/testing/protocol_under_test.h"
#include "verbs-shim/soft/device.h"

// A server and clients over soft RNICs on 127.0.0.1, all in one thread and driven by their descriptors. With
// WEFT_WORKERS=N in the environment the devices have N workers.
namespace weft::rpcrdma::testing {

using Clock = std::chrono::steady_clock;

inline sockaddr_storage loopback(std::uint16_t port) {
  sockaddr_storage storage{};
  auto* addr = reinterpret_cast<sockaddr_in*>(&storage);
  addr->sin_family = AF_INET;
  addr->sin_port = htons(port);
  addr->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return storage;
}

Octets read_args(std::uint32_t offset, std::uint32_t len);

// A file in memory behind READ and WRITE; answers at once unless told to hold.
class MemoryFile : public Service {
 public:
  void on_call(ServedCall call) override;
  void answer_held();

  Server* server = nullptr;
  Octets data;
  bool hold = false;
  std::size_t listing = 10000;  // octets of the results of READDIR
  std::size_t num_calls = 0;
  std::size_t num_without_buffer = 0;
  std::vector<ServedCall> held;

 private:
  ServedReply serve(ServedCall& call);
};

struct World : ::testing::Test {
  World();
  ~World() override;

  // The profile of every connection.
  static const Profile& profile();

  void listen(ServerConfig config = {});
  std::unique_ptr<Client> connect(ClientConfig config = {});
  // Drives everything until `done`; fails the test after ten seconds.
  void run_until(const std::function<bool()>& done);
  void run_until_ready(const Client& client) {
    run_until([&] { return client.state() != Client::State::kConnecting; });
    ASSERT_EQ(client.state(), Client::State::kReady) << client.error();
  }
  static CallSpec null_call() { return call_of(test_binding()); }
  // READ into `room`, WRITE of `data`.
  static CallSpec read_call(ConstBytes args, MutBytes room);
  static CallSpec write_call(ConstBytes args, ConstBytes data);
  void expect_null_works(Client& client);

  std::unique_ptr<verbs::Device> server_device;
  std::unique_ptr<verbs::Device> client_device;
  MemoryFile file;
  std::vector<ServedProgram> programs;
  std::unique_ptr<Server> server;
  std::vector<Client*> clients;  // to be driven
  std::function<void()> also;    // to be run at every turn
};

}  // namespace weft::rpcrdma::testing
