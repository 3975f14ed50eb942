#include "rpcrdma/connection_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/ledger.h"

namespace weft::rpcrdma {
namespace {

using Kind = ConnectionOrder::Kind;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Connections in the order, and beside it in a Ledger that judges every one of them by the same rules.
class ConnectionOrderTest : public ::testing::TestWithParam<milliseconds> {
 protected:
  static constexpr std::size_t kMax = 8, kMaxOfGroup = 5;

  struct Open {
    std::string group;
    ConnectionOrder::Seen seen;
    Ledger::Client client;
    Lease place;
  };

  std::size_t size_of(const std::string& group) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(open, [&](const auto& one) { return one.second.group == group; }));
  }
  // As a newcomer of that group finds it.
  Ledger::Standing standing_of(const Open& one, const std::string& newcomer) const {
    const ConnectionOrder::Seen& seen = one.seen;
    using Tenure = Ledger::Tenure;
    const auto num_new =
        std::ranges::count_if(open, [](const auto& one) { return one.second.seen.kind == Kind::kNew; });
    const bool has_many_new = static_cast<std::size_t>(num_new) > open.size() / 4;
    const bool is_new = seen.kind == Kind::kNew;
    if (seen.kind == Kind::kOnce) return {.tenure = Tenure::kBusy, .weight = 0, .since = seen.used_at};
    const bool may_go_young = one.group == newcomer || size_of(one.group) > size_of(newcomer) + 1;
    const auto kept = may_go_young ? first_call : std::max(first_call, milliseconds(1000));
    if (is_new && now - seen.used_at >= kept) return {.tenure = Tenure::kUnused, .since = seen.used_at};
    if (now - seen.used_at < seconds(1)) {
      return {.tenure = Tenure::kBusy, .weight = has_many_new && is_new ? 2u : 1u, .since = seen.used_at};
    }
    if (seen.kind == Kind::kIdle) return {.tenure = Tenure::kResting, .since = seen.used_at};
    return {.tenure = Tenure::kBusy, .weight = 3, .since = seen.used_at};
  }

  void connect(const std::string& group) {
    while (places.asks(group, 1) != Ledger::Verdict::kFits) {
      const bool only_own = places.asks(group, 1) == Ledger::Verdict::kAddress;
      const auto out = order.gives_way(group, only_own, now);
      const auto expected =
          places.gives_way(group, 1, [&](std::uint64_t tag) { return standing_of(open.at(tag), group); });
      ASSERT_EQ(out.has_value(), expected.has_value());
      if (!out) return void(++num_refused);
      ASSERT_EQ(*out, *expected);
      end(*out);
      ++num_gave_way;
    }
    Ledger::Client client = places.enter(group, ++last);
    Lease place = client.take(1);
    open[last] = {group, {.used_at = now}, std::move(client), std::move(place)};
    order.add(last, group, open[last].seen);
  }
  void see(std::uint64_t serial, Kind kind) {
    Open& one = open.at(serial);
    const ConnectionOrder::Seen before = std::exchange(one.seen, {kind, now});
    order.see(static_cast<std::uint32_t>(serial), one.group, before, one.seen);
  }
  void end(std::uint64_t serial) {
    order.remove(static_cast<std::uint32_t>(serial), open.at(serial).group, open.at(serial).seen);
    open.erase(serial);
  }

  const milliseconds first_call = GetParam();
  ConnectionOrder order{first_call};
  Ledger places{{.client = 1, .address = kMaxOfGroup, .all = kMax}};
  std::map<std::uint64_t, Open> open;
  std::uint32_t last = 0;
  TimePoint now{seconds(100)};
  int num_gave_way = 0, num_refused = 0;
};

TEST_P(ConnectionOrderTest, NamesTheConnectionThatALookAtAllOfThemNames) {
  std::mt19937 random(1);
  const auto below = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
  for (unsigned most_silent : {20u, 200u, 2000u}) {
    for (int step = 0; step < 20000; ++step) {
      // No two connections were used last at the same time.
      now += milliseconds(1 + below(most_silent));
      // Some groups come more often than others.
      if (below(3) == 0 || open.empty()) {
        ASSERT_NO_FATAL_FAILURE(connect("192.0.2." + std::to_string(below(1 + below(16)))));
        continue;
      }
      const std::uint64_t serial = std::next(open.begin(), below(static_cast<unsigned>(open.size())))->first;
      if (below(20) == 0) {
        end(serial);
      } else {
        constexpr std::array kKinds = {Kind::kIdle, Kind::kIdle, Kind::kIdle, Kind::kBusy, Kind::kOnce};
        see(serial, kKinds[below(kKinds.size())]);
      }
    }
  }
  EXPECT_GT(num_gave_way, 5000);
  EXPECT_GT(num_refused, 10);
}

// As a Server has it, and as a gateway.
INSTANTIATE_TEST_SUITE_P(FirstCall, ConnectionOrderTest, ::testing::Values(milliseconds(1000), milliseconds(0)));

// The cost of a newcomer does not grow with the number of connections.
TEST(ConnectionOrder, ANewcomerJudgesAFewOfTenThousandAtRest) {
  constexpr std::uint32_t kNum = 10000, kNewcomers = 1000;
  for (const std::uint32_t num_groups : {1u, 2u, 140u, kNum}) {
    ConnectionOrder order;
    std::map<std::uint32_t, std::pair<std::string, ConnectionOrder::Seen>> open;
    const TimePoint began{seconds(100)};
    const auto add = [&](std::uint32_t serial, const std::string& group, ConnectionOrder::Seen seen) {
      open[serial] = {group, seen};
      order.add(serial, group, seen);
    };
    // Groups of all sizes, where there are few.
    for (std::uint32_t serial = 1; serial <= kNum; ++serial) {
      const std::uint32_t group = num_groups == kNum ? serial : (serial * serial / 7) % (1 + serial % num_groups);
      add(serial, std::to_string(group), {Kind::kIdle, began + milliseconds(serial)});
    }
    TimePoint now = began + seconds(60);
    for (std::uint32_t i = 1; i <= kNewcomers; ++i) {
      now += milliseconds(20);
      const std::string newcomer = "newcomer " + std::to_string(i % 2);
      const std::uint64_t before = order.num_judged();
      const auto out = order.gives_way(newcomer, false, now);
      ASSERT_TRUE(out);
      ASSERT_LE(order.num_judged() - before, 24u) << num_groups << " groups, newcomer " << i;
      order.remove(*out, open.at(*out).first, open.at(*out).second);
      open.erase(*out);
      add(kNum + i, newcomer, {Kind::kNew, now});
      if (i % 3 == 0) continue;
      const ConnectionOrder::Seen called{Kind::kBusy, now};
      order.see(kNum + i, newcomer, std::exchange(open.at(kNum + i).second, called), called);
    }
  }
}

}  // namespace
}  // namespace weft::rpcrdma
