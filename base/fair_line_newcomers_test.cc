// The line among clients that come and go: what newcomers, and clients that come back, wait for.
#include <algorithm>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/fair_line.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

using Line = FairLine<int>;
using Offer = Line::Offer;

constexpr Amount kMiB = Amount{1} << 20;

// Crowd: clients that always wait, and what each of them received.
class Crowd {
 public:
  struct Behaviour {
    std::string address;
    Amount cost = kMiB;
    bool comes_back = false;   // it leaves after each turn, and comes back at once under another number
    bool calls_first = false;  // each time it comes, it is served at once, at no cost, before it waits
  };

  explicit Crowd(Line& line) : line_(line) {}

  void add(std::uint64_t client, Behaviour behaviour) {
    clients_[client] = {behaviour, ++last_number_, 0};
    push(client, /*is_new=*/true);
  }
  void add(std::uint64_t first, std::size_t count, const Behaviour& behaviour) {
    for (std::size_t i = 0; i < count; ++i) add(first + i, behaviour);
  }

  // One turn, of a line whose turns begin at a known cost; returns the client.
  std::uint64_t turn() {
    std::uint64_t client = 0;
    EXPECT_TRUE(line_.serve_next([&](std::uint64_t number, int what) {
      client = static_cast<std::uint64_t>(what);
      EXPECT_EQ(number, clients_.at(client).number);
      return Offer::begun(clients_.at(client).behaviour.cost);
    }));
    Client& of = clients_.at(client);
    of.received += of.behaviour.cost;
    if (of.behaviour.comes_back) {
      line_.remove(of.number);
      of.number = ++last_number_;
    }
    push(client, of.behaviour.comes_back);
    return client;
  }
  void turns(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) (void)turn();
  }
  // Turns of others until this client has had one.
  std::size_t turns_before(std::uint64_t client) {
    std::size_t others = 0;
    while (turn() != client && others < 100000) ++others;
    return others;
  }
  Amount received(std::uint64_t client) const { return clients_.at(client).received; }

  // Clients that come, wait or call, and go without having received anything.
  void phantoms(std::size_t count, const std::string& address) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t number = ++last_number_;
      if (i % 3 != 0) line_.serve_at_once({number, address}, 0);
      if (i % 3 != 1) line_.push({number, address}, 0, kMiB);
      line_.remove(number);
    }
  }

 private:
  using Offer = Line::Offer;
  struct Client {
    Behaviour behaviour;
    std::uint64_t number = 0;
    Amount received = 0;
  };
  void push(std::uint64_t client, bool is_new) {
    const Client& of = clients_.at(client);
    if (is_new && of.behaviour.calls_first) line_.serve_at_once({of.number, of.behaviour.address}, 0);
    line_.push({of.number, of.behaviour.address}, static_cast<int>(client), of.behaviour.cost);
  }

  Line& line_;
  std::map<std::uint64_t, Client> clients_;
  std::uint64_t last_number_ = 0;
};

TEST(FairLine, ClientsThatAreGonePushNobodyOfTheirAddressBack) {
  for (const std::size_t num_phantoms : {0u, 1u, 5000u}) {
    Line line;
    Crowd crowd(line);
    crowd.add(1, 100, {.address = "a", .calls_first = true});
    crowd.turns(300);
    crowd.phantoms(num_phantoms, "a");
    crowd.add(1000, {.address = "a", .calls_first = true});
    EXPECT_LE(crowd.turns_before(1000), 101u) << num_phantoms;
    crowd.phantoms(num_phantoms, "a");
    EXPECT_LE(crowd.turns_before(1000), 101u) << num_phantoms;
  }
}

TEST(FairLine, AddressesThatAreGonePushNoAddressBack) {
  for (const std::size_t num_phantoms : {0u, 1u, 5000u}) {
    Line line;
    Crowd crowd(line);
    for (std::uint64_t client = 1; client <= 4; ++client) crowd.add(client, {.address = std::to_string(client)});
    crowd.turns(12);
    crowd.phantoms(num_phantoms, "phantom");
    crowd.add(1000, {.address = "a", .calls_first = true});
    EXPECT_LE(crowd.turns_before(1000), 5u) << num_phantoms;
  }
}

// An address has three turns at once, each dearer than expected, and goes. A hundred others wait for a turn each. The
// newcomers are a stranger, a stranger that was served at no cost before it waits, and the same address again.
TEST(FairLine, AnAddressThatIsGonePushesNoOtherAddressBack) {
  constexpr Amount kCost = 200'000, kDear = 1'000'000, kCheap = 20;
  for (const std::uint64_t newcomer : {500u, 501u, 502u}) {
    Line line;
    const auto push = [&](std::uint64_t client) { line.push({client, std::to_string(client)}, 0, kCost); };
    for (std::uint64_t client = 1; client <= 100; ++client) push(client);
    const auto turn = [&] {
      const auto taken = line.take();
      line.done(*taken, kCost);
      if (taken->client < 500) push(taken->client);
      return taken->client;
    };
    for (int i = 0; i < 300; ++i) (void)turn();
    std::vector<Line::Turn> dear;
    for (int i = 0; i < 3; ++i) {
      line.push({400, "spender"}, 0, kCheap);
      dear.push_back(*line.take());
      ASSERT_EQ(dear.back().client, 400u);
    }
    for (const Line::Turn& one : dear) line.done(one, kDear);
    line.remove(400);
    const Line::Client client{newcomer, newcomer == 502 ? "spender" : "stranger"};
    if (newcomer == 501) line.serve_at_once(client, 0);
    line.push(client, 0, kCheap);
    int others = 0;
    while (turn() != newcomer) ++others;
    if (newcomer != 502) {
      EXPECT_LE(others, 5);
    } else {
      EXPECT_GE(others, 3 * 100 * 4);  // five turns of each other for a dear one
    }
  }
}

// A client that received little pushes newcomers back by that, and not by what others received in their turns.
TEST(FairLine, AClientThatIsGonePushesNewcomersBackByNoMoreThanItReceived) {
  Line line;
  Crowd crowd(line);
  crowd.add(1, 10, {.address = "a"});
  crowd.turns(30);
  for (std::uint64_t number = 1000000; number < 1001000; ++number) {
    line.serve_at_once({number, "a"}, kMiB / 500);
    line.remove(number);
  }
  crowd.add(1000, {.address = "a"});
  EXPECT_LE(crowd.turns_before(1000), 10u * 3);  // 1000 times 1/500 MiB are two rounds
}

// Many come at once, and stay. From their second turns on they are clients like others.
TEST(FairLine, ClientsThatStayPushNobodyBack) {
  Line line;
  Crowd crowd(line);
  crowd.add(1, 100, {.address = "a", .calls_first = true});
  crowd.turns(200);
  crowd.add(1000, {.address = "a", .calls_first = true});
  EXPECT_LE(crowd.turns_before(1000), 101u);
}

TEST(FairLine, AClientThatComesBackGainsNothing) {
  for (const bool calls_first : {false, true}) {
    for (const char* const address : {"a", "b"}) {  // with its neighbours, and alone
      for (const Amount cost : {kMiB / 64, kMiB, 16 * kMiB}) {
        Line line;
        Crowd crowd(line);
        crowd.add(1, 5, {.address = "a"});
        crowd.add(10, {.address = "c"});
        crowd.add(1000, {.address = address, .cost = cost, .comes_back = true, .calls_first = calls_first});
        crowd.turns(2000);
        const std::uint64_t peer = address == std::string("a") ? 1 : 10;
        EXPECT_LE(crowd.received(1000), crowd.received(peer) + cost + kMiB) << address << ' ' << cost;
        if (!calls_first) {
          EXPECT_GE(2 * crowd.received(1000) + 2 * cost + kMiB, crowd.received(peer)) << address << ' ' << cost;
        }
      }
    }
  }
}

// It receives much in one turn, leaves, comes back, and asks for little.
TEST(FairLine, AClientThatComesBackBeginsNoEarlierThanIfItHadStayed) {
  Line line;
  Crowd crowd(line);
  crowd.add(1, {.address = "a"});
  crowd.turns(10);
  line.push({500, "a"}, 1, 1);  // it has had its first turn
  line.serve_next([](std::uint64_t number, int) { return number == 500 ? Offer::begun(1) : Offer{}; });
  line.serve_at_once({500, "a"}, 100 * kMiB);
  line.remove(500);
  crowd.add(1000, {.address = "a", .cost = 1});
  EXPECT_GE(crowd.turns_before(1000), 99u);
}

// What others take while a client waits for something of its own is no credit.
TEST(FairLine, AClientThatWasPassedHasNoMoreThanOneTurnBeforeOthers) {
  for (const char* const address : {"a", "b"}) {
    Line line;
    for (int i = 0; i < 1000; ++i) line.push({1, address}, 0, 10);
    line.push({2, "a"}, 0, 10);
    for (int i = 0; i < 1000; ++i) {
      EXPECT_TRUE(line.serve_next([](std::uint64_t client, int) { return client == 2 ? Offer::begun(10) : Offer{}; }));
      line.push({2, "a"}, 0, 10);
    }
    line.push({3, "a"}, 0, 10);
    std::size_t of_first = 0;
    std::uint64_t served = 0;
    while (served != 3 && of_first < 1000) {
      EXPECT_TRUE(line.serve_next([&](std::uint64_t client, int) {
        served = client;
        return Offer::begun(10);
      }));
      of_first += served == 1 ? 1 : 0;
      if (served == 2) line.push({2, "a"}, 0, 10);
    }
    EXPECT_LE(of_first, 2u) << address;
  }
}

class RandomLine : public ::testing::TestWithParam<unsigned> {
 protected:
  // Clients come, have turns and go as the seed says; with phantoms between all these events, or none. Returns the
  // clients in the order of their turns.
  static std::vector<std::uint64_t> play(unsigned seed, std::size_t num_phantoms) {
    std::mt19937 random(seed);
    const auto below = [&](std::uint32_t bound) { return static_cast<std::uint32_t>(random() % bound); };
    Line line;
    std::map<std::uint64_t, std::pair<std::string, Amount>> here;
    std::vector<std::uint64_t> order;
    std::uint64_t last = 0, last_phantom = 1000000;
    const auto phantoms = [&] {
      for (std::size_t i = 0; i < num_phantoms; ++i) {
        const Line::Client phantom{++last_phantom, std::string(1, static_cast<char>('a' + i % 6))};
        if (i % 2 == 0) line.serve_at_once(phantom, 0);
        if (i % 3 == 0) line.push(phantom, 0, 1 + i * 1000);
        line.remove(phantom.number);
      }
    };
    for (int step = 0; step < 800; ++step) {
      phantoms();
      const std::uint32_t event = below(10);
      if (event == 0 || here.size() < 3) {
        const std::string address(1, static_cast<char>('a' + below(4)));
        here[++last] = {address, 1 + below(1u << (4 * below(6)))};
        if (below(2) == 0) line.serve_at_once({last, address}, below(2) * below(1000));
        line.push({last, address}, 0, below(2) * here[last].second);
      } else if (event == 1) {
        const std::uint64_t gone = std::next(here.begin(), below(static_cast<std::uint32_t>(here.size())))->first;
        here.erase(gone);
        line.remove(gone);
      } else if (const auto taken = line.take()) {
        order.push_back(taken->client);
        const auto& [address, cost] = here.at(taken->client);
        line.done(*taken, cost);
        line.push({taken->client, address}, 0, below(2) * cost);
      }
    }
    return order;
  }
};

TEST_P(RandomLine, PhantomsChangeNoTurn) {
  SCOPED_TRACE("seed " + std::to_string(GetParam()));
  EXPECT_EQ(play(GetParam(), 0), play(GetParam(), 7));
}

// The same neighbours twice: once a client stays, and once it leaves and comes back after each turn, or after some.
TEST_P(RandomLine, ComingBackIsNoBetterThanStaying) {
  SCOPED_TRACE("seed " + std::to_string(GetParam()));
  std::mt19937 random(GetParam());
  constexpr Amount kMost = 1 << 12;
  std::vector<Crowd::Behaviour> neighbours;
  for (std::size_t i = 0; i < 2 + random() % 8; ++i) {
    neighbours.push_back({.address = std::string(1, static_cast<char>('a' + random() % 3)),
                          .cost = 1 + random() % kMost,
                          .comes_back = i > 1 && random() % 4 == 0,
                          .calls_first = random() % 2 == 0});
  }
  const Crowd::Behaviour own{.address = "a", .cost = 1 + random() % kMost, .calls_first = random() % 2 == 0};
  const auto received = [&](bool comes_back) {
    Line line;
    Crowd crowd(line);
    std::uint64_t number = 0;
    for (const auto& neighbour : neighbours) crowd.add(++number, neighbour);
    crowd.add(1000, {own.address, own.cost, comes_back, own.calls_first});
    // As long as the first neighbour receives the same.
    while (crowd.received(1) < 200 * kMost) (void)crowd.turn();
    return crowd.received(1000);
  };
  EXPECT_LE(received(true), received(false) + 2 * kMost);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomLine, ::testing::Range(1u, 21u));

}  // namespace
}  // namespace weft
