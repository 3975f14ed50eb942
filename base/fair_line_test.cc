#include "base/fair_line.h"

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace weft {
namespace {

using Line = FairLine<int>;

// Takes one turn of this cost and returns its client.
std::uint64_t turn(Line& line, const std::map<std::uint64_t, Amount>& cost_of) {
  const auto taken = line.take();
  EXPECT_TRUE(taken);
  if (!taken) return 0;
  line.done(*taken, cost_of.at(taken->client));
  return taken->client;
}

TEST(FairLine, AClientsThingsKeepTheirOrder) {
  Line line;
  for (int i = 0; i < 5; ++i) line.push({1, "a"}, i);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(line.take()->what, i);
  EXPECT_FALSE(line.has_next());
  EXPECT_FALSE(line.take());
}

// 200 connections ask for eight dear turns each; another client of the same address asks for little.
TEST(FairLine, WhoAsksForLittleIsNextHoweverManyOthersAskForMuch) {
  Line line;
  std::map<std::uint64_t, Amount> cost_of{{0, 10}};
  for (std::uint64_t client = 1; client <= 200; ++client) {
    cost_of[client] = 13000;
    for (int i = 0; i < 8; ++i) line.push({client, "a"}, i);
  }
  line.push({0, "a"}, 0);
  int turns = 0;
  while (turn(line, cost_of) != 0) ++turns;
  EXPECT_LE(turns, 200);  // a newcomer waits for one turn of each client that came before it
  for (int i = 0; i < 30; ++i) {
    (void)turn(line, cost_of);
    line.push({0, "a"}, 0);
    int waited = 0;
    while (turn(line, cost_of) != 0) ++waited;
    EXPECT_LE(waited, 1) << i;
  }
}

// All of them are new, and nothing was measured but the mean.
TEST(FairLine, AmongNewcomersTheOneThatExpectsLittleIsNext) {
  for (const Amount mean : {Amount{1}, Amount{20}, Amount{13000}, Amount{1} << 39}) {
    Line line;
    line.push({1000, "a"}, 0);
    (void)turn(line, {{1000, mean}});
    for (std::uint64_t client = 1; client <= 200; ++client) line.push({client, "a"}, 0, 13000);
    line.push({0, "a"}, 0, 20);
    int waited = 0;
    while (turn(line, {{0, 20}, {1, 13000}, {2, 13000}}) != 0) ++waited;
    EXPECT_LE(waited, 2) << mean;
  }
}

// Each new connection expects little, and one that was here expects much.
TEST(FairLine, NewcomersThatExpectLittleWinNoMoreThanOneClient) {
  Line line;
  for (int i = 0; i < 1000; ++i) line.push({1, "a"}, i, 1000);
  Amount newcomers = 0, other = 0;
  for (std::uint64_t client = 2; client < 20000; ++client) {
    line.push({client, "a"}, 0, 10);
    const auto taken = line.take();
    ASSERT_TRUE(taken);
    const Amount cost = taken->client == 1 ? 1000 : 10;
    (taken->client == 1 ? other : newcomers) += cost;
    line.done(*taken, cost);
  }
  EXPECT_GT(other + other / 4, newcomers);
}

// They come faster than they are served, and leave when they have waited for a while. However long this has gone on, it
// is next after as many of their turns as it expects less than they do.
TEST(FairLine, AmongAStreamOfNewcomersTheOneThatExpectsLittleIsSoonNext) {
  constexpr std::uint64_t kPerTurn = 5, kPatience = 800;
  for (const int turns_before : {200, 2000, 20000}) {
    Line line;
    std::uint64_t last = 0;
    const auto step = [&] {
      for (std::uint64_t i = 0; i < kPerTurn; ++i) {
        line.push({++last, "a"}, 0, 13000);
        if (last > kPatience) line.remove(last - kPatience);
      }
      const auto taken = line.take();
      if (taken) {
        line.done(*taken, 13000);
        line.remove(taken->client);
      }
      return taken ? taken->client : 0;
    };
    for (int i = 0; i < turns_before; ++i) step();
    const std::uint64_t newcomer = std::uint64_t{1} << 40;
    line.push({newcomer, "a"}, 0, 500);
    int waited = 0;
    while (step() != newcomer && waited < 1000) ++waited;
    EXPECT_LE(waited, 12) << turns_before;
  }
}

TEST(FairLine, AddressesReceiveEquallyWhateverTheirNumberOfClients) {
  Line line;
  std::map<std::uint64_t, Amount> cost_of{{0, 700}};
  for (std::uint64_t client = 1; client <= 250; ++client) cost_of[client] = 100 + client;
  for (std::uint64_t client = 1; client <= 250; ++client) {
    for (int i = 0; i < 100; ++i) line.push({client, client <= 200 ? "a" : "b"}, i);
  }
  for (int i = 0; i < 5000; ++i) line.push({0, "c"}, i);
  std::map<std::string, Amount> received;
  for (int i = 0; i < 5000; ++i) {
    const std::uint64_t client = turn(line, cost_of);
    received[client == 0 ? "c" : client <= 200 ? "a" : "b"] += cost_of[client];
  }
  EXPECT_NEAR(static_cast<double>(received["a"]), static_cast<double>(received["b"]), 2000);
  EXPECT_NEAR(static_cast<double>(received["a"]), static_cast<double>(received["c"]), 2000);
}

TEST(FairLine, ConnectingAnewWinsNoTurnFromClientsThatAreHere) {
  Line line;
  std::map<std::uint64_t, Amount> cost_of{{0, 1000}};
  std::uint64_t last = 0;
  // Each newcomer has one turn and goes, and a hundred of them always wait.
  const auto connect = [&] {
    cost_of[++last] = 1000;
    line.push({last, "a"}, 0);
  };
  for (int i = 0; i < 100; ++i) connect();
  line.push({0, "a"}, 0);
  while (turn(line, cost_of) != 0) {
  }
  int newcomers = 0, turns = 0;
  line.push({0, "a"}, 0);
  for (int i = 0; i < 100; ++i) connect();
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t client = turn(line, cost_of);
    if (client == 0) {
      ++turns;
      line.push({0, "a"}, 0);
    } else {
      ++newcomers;
      line.remove(client);
      connect();
    }
  }
  EXPECT_NEAR(turns, newcomers, 150);
  EXPECT_LE(line.num_clients(), 201u);
}

TEST(FairLine, WaitingEarnsNothing) {
  Line line;
  std::map<std::uint64_t, Amount> cost_of{{1, 100}, {2, 100}};
  line.push({1, "a"}, 0);
  (void)turn(line, cost_of);
  for (int i = 0; i < 2000; ++i) line.push({2, "a"}, i);
  for (int i = 0; i < 1000; ++i) (void)turn(line, cost_of);
  for (int i = 0; i < 1000; ++i) line.push({1, "a"}, i);
  int of_first = 0;
  for (int i = 0; i < 100; ++i) of_first += turn(line, cost_of) == 1 ? 1 : 0;
  EXPECT_NEAR(of_first, 50, 2);
}

TEST(FairLine, TurnsOfOneAddressAreBounded) {
  Line line(2);
  for (int i = 0; i < 5; ++i) line.push({1, "a"}, i);
  const auto first = line.take(), second = line.take();
  ASSERT_TRUE(first && second);
  EXPECT_FALSE(line.has_next());
  line.push({2, "b"}, 7);
  EXPECT_EQ(line.take()->client, 2u);
  line.done(*first, 10);
  EXPECT_EQ(line.take()->client, 1u);
}

TEST(FairLine, WhatIsPutBackStandsByItsNewCost) {
  Line line;
  for (int round = 0; round < 2; ++round) {  // nothing here is new
    for (const auto& [client, address] : {std::pair{1u, "a"}, {2u, "a"}, {3u, "b"}, {4u, "b"}}) {
      line.push({client, address}, 0, 10);
    }
    for (int i = 0; i < 4; ++i) (void)turn(line, {{1, 10}, {2, 10}, {3, 10}, {4, 10}});
  }
  line.push({3, "b"}, 0, 15);  // the other address has received a little more
  (void)turn(line, {{3, 15}});
  line.push({1, "a"}, 1, 10);
  line.push({2, "a"}, 2, 20);
  line.push({3, "b"}, 3, 30);
  auto dear = line.take();
  ASSERT_EQ(dear->what, 1);
  line.put_back(std::move(*dear), 1'000'000);
  EXPECT_EQ(line.size_of_client(1), 1u);
  // The address counts as dear, too. No turn of it has cost so much.
  const auto other = line.take();
  EXPECT_EQ(other->what, 3);
  line.done(*other, 30);
  for (const int next : {2, 1}) {
    const auto taken = line.take();
    EXPECT_EQ(taken->what, next);
    line.done(*taken, 20);
  }
  EXPECT_FALSE(line.has_next());
}

// Newcomers that proved dear only in the line win no more than if they had said so.
TEST(FairLine, NewcomersThatArePutBackLeaveOthersTheirPart) {
  constexpr Amount kDear = 1'000'000, kSteady = 20'000;
  for (const bool is_one_address : {true, false}) {
    Line line;
    Amount steady = 0, all = 0;
    std::uint64_t next = 1;
    const auto come = [&] {
      line.push({next, is_one_address ? "a" : "a" + std::to_string(next)}, 1, 30);
      ++next;
    };
    for (int i = 0; i < 20; ++i) come();
    line.push({0, "a"}, 0, kSteady);
    while (all < 1000 * kDear) {
      auto turn = line.take();
      if (turn->what == 1 && turn->expected < kDear) {
        line.put_back(std::move(*turn), kDear);
        continue;
      }
      const Amount cost = turn->what == 1 ? kDear : kSteady;
      line.done(*turn, cost);
      all += cost;
      if (turn->what == 1) {
        line.remove(turn->client);
        come();
      } else {
        steady += cost;
        line.push({0, "a"}, 0, kSteady);
      }
    }
    EXPECT_GT(steady * 4, all) << is_one_address;
  }
}

TEST(FairLine, ATurnThatGoesOnCountsAsAverage) {
  Line line;
  for (int i = 0; i < 8; ++i) line.push({1, "a"}, i);
  line.push({2, "a"}, 0);
  EXPECT_EQ(line.take()->client, 1u);
  EXPECT_EQ(line.take()->client, 2u);
}

TEST(FairLine, ReturnsWhatWaitsForAClientThatGoesAndForgetsIt) {
  Line line;
  for (int i = 0; i < 4; ++i) line.push({1, "a"}, i);
  const auto going_on = line.take();
  EXPECT_EQ(line.remove(1), (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(line.size(), 0u);
  EXPECT_EQ(line.num_clients(), 1u) << "its last turn goes on";
  line.done(*going_on, 1);
  EXPECT_EQ(line.num_clients(), 0u);
  EXPECT_EQ(line.num_addresses(), 0u);
  EXPECT_TRUE(line.remove(1).empty());
}

using Verdict = Ledger::Verdict;
using Offer = Line::Offer;

TEST(FairLine, ServesInOrderWhoeverCanBegin) {
  Line line;
  line.push({1, "a"}, 10);
  line.push({2, "a"}, 20);
  line.push({3, "b"}, 30);
  const auto only = [&](std::uint64_t wanted, Amount cost) {
    return line.serve_next([&](std::uint64_t client, int) { return client == wanted ? Offer::begun(cost) : Offer{}; });
  };
  EXPECT_TRUE(only(2, 100));
  EXPECT_FALSE(only(2, 100));
  line.push({2, "a"}, 21);
  std::vector<std::uint64_t> order;
  EXPECT_FALSE(line.serve_next([&](std::uint64_t client, int) {
    order.push_back(client);
    return Offer{};
  }));
  EXPECT_EQ(order, (std::vector<std::uint64_t>{3, 1, 2}));
}

TEST(FairLine, NobodyPassesAClientThatWaitsForWhatTheyWouldTake) {
  Line line;
  line.push({1, "a"}, 0);
  line.push({2, "a"}, 0);
  line.push({3, "b"}, 0);
  const auto asked = [&](Verdict of_first) {
    std::vector<std::uint64_t> order;
    EXPECT_FALSE(line.serve_next([&](std::uint64_t client, int) {
      order.push_back(client);
      return Offer::waits(client == 1 ? of_first : Verdict::kClient);
    }));
    return order;
  };
  EXPECT_EQ(asked(Verdict::kClient), (std::vector<std::uint64_t>{1, 2, 3}));
  EXPECT_EQ(asked(Verdict::kAddress), (std::vector<std::uint64_t>{1, 3}));
  EXPECT_EQ(asked(Verdict::kAll), (std::vector<std::uint64_t>{1}));
}

// Those that ask for little pass one that has to wait for much, but not for ever.
TEST(FairLine, AClientIsPassedByNoMoreThanItExpects) {
  Line line;
  line.push({1, "a"}, 0, 100);
  for (std::uint64_t client = 2; client < 30; ++client) line.push({client, "a"}, 0, 1000);
  std::size_t num_passed = 0;
  for (std::uint64_t client = 30; client < 60; ++client) {
    line.push({client, "a"}, 0, 10);
    while (line.serve_next([&](std::uint64_t asked, int) {
      EXPECT_TRUE(asked == 1 || asked >= 30);
      return asked >= 30 ? Offer::begun(10) : Offer::waits(Verdict::kAddress);
    })) {
      ++num_passed;
    }
  }
  EXPECT_GE(num_passed, 10u);
  EXPECT_LT(num_passed, 20u) << "some stand before it, and ten pass it";
}

TEST(FairLine, WhatIsServedMayRemoveItself) {
  Line line;
  line.push({1, "a"}, 0);
  EXPECT_TRUE(line.serve_next([&](std::uint64_t client, int) {
    line.remove(client);
    return Offer::begun(5);
  }));
  EXPECT_EQ(line.num_clients(), 0u);
  EXPECT_EQ(line.size(), 0u);
}

TEST(FairLine, OthersMayComeAndGoDuringARound) {
  Line line;
  for (std::uint64_t client = 1; client <= 6; ++client) line.push({client, client <= 3 ? "a" : "b"}, 0);
  std::vector<std::uint64_t> order;
  EXPECT_FALSE(line.serve_next([&](std::uint64_t client, int) {
    order.push_back(client);
    if (client == 1) line.remove(2);
    if (client == 3) {
      for (std::uint64_t gone = 1; gone <= 3; ++gone) line.remove(gone);
      line.push({7, "b"}, 0);
    }
    return Offer{};
  }));
  EXPECT_EQ(order, (std::vector<std::uint64_t>{1, 3, 4, 5, 6, 7}));
}

// A client that has received much without a wait is no worse off than one that waited for it, and newcomers stand
// behind it.
TEST(FairLine, AClientThatDidNotWaitIsKnown) {
  Line line;
  for (int i = 0; i < 1000; ++i) line.serve_at_once({1, "a"}, 10);
  for (std::uint64_t newcomer = 2; newcomer < 50; ++newcomer) line.push({newcomer, "a"}, 0, 10);
  line.push({1, "a"}, 0, 10);
  std::size_t before_it = 0;
  for (auto turn = line.take(); turn && turn->client != 1; turn = line.take()) {
    ++before_it;
    line.done(*turn, 10);
  }
  EXPECT_LE(before_it, 2u);
}

TEST(FairLine, AClientThatReceivedNothingIsKnownToo) {
  Line line;
  line.serve_at_once({1, "a"}, 0);
  for (std::uint64_t newcomer = 2; newcomer < 50; ++newcomer) {
    line.serve_at_once({newcomer, "a"}, 0);
    line.push({newcomer, "a"}, 0, 10);
  }
  line.push({1, "a"}, 0, 10);
  EXPECT_EQ(line.take()->client, 1u);
}

TEST(FairLine, AClientThatWithdrawsIsStillKnown) {
  Line line;
  line.push({1, "a"}, 0);
  line.push({1, "a"}, 1);
  line.withdraw(1);
  EXPECT_EQ(line.size(), 0u);
  EXPECT_EQ(line.size_of("a"), 0u);
  EXPECT_FALSE(line.has_next());
  EXPECT_EQ(line.num_clients(), 1u);
  line.push({1, "a"}, 2);
  EXPECT_EQ(line.take()->what, 2);
}

}  // namespace
}  // namespace weft
