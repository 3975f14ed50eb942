// From two answers of a server to what a terminal or a script gets.
#include "apps/top/view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "apps/metrics/snapshot.h"
#include "apps/top/screen.h"
#include "nfsulb/programs.h"

namespace weft::apps::top {
namespace {

using metrics::Snapshot;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

constexpr metrics::ProcedureId kRead{nfsulb::kNfsProgram, 3, 6}, kWrite{nfsulb::kNfsProgram, 3, 7};

TimedScrape scrape_of(const std::string& text, double at_s) {
  auto scrape = metrics::parse_openmetrics(text);
  EXPECT_TRUE(scrape.ok()) << scrape.status();
  return {std::move(*scrape),
          std::chrono::steady_clock::time_point(std::chrono::nanoseconds(static_cast<std::int64_t>(at_s * 1e9)))};
}
TimedScrape scrape_of(const Snapshot& snapshot, double at_s) {
  return scrape_of(metrics::to_openmetrics(snapshot, "serve"), at_s);
}

void add_calls(Snapshot& snapshot, const metrics::ProcedureId& id, const std::string& client, int num,
               std::uint64_t ns) {
  for (int i = 0; i < num; ++i) {
    snapshot.calls.procedures[id].add(ns);
    snapshot.calls.clients[client].latency.add(ns);
    ++snapshot.calls.outcomes[0];
  }
}

// Two answers with two seconds between them.
struct ViewTest : ::testing::Test {
  ViewTest() {
    add_calls(before, kRead, "192.0.2.1", 1000, 400'000'000);
    before.calls.clients["192.0.2.1"].ended.write_octets_tx = 5'000;
    before.calls.clients["192.0.2.9"];
    after = before;
    add_calls(after, kRead, "192.0.2.1", 98, 15'000);
    add_calls(after, kRead, "192.0.2.1", 2, 3'000'000);
    add_calls(after, kWrite, "192.0.2.2", 300, 70'000);
    after.server.connections = {{.connection = {1}, .client = "192.0.2.1", .credits = 8, .under_way = 3, .waiting = 1}};
    after.server.connections[0].messages.write_octets_tx = 2'000'000;
    after.num_clients = 1;
    ++after.calls.outcomes[3];
    after.memory = {{.kind = "calls", .held = 1 << 20, .limit = 2 << 20}};
    after.lanes = {{.lane = "normal", .queued = 5, .queue_limit = 9, .running = 2, .workers = 4}};
  }
  View view(SortKey key = SortKey::kCalls) const { return make_view(scrape_of(before, 10), scrape_of(after, 12), key); }

  Snapshot before, after;
};

TEST_F(ViewTest, RatesAreThoseOfTheInterval) {
  const View v = view();
  EXPECT_DOUBLE_EQ(v.seconds, 2);
  EXPECT_DOUBLE_EQ(v.all.calls_per_s, 200);
  EXPECT_DOUBLE_EQ(v.errors_per_s, 0.5);
  EXPECT_EQ(v.clients, 1u);
  ASSERT_THAT(v.rows_of_clients, SizeIs(2)) << "a client without connection and Calls is not shown";
  EXPECT_EQ(v.rows_of_clients[0].name, "192.0.2.2");
  EXPECT_DOUBLE_EQ(v.rows_of_clients[0].calls_per_s, 150);
  const Row& first = v.rows_of_clients[1];
  EXPECT_EQ(first.name, "192.0.2.1");
  EXPECT_DOUBLE_EQ(first.calls_per_s, 50);
  EXPECT_DOUBLE_EQ(first.bytes_per_s[static_cast<std::size_t>(Traffic::kWriteOut)], 1e6);
  EXPECT_EQ(first.connections, 1u);
  EXPECT_EQ(first.credits, 8u);
  EXPECT_EQ(first.under_way, 3u);
  EXPECT_EQ(first.waiting, 1u);
}

TEST_F(ViewTest, LatenciesAreThoseOfTheIntervalWithinTheirBucket) {
  const View v = view();
  const Row& first = v.rows_of_clients[1];
  EXPECT_GT(first.p50_ns, 10'000);
  EXPECT_LE(first.p50_ns, 20'000);
  EXPECT_GT(first.p99_ns, 2'000'000);
  EXPECT_LE(first.p99_ns, 5'000'000);
  ASSERT_THAT(v.rows_of_procedures, SizeIs(2));
  EXPECT_EQ(v.rows_of_procedures[0].name, "NFSv3 WRITE");
  EXPECT_EQ(v.rows_of_procedures[1].name, "NFSv3 READ");
}

TEST_F(ViewTest, ACallBeyondTheLastBoundCountsAsThatBound) {
  Snapshot slow = after;
  add_calls(slow, kWrite, "192.0.2.3", 1, 3'600'000'000'000);
  const View v = make_view(scrape_of(after, 1), scrape_of(slow, 2), SortKey::kCalls);
  ASSERT_FALSE(v.rows_of_procedures.empty());
  EXPECT_DOUBLE_EQ(v.rows_of_procedures[0].p99_ns, 1e10);
}

TEST_F(ViewTest, RowsAreSortedByTheKey) {
  const auto first = [this](SortKey key) { return view(key).rows_of_clients.at(0).name; };
  EXPECT_EQ(first(SortKey::kCalls), "192.0.2.2");
  EXPECT_EQ(first(SortKey::kBytes), "192.0.2.1");
  EXPECT_EQ(first(SortKey::kP99), "192.0.2.1");
  EXPECT_EQ(first(SortKey::kQueue), "192.0.2.1");
  EXPECT_EQ(first(SortKey::kName), "192.0.2.1");
}

TEST_F(ViewTest, CountersThatBeginAnewAreNoNegativeRates) {
  const View v = make_view(scrape_of(after, 1), scrape_of(before, 2), SortKey::kCalls);
  EXPECT_DOUBLE_EQ(v.all.calls_per_s, 0);
  for (const Row& row : v.rows_of_clients) EXPECT_DOUBLE_EQ(row.all_bytes_per_s(), 0);
}

TEST_F(ViewTest, AnyNumbersOfAServerAreTaken) {
  const std::string text =
      "process_start_time_seconds -1.8e19\nweft_connections 1.8e19\nweft_clients -7\nweft_credits_granted 1e19\n"
      "weft_rpc_duration_seconds_bucket{program=\"x\"} 1.8e19\n"
      "weft_rpc_duration_seconds_bucket{program=\"x\",le=\"-5\"} 1.8e19\n"
      "weft_rpc_duration_seconds_bucket{program=\"y\",le=\"nan\"} 5\n"
      "weft_rpc_duration_seconds_bucket{program=\"y\",le=\"1\"} 3\n"
      "weft_rpc_duration_seconds_bucket{program=\"z\",le=\"1e308\"} 5\n"
      "weft_client_rpc_duration_seconds_bucket{le=\"1e999\"} 3\n"
      "weft_disk_tasks_running 1.8e19\nweft_memory_held_bytes -1.8e19\n# EOF\n";
  const View v = make_view(scrape_of("# EOF\n", 0), scrape_of(text, 1), SortKey::kCalls);
  EXPECT_EQ(v.clients, 0u);
  EXPECT_THAT(screen_lines(v, "x", {.width = 80, .height = 24}), Each(SizeIs(::testing::Le(80u))));
  EXPECT_FALSE(json_lines(v).empty());
  // JSON has no word for a number that is not finite.
  for (const std::string& line : json_lines(v)) EXPECT_EQ(line.find("null"), std::string::npos) << line;
  for (const Row& row : v.rows_of_procedures) EXPECT_GE(row.p99_ns, 0) << row.name;
}

TEST_F(ViewTest, AnotherStartTimeIsAnotherProcess) {
  const auto at = [](const std::string& start) {
    return scrape_of("process_start_time_seconds " + start + "\n# EOF\n", 0);
  };
  EXPECT_TRUE(is_same_process(at("5.25"), at("5.25")));
  EXPECT_FALSE(is_same_process(at("5.25"), at("6")));
}

TEST_F(ViewTest, TheScreenHasClientsProceduresAndResources) {
  const auto lines = screen_lines(view(), "127.0.0.1:9450", {.width = 200});
  EXPECT_THAT(lines, Contains(HasSubstr("weft serve")));
  EXPECT_THAT(lines, Contains(HasSubstr("calls 1.00 MiB of 2.00 MiB")));
  EXPECT_THAT(lines, Contains(HasSubstr("normal 2 of 4 workers busy, 5 queued")));
  EXPECT_THAT(lines, Contains(::testing::ContainsRegex("^192\\.0\\.2\\.1 +50 ")));
  EXPECT_THAT(lines, Contains(::testing::ContainsRegex("^NFSv3 WRITE +150 ")));
}

TEST_F(ViewTest, TheScreenIsNoLargerThanItsPage) {
  for (int i = 0; i < 60; ++i) add_calls(after, kRead, "198.51.100." + std::to_string(i), 1, 1'000);
  for (const std::size_t height : {1u, 5u, 10u, 24u, 50u}) {
    for (const std::size_t width : {1u, 20u, 80u}) {
      const auto lines = screen_lines(view(), "127.0.0.1:9450", {.width = width, .height = height});
      EXPECT_LE(lines.size(), height);
      EXPECT_THAT(lines, Each(SizeIs(::testing::Le(width))));
    }
  }
  // The procedures have their place below many clients.
  EXPECT_THAT(screen_lines(view(), "x", {.width = 80, .height = 24}), Contains(HasSubstr("NFSv3 READ")));
}

// Half a number would be another one.
TEST_F(ViewTest, ALineThatIsCutSaysSo) {
  EXPECT_EQ(fit("12.5 MB/s", 9), "12.5 MB/s");
  EXPECT_EQ(fit("12.5 MB/s", 8), "12.5 MB>");
  EXPECT_EQ(fit("\u00fc\u00fc\u00fc", 2), "\u00fc>");
  EXPECT_EQ(fit("x", 0), "");
  EXPECT_THAT(screen_lines(view(), "x", {.width = 60}), Contains(::testing::EndsWith(">")));
}

// The server may be an impostor.
TEST_F(ViewTest, NamesOfTheServerDriveNoTerminal) {
  add_calls(after, kRead, "\x1b[2J\r\nevil", 1, 1'000);
  for (const std::string& line : screen_lines(view(), "x", {.width = 200})) {
    for (const char c : line) EXPECT_GE(static_cast<unsigned char>(c), 0x20) << line;
  }
  EXPECT_THAT(screen_lines(view(), "x", {.width = 200}), Contains(HasSubstr("\\x1b[2J")));
  EXPECT_THAT(json_lines(view()), Each(Not(HasSubstr("\x1b"))));
}

TEST_F(ViewTest, JsonKeysSayTheirUnits) {
  const auto lines = json_lines(view());
  ASSERT_THAT(lines, SizeIs(5));
  EXPECT_THAT(lines[0], HasSubstr("{\"type\":\"all\",\"calls_per_s\":200.0,"));
  EXPECT_THAT(lines[2], HasSubstr("{\"type\":\"client\",\"name\":\"192.0.2.1\",\"calls_per_s\":50.0,\"p50_ns\":1"));
  EXPECT_THAT(lines[2], HasSubstr("\"rdma_write_out_octets_per_s\":1000000.0"));
  EXPECT_THAT(lines[3], HasSubstr("{\"type\":\"procedure\",\"name\":\"NFSv3 WRITE\","));
}

}  // namespace
}  // namespace weft::apps::top
