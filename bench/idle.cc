// Measures the cost of an idle connection. One process holds N ends of connections over loopback, both ends of each.
// Each connection moves some data and rests. The program prints how much it grew per end, and the time of a round trip
// and of a turn on the newest connection beside them. Several numbers, in ascending order, are measured one after the
// other in the same process.
//
//   idle [ENDS...]         (default 10000)
//   idle --small ENDS...   no connection moves more than 4 KiB at a time: for an emulated processor
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "bench/ends.h"

namespace {

using namespace weft;
using bench::must;

// Idle is connections that have moved some data and rest.
class Idle {
 public:
  explicit Idle(std::uint32_t largest) : largest_(largest) {}

  // Adds a connection: a large Write, many small ones, and a Send each way.
  void add() {
    ends_.connect();
    for (int i = 0; i < 8; ++i) ends_.write(i == 0 ? largest_ : 2000);
    for (int done = 0; done < 8;) {
      turn();
      done += ends_.client.polled();
    }
    round_trip();
  }

  // A Send of 64 octets there and back on the newest connection.
  void round_trip() {
    bench::End& server = ends_.server;
    bench::End& client = ends_.client;
    must(server.qps.back()->post_recv({.wr_id = 0, .sg_list = std::array{server.sge(64)}}));
    must(client.qps.back()->post_recv({.wr_id = 0, .sg_list = std::array{client.sge(64)}}));
    must(client.qps.back()->post_send({.wr_id = 0, .sg_list = std::array{client.sge(64)}}));
    for (int got = 0; got < 1; got += server.polled()) turn();
    must(server.qps.back()->post_send({.wr_id = 0, .sg_list = std::array{server.sge(64)}}));
    for (int left = 3; left > 0; left -= client.polled() + server.polled()) turn();
  }

  // Long enough for the devices to free the memory that busy connections needed.
  void rest() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
    while (std::chrono::steady_clock::now() < end) turn();
  }

  // The median round trip on the newest connection, and the median of the time of a turn of both devices in it.
  struct Times {
    double round_trip = 0, turn = 0, turns = 0;  // microseconds, and the turns of a round trip
  };
  Times times() {
    std::vector<double> round_trips, each, turns;
    for (int i = 0; i < 2000; ++i) {
      const std::size_t before = num_turns_;
      const auto start = std::chrono::steady_clock::now();
      round_trip();
      round_trips.push_back(
          std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
      turns.push_back(static_cast<double>(num_turns_ - before));
      each.push_back(round_trips.back() / turns.back());
    }
    return {median(round_trips), median(each), median(turns)};
  }

 private:
  void turn() {
    ++num_turns_;
    ends_.turn();
  }
  static double median(std::vector<double>& values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
  }

  const std::uint32_t largest_;
  std::size_t num_turns_ = 0;
  bench::Ends ends_;
};

// The numbers of ends on the command line; empty: it is wrong.
std::vector<std::size_t> wanted(std::span<char*> words) {
  std::vector<std::size_t> all;
  for (const char* word : words) {
    const long num = std::atol(word) / 2 * 2;
    if (num <= 0 || (!all.empty() && static_cast<std::size_t>(num) <= all.back())) return {};
    all.push_back(static_cast<std::size_t>(num));
  }
  return all;
}

void print(const char* where, const Idle::Times& times) {
  std::printf("%s: round trip %.2f us in %.0f turns, turn %.2f us\n", where, times.round_trip, times.turns, times.turn);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  std::span<char*> words(argv + 1, argv + argc);
  const bool is_small = !words.empty() && std::strcmp(words.front(), "--small") == 0;
  if (is_small) words = words.subspan(1);
  const std::vector<std::size_t> all = words.empty() && !is_small ? std::vector<std::size_t>{10000} : wanted(words);
  if (all.empty()) {
    std::fprintf(stderr, "usage: idle [--small] [ENDS...], in ascending order\n");
    return 2;
  }
  if (bench::raise_file_limit() < all.back() + 64) {
    std::fprintf(stderr, "idle: %zu ends need a higher limit of open files (ulimit -Hn)\n", all.back());
    return 1;
  }

  auto idle = std::make_unique<Idle>(is_small ? 4096 : bench::End::kRegionLen);
  idle->add();
  print("alone", idle->times());
  const std::size_t before = bench::resident();
  std::size_t ends = 0;
  for (const std::size_t num : all) {
    for (; ends < num; ends += 2) idle->add();
    idle->rest();
    const std::size_t grown = bench::resident() - before;
    std::printf("ends %zu, octets per end %zu\n", num, grown / num);
    print("beside them", idle->times());
  }
  std::_Exit(0);  // the kernel closes thousands of sockets faster than they say goodbye one by one
}
