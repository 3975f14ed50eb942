#include "rpcrdma/known_servers.h"

#include <gtest/gtest.h>
#include <netinet/in.h>

#include <initializer_list>
#include <thread>
#include <vector>

#include "rpcrdma/testing/engines.h"

namespace weft::rpcrdma::testing {
namespace {

using std::chrono::milliseconds;
using Protocols = std::vector<Protocol>;

sockaddr_storage address(std::uint16_t port) {
  sockaddr_storage storage{};
  auto* addr = reinterpret_cast<sockaddr_in*>(&storage);
  addr->sin_family = AF_INET;
  addr->sin_port = htons(port);
  addr->sin_addr.s_addr = htonl(0xc0000201);
  return storage;
}

const Protocols kBoth = {Protocol::k2Cel05, Protocol::k1};

TEST(KnownServers, AServerIsKnownForItsTime) {
  KnownServers servers({.lifetime = milliseconds(100)});
  EXPECT_EQ(servers.find(address(1), kBoth, at(0)), std::nullopt);
  servers.learn(address(1), kBoth, Protocol::k1, at(0));
  EXPECT_EQ(servers.find(address(1), kBoth, at(99)), Protocol::k1);
  EXPECT_EQ(servers.find(address(1), kBoth, at(100)), std::nullopt);
  servers.learn(address(1), kBoth, Protocol::k2Cel05, at(100));
  EXPECT_EQ(servers.find(address(1), kBoth, at(199)), Protocol::k2Cel05);
  servers.forget(address(1), kBoth);
  EXPECT_EQ(servers.find(address(1), kBoth, at(199)), std::nullopt);
}

// A connection in the known version does not prove that the server has no better one by now.
TEST(KnownServers, UseDoesNotProlongTheTime) {
  KnownServers servers({.lifetime = std::chrono::milliseconds(100)});
  servers.learn(address(1), kBoth, Protocol::k1, at(0));
  for (const int ms : {50, 99}) servers.learn(address(1), kBoth, Protocol::k1, at(ms));
  EXPECT_EQ(servers.find(address(1), kBoth, at(99)), Protocol::k1);
  EXPECT_EQ(servers.find(address(1), kBoth, at(100)), std::nullopt);
  servers.learn(address(1), kBoth, Protocol::k1, at(100));
  EXPECT_EQ(servers.find(address(1), kBoth, at(199)), Protocol::k1) << "learnt anew";
  servers.learn(address(1), kBoth, Protocol::k2Cel05, at(150));
  EXPECT_EQ(servers.find(address(1), kBoth, at(249)), Protocol::k2Cel05) << "another version";
}

// Silence may have had another reason.
TEST(KnownServers, ALastResortIsRememberedForAShorterTime) {
  KnownServers servers({.lifetime = std::chrono::milliseconds(100), .short_lifetime = std::chrono::milliseconds(20)});
  servers.learn(address(1), kBoth, Protocol::k1, at(0), KnownServers::Learnt::kBySilence);
  EXPECT_EQ(servers.find(address(1), kBoth, at(19)), Protocol::k1);
  EXPECT_EQ(servers.find(address(1), kBoth, at(20)), std::nullopt);
}

TEST(KnownServers, OtherPortsAndOtherClientsAreOthers) {
  KnownServers servers;
  servers.learn(address(1), kBoth, Protocol::k1, at(0));
  EXPECT_EQ(servers.find(address(2), kBoth, at(0)), std::nullopt);
  EXPECT_EQ(servers.find(address(1), Protocols{Protocol::k1, Protocol::k2Cel05}, at(0)), std::nullopt);
  servers.forget(address(2), kBoth);
  EXPECT_EQ(servers.find(address(1), kBoth, at(0)), Protocol::k1);
}

TEST(KnownServers, TheOldestGivesWay) {
  KnownServers servers({.max_servers = 3});
  for (const std::uint16_t port : std::initializer_list<std::uint16_t>{5, 3, 9})
    servers.learn(address(port), kBoth, Protocol::k1, at(port));
  servers.learn(address(9), kBoth, Protocol::k2Cel05, at(10));  // known already
  EXPECT_EQ(servers.find(address(3), kBoth, at(10)), Protocol::k1);
  servers.learn(address(4), kBoth, Protocol::k1, at(10));
  EXPECT_EQ(servers.size(), 3u);
  EXPECT_EQ(servers.find(address(3), kBoth, at(10)), std::nullopt);
  EXPECT_EQ(servers.find(address(5), kBoth, at(10)), Protocol::k1);
}

TEST(KnownServers, TakesAllThreads) {
  KnownServers servers({.max_servers = 50});
  const auto work = [&servers](std::uint16_t from) {
    for (std::uint16_t port = from; port < from + 200; ++port) {
      servers.learn(address(port), kBoth, Protocol::k1, at(port));
      (void)servers.find(address(port), kBoth, at(port));
      if (port % 3 == 0) servers.forget(address(port), kBoth);
    }
  };
  std::vector<std::thread> threads;
  for (const std::uint16_t from : std::initializer_list<std::uint16_t>{1, 100, 1000}) threads.emplace_back(work, from);
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(servers.size(), 50u);
}

TEST(KnownServers, AProcessHasOne) {
  EXPECT_EQ(&KnownServers::of_process(), &KnownServers::of_process());
}

}  // namespace
}  // namespace weft::rpcrdma::testing
