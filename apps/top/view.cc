#include "apps/top/view.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

namespace weft::apps::top {
namespace {

using Labels = std::map<std::string, std::string>;
using metrics::Sample;
using metrics::Scrape;

struct TrafficLabels {
  const char* kind;
  const char* direction;
};
constexpr std::array<TrafficLabels, kNumTraffic> kTraffic = {{{"send", "in"},
                                                              {"send", "out"},
                                                              {"rdma_read", "in"},
                                                              {"rdma_read", "out"},
                                                              {"rdma_write", "in"},
                                                              {"rdma_write", "out"}}};

// Whole numbers of a server are what it says: any number at all.
std::uint64_t whole(double value) {
  return value >= 0 && value < 1e18 ? static_cast<std::uint64_t>(value) : 0;
}

// Buckets: the counts of one histogram by upper bound in seconds, cumulative.
using Buckets = std::map<double, double>;

// A bound that is no time of ours is beyond all others.
double bound_of(const Sample& sample) {
  constexpr double kMaxBound = 1e9;  // seconds
  const std::string_view text = sample.label("le");
  double bound = -1;
  std::from_chars(text.data(), text.data() + text.size(), bound);
  return bound >= 0 && bound <= kMaxBound ? bound : std::numeric_limits<double>::infinity();
}

// Quantile of an interval's buckets, in nanoseconds: linear within a bucket; the last bucket gives its lower bound.
double quantile_ns(const Buckets& buckets, double q) {
  if (buckets.empty() || buckets.rbegin()->second <= 0) return 0;
  const double wanted = q * buckets.rbegin()->second;
  double low = 0, below = 0;
  for (const auto& [bound, count] : buckets) {
    if (count >= wanted && count > below) {
      if (std::isinf(bound)) return low * 1e9;
      return (low + (bound - low) * (wanted - below) / (count - below)) * 1e9;
    }
    if (!std::isinf(bound)) low = bound;
    below = std::max(below, count);
  }
  return low * 1e9;
}

// Histograms: the histograms of a family by the value of `name_of`.
template <typename NameOf>
std::map<std::string, Buckets> buckets_of(const Scrape& scrape, const std::string& family, NameOf name_of) {
  std::map<std::string, Buckets> out;
  for (const Sample& sample : scrape.samples(family + "_bucket")) {
    out[name_of(sample)][bound_of(sample)] += sample.value;
  }
  return out;
}

std::string client_of(const Sample& sample) {
  return std::string(sample.label("client"));
}

// "NFSv3 READ", or "other".
std::string procedure_of(const Sample& sample) {
  const std::string program(sample.label("program"));
  if (sample.label("version") == "other") return program;
  return program + "v" + std::string(sample.label("version")) + " " + std::string(sample.label("procedure"));
}

void set_latency(Row& row, Buckets buckets, const Buckets* before, double seconds) {
  if (before != nullptr) {
    for (auto& [bound, count] : buckets) {
      const auto at = before->find(bound);
      if (at != before->end()) count = std::max(0.0, count - at->second);
    }
  }
  if (!buckets.empty()) row.calls_per_s = buckets.rbegin()->second / seconds;
  row.p50_ns = quantile_ns(buckets, 0.5);
  row.p99_ns = quantile_ns(buckets, 0.99);
}

template <typename NameOf>
std::map<std::string, Row> rows_of(const Scrape& before, const Scrape& after, const std::string& family, NameOf name_of,
                                   double seconds) {
  const auto old = buckets_of(before, family, name_of);
  std::map<std::string, Row> rows;
  for (auto& [name, buckets] : buckets_of(after, family, name_of)) {
    Row& row = rows[name];
    row.name = name;
    const auto at = old.find(name);
    set_latency(row, std::move(buckets), at == old.end() ? nullptr : &at->second, seconds);
  }
  return rows;
}

// How much a counter grew in a second. A client that lost its place in the server's table begins anew.
double rate(const Scrape& before, const Scrape& after, const std::string& name, const Labels& labels, double seconds) {
  return std::max(0.0, after.value(name, labels) - before.value(name, labels)) / seconds;
}

void set_traffic(Row& row, const Scrape& before, const Scrape& after, const std::string& name, Labels labels,
                 double seconds) {
  for (std::size_t i = 0; i < kNumTraffic; ++i) {
    labels["kind"] = kTraffic[i].kind;
    labels["direction"] = kTraffic[i].direction;
    row.bytes_per_s[i] = rate(before, after, name, labels, seconds);
  }
}

bool is_shown(const Row& row) {
  return row.calls_per_s > 0 || row.connections > 0 || row.all_bytes_per_s() > 0;
}

void sort(std::vector<Row>& rows, SortKey key) {
  const auto value = [key](const Row& row) {
    switch (key) {
      case SortKey::kBytes: return row.all_bytes_per_s();
      case SortKey::kP99: return row.p99_ns;
      case SortKey::kQueue: return static_cast<double>(row.under_way);
      case SortKey::kName: return 0.0;
      case SortKey::kCalls: break;
    }
    return row.calls_per_s;
  };
  std::ranges::sort(
      rows, [&](const Row& a, const Row& b) { return value(a) != value(b) ? value(a) > value(b) : a.name < b.name; });
}

std::vector<Row> shown(std::map<std::string, Row> rows, SortKey key) {
  std::vector<Row> out;
  for (auto& [name, row] : rows) {
    if (is_shown(row)) out.push_back(std::move(row));
  }
  sort(out, key);
  return out;
}

std::vector<Amount> amounts(const Scrape& scrape, const std::string& used, const std::string& limit,
                            const std::string& label) {
  std::vector<Amount> out;
  for (const Sample& sample : scrape.samples(used)) {
    const std::string name(sample.label(label));
    out.push_back({name, sample.value, scrape.value(limit, {{label, name}})});
  }
  return out;
}

double sum(const Scrape& scrape, const std::string& name) {
  const auto& samples = scrape.samples(name);
  return std::accumulate(samples.begin(), samples.end(), 0.0,
                         [](double total, const Sample& sample) { return total + sample.value; });
}

}  // namespace

double Row::all_bytes_per_s() const {
  return std::accumulate(bytes_per_s.begin(), bytes_per_s.end(), 0.0);
}

bool is_same_process(const TimedScrape& a, const TimedScrape& b) {
  return a.scrape.value("process_start_time_seconds") == b.scrape.value("process_start_time_seconds");
}

View make_view(const TimedScrape& before, const TimedScrape& after, SortKey key) {
  const Scrape &old = before.scrape, &now = after.scrape;
  View view;
  view.seconds = std::max(1e-3, std::chrono::duration<double>(after.at - before.at).count());
  const double s = view.seconds;
  for (const Sample& sample : now.samples("weft_build_info")) {
    view.program = sample.label("command");
    view.version = sample.label("version");
  }
  view.uptime_s = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count() -
                  now.value("process_start_time_seconds");
  auto all = rows_of(
      old, now, "weft_rpc_duration_seconds", [](const Sample&) { return std::string(); }, s);
  view.all = all[""];
  set_traffic(view.all, old, now, "weft_transfer_bytes_total", {}, s);
  view.all.connections = whole(now.value("weft_connections"));
  view.all.credits = whole(now.value("weft_credits_granted"));
  view.all.under_way = whole(now.value("weft_rpc_calls_under_way"));
  view.all.waiting = whole(now.value("weft_rpc_calls_waiting"));
  view.clients = whole(now.value("weft_clients"));
  view.max_connections = whole(now.value("weft_connections_limit"));
  view.errors_per_s = std::max(0.0, sum(now, "weft_rpc_answers_total") - sum(old, "weft_rpc_answers_total")) / s -
                      rate(old, now, "weft_rpc_answers_total", {{"outcome", "success"}}, s);
  view.refused_per_s =
      std::max(0.0, sum(now, "weft_connections_refused_total") - sum(old, "weft_connections_refused_total")) / s;
  view.terminates = whole(sum(now, "weft_terminates_total"));

  auto clients = rows_of(old, now, "weft_client_rpc_duration_seconds", client_of, s);
  for (auto& [name, row] : clients) {
    const Labels labels = {{"client", name}};
    set_traffic(row, old, now, "weft_client_transfer_bytes_total", labels, s);
    row.connections = whole(now.value("weft_client_connections", labels));
    row.credits = whole(now.value("weft_client_credits_granted", labels));
    row.under_way = whole(now.value("weft_client_calls_under_way", labels));
    row.waiting = whole(now.value("weft_client_calls_waiting", labels));
  }
  view.rows_of_clients = shown(std::move(clients), key);
  view.rows_of_procedures = shown(rows_of(old, now, "weft_rpc_duration_seconds", procedure_of, s), key);
  view.memory = amounts(now, "weft_memory_held_bytes", "weft_memory_limit_bytes", "kind");
  view.lanes = amounts(now, "weft_disk_tasks_running", "weft_disk_workers", "lane");
  for (const Amount& lane : view.lanes) {
    view.queued.push_back(now.value("weft_disk_tasks_queued", {{"lane", lane.name}}));
  }
  return view;
}

}  // namespace weft::apps::top
