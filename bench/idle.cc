// Measures the cost of an idle connection. One process holds N ends of connections over loopback, both ends of each.
// Each connection moves some data and rests. The program prints how much it grew per end, and the time of a round trip
// on one more connection beside them.
//
//   idle [ENDS (default 10000)]
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "bench/ends.h"

namespace {

using namespace weft;
using bench::must;

// Idle is connections that have moved some data and rest.
class Idle {
 public:
  void connect() { ends_.connect(); }

  // A large Write, many small ones, and a Send each way on the newest connection.
  void work() {
    for (int i = 0; i < 8; ++i) ends_.write(i == 0 ? bench::End::kRegionLen : 2000);
    for (int done = 0; done < 8;) {
      ends_.turn();
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
    for (int got = 0; got < 1; got += server.polled()) ends_.turn();
    must(server.qps.back()->post_send({.wr_id = 0, .sg_list = std::array{server.sge(64)}}));
    for (int left = 3; left > 0; left -= client.polled() + server.polled()) ends_.turn();
  }

  // Long enough for the devices to free the memory that busy connections needed.
  void rest() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
    while (std::chrono::steady_clock::now() < end) ends_.turn();
  }

  double median_round_trip_us() {
    std::vector<double> us;
    for (int i = 0; i < 2000; ++i) {
      const auto start = std::chrono::steady_clock::now();
      round_trip();
      us.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
    }
    std::nth_element(us.begin(), us.begin() + 1000, us.end());
    return us[1000];
  }

 private:
  bench::Ends ends_;
};

}  // namespace

int main(int argc, char** argv) {
  const long num = argc > 1 ? std::atol(argv[1]) / 2 : 5000;
  if (num <= 0) {
    std::fprintf(stderr, "usage: idle [ENDS]\n");
    return 2;
  }
  if (bench::raise_file_limit() < static_cast<rlim_t>(2 * num + 64)) {
    std::fprintf(stderr, "idle: %ld ends need a higher limit of open files (ulimit -Hn)\n", 2 * num);
    return 1;
  }

  auto idle = std::make_unique<Idle>();
  idle->connect();
  idle->work();
  const double alone = idle->median_round_trip_us();
  const std::size_t before = bench::resident();
  for (long i = 0; i < num; ++i) {
    idle->connect();
    idle->work();
  }
  idle->rest();
  const std::size_t grown = bench::resident() - before;
  std::printf("ends %ld, octets per end %zu, round trip alone %.2f us, beside them %.2f us\n", 2 * num,
              grown / (2 * static_cast<std::size_t>(num)), alone, idle->median_round_trip_us());
  std::fflush(stdout);
  std::_Exit(0);  // the kernel closes 20,000 sockets faster than they say goodbye one by one
}
