#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "apps/top/scraper.h"

// What `weft top` shows, as numbers.
namespace weft::apps::top {

// Direction and kind of transfers, in the order of Row::bytes_per_s.
enum class Traffic : std::uint8_t { kSendIn, kSendOut, kReadIn, kReadOut, kWriteIn, kWriteOut };
inline constexpr std::size_t kNumTraffic = 6;

// Row: a client, a procedure or all together, in the interval between two scrapes.
struct Row {
  std::string name;
  double calls_per_s = 0;
  double p50_ns = 0, p99_ns = 0;  // 0 without Calls
  std::array<double, kNumTraffic> bytes_per_s{};
  std::uint64_t connections = 0, credits = 0, under_way = 0, waiting = 0;

  double all_bytes_per_s() const;
};

// Amount: the number of things held or used, and its limit (0: none).
struct Amount {
  std::string name;
  double used = 0, limit = 0;
};

// View is everything that one screen shows.
struct View {
  double seconds = 0;  // of the interval
  double uptime_s = 0;
  std::string program, version;
  Row all;
  std::uint64_t clients = 0, max_connections = 0;
  double errors_per_s = 0;       // answers other than success
  double refused_per_s = 0;      // connections
  std::uint64_t terminates = 0;  // since the start
  std::vector<Row> rows_of_clients, rows_of_procedures;
  std::vector<Amount> memory;  // bytes
  std::vector<Amount> lanes;   // running tasks of workers
  std::vector<double> queued;  // tasks, for each of `lanes`
};

enum class SortKey : std::uint8_t { kCalls, kBytes, kP99, kQueue, kName };

// make_view compares two scrapes of one process. Rows without Calls, connections and bytes are left out.
View make_view(const TimedScrape& before, const TimedScrape& after, SortKey key);

// Whether both scrapes are of one process: the counters of another one begin anew.
bool is_same_process(const TimedScrape& a, const TimedScrape& b);

}  // namespace weft::apps::top
