#include "rpcrdma/budget.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <tuple>

#include "rpcrdma/testing/engines.h"

namespace weft::rpcrdma::testing {
namespace {

constexpr std::size_t kMib = std::size_t{1} << 20;
constexpr std::size_t kGuaranteed = 64 << 10;

// Connections of several addresses on one Budget. Each Call is a READ whose Write chunk says how much it may hold; the
// service keeps all of them until they are answered.
struct BudgetTest : ::testing::Test {
  struct End : FakeEnd {
    End(BudgetTest& t, const std::string& g, std::uint32_t number) : FakeEnd(t.memory), test(t), group(g) {
      Endpoint::Config shape;
      shape.serial = number;
      shape.num_receives = shape.num_sends = 34;
      shape.receive_len = 4096;
      shape.send_len = 4096 + Responder::kSendExtra;
      make_endpoint(shape, Link::End::kServer);
      Responder::Config config;
      config.credits = {.min = 32, .initial = 32, .max = 32};
      config.max_item = 8 * kMib;
      config.peer_group = group;
      responder = std::make_unique<Responder>(pd, *link, t.pool, t.budget(), t.programs, config);
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
    void call(std::size_t room, std::uint32_t procedure = kRead) {
      Octets rpc;
      xdr::XdrWriter out(rpc);
      emit_call(out, {++xid, kTestProgram, kTestVersion, procedure, {}, {}});
      v1::Header header;
      header.xid = xid;
      header.credit = 32;
      header.lists.write_list = {{{0x51, static_cast<std::uint32_t>(room), 0x1000}}};
      ASSERT_TRUE(qp.inject(message(header, rpc)));
      pump();
    }
    // A WRITE whose data is in a Read chunk of so many octets.
    void write(std::size_t len) {
      Octets rpc;
      xdr::XdrWriter out(rpc);
      emit_call(out, {++xid, kTestProgram, kTestVersion, kWrite, {}, {}});
      const auto position = static_cast<std::uint32_t>(rpc.size() + write_position());
      out.raw(write_args(len));
      v1::Header header;
      header.xid = xid;
      header.credit = 32;
      header.lists.read_list = {{position, test.readable(len)}};
      ASSERT_TRUE(qp.inject(message(header, rpc)));
      pump();
    }
    // Its RDMA Reads do not end.
    void never_feeds() { qp.hold_completions = true; }
    // Its peer fed RDMA Reads before.
    void has_moved(std::size_t octets) { qp.moved.read_octets_rx += octets; }
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
    const std::string group;
    std::uint32_t xid = 0;
    std::unique_ptr<Responder> responder;
  };

  ~BudgetTest() override {
    service.calls.clear();
    ends.clear();
    EXPECT_EQ(budget().used(), 0u);
  }
  // From the first use on its bounds are fixed.
  Budget& budget() {
    if (!budget_) budget_.emplace(bounds);
    return *budget_;
  }
  End& open(const std::string& group) {
    ends.push_back(std::make_unique<End>(*this, group, ++last_number));
    return *ends.back();
  }
  // Memory of a peer.
  Segment readable(std::size_t len) {
    source.resize(std::max(source.size(), 8 * kMib));
    if (!source_mr) {
      source_mr.emplace(memory, FakeMemory::Region{source.data(), source.size(), verbs::Access::kRemoteRead});
    }
    return {source_mr->rkey(), static_cast<std::uint32_t>(len), reinterpret_cast<std::uintptr_t>(source.data())};
  }
  // `num` connections of one address, each with a Call that may hold `room`.
  void crowd(std::size_t num, const std::string& group, std::size_t room) {
    for (std::size_t i = 0; i < num; ++i) open(group).call(room);
  }

  // Answers the Call that the service has had longest. Returns its connection.
  End& answer_oldest() {
    End& end = **std::ranges::find_if(
        ends, [this](const auto& one) { return one->number() == service.calls.front().connection.value; });
    end.answer_one();
    return end;
  }

  FakeMemory memory;
  FakePd pd{memory};
  Octets source;
  std::optional<FakeMr> source_mr;
  BufferPool pool{pd, 16 * kMib, 1024 * kMib};
  Budget::Bounds bounds{
      .all = 256 * kMib, .address = 64 * kMib, .connection = 4 * kMib + kGuaranteed, .guaranteed = kGuaranteed};
  TestService service;
  std::vector<ServedProgram> programs{{&test_binding(), &service}};
  std::vector<std::unique_ptr<End>> ends;
  std::uint32_t last_number = 0;

 private:
  std::optional<Budget> budget_;
};

TEST_F(BudgetTest, AnAddressThatAsksForAllLeavesTheOthersTheirs) {
  crowd(160, "198.51.100.1", 8 * kMib);
  EXPECT_LE(budget().used(), 64 * kMib);
  EXPECT_TRUE(budget().is_short("198.51.100.1"));
  End& other = open("192.0.2.1");
  for (std::size_t i = 1; i <= 4; ++i) {
    other.call(kMib);
    EXPECT_EQ(other.num_served(), i);
  }
}

// Many connections with Calls for which the service may do nothing for a while.
TEST_F(BudgetTest, SlowCallsLeaveMemoryToTheOthersOfTheirAddress) {
  programs[0].results_of = [](std::uint32_t procedure) { return ResultsOf{.is_slow = procedure == kNull}; };
  constexpr std::size_t kConnections = 200, kCalls = 8;
  for (std::size_t i = 0; i < kConnections; ++i) {
    End& slow = open("198.51.100.1");
    for (std::size_t call = 0; call < kCalls; ++call) slow.call(64 << 10, kNull);
    EXPECT_GE(slow.num_served(), 1u) << "what each connection has for itself";
  }
  EXPECT_LE(budget().used(), 16 * kMib);
  EXPECT_GE(budget().used(), 8 * kMib) << "it is used all the same";
  // READs of a newcomer, which has a slow Call as well, do not wait for them.
  End& other = open("198.51.100.1");
  other.call(64 << 10, kNull);
  for (std::size_t i = 2; i <= 4; ++i) {
    other.call(kMib);
    EXPECT_EQ(other.num_served(), i);
  }
  // A READ does not wait for slow Calls of its own connection either.
  const std::size_t before = other.num_served();
  for (int i = 0; i < 3; ++i) other.call(64 << 10, kNull);
  EXPECT_EQ(other.num_served(), before);
  other.call(kMib);
  EXPECT_EQ(other.num_served(), before + 1);
  // All slow Calls are served in their turns.
  std::size_t num = 0;
  for (; !service.calls.empty(); ++num) {
    answer_oldest();
  }
  EXPECT_EQ(num, kConnections * kCalls + 4 + 4);
}

// Slow Calls that need more than a connection has for itself.
TEST_F(BudgetTest, LargeSlowCallsWaitForEachOtherAndNobodyForThem) {
  programs[0].results_of = [](std::uint32_t procedure) { return ResultsOf{.is_slow = procedure == kNull}; };
  constexpr std::size_t kConnections = 100, kCalls = 2;
  for (std::size_t i = 0; i < kConnections; ++i) {
    End& slow = open("198.51.100.1");
    for (std::size_t call = 0; call < kCalls; ++call) slow.call(kMib, kNull);
  }
  budget().admit_waiting();
  EXPECT_LE(budget().used(), 16 * kMib);
  EXPECT_GE(budget().used(), 7 * kMib) << "it is used all the same";
  EXPECT_FALSE(budget().is_short("198.51.100.1"));
  // READs of a newcomer, which has a slow Call as well, do not wait for them.
  End& other = open("198.51.100.1");
  other.call(kMib, kNull);
  for (std::size_t i = 1; i <= 4; ++i) {
    other.call(kMib);
    EXPECT_EQ(other.num_served(), i);
  }
  // All slow Calls are served in their turns.
  std::size_t num = 0;
  for (; !service.calls.empty(); ++num) {
    answer_oldest();
    budget().admit_waiting();
  }
  EXPECT_EQ(num, kConnections * kCalls + 1 + 4);
}

// It waits for memory as a READ of its length does, although no other slow Call is there.
TEST_F(BudgetTest, ALargeSlowCallFindsMemoryBesideManySmallCalls) {
  programs[0].results_of = [](std::uint32_t procedure) { return ResultsOf{.is_slow = procedure == kNull}; };
  crowd(400, "198.51.100.1", kMib / 4);
  End& slow = open("198.51.100.1");
  slow.call(kMib, kNull);
  std::size_t num = 0;
  for (; slow.num_served() == 0 && num < 5000; ++num) {
    budget().admit_waiting();
    answer_oldest().call(kMib / 4);
  }
  EXPECT_EQ(slow.num_served(), 1u);
}

TEST_F(BudgetTest, APeerThatMovesNothingKeepsThePartOfSlowCallsFromNoOther) {
  programs[0].results_of = [](std::uint32_t procedure) { return ResultsOf{.is_slow = procedure == kWrite}; };
  for (int i = 0; i < 20; ++i) {
    End& one = open("198.51.100.1");
    one.never_feeds();
    one.write(kMib);
  }
  budget().admit_waiting();
  End& other = open("198.51.100.1");
  other.write(kMib);
  budget().admit_waiting();
  EXPECT_EQ(other.num_served(), 0u);
  for (int ms = 0; ms <= 5000 && other.num_served() == 0; ms += 100) {
    for (const auto& end : ends) end->responder->on_time(at(ms));
    std::erase_if(ends, [](const auto& end) { return end->endpoint->failure().has_value(); });
    budget().admit_waiting();
    other.pump();
  }
  EXPECT_EQ(other.num_served(), 1u);
}

// A turn in which it cannot begin is none, or the line would offer it turns without end.
TEST_F(BudgetTest, ACallForWhichNoMemoryIsRegisteredHasOneTurnWithEachThatOthersGiveBack) {
  crowd(100, "198.51.100.1", kMib);
  End& one = open("198.51.100.1");
  one.write(kMib);
  pd.fail_registration = true;
  std::size_t num = 0;
  for (; !service.calls.empty(); ++num) {
    answer_oldest();
    budget().admit_waiting();
  }
  EXPECT_EQ(num, 100u);
  pd.fail_registration = false;
  ends.front()->call(kMib);
  budget().admit_waiting();
  one.pump();
  EXPECT_EQ(one.num_served(), 1u);
}

TEST_F(BudgetTest, ACallThatIsMoreThanAnAddressMayHoldIsNotServed) {
  bounds.address = 2 * kMib;
  End& one = open("198.51.100.1");
  one.call(2 * kMib + kGuaranteed + 4);
  budget().admit_waiting();
  EXPECT_EQ(one.num_served(), 0u);
  open("198.51.100.2").call(2 * kMib + kGuaranteed);
  EXPECT_EQ(ends.back()->num_served(), 1u);
}

TEST_F(BudgetTest, EightAddressesThatTakeAllTheyGetLeaveSomethingForOneMore) {
  for (int i = 0; i < 8; ++i) crowd(40, "198.51.100." + std::to_string(i), 4 * kMib);
  End& other = open("192.0.2.1");
  other.call(kMib);
  EXPECT_EQ(other.num_served(), 1u);
  EXPECT_LE(budget().used(), budget().bounds().all);
}

// With a hundred addresses only the guaranteed memory is left. Peers that hold it and do not move have little time.
TEST_F(BudgetTest, AHundredAddressesLeaveWhatIsGuaranteed) {
  End& staller = open("203.0.113.1");
  staller.has_moved(8 * kMib);
  staller.qp.hold_completions = true;
  staller.call(kMib);
  staller.answer_one();
  staller.responder->on_time(at(1));
  for (int i = 0; i < 100; ++i) crowd(20, "198.51.100." + std::to_string(i), 4 * kMib);
  for (int i = 0; i < 100 && budget().used() < budget().bounds().all; ++i) {
    open("203.0.113." + std::to_string(i + 2))
        .call(std::min(budget().bounds().all - budget().used(), 4 * kMib) + kGuaranteed);
  }
  ASSERT_EQ(budget().used(), budget().bounds().all);
  End& other = open("192.0.2.1");
  other.call(kGuaranteed);
  EXPECT_EQ(other.num_served(), 1u);
  EXPECT_LE(budget().used(), budget().bounds().all);
  staller.responder->on_time(at(2));
  EXPECT_EQ(staller.responder->next_timeout(), at(2) + EarnedTime::Terms{}.grace);
}

// Neighbours of an attacker, on loopback or behind one NAT.
TEST_F(BudgetTest, LargeCallsOfAnAddressLeaveSomeForItsSmallerOnes) {
  crowd(160, "127.0.0.1", 8 * kMib);
  End& neighbour = open("127.0.0.1");
  neighbour.call(kMib);
  EXPECT_EQ(neighbour.num_served(), 0u) << "it waits for its turn in line";
  budget().admit_waiting();
  EXPECT_EQ(neighbour.num_served(), 1u);
}

TEST_F(BudgetTest, WhatIsGuaranteedWaitsForNobody) {
  for (std::size_t room = 8 * kMib; room >= kGuaranteed; room /= 2) crowd(40, "127.0.0.1", room + kGuaranteed);
  budget().admit_waiting();
  ASSERT_TRUE(budget().is_short("127.0.0.1"));
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
  budget().admit_waiting();
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
  bounds.address = 4 * kMib;
  bounds.connection = 64 * kMib;
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
    budget().admit_waiting();
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
  EXPECT_LE(budget().used(), 64 * kMib + kGuaranteed);
  EXPECT_GE(budget().used(), service.calls.size() * 4 * kMib);
  End& other = open("192.0.2.1");
  other.call(kMib);
  EXPECT_EQ(other.num_served(), 1u);
  service.calls.clear();
  EXPECT_EQ(budget().used(), kMib - kGuaranteed) << "the Call of the other address";
  open("198.51.100.1").call(4 * kMib);
  EXPECT_EQ(ends.back()->num_served(), 1u);
}

TEST_F(BudgetTest, AConnectionThatEndsInLineLeavesIt) {
  crowd(160, "127.0.0.1", 8 * kMib);
  ASSERT_TRUE(budget().is_short("127.0.0.1"));
  ends.resize(4);
  EXPECT_FALSE(budget().is_short("127.0.0.1"));
  budget().admit_waiting();
}

// A peer that does not move has little time while other connections of its address wait for memory.
TEST_F(BudgetTest, WhileOthersWaitAPeerThatStallsIsEndedSooner) {
  End& staller = open("127.0.0.1");
  staller.has_moved(8 * kMib);
  staller.qp.hold_completions = true;
  staller.call(4 * kMib);
  ASSERT_EQ(staller.num_served(), 1u);
  staller.answer_one();  // its Send never ends
  staller.responder->on_time(at(1));
  staller.responder->on_time(at(20000));
  EXPECT_FALSE(staller.endpoint->failure());
  crowd(160, "127.0.0.1", 8 * kMib);
  EXPECT_LE(staller.responder->next_timeout(), at(20000)) << "its time has to begin";
  staller.responder->on_time(at(20000));
  EXPECT_EQ(staller.responder->next_timeout(), at(20400));
  staller.responder->on_time(at(20399));
  EXPECT_FALSE(staller.endpoint->failure());
  staller.responder->on_time(at(20400));
  EXPECT_TRUE(staller.endpoint->failure());
}

// A peer that moves all that it holds within ten seconds is kept, and one that takes twice as long is not.
TEST_F(BudgetTest, WhileOthersWaitAPeerEarnsTimeByItsProgress) {
  crowd(160, "127.0.0.1", 8 * kMib);
  for (const auto& [per_step, is_kept] : {std::pair(24 * 1024, true), std::pair(5 * 1024, false)}) {
    End& slow = open("127.0.0.1");
    slow.never_feeds();
    slow.write(kMib);
    budget().admit_waiting();
    ASSERT_EQ(slow.qp.rdma.size(), 1u);
    for (int ms = 0; ms < 9000 && !slow.endpoint->failure(); ms += 200) {
      slow.responder->on_time(at(ms));
      slow.has_moved(static_cast<std::size_t>(per_step));
    }
    EXPECT_EQ(!slow.endpoint->failure(), is_kept) << per_step;
  }
}

// Clients whose WRITEs are never fed hold all memory that they can get. As soon as one is ended it comes back. An
// honest client has a READ of 1 MiB answered within a second all the same, whether it was there before them or not.
struct StalledNeighboursTest : BudgetTest {
  static constexpr int kStep = 20;  // ms
  std::size_t hostile_len = kMib;
  std::size_t num_writes = 4;  // of each hostile connection
  bool is_newcomer = false;

  // The honest client's READ is under way for so long.
  int time_of_read(std::size_t num, const std::function<std::string(std::size_t)>& group) {
    End* const known = &open("192.0.2.1");
    for (const std::size_t room : {std::size_t{4096}, kMib, std::size_t{4096}}) {
      known->call(room);
      known->answer_one();
    }
    std::vector<End*> hostile(num);
    for (std::size_t i = 0; i < num; ++i) hostile[i] = &open_hostile(group(i));
    // They are at it for a while.
    int ms = 0;
    for (; ms < 25 * kStep; ms += kStep) turn(ms, hostile);
    End& honest = is_newcomer ? open("192.0.2.1") : *known;
    honest.call(kMib);
    const int begin = ms;
    for (; honest.num_served() == 0 && ms < begin + 100000; ms += kStep) {
      turn(ms, hostile);
      honest.responder->on_time(at(ms));
    }
    EXPECT_EQ(honest.num_served(), 1u);
    EXPECT_FALSE(honest.endpoint->failure());
    honest.answer_one();
    RecordProperty("milliseconds", ms - begin);
    return ms - begin;
  }

 private:
  End& open_hostile(const std::string& group) {
    End& end = open(group);
    end.call(4096);
    end.answer_one();
    end.never_feeds();
    for (std::size_t i = 0; i < num_writes; ++i) end.write(hostile_len);
    return end;
  }
  // One turn of a server.
  void turn(int ms, std::vector<End*>& hostile) {
    for (End*& end : hostile) {
      end->responder->on_time(at(ms));
      if (!end->endpoint->failure()) continue;
      const std::string group = end->group;
      std::erase_if(ends, [&](const auto& one) { return one.get() == end; });
      end = &open_hostile(group);
    }
    budget().admit_waiting();
  }
};

// Whether the honest client was there before, and what each hostile WRITE asks for, seen from what the READ does.
struct StalledNeighbours : StalledNeighboursTest, ::testing::WithParamInterface<std::tuple<bool, std::ptrdiff_t>> {
  StalledNeighbours() {
    is_newcomer = std::get<0>(GetParam());
    hostile_len = static_cast<std::size_t>(std::ptrdiff_t{kMib} + std::get<1>(GetParam()));
  }
};

TEST_P(StalledNeighbours, TwoHundredConnectionsOfItsAddress) {
  EXPECT_LE(time_of_read(200, [](std::size_t) { return "192.0.2.1"; }), 1000);
}

TEST_P(StalledNeighbours, SevenHundredConnectionsOfItsAddress) {
  EXPECT_LE(time_of_read(700, [](std::size_t) { return "192.0.2.1"; }), 1000);
}

TEST_P(StalledNeighbours, TwoHundredAndFiftyAddresses) {
  EXPECT_LE(time_of_read(700, [](std::size_t i) { return "198.51.100." + std::to_string(i % 250); }), 1000);
}

INSTANTIATE_TEST_SUITE_P(Honest, StalledNeighbours,
                         ::testing::Combine(::testing::Bool(), ::testing::Values(-4, -std::ptrdiff_t{kMib} / 2)));

// The same with large Calls, each of which takes all that it can get.
TEST_F(StalledNeighboursTest, TwoHundredAndFiftyAddressesWithLargeCalls) {
  hostile_len = 8 * kMib;
  EXPECT_LE(time_of_read(700, [](std::size_t i) { return "198.51.100." + std::to_string(i % 250); }), 1000);
}

TEST_F(BudgetTest, WhileOthersWaitAPeerThatHasMovedNothingSinceItsTurnGetsNoMore) {
  bounds.address = 8 * kMib;
  End &staller = open("127.0.0.1"), &holder = open("127.0.0.1"), &other = open("127.0.0.1");
  staller.never_feeds();
  staller.write(kMib);
  holder.call(7 * kMib / 2);
  ASSERT_EQ(holder.num_served(), 1u);
  for (int i = 0; i < 4; ++i) other.call(2 * kMib);
  ASSERT_EQ(other.num_served(), 0u);
  staller.write(kMib);
  holder.answer_one();
  budget().admit_waiting();
  EXPECT_GE(other.num_served(), 1u);
  EXPECT_EQ(staller.qp.rdma.size(), 1u);
  staller.has_moved(1);
  other.answer_one();
  budget().admit_waiting();
  EXPECT_EQ(staller.qp.rdma.size(), 2u);
}

// In a crowd, time is given to the peers that have moved as much as they hold. The others get little. Octets that only
// this side's socket has taken prove nothing.
TEST_F(BudgetTest, InACrowdAPeerThatHasMovedNothingHasLittleTime) {
  const EarnedTime::Terms terms;
  const std::string group = "127.0.0.1";
  enum class Has { kNothing, kUnsent, kMoved };
  for (const Has has : {Has::kNothing, Has::kUnsent, Has::kMoved}) {
    const bool is_proven = has == Has::kMoved;
    End& staller = open(group);
    staller.never_feeds();
    if (has != Has::kNothing) staller.qp.moved.write_octets_tx += 2 * kMib;
    if (has == Has::kUnsent) staller.qp.unsent = 2 * kMib;
    staller.write(kMib);
    budget().admit_waiting();
    ASSERT_EQ(staller.qp.rdma.size(), 1u);
    crowd(1000, group, kMib + kGuaranteed);
    staller.responder->on_time(at(1));
    EXPECT_EQ(staller.responder->next_timeout(), at(1) + (is_proven ? terms.grace : terms.least)) << is_proven;
    ends.clear();
    service.calls.clear();
  }
}

}  // namespace
}  // namespace weft::rpcrdma::testing
