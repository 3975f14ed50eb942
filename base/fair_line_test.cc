#include "base/fair_line.h"

#include <map>
#include <string>

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

TEST(FairLine, ATurnThatGoesOnCountsAsAverage) {
  Line line;
  for (int i = 0; i < 8; ++i) line.push({1, "a"}, i);
  line.push({2, "a"}, 0);
  EXPECT_EQ(line.take()->client, 1u);
  EXPECT_EQ(line.take()->client, 2u);
}

TEST(FairLine, RemovesWhatNobodyWantsAndForgetsTheClient) {
  Line line;
  for (int i = 0; i < 4; ++i) line.push({1, "a"}, i);
  const auto going_on = line.take();
  EXPECT_EQ(line.remove(1, [](int what) { return what == 2; }).size(), 2u);
  EXPECT_EQ(line.size(), 1u);
  EXPECT_EQ(line.size_of("a"), 1u);
  EXPECT_EQ(line.num_clients(), 1u);
  const auto wanted = line.take();
  EXPECT_EQ(wanted->what, 2);
  line.done(*going_on, 1);
  line.done(*wanted, 1);
  EXPECT_EQ(line.num_clients(), 0u);
  EXPECT_EQ(line.num_addresses(), 0u);
  EXPECT_TRUE(line.remove(1).empty());
}

TEST(FairLine, ServesInOrderWhoeverCanBegin) {
  Line line;
  line.push({1, "a"}, 10);
  line.push({2, "a"}, 20);
  line.push({3, "b"}, 30);
  const auto only = [&](std::uint64_t wanted, Amount cost) {
    return line.serve_next(
        [&](std::uint64_t client, int) { return client == wanted ? std::optional(cost) : std::nullopt; });
  };
  EXPECT_TRUE(only(2, 100));
  EXPECT_FALSE(only(2, 100));
  line.push({2, "a"}, 21);
  std::vector<std::uint64_t> order;
  EXPECT_FALSE(line.serve_next([&](std::uint64_t client, int) -> std::optional<Amount> {
    order.push_back(client);
    return std::nullopt;
  }));
  EXPECT_EQ(order, (std::vector<std::uint64_t>{3, 1, 2}));
}

TEST(FairLine, WhatIsServedMayRemoveItself) {
  Line line;
  line.push({1, "a"}, 0);
  EXPECT_TRUE(line.serve_next([&](std::uint64_t client, int) {
    line.remove(client);
    return std::optional<Amount>(5);
  }));
  EXPECT_EQ(line.num_clients(), 0u);
  EXPECT_EQ(line.size(), 0u);
}

}  // namespace
}  // namespace weft
