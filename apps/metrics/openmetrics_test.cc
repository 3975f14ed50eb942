// The text: the writer against the format's own words, the parser against the writer, and snapshots in full.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "apps/metrics/openmetrics_parser.h"
#include "apps/metrics/openmetrics_writer.h"
#include "apps/metrics/snapshot.h"
#include "nfsulb/programs.h"

namespace weft::metrics {
namespace {

using ::testing::HasSubstr;

TEST(OpenMetricsWriter, WritesFamiliesWithTheirSamples) {
  OpenMetricsWriter out;
  out.counter("a_bytes", "bytes", "Some bytes.");
  out.total({{"kind", "x"}, {"direction", "in"}}, 7);
  out.gauge("b", "", "A gauge.");
  out.value({}, std::uint64_t{3});
  out.value({}, 0.25);
  out.info("c", "An info.");
  out.info_labels({{"version", "1"}});
  EXPECT_EQ(out.finish(),
            "# TYPE a_bytes counter\n# UNIT a_bytes bytes\n# HELP a_bytes Some bytes.\n"
            "a_bytes_total{kind=\"x\",direction=\"in\"} 7\n"
            "# TYPE b gauge\n# HELP b A gauge.\nb 3\nb 0.25\n"
            "# TYPE c info\n# HELP c An info.\nc_info{version=\"1\"} 1\n# EOF\n");
}

TEST(OpenMetricsWriter, EscapesLabels) {
  OpenMetricsWriter out;
  out.gauge("a", "", "h");
  out.value({{"l", "q\"b\\n\n"}}, std::uint64_t{1});
  EXPECT_THAT(out.finish(), HasSubstr("a{l=\"q\\\"b\\\\n\\n\"} 1\n"));
}

TEST(OpenMetricsWriter, BucketsAreCumulativeAndEndAtInfinity) {
  LatencyHistogram histogram;
  histogram.add(7'000);
  histogram.add(1'500'000'000);
  histogram.add(60'000'000'000);
  OpenMetricsWriter out;
  out.histogram("d_seconds", "h");
  out.durations({{"p", "x"}}, histogram);
  const std::string text = out.finish();
  EXPECT_THAT(text, HasSubstr("d_seconds_bucket{p=\"x\",le=\"5e-06\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("d_seconds_bucket{p=\"x\",le=\"1e-05\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("d_seconds_bucket{p=\"x\",le=\"1.0\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("d_seconds_bucket{p=\"x\",le=\"2.0\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("d_seconds_bucket{p=\"x\",le=\"10.0\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("d_seconds_bucket{p=\"x\",le=\"+Inf\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("d_seconds_sum{p=\"x\"} 61.500007\n"));
  EXPECT_THAT(text, HasSubstr("d_seconds_count{p=\"x\"} 3\n"));
}

TEST(OpenMetricsParser, ReadsBackAnyLabel) {
  std::string label;
  for (int c = 1; c < 256; ++c) label += static_cast<char>(c);
  OpenMetricsWriter out;
  out.gauge("a", "", "h");
  out.value({{"l", label}, {"m", ""}}, std::uint64_t{42});
  const auto scrape = parse_openmetrics(out.finish());
  ASSERT_TRUE(scrape.ok()) << scrape.status();
  ASSERT_EQ(scrape->samples("a").size(), 1u);
  EXPECT_EQ(scrape->samples("a")[0].label("l"), label);
  EXPECT_EQ(scrape->value("a", {{"m", ""}}), 42);
  EXPECT_EQ(scrape->value("a", {{"m", "x"}}), 0);
  EXPECT_TRUE(scrape->samples("b").empty());
}

TEST(OpenMetricsParser, RefusesWhatIsNoMetrics) {
  for (const char* text : {"",
                           "a 1\n",
                           "a 1\n# EOF\nb 1\n",
                           "a\n# EOF\n",
                           "a x\n# EOF\n",
                           "a 1e999\n# EOF\n",
                           "a nan\n# EOF\n",
                           "a +Inf\n# EOF\n",
                           "a -Inf\n# EOF\n",
                           "a inf\n# EOF\n",
                           "a NaN\n# EOF\n",
                           "a 1.9e19\n# EOF\n",
                           "a -1.9e19\n# EOF\n",
                           "1a 1\n# EOF\n",
                           "a{ 1\n# EOF\n",
                           "a{l=\"x\" 1\n# EOF\n",
                           "a{l=x} 1\n# EOF\n",
                           "a{l=\"x\",l=\"y\"} 1\n# EOF\n",
                           "a{l=\"x\\",
                           "<html>\n# EOF\n",
                           " \n# EOF\n"}) {
    EXPECT_FALSE(parse_openmetrics(text).ok()) << text;
  }
}

TEST(OpenMetricsParser, TakesNoMoreSamplesThanItsBound) {
  std::string text;
  for (std::size_t i = 0; i < kMaxSamples; ++i) text += "a 1\n";
  EXPECT_TRUE(parse_openmetrics(text + "# EOF\n").ok());
  EXPECT_FALSE(parse_openmetrics(text + "a 1\n# EOF\n").ok());
}

TEST(OpenMetricsParser, TakesNoCutText) {
  const std::string text = to_openmetrics(Snapshot{}, "serve");
  ASSERT_TRUE(parse_openmetrics(text).ok());
  constexpr std::size_t kStep = 17;  // all cuts would take long
  for (std::size_t len = 0; len + 1 < text.size(); len += kStep) {
    EXPECT_FALSE(parse_openmetrics(text.substr(0, len)).ok()) << len;
  }
}

Snapshot full_snapshot() {
  Snapshot out;
  LatencyHistogram histogram;
  histogram.add(15'000);
  out.calls.procedures[{nfsulb::kNfsProgram, 3, 6}] = histogram;
  out.calls.procedures[{nfsulb::kNfsProgram, 3, ProcedureId::kOther}] = histogram;
  out.calls.procedures[{}] = histogram;
  out.calls.clients["192.0.2.1"].latency = histogram;
  out.calls.clients["192.0.2.1"].ended.send_octets_rx = 5;
  out.calls.other_clients.ended.send_octets_rx = 7;
  out.server.ended_messages.send_octets_rx = 12;
  out.server.connections = {{.connection = {1}, .client = "192.0.2.1", .credits = 8, .under_way = 3, .waiting = 1},
                            {.connection = {2}, .client = "other", .credits = 4}};
  out.server.connections[0].messages.send_octets_rx = 100;
  out.server.connections[0].messages.reads_tx = 2;
  out.server.connections[0].messages.read_octets_rx = 2000;
  out.server.ended[static_cast<std::size_t>(rpcrdma::EndReason::kGaveWay)] = 9;
  out.num_clients = 2;
  out.terminates = {{.layer = 1, .etype = 2, .code = 5, .meaning = "too long", .sent = 3, .received = 1},
                    {.layer = 255, .meaning = "unregistered", .received = 4}};
  out.memory = {{.kind = "calls", .held = 10, .limit = 20}, {.kind = "sends", .held = 30}};
  out.lanes = {{.lane = "sync", .queued = 1, .queue_limit = 2, .running = 3, .workers = 4, .done = 5, .refused = 6}};
  return out;
}

TEST(Exposition, HasTheNumbersOfTheSnapshot) {
  const auto scrape = parse_openmetrics(to_openmetrics(full_snapshot(), "gateway"));
  ASSERT_TRUE(scrape.ok()) << scrape.status();
  const auto value = [&](const std::string& name, const std::map<std::string, std::string>& labels = {}) {
    return scrape->value(name, labels);
  };
  EXPECT_EQ(scrape->samples("weft_build_info").at(0).label("command"), "gateway");
  EXPECT_GT(value("process_start_time_seconds"), 1.6e9);
  EXPECT_EQ(value("weft_clients"), 2);
  EXPECT_EQ(value("weft_connections"), 2);
  EXPECT_EQ(value("weft_connections_ended_total", {{"reason", "gave_way"}}), 9);
  EXPECT_EQ(value("weft_rpc_duration_seconds_count", {{"program", "NFS"}, {"version", "3"}, {"procedure", "READ"}}), 1);
  EXPECT_EQ(value("weft_rpc_duration_seconds_count", {{"program", "NFS"}, {"version", "3"}, {"procedure", "other"}}),
            1);
  EXPECT_EQ(value("weft_rpc_duration_seconds_count", {{"program", "other"}, {"version", "other"}}), 1);
  EXPECT_EQ(value("weft_credits_granted"), 12);
  EXPECT_EQ(value("weft_rpc_calls_under_way"), 3);
  EXPECT_EQ(value("weft_rpc_calls_waiting"), 1);
  EXPECT_EQ(value("weft_transfer_bytes_total", {{"kind", "send"}, {"direction", "in"}}), 112);
  EXPECT_EQ(value("weft_transfer_bytes_total", {{"kind", "rdma_read"}, {"direction", "in"}}), 2000);
  EXPECT_EQ(value("weft_transfer_operations_total", {{"kind", "rdma_read"}, {"direction", "in"}}), 2);
  EXPECT_EQ(value("weft_client_transfer_bytes_total", {{"client", "192.0.2.1"}, {"kind", "send"}, {"direction", "in"}}),
            105);
  EXPECT_EQ(value("weft_client_transfer_bytes_total", {{"client", "other"}, {"kind", "send"}, {"direction", "in"}}), 7);
  EXPECT_EQ(value("weft_client_credits_granted", {{"client", "other"}}), 4);
  EXPECT_EQ(value("weft_terminates_total", {{"direction", "sent"}, {"layer", "ddp"}, {"etype", "2"}, {"code", "0x05"}}),
            3);
  EXPECT_EQ(value("weft_terminates_total", {{"direction", "received"}, {"layer", "other"}}), 4);
  EXPECT_EQ(value("weft_memory_held_bytes", {{"kind", "sends"}}), 30);
  EXPECT_EQ(value("weft_memory_limit_bytes", {{"kind", "calls"}}), 20);
  EXPECT_EQ(scrape->samples("weft_memory_limit_bytes").size(), 1u);
  EXPECT_EQ(value("weft_disk_tasks_queued_limit", {{"lane", "sync"}}), 2);
  EXPECT_EQ(value("weft_disk_tasks_refused_total", {{"lane", "sync"}}), 6);
}

// The longest text: all clients, all procedures, all Terminates. docs/security.md has the figure.
TEST(Exposition, IsNoLongerThanItsBound) {
  Snapshot snapshot = full_snapshot();
  for (std::size_t i = 0; i < CallMetrics::kMaxClients; ++i) {
    snapshot.calls.clients["fe80:1234:5678:9abc::%eth0123456789/64" + std::to_string(i)];
  }
  for (std::uint32_t version = 2; version <= 4; ++version) {
    for (std::uint32_t procedure = 0; procedure < 30; ++procedure) {
      snapshot.calls.procedures[{nfsulb::kNfsProgram, version, procedure}];
      snapshot.calls.procedures[{nfsulb::kMountProgram, version - 1, procedure}];
      snapshot.calls.procedures[{nfsulb::kNlmProgram, version, procedure}];
    }
  }
  EXPECT_LT(to_openmetrics(snapshot, "serve").size(), std::size_t{1} << 20);
}

}  // namespace
}  // namespace weft::metrics
