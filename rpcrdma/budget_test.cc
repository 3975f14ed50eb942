#include "rpcrdma/budget.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "rpcrdma/testing/engines.h"

namespace weft::rpcrdma::testing {
namespace {

constexpr std::size_t kMib = std::size_t{1} << 20;
constexpr std::size_t kGuaranteed = 64 << 10;

// Connections of several addresses on one Budget. Each Call is a READ whose Write chunk says how much it may hold; the
// service keeps all of them until they are answered.
struct BudgetTest : ::testing::Test {
  struct End : FakeEnd {
    End(BudgetTest& t, const std::string& group, std::uint32_t number) : FakeEnd(t.memory), test(t) {
      Endpoint::Config shape;
      shape.serial = number;
      shape.num_receives = shape.num_sends = 34;
      shape.receive_len = 4096;
      shape.send_len = 4096 + Responder::kSendExtra;
      make_endpoint(shape, Link::End::kServer);
      Responder::Config config;
      config.credits = {.min = 32, .initial = 32, .max = 32};
      config.max_item = 8 * kMib;
      config.max_held = t.max_held;
      config.guaranteed = kGuaranteed;
      config.peer_group = group;
      config.short_stall_timeout = std::chrono::milliseconds(2000);
      responder = std::make_unique<Responder>(pd, *link, t.pool, t.budget, t.programs, config);
      responder->start(4096, 16);
      EXPECT_TRUE(endpoint->attach(qp).ok());
      responder->on_time(at(0));
    }
    // The queue pair goes first, as a Server's does: queued requests name memory of the Endpoint and of the Responder.
    ~End() {
      endpoint->detach();
      qp.forget();
    }

    // A READ that offers room for so many bytes.
    void call(std::size_t room) {
      Octets rpc;
      xdr::XdrWriter out(rpc);
      emit_call(out, {++xid, kTestProgram, kTestVersion, kRead, {}, {}});
      v1::Header header;
      header.xid = xid;
      header.credit = 32;
      header.lists.write_list = {{{0x51, static_cast<std::uint32_t>(room), 0x1000}}};
      ASSERT_TRUE(qp.inject(message(header, rpc)));
      pump();
    }
    std::uint32_t number() const { return endpoint->config().serial; }
    // Calls of this connection that the service has.
    std::size_t num_served() const {
      return static_cast<std::size_t>(std::ranges::count_if(
          test.service.calls, [this](const ServedCall& call) { return call.connection.value == number(); }));
    }
    // Answers the oldest of them.
    void answer_one() {
      auto& calls = test.service.calls;
      const auto at =
          std::ranges::find_if(calls, [this](const ServedCall& call) { return call.connection.value == number(); });
      ASSERT_NE(at, calls.end());
      EXPECT_TRUE(responder->reply(at->id, {}));
      calls.erase(at);
      pump();
    }

    BudgetTest& test;
    std::uint32_t xid = 0;
    std::unique_ptr<Responder> responder;
  };

  BudgetTest() { budget.max_per_group = 64 * kMib; }
  ~BudgetTest() override {
    service.calls.clear();
    ends.clear();
    EXPECT_EQ(budget.used, 0u);
  }
  End& open(const std::string& group) {
    ends.push_back(std::make_unique<End>(*this, group, ++last_number));
    return *ends.back();
  }
  // `num` connections of one address, each with a Call that may hold `room`.
  void crowd(std::size_t num, const std::string& group, std::size_t room) {
    for (std::size_t i = 0; i < num; ++i) open(group).call(room);
  }

  FakeMemory memory;
  FakePd pd{memory};
  BufferPool pool{pd, 16 * kMib, 1024 * kMib};
  Budget budget{256 * kMib};
  TestService service;
  std::vector<ServedProgram> programs{{&test_binding(), &service}};
  std::size_t max_held = 4 * kMib + kGuaranteed;
  std::vector<std::unique_ptr<End>> ends;
  std::uint32_t last_number = 0;
};

TEST_F(BudgetTest, AnAddressThatAsksForAllLeavesTheOthersTheirs) {
  crowd(160, "198.51.100.1", 8 * kMib);
  EXPECT_LE(budget.used, 64 * kMib);
  EXPECT_TRUE(budget.is_short("198.51.100.1"));
  End& other = open("192.0.2.1");
  for (std::size_t i = 1; i <= 4; ++i) {
    other.call(kMib);
    EXPECT_EQ(other.num_served(), i);
  }
}

TEST_F(BudgetTest, ACallThatIsMoreThanAnAddressMayHoldIsNotServed) {
  budget.max_per_group = 2 * kMib;
  End& one = open("198.51.100.1");
  one.call(2 * kMib + kGuaranteed + 4);
  budget.admit_waiting();
  EXPECT_EQ(one.num_served(), 0u);
  open("198.51.100.2").call(2 * kMib + kGuaranteed);
  EXPECT_EQ(ends.back()->num_served(), 1u);
}

TEST_F(BudgetTest, EightAddressesThatTakeAllTheyGetLeaveSomethingForOneMore) {
  for (int i = 0; i < 8; ++i) crowd(40, "198.51.100." + std::to_string(i), 4 * kMib);
  End& other = open("192.0.2.1");
  other.call(kMib);
  EXPECT_EQ(other.num_served(), 1u);
  EXPECT_LE(budget.used, budget.limit);
}

// With a hundred addresses only the guaranteed memory is left. Peers that hold it and do not move have little time.
TEST_F(BudgetTest, AHundredAddressesLeaveWhatIsGuaranteed) {
  End& staller = open("203.0.113.1");
  staller.qp.hold_completions = true;
  staller.call(kMib);
  staller.answer_one();
  staller.responder->on_time(at(1));
  for (int i = 0; i < 100; ++i) crowd(20, "198.51.100." + std::to_string(i), 4 * kMib);
  for (int i = 0; i < 100 && budget.used < budget.limit; ++i) {
    open("203.0.113." + std::to_string(i + 2)).call(std::min(budget.limit - budget.used, 4 * kMib) + kGuaranteed);
  }
  ASSERT_EQ(budget.used, budget.limit);
  End& other = open("192.0.2.1");
  other.call(kGuaranteed);
  EXPECT_EQ(other.num_served(), 1u);
  EXPECT_LE(budget.used, budget.limit);
  EXPECT_EQ(staller.responder->next_timeout(), at(2001));
}

// Neighbours of an attacker, on loopback or behind one NAT.
TEST_F(BudgetTest, LargeCallsOfAnAddressLeaveSomeForItsSmallerOnes) {
  crowd(160, "127.0.0.1", 8 * kMib);
  End& neighbour = open("127.0.0.1");
  neighbour.call(kMib);
  EXPECT_EQ(neighbour.num_served(), 0u) << "it waits for its turn in line";
  budget.admit_waiting();
  EXPECT_EQ(neighbour.num_served(), 1u);
}

TEST_F(BudgetTest, WhatIsGuaranteedWaitsForNobody) {
  for (std::size_t room = 8 * kMib; room >= kGuaranteed; room /= 2) crowd(40, "127.0.0.1", room + kGuaranteed);
  budget.admit_waiting();
  ASSERT_TRUE(budget.is_short("127.0.0.1"));
  End& neighbour = open("127.0.0.1");
  for (std::size_t i = 1; i <= 16; ++i) {
    neighbour.call(4096);
    EXPECT_EQ(neighbour.num_served(), i);
  }
}

// A Call may wait for memory that other connections hold. Guaranteed Calls of its connection pass it. They do not pass
// a Call that waits for its own connection's memory.
TEST_F(BudgetTest, SmallCallsPassALargeOneThatOthersHoldUp) {
  crowd(160, "127.0.0.1", 8 * kMib);
  End& neighbour = open("127.0.0.1");
  neighbour.call(8 * kMib);
  budget.admit_waiting();
  ASSERT_EQ(neighbour.num_served(), 0u);
  neighbour.call(4096);
  EXPECT_EQ(neighbour.num_served(), 1u);

  End& other = open("192.0.2.1");
  other.call(4 * kMib);
  other.call(4 * kMib);
  other.call(4096);
  EXPECT_EQ(other.num_served(), 1u);
  other.answer_one();
  EXPECT_EQ(other.num_served(), 2u);
}

TEST_F(BudgetTest, ConnectionsInLineTakeTurns) {
  budget.max_per_group = 4 * kMib;
  max_held = 64 * kMib;
  End& first = open("127.0.0.1");
  first.call(4 * kMib);
  ASSERT_EQ(first.num_served(), 1u);
  End &greedy = open("127.0.0.1"), &modest = open("127.0.0.1");
  for (int i = 0; i < 8; ++i) greedy.call(3 * kMib);
  modest.call(3 * kMib);
  modest.call(3 * kMib);
  ASSERT_EQ(greedy.num_served() + modest.num_served(), 0u);
  std::string order;
  End* served = &first;
  for (int i = 0; i < 6; ++i) {
    served->answer_one();
    budget.admit_waiting();
    ASSERT_EQ(greedy.num_served() + modest.num_served(), 1u);
    served = greedy.num_served() == 1 ? &greedy : &modest;
    order += served == &greedy ? 'g' : 'm';
  }
  EXPECT_EQ(order, "gmgmgg");
}

// Calls that a service works on count until it is done with them, also after the end of their connection.
TEST_F(BudgetTest, AbandonedCallsCountUntilTheyEnd) {
  for (int i = 0; i < 200; ++i) {
    open("198.51.100.1").call(4 * kMib);
    ends.pop_back();
  }
  EXPECT_GT(service.calls.size(), 8u);
  EXPECT_LE(budget.used, 64 * kMib + kGuaranteed);
  EXPECT_GE(budget.used, service.calls.size() * 4 * kMib);
  End& other = open("192.0.2.1");
  other.call(kMib);
  EXPECT_EQ(other.num_served(), 1u);
  service.calls.clear();
  EXPECT_EQ(budget.used, kMib - kGuaranteed) << "the Call of the other address";
  open("198.51.100.1").call(4 * kMib);
  EXPECT_EQ(ends.back()->num_served(), 1u);
}

TEST_F(BudgetTest, AConnectionThatEndsInLineLeavesIt) {
  crowd(160, "127.0.0.1", 8 * kMib);
  ASSERT_TRUE(budget.is_short("127.0.0.1"));
  ends.resize(4);
  EXPECT_FALSE(budget.is_short("127.0.0.1"));
  budget.admit_waiting();
}

// A peer that does not move has less time while other connections of its address wait for memory.
TEST_F(BudgetTest, WhileOthersWaitAPeerThatStallsIsEndedSooner) {
  End& staller = open("127.0.0.1");
  staller.qp.hold_completions = true;
  staller.call(4 * kMib);
  ASSERT_EQ(staller.num_served(), 1u);
  staller.answer_one();  // its Send never ends
  staller.responder->on_time(at(1));
  staller.responder->on_time(at(20000));
  EXPECT_FALSE(staller.endpoint->failure());
  crowd(160, "127.0.0.1", 8 * kMib);
  EXPECT_EQ(staller.responder->next_timeout(), at(2001));
  staller.responder->on_time(at(20001));
  EXPECT_TRUE(staller.endpoint->failure());
}

}  // namespace
}  // namespace weft::rpcrdma::testing
