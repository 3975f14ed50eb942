// The places of a Server's connections: a full server, and a client that comes.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <string>
#include <vector>

#include "rpcrdma/server.h"
#include "rpcrdma/testing/engines.h"
#include "rpcrdma/testing/fake_device.h"
#include "rpcrdma/testing/log_lines.h"
#include "rpcrdma/testing/vectors.h"
#include "rpcrdma/xdr/xdr.h"

namespace weft::rpcrdma::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct ServerPlacesTest : ::testing::Test {
  void open(ServerConfig config) {
    auto made = Server::listen(device, sockaddr_storage{}, programs, config);
    ASSERT_TRUE(made.ok()) << made.error().message;
    server = std::move(*made);
  }
  ~ServerPlacesTest() override {
    service.calls.clear();
    server.reset();
  }
  void run() {
    for (int i = 0; i < 3; ++i) server->process(at(now_ms));
  }
  void connect(const std::string& from) {
    sockaddr_storage peer{};
    auto& in = reinterpret_cast<sockaddr_in&>(peer);
    in.sin_family = AF_INET;
    ASSERT_EQ(inet_pton(AF_INET, from.c_str(), &in.sin_addr), 1);
    device.ask(peer);
    run();
  }
  // A Call of the client that connected last. The service keeps it, or answers it.
  void call(bool is_answered) {
    service.answer =
        is_answered ? [this](ServedCall& one) { server->reply(one.id, {}); } : std::function<void(ServedCall&)>();
    ASSERT_TRUE(device.qp().inject(load_vector("V01").octets));
    run();
  }
  void connect_busy(const std::string& from, int num = 1) {
    for (int i = 0; i < num; ++i) {
      connect(from);
      call(false);
    }
  }
  void connect_resting(const std::string& from, int num = 1) {
    for (int i = 0; i < num; ++i) {
      connect(from);
      call(true);
    }
  }
  std::size_t num_of(const std::string& address) const {
    const auto statistics = server->statistics();
    return static_cast<std::size_t>(std::ranges::count(statistics.connections, address, &ConnectionStatistics::client));
  }
  std::uint64_t num_refused() const { return server->statistics().no_place; }
  std::size_t num_busy() const {
    const auto statistics = server->statistics();
    return static_cast<std::size_t>(
        std::ranges::count_if(statistics.connections, [](const auto& one) { return one.under_way != 0; }));
  }

  LogLines lines;
  int now_ms = 0;
  FakeMemory memory;
  FakeDevice device{memory};
  TestService service;
  std::vector<ServedProgram> programs{{&test_binding(), &service}};
  std::unique_ptr<Server> server;
};

TEST_F(ServerPlacesTest, TwoAddressesWithCallsUnderWayLockNobodyOut) {
  open({.max_connections = 16});
  connect_busy("192.0.2.1", 12);
  connect_busy("192.0.2.2", 4);
  for (int i = 0; i < 14; ++i) connect_busy("192.0.2." + std::to_string(100 + i));
  EXPECT_EQ(server->num_connections(), 16u);
  EXPECT_EQ(num_refused(), 0u);
  for (int i = 0; i < 14; ++i) EXPECT_EQ(num_of("192.0.2." + std::to_string(100 + i)), 1u);
  EXPECT_EQ(num_of("192.0.2.1"), 1u);
  EXPECT_EQ(num_of("192.0.2.2"), 1u);
}

TEST_F(ServerPlacesTest, ANewcomerIsServedThoughItsOwnAddressHoldsAllWithCallsUnderWay) {
  open({.max_connections = 8});
  connect_busy("192.0.2.1", 8);
  connect_resting("192.0.2.1");
  EXPECT_EQ(num_refused(), 0u);
  EXPECT_EQ(server->num_connections(), 8u);
  EXPECT_EQ(num_busy(), 7u);
}

TEST_F(ServerPlacesTest, OfOneAddressTheClientAtRestGoesBeforeTheBusyOnes) {
  open({.max_connections = 8});
  connect_busy("192.0.2.1", 4);
  connect_resting("192.0.2.1");
  connect_busy("192.0.2.1", 3);
  now_ms = 1000;
  connect_resting("192.0.2.1");
  EXPECT_EQ(num_busy(), 7u);
  EXPECT_EQ(num_refused(), 0u);
}

// Neighbours that connect again and again, each with a Call under way, take no place from it.
TEST_F(ServerPlacesTest, OfOneAddressAClientThatMakesCallsStays) {
  open({.max_connections = 8});
  connect_resting("192.0.2.1");
  FakeQp& working = device.qp();
  connect_busy("192.0.2.1", 7);
  for (int i = 0; i < 20; ++i) {
    now_ms += 500;
    connect_busy("192.0.2.1");
    service.answer = [this](ServedCall& one) { server->reply(one.id, {}); };
    ASSERT_EQ(num_busy(), 7u) << "its connection is there";
    ASSERT_TRUE(working.inject(load_vector("V01").octets)) << i;
    run();
  }
  EXPECT_EQ(num_busy(), 7u);
  EXPECT_EQ(num_refused(), 0u);
}

// Sixteen connections of one address last for two seconds on average: after five ends, one each 125 ms.
TEST_F(ServerPlacesTest, NewcomersOfAFullAddressWaitUntilItsConnectionsHadTheirTime) {
  open({.max_connections = 16});
  connect_busy("192.0.2.1", 16);
  for (int i = 0; i < 5; ++i) connect_busy("192.0.2.1");
  const auto opened = [this] { return server->statistics().opened; };
  EXPECT_EQ(opened(), 21u);
  for (int i = 0; i < 3; ++i) connect("192.0.2.1");
  EXPECT_EQ(opened(), 21u) << "three wait";
  EXPECT_EQ(server->next_timeout(), at(125));
  for (unsigned i = 1; i <= 3; ++i) {
    now_ms = static_cast<int>(125 * i) - 1;
    run();
    EXPECT_EQ(opened(), 20u + i);
    ++now_ms;
    run();
    EXPECT_EQ(opened(), 21u + i);
  }
  EXPECT_EQ(num_of("192.0.2.1"), 16u);
  EXPECT_EQ(num_refused(), 0u);
}

TEST_F(ServerPlacesTest, ANewcomerOfAnotherAddressDoesNotWait) {
  open({.max_connections = 16});
  connect_busy("192.0.2.1", 21);
  connect("192.0.2.1");
  connect("192.0.2.2");
  EXPECT_EQ(num_of("192.0.2.1"), 15u);
  EXPECT_EQ(num_of("192.0.2.2"), 1u);
}

// Connections of its own address have just ended for others, but now another address holds more.
TEST_F(ServerPlacesTest, ANewcomerThatTakesThePlaceOfAnotherAddressDoesNotWait) {
  open({.max_connections = 16});
  connect_busy("192.0.2.1", 8);
  connect_busy("192.0.2.2", 8);
  connect_busy("192.0.2.1", 3);
  device.break_connection();
  run();
  connect_busy("192.0.2.2");
  ASSERT_EQ(num_of("192.0.2.2"), 9u);
  connect("192.0.2.1");
  EXPECT_EQ(num_of("192.0.2.1"), 8u);
  EXPECT_EQ(num_of("192.0.2.2"), 8u);
}

TEST_F(ServerPlacesTest, ANewcomerThatFindsTheLineFullLetsTheFirstOneInAtOnce) {
  open({.max_connections = 16});
  connect_busy("192.0.2.1", 21);
  for (int i = 0; i < 3; ++i) connect("192.0.2.1");
  EXPECT_EQ(server->statistics().opened, 21u);
  connect("192.0.2.1");
  EXPECT_EQ(server->statistics().opened, 22u);
  EXPECT_EQ(num_refused(), 0u);
}

TEST_F(ServerPlacesTest, APlaceThatBecomesFreeIsForOneThatWaits) {
  open({.max_connections = 16});
  connect_busy("192.0.2.1", 21);
  connect("192.0.2.1");
  EXPECT_EQ(server->statistics().opened, 21u);
  device.break_connection();
  run();
  EXPECT_EQ(server->statistics().opened, 22u);
  EXPECT_EQ(server->num_connections(), 16u);
}

TEST_F(ServerPlacesTest, NewcomersThatLeaveWhileTheyWaitEndNobody) {
  open({.max_connections = 16});
  connect_busy("192.0.2.1", 21);
  connect("192.0.2.1");
  device.leave();
  now_ms = 10000;
  run();
  EXPECT_EQ(server->statistics().opened, 21u);
  EXPECT_EQ(num_busy(), 16u);
}

// However few its address has.
TEST_F(ServerPlacesTest, WhoNeverCalledGivesWayBeforeAllOthers) {
  open({.max_connections = 8});
  connect("192.0.2.2");
  connect_resting("192.0.2.1", 7);
  now_ms = 2000;
  connect_resting("192.0.2.1");
  EXPECT_EQ(num_of("192.0.2.2"), 0u);
  EXPECT_EQ(num_of("192.0.2.1"), 8u);
}

TEST_F(ServerPlacesTest, ANewcomerHasTimeForItsFirstCall) {
  open({.max_connections = 8});
  connect_busy("192.0.2.1", 7);
  now_ms = 5000;
  connect("192.0.2.2");
  connect_busy("192.0.2.1");
  EXPECT_EQ(num_of("192.0.2.2"), 1u);
  EXPECT_EQ(num_of("192.0.2.1"), 7u);
}

// Neighbours that make one Call, rest, and come again as soon as they are turned away.
TEST_F(ServerPlacesTest, ANewcomerStaysBesideNeighboursThatRestForLessThanASecond) {
  open({.max_connections = 8, .max_waiting = 0});
  connect_resting("192.0.2.1", 7);
  now_ms += 400;
  connect("192.0.2.1");
  FakeQp& newcomer = device.qp();
  now_ms += 100;
  connect_resting("192.0.2.1", 7);
  now_ms += 100;
  const auto connections = server->statistics().connections;
  const auto has_no_call = [](const ConnectionStatistics& one) { return one.calls.calls_served == 0; };
  ASSERT_EQ(std::ranges::count_if(connections, has_no_call), 1) << "it is there";
  service.answer = {};
  ASSERT_TRUE(newcomer.inject(load_vector("V01").octets));
  run();
  EXPECT_EQ(num_busy(), 1u);
}

// Its chunks take longer than a connection without a Call may stay.
TEST_F(ServerPlacesTest, AClientWhoseFirstCallIsBeingFetchedKeepsItsPlace) {
  open({.max_connections = 8});
  connect_resting("192.0.2.1", 7);
  connect("192.0.2.3");
  device.qp().hold_completions = true;
  Octets chunk(0x10000);
  const std::uint32_t key = memory.add(
      {.octets = chunk.data(), .len = chunk.size(), .access = verbs::Access::kRemoteRead, .first = std::uint64_t{0}});
  Octets call = load_vector("V06").octets;
  for (const std::size_t handle : {24u, 48u}) {
    xdr::XdrWriter out(MutBytes(call).subspan(handle, 4));
    out.u32(key);
  }
  ASSERT_TRUE(device.qp().inject(call));
  run();
  now_ms += 1500;
  connect_resting("192.0.2.1");
  EXPECT_EQ(num_of("192.0.2.3"), 1u);
}

TEST_F(ServerPlacesTest, AnAddressTakesNothingFromOneThatHoldsLess) {
  open({.max_connections = 8});
  connect_resting("192.0.2.2");
  connect_busy("192.0.2.1", 7);
  for (int i = 0; i < 10; ++i) connect_busy("192.0.2.1");
  EXPECT_EQ(num_of("192.0.2.2"), 1u);
  EXPECT_EQ(num_of("192.0.2.1"), 7u);
}

// All addresses hold as little as the newcomer's would.
TEST_F(ServerPlacesTest, WhereEachAddressHasOneANewcomerIsRefusedAndHasItsLine) {
  open({.max_connections = 4, .log = lines.log()});
  for (int i = 1; i <= 4; ++i) connect_busy("192.0.2." + std::to_string(i));
  connect("192.0.2.5");
  EXPECT_EQ(num_refused(), 1u);
  EXPECT_THAT(lines.warnings(), ElementsAre(HasSubstr("rejected: there are 4 connections, 0 of them of its address")));
}

TEST_F(ServerPlacesTest, AnAddressMayHaveFewerByOption) {
  open({.max_connections = 8, .max_connections_per_client = 3});
  connect_busy("192.0.2.1", 5);
  EXPECT_EQ(num_of("192.0.2.1"), 3u);
  EXPECT_EQ(num_refused(), 0u);
}

// Each client at rest may send a Call at any time, and the one that works has all its credits.
TEST_F(ServerPlacesTest, HundredsRestBesideOneThatWorks) {
  device.have_shared_receives(4096);  // too few for eight credits of each
  open({.credits = 32, .max_connections = 600});
  connect_resting("192.0.2.1", 599);
  connect("192.0.2.1");
  // It uses all that it was granted, again and again.
  service.answer = nullptr;
  for (const int granted : {8, 16, 32}) {
    for (int i = 0; i < granted; ++i) ASSERT_TRUE(device.qp().inject(load_vector("V01").octets));
    run();
    for (ServedCall& one : service.calls) server->reply(one.id, {});
    service.calls.clear();
    run();
  }
  EXPECT_EQ(server->num_connections(), 600u);
  const auto statistics = server->statistics();
  const auto most = std::ranges::max(statistics.connections, {}, &ConnectionStatistics::credits);
  EXPECT_EQ(most.credits, 32u);
  EXPECT_EQ(num_refused() + statistics.not_accepted, 0u);
}

// A place goes with its connection.
TEST_F(ServerPlacesTest, WhatEndedLeavesItsPlace) {
  open({.max_connections = 2});
  for (int i = 0; i < 10; ++i) {
    connect_busy("192.0.2.1");
    device.break_connection();
    run();
    ASSERT_EQ(server->num_connections(), 0u);
  }
  connect_busy("192.0.2.1", 2);
  EXPECT_EQ(num_busy(), 2u);
}

}  // namespace
}  // namespace weft::rpcrdma::testing
