#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rpcrdma/client.h"
#include "rpcrdma/connection_setup.h"
#include "rpcrdma/testing/engines.h"
#include "rpcrdma/testing/fake_device.h"
#include "rpcrdma/testing/log_lines.h"

// A Client on a device that the test breaks, removes or makes refuse. The test is the server. Times are milliseconds
// of a fake clock.
namespace weft::rpcrdma::testing {

constexpr ReconnectPolicy kReconnect{.max_time = std::chrono::milliseconds(1000),
                                     .first_delay = std::chrono::milliseconds(100),
                                     .max_delay = std::chrono::milliseconds(400)};

struct ClientLifeTest : ::testing::Test {
  using Answer = FakeDevice::Answer;
  using State = Client::State;

  void open(ClientConfig config = {.reconnect = kReconnect}) {
    config.credits = 8;
    config.log = lines.log();
    auto made = Client::connect(device, sockaddr_storage{}, config);
    ASSERT_TRUE(made.ok()) << made.error().message;
    client = std::move(*made);
    run(0);
    ASSERT_EQ(client->state(), State::kReady);
  }
  void open_and_call(ClientConfig config = {.reconnect = kReconnect}) {
    open(config);
    call();
    run(0);
  }
  // The Reply to the first Call grants all credits.
  void open_with_credits(ClientConfig config = {.reconnect = kReconnect}) {
    open_and_call(config);
    answer(0, 0);
  }
  // Gives the client turns at this time until it rests.
  void run(int ms) {
    for (int i = 0; i < 100; ++i) {
      if (client->process(at(ms)) == 0 && (!client->next_timeout() || *client->next_timeout() > at(ms))) return;
    }
    ADD_FAILURE() << "the client never comes to rest";
  }
  // A client that has lost its connection makes its next attempt. Returns the time then.
  int run_to_next_attempt(int ms) {
    run(ms);
    if (client->state() == State::kConnecting)
      ms = int((*client->next_timeout() - at(0)) / std::chrono::milliseconds(1));
    run(ms);
    return ms;
  }
  void call(std::chrono::milliseconds timeout = std::chrono::milliseconds(60000)) {
    CallSpec spec = call_of(test_binding(), kRead);
    spec.result_items = room;
    spec.max_results = max_results;
    spec.timeout = timeout;
    const std::size_t number = num_calls++;
    const auto called = client->call(spec, [this, number](const Reply& reply) {
      ended.emplace_back(number, reply.status);
      remote_at_end.push_back(memory.num_remote());
    });
    ASSERT_TRUE(called.ok()) << called.error().message;
  }
  v1::Header sent(std::size_t i) { return parse(device.qp().sent.at(i)); }
  std::size_t num_sent() { return device.qp().sent.size(); }
  void answer(std::size_t i, int ms, std::uint32_t credits = 8) {
    ASSERT_TRUE(device.qp().inject(plain_reply(device.qp().sent.at(i), credits)));
    run(ms);
  }
  void expect_wakes_at(int ms) {
    ASSERT_TRUE(client->next_timeout());
    EXPECT_EQ(*client->next_timeout(), at(ms));
  }
  // Each turn is the client's next timeout.
  void expect_turns_at(std::initializer_list<int> times) {
    for (const int ms : times) {
      expect_wakes_at(ms);
      run(ms);
    }
  }
  void expect_closed(const std::string& error) {
    EXPECT_EQ(client->state(), State::kClosed);
    EXPECT_THAT(client->error(), ::testing::HasSubstr(error));
  }

  LogLines lines;
  FakeMemory memory;
  FakeDevice device{memory};
  Octets room = Octets(9000);
  std::size_t max_results = call_of(test_binding(), kRead).max_results;  // of each later Call
  std::size_t num_calls = 0;
  std::vector<std::pair<std::size_t, CallStatus>> ended;  // number of a Call and its status
  std::vector<std::size_t> remote_at_end;                 // regions that the peer could still reach when a callback ran
  std::unique_ptr<Client> client;
};

}  // namespace weft::rpcrdma::testing
