#include "base/ledger.h"

#include <map>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace weft {
namespace {

using Verdict = Ledger::Verdict;
using Tenure = Ledger::Tenure;

TEST(Ledger, BoundsAClientAnAddressAndAll) {
  Ledger ledger({.client = 4, .address = 6, .all = 8});
  Ledger::Client a = ledger.enter("a"), b = ledger.enter("a"), c = ledger.enter("c");
  EXPECT_EQ(a.asks(5), Verdict::kClient);
  const Lease first = a.take(4);
  EXPECT_EQ(a.asks(1), Verdict::kClient);
  EXPECT_EQ(b.asks(3), Verdict::kAddress);
  const Lease second = b.take(2);
  EXPECT_EQ(c.asks(3), Verdict::kAll);
  const Lease third = c.take(2);
  EXPECT_EQ(ledger.held(), 8u);
  EXPECT_EQ(ledger.held_by("a"), 6u);
  EXPECT_EQ(c.take(1).amount(), 0u);
  EXPECT_EQ(ledger.held(), 8u);
}

TEST(Ledger, AmountsThatWouldWrapDoNotFit) {
  Ledger ledger({});
  Ledger::Client a = ledger.enter("a");
  const Lease much = a.take(kUnbounded - 1);
  EXPECT_EQ(much.amount(), kUnbounded - 1);
  EXPECT_EQ(a.asks(1), Verdict::kFits);
  EXPECT_EQ(a.asks(2), Verdict::kClient);
  EXPECT_EQ(a.asks(kUnbounded), Verdict::kClient);
}

TEST(Ledger, ALeaseEndsWithItsHolderAndNotBefore) {
  Ledger ledger({.all = 2});
  std::vector<Lease> tasks;
  {
    Ledger::Client gone = ledger.enter("a");
    tasks.push_back(gone.take(2));
  }
  // The connection is gone, and its task is still there.
  EXPECT_EQ(ledger.num_clients(), 0u);
  EXPECT_EQ(ledger.held_by("a"), 2u);
  Ledger::Client b = ledger.enter("b");
  EXPECT_EQ(b.asks(1), Verdict::kAll);
  tasks.clear();
  EXPECT_EQ(ledger.num_returns(), 1u);
  EXPECT_EQ(ledger.num_addresses(), 1u);
  EXPECT_EQ(b.asks(2), Verdict::kFits);
}

TEST(Ledger, LeasesMayOutliveTheLedger) {
  Lease lease;
  {
    Ledger ledger({.all = 2});
    lease = ledger.enter("a").take(2);
  }
  EXPECT_EQ(lease.amount(), 2u);
  EXPECT_EQ(lease.resize(1), Verdict::kFits);
}

TEST(Ledger, AGuaranteeHoldsWhateverOthersHoldAndEndsWithItsClient) {
  Ledger ledger({.all = 10, .guaranteed = 4});
  Ledger::Client a = ledger.enter("a"), b = ledger.enter("b");
  Lease all = a.take(14);
  EXPECT_EQ(ledger.shared(), 10u);
  EXPECT_TRUE(b.is_guaranteed(4));
  EXPECT_FALSE(b.is_guaranteed(5));
  Lease small = b.take(4);
  EXPECT_EQ(small.amount(), 4u);
  EXPECT_EQ(small.resize(5), Verdict::kAll);
  EXPECT_EQ(small.amount(), 4u);
  b = {};
  EXPECT_EQ(ledger.shared(), 14u);  // what remains of a client that is gone counts in full
  EXPECT_EQ(ledger.held(), 18u);
}

TEST(Ledger, LeasesOfAClientAreSplitAndMerged) {
  Ledger ledger({.all = 8});
  Ledger::Client a = ledger.enter("a");
  Lease whole = a.take(6);
  Lease part = whole.split(2);
  EXPECT_EQ(whole.amount(), 4u);
  EXPECT_EQ(part.amount(), 2u);
  Lease none;
  none.merge(std::move(part));
  none.merge(std::move(whole));
  EXPECT_EQ(none.amount(), 6u);
  EXPECT_EQ(ledger.held(), 6u);
  none.end();
  EXPECT_EQ(ledger.held(), 0u);
  EXPECT_EQ(Lease().resize(1), Verdict::kClient);
}

TEST(Ledger, OneLargeThingMayExceedTheBoundOfItsClient) {
  Ledger ledger({.client = 4, .all = 20, .one_may_exceed = true});
  Ledger::Client a = ledger.enter("a");
  Lease large = a.take(13);
  EXPECT_EQ(large.amount(), 13u);
  EXPECT_EQ(large.resize(14), Verdict::kFits);
  EXPECT_EQ(a.asks(1), Verdict::kClient);
}

TEST(Ledger, AnAddressLeavesAsMuchAsItHolds) {
  Ledger ledger({.all = 120, .leaves_as_much = true});
  // Addresses that want all they can get, and give back and take again, come to hold equal parts.
  constexpr std::size_t kAddresses = 5;
  std::vector<Ledger::Client> clients;
  std::vector<std::vector<Lease>> held(kAddresses);
  for (std::size_t i = 0; i < kAddresses; ++i) clients.push_back(ledger.enter(std::to_string(i)));
  for (int round = 0; round < 400; ++round) {
    for (std::size_t i = 0; i < kAddresses; ++i) {
      if (!held[i].empty()) held[i].erase(held[i].begin());
      if (Lease more = clients[i].take(1)) held[i].push_back(std::move(more));
      if (Lease more = clients[i].take(1)) held[i].push_back(std::move(more));
    }
  }
  for (std::size_t i = 0; i < kAddresses; ++i) EXPECT_NEAR(static_cast<double>(held[i].size()), 120.0 / 7, 1.0) << i;
  EXPECT_EQ(ledger.enter("another").asks(10), Verdict::kFits);
}

TEST(Ledger, AClientLeavesAsMuchToItsAddress) {
  Ledger ledger({.address = 40, .all = 1000, .leaves_as_much = true});
  Ledger::Client a = ledger.enter("a"), b = ledger.enter("a");
  std::vector<Lease> held;
  while (Lease more = a.take(1)) held.push_back(std::move(more));
  EXPECT_EQ(held.size(), 20u);
  while (Lease more = b.take(1)) held.push_back(std::move(more));
  EXPECT_EQ(held.size(), 30u);
  // What is alone may be as large as the address's bound.
  EXPECT_EQ(ledger.enter("c").asks(40), Verdict::kFits);
  EXPECT_EQ(ledger.enter("c").asks(41), Verdict::kAddress);
}

// Connections: each client holds one.
class Connections {
 public:
  explicit Connections(const Ledger::Bounds& bounds) : ledger_(bounds) {}

  // False: refused.
  bool connect(const std::string& address, Tenure tenure, int since = 0, Amount weight = 0) {
    while (ledger_.asks(address, 1) != Verdict::kFits) {
      const auto out = ledger_.gives_way(address, 1, [this](std::uint64_t tag) { return open_.at(tag).standing; });
      if (!out) return false;
      last_out_ = *out;
      open_.erase(*out);
    }
    Ledger::Client client = ledger_.enter(address, ++last_);
    Lease lease = client.take(1);
    open_[last_] = {std::move(client), std::move(lease), {tenure, weight, TimePoint(std::chrono::seconds(since))}};
    return true;
  }
  void connect_many(int num, const std::string& address, Tenure tenure) {
    for (int i = 0; i < num; ++i) connect(address, tenure, i);
  }
  Amount held_by(const std::string& address) const { return ledger_.held_by(address); }
  std::uint64_t last() const { return last_; }
  std::uint64_t last_out() const { return last_out_; }

 private:
  struct Open {
    Ledger::Client client;
    Lease lease;
    Ledger::Standing standing;
  };
  Ledger ledger_;
  std::map<std::uint64_t, Open> open_;
  std::uint64_t last_ = 0, last_out_ = 0;
};

TEST(LedgerGivesWay, TwoBusyAddressesShrinkWhenAThirdComes) {
  Connections connections({.address = 768, .all = 1024});
  connections.connect_many(768, "a", Tenure::kBusy);
  connections.connect_many(256, "b", Tenure::kBusy);
  for (int i = 0; i < 400; ++i) ASSERT_TRUE(connections.connect("c", Tenure::kBusy)) << i;
  EXPECT_NEAR(static_cast<double>(connections.held_by("a")), 1024 / 3.0, 90);
  EXPECT_EQ(connections.held_by("a") + connections.held_by("b") + connections.held_by("c"), 1024u);
  EXPECT_EQ(connections.held_by("b"), 256u);
  EXPECT_EQ(connections.held_by("a"), connections.held_by("c"));
}

TEST(LedgerGivesWay, AnAddressThatIsFullGivesUpItsOwn) {
  Connections connections({.address = 3, .all = 10});
  connections.connect_many(2, "b", Tenure::kUnused);
  connections.connect_many(3, "a", Tenure::kBusy);
  EXPECT_TRUE(connections.connect("a", Tenure::kBusy));
  EXPECT_EQ(connections.held_by("b"), 2u);
  EXPECT_EQ(connections.last_out(), 3u);  // the oldest
}

TEST(LedgerGivesWay, WithinTheAddressTheLeastMissedGoes) {
  Connections connections({.all = 5});
  connections.connect("a", Tenure::kBusy, 1, 9);
  connections.connect("a", Tenure::kBusy, 1, 3);
  connections.connect("a", Tenure::kResting, 7);
  connections.connect("a", Tenure::kResting, 6);
  connections.connect("a", Tenure::kUnused, 8);
  for (const std::uint64_t out : {5u, 4u}) {
    EXPECT_TRUE(connections.connect("b", Tenure::kFixed));
    EXPECT_EQ(connections.last_out(), out);
  }
  for (const std::uint64_t out : {3u, 1u}) {
    EXPECT_TRUE(connections.connect(std::to_string(out), Tenure::kFixed));
    EXPECT_EQ(connections.last_out(), out);
  }
}

TEST(LedgerGivesWay, ABusyClientGoesOnlyToAnAddressThatThenHasNoMore) {
  Connections connections({.all = 4});
  connections.connect_many(2, "a", Tenure::kBusy);
  connections.connect_many(2, "b", Tenure::kBusy);
  EXPECT_TRUE(connections.connect("c", Tenure::kBusy));
  EXPECT_EQ(connections.held_by("c"), 1u);
  // 2, 1, 1: a newcomer of a smaller address finds its own to give way.
  EXPECT_TRUE(connections.connect("c", Tenure::kBusy));
  EXPECT_EQ(connections.held_by("c"), 1u);
}

TEST(LedgerGivesWay, WhatIsFixedStays) {
  Connections connections({.all = 2});
  connections.connect_many(2, "a", Tenure::kFixed);
  EXPECT_FALSE(connections.connect("b", Tenure::kBusy));
  EXPECT_EQ(connections.held_by("a"), 2u);
}

TEST(LedgerGivesWay, RestingClientsOfManyAddressesTakeTurns) {
  Connections connections({.all = 3});
  for (const char* address : {"a", "b", "c", "d"}) EXPECT_TRUE(connections.connect(address, Tenure::kResting));
  EXPECT_EQ(connections.held_by("a") + connections.held_by("b") + connections.held_by("c"), 2u);
  EXPECT_EQ(connections.held_by("d"), 1u);
}

// Each address takes half of what the others left, until less is left than a newcomer needs.
TEST(LedgerGivesWay, AnAddressWithNothingTakesWhatOthersDidNotLeave) {
  Connections connections({.all = 24, .leaves_as_much = true, .one_may_fill = false});
  for (int n = 0; n < 10; ++n) connections.connect_many(20, std::to_string(n), Tenure::kBusy);
  const Amount before = connections.held_by("0");
  EXPECT_TRUE(connections.connect("new", Tenure::kBusy));
  EXPECT_EQ(connections.held_by("new"), 1u);
  EXPECT_LT(connections.held_by("0"), before) << "it had most";
}

// Whatever clients do, the sums are those of the Leases, and no bound is exceeded.
TEST(Ledger, SumsAgreeAfterAnyOperations) {
  constexpr unsigned kSeed = 20;
  SCOPED_TRACE(kSeed);
  std::mt19937 random(kSeed);
  const Ledger::Bounds bounds{.client = 30, .address = 60, .all = 100, .guaranteed = 5, .leaves_as_much = true};
  Ledger ledger(bounds);
  std::vector<Ledger::Client> clients;
  std::vector<Lease> leases;
  for (int step = 0; step < 4000; ++step) {
    const auto pick = [&](auto& of) -> auto& {
      return of[random() % of.size()];
    };
    switch (random() % 6) {
      case 0:
        if (clients.size() < 12) clients.push_back(ledger.enter(std::to_string(random() % 4)));
        break;
      case 1:
        if (!clients.empty()) leases.push_back(pick(clients).take(random() % 40));
        break;
      case 2:
        if (!leases.empty()) (void)pick(leases).resize(random() % 40);
        break;
      case 3:
        if (!leases.empty()) leases.push_back(pick(leases).split(random() % 10));
        break;
      case 4:
        if (!leases.empty()) {
          std::swap(pick(leases), leases.back());
          leases.pop_back();
        }
        break;
      case 5:
        if (!clients.empty() && random() % 8 == 0) {
          std::swap(pick(clients), clients.back());
          clients.pop_back();
        }
        break;
    }
    Amount sum = 0;
    for (const Lease& lease : leases) sum += lease.amount();
    ASSERT_EQ(ledger.held(), sum);
    ASSERT_EQ(ledger.num_clients(), clients.size());
  }
  leases.clear();
  clients.clear();
  EXPECT_EQ(ledger.held(), 0u);
  EXPECT_EQ(ledger.shared(), 0u);
  EXPECT_EQ(ledger.num_addresses(), 0u);
}

// The client holds 30 already. Without these its address would have room.
TEST(Ledger, InItsTurnALeaseIsToldThatItsClientIsInItsOwnWay) {
  Ledger ledger({.address = 60, .all = 100, .leaves_as_much = true, .one_may_fill = false});
  Ledger::Client a = ledger.enter("a"), neighbour = ledger.enter("a");
  Lease first = a.take(30), second = a.lease();
  EXPECT_EQ(second.resize(10), Verdict::kAddress);
  EXPECT_EQ(second.resize_in_turn(10), Verdict::kClient);
  Lease of_neighbour = neighbour.lease();
  EXPECT_EQ(of_neighbour.resize_in_turn(20), Verdict::kAddress);
  EXPECT_EQ(of_neighbour.resize_in_turn(10), Verdict::kFits);
  // Alone in its address it may have all of it.
  Ledger::Client b = ledger.enter("b");
  Lease of_b = b.lease();
  EXPECT_EQ(of_b.resize(40), Verdict::kAddress);
  EXPECT_EQ(of_b.resize_in_turn(40), Verdict::kFits);
}

TEST(LedgerKind, IsARowOfATable) {
  EXPECT_EQ(to_markdown({"connections", "1", "", "1,024", "`Bounds`", "`Ledger.*`"}),
            "| connections | 1 | | 1,024 | `Bounds` | `Ledger.*` |");
}

}  // namespace
}  // namespace weft
