#include "apps/metrics/call_metrics.h"

#include <gtest/gtest.h>

#include <string>

#include "apps/metrics/snapshot.h"
#include "nfsulb/programs.h"

namespace weft::metrics {
namespace {

using rpcrdma::AnsweredCall;
using rpcrdma::CallOutcome;
using rpcrdma::ConnectionId;

// The clock of these tests.
TimePoint g_now{};

struct CallMetricsTest : ::testing::Test {
  CallMetricsTest() { g_now = {}; }

  // One Call that takes so long.
  void call(std::uint32_t connection, std::uint32_t procedure, std::chrono::nanoseconds time,
            std::uint32_t version = nfsulb::kNfsV3, std::uint32_t program = nfsulb::kNfsProgram) {
    AnsweredCall call{.connection = {connection}, .mark = metrics.on_arrival(), .is_served = true};
    call.program = program;
    call.version = version;
    call.procedure = procedure;
    g_now += time;
    metrics.on_answer(call);
  }
  std::uint64_t num_of(const ProcedureId& id) const {
    const auto at = metrics.counts().procedures.find(id);
    return at == metrics.counts().procedures.end() ? 0 : num(at->second);
  }
  static std::uint64_t num(const LatencyHistogram& histogram) {
    std::uint64_t sum = 0;
    for (const std::uint64_t count : histogram.counts()) sum += count;
    return sum;
  }
  void end(std::uint32_t connection, std::uint64_t sends = 0) {
    rpcrdma::ConnectionStatistics last{.connection = {connection}, .client = ""};
    last.messages.sends_rx = sends;
    metrics.on_end(last);
  }

  CallMetrics metrics{[] { return g_now; }};
};

TEST(LatencyHistogram, ADurationEqualToABoundIsBelowIt) {
  LatencyHistogram histogram;
  histogram.add(0);
  histogram.add(5'000);
  histogram.add(5'001);
  histogram.add(10'000'000'000);
  histogram.add(10'000'000'001);
  EXPECT_EQ(histogram.counts()[0], 2u);
  EXPECT_EQ(histogram.counts()[1], 1u);
  EXPECT_EQ(histogram.counts()[LatencyHistogram::kBounds.size() - 1], 1u);
  EXPECT_EQ(histogram.counts().back(), 1u);
  EXPECT_EQ(histogram.sum(), 20'000'010'002u);
}

TEST_F(CallMetricsTest, CallsAreCountedByProcedureAndClientWithTheirTimes) {
  metrics.on_connection({1}, "192.0.2.1");
  metrics.on_connection({2}, "192.0.2.2");
  call(1, 6, std::chrono::microseconds(30));
  call(1, 6, std::chrono::microseconds(40));
  call(2, 1, std::chrono::milliseconds(3));
  EXPECT_EQ(num_of({nfsulb::kNfsProgram, 3, 6}), 2u);
  EXPECT_EQ(num_of({nfsulb::kNfsProgram, 3, 1}), 1u);
  EXPECT_EQ(num(metrics.counts().clients.at("192.0.2.1").latency), 2u);
  EXPECT_EQ(metrics.counts().clients.at("192.0.2.1").latency.sum(), 70'000u);
  EXPECT_EQ(metrics.counts().clients.at("192.0.2.2").latency.sum(), 3'000'000u);
  EXPECT_EQ(metrics.counts().outcomes[static_cast<std::size_t>(CallOutcome::kSuccess)], 3u);
}

// A peer chooses these numbers.
TEST_F(CallMetricsTest, UnknownProceduresAndProgramsShareTheirCounts) {
  metrics.on_connection({1}, "192.0.2.1");
  for (std::uint32_t i = 0; i < 1000; ++i) {
    call(1, 1000 + i, std::chrono::microseconds(1));
    call(1, i, std::chrono::microseconds(1), 100 + i);
    call(1, i, std::chrono::microseconds(1), 1, 300'000 + i);
  }
  EXPECT_EQ(num_of({nfsulb::kNfsProgram, 3, ProcedureId::kOther}), 1000u);
  EXPECT_EQ(num_of({}), 2000u);
  EXPECT_EQ(metrics.counts().procedures.size(), 2u);
}

TEST_F(CallMetricsTest, ACallThatNoProgramGetsIsCountedWithoutItsNumbers) {
  metrics.on_connection({1}, "192.0.2.1");
  metrics.on_answer({.connection = {1}, .mark = metrics.on_arrival(), .outcome = CallOutcome::kProgUnavail});
  EXPECT_EQ(num_of({}), 1u);
  EXPECT_EQ(metrics.counts().outcomes[static_cast<std::size_t>(CallOutcome::kProgUnavail)], 1u);
}

TEST_F(CallMetricsTest, EndedConnectionsStayInTheSumsOfTheirClient) {
  metrics.on_connection({1}, "192.0.2.1");
  metrics.on_connection({2}, "192.0.2.1");
  end(1, 3);
  EXPECT_EQ(metrics.counts().clients.at("192.0.2.1").num_connections, 1u);
  end(2, 4);
  EXPECT_EQ(metrics.counts().clients.at("192.0.2.1").num_connections, 0u);
  EXPECT_EQ(metrics.counts().clients.at("192.0.2.1").ended.sends_rx, 7u);
}

TEST_F(CallMetricsTest, ClientsBeyondTheBoundAreCountedTogether) {
  for (std::uint32_t i = 0; i < CallMetrics::kMaxClients + 2; ++i) {
    metrics.on_connection({i}, "client " + std::to_string(i));
    call(i, 0, std::chrono::microseconds(1));
  }
  EXPECT_EQ(metrics.counts().clients.size(), CallMetrics::kMaxClients);
  EXPECT_EQ(num(metrics.counts().other_clients.latency), 2u);
  EXPECT_EQ(metrics.client_of({CallMetrics::kMaxClients}), CallMetrics::kOtherClients);
  end(CallMetrics::kMaxClients, 5);
  EXPECT_EQ(metrics.counts().other_clients.ended.sends_rx, 5u);
}

TEST_F(CallMetricsTest, ANewcomerGetsThePlaceOfTheClientThatIsGoneLongest) {
  for (std::uint32_t i = 0; i < CallMetrics::kMaxClients; ++i) {
    metrics.on_connection({i}, "client " + std::to_string(i));
    call(i, 0, std::chrono::microseconds(1));
  }
  end(7, 2);
  end(3, 4);
  metrics.on_connection({1000}, "newcomer");
  EXPECT_EQ(metrics.client_of({1000}), "newcomer");
  EXPECT_FALSE(metrics.counts().clients.contains("client 7"));
  EXPECT_TRUE(metrics.counts().clients.contains("client 3"));
  EXPECT_EQ(num(metrics.counts().other_clients.latency), 1u);
  EXPECT_EQ(metrics.counts().other_clients.ended.sends_rx, 2u);
}

TEST_F(CallMetricsTest, ASnapshotNamesConnectionsByTheirCountedClient) {
  rpcrdma::ServerStatistics statistics;
  for (std::uint32_t i = 0; i <= CallMetrics::kMaxClients; ++i) {
    metrics.on_connection({i}, "client " + std::to_string(i));
    statistics.connections.push_back({.connection = {i}, .client = "client " + std::to_string(i)});
  }
  Snapshot snapshot;
  take(snapshot, metrics, statistics);
  EXPECT_EQ(snapshot.num_clients, CallMetrics::kMaxClients + 1);
  EXPECT_EQ(snapshot.server.connections.front().client, "client 0");
  EXPECT_EQ(snapshot.server.connections.back().client, CallMetrics::kOtherClients);
}

}  // namespace
}  // namespace weft::metrics
