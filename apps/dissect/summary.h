#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/common/samples.h"
#include "apps/dissect/frame.h"

namespace weft::apps::dissect {

// Summary counts what each connection did, and prints it when the connection ends. Its memory is bounded: of latencies,
// procedures and lines it holds so many for each connection, and so many for all of them.
class Summary final : public Listener {
 public:
  // Limits: of all connections that are open.
  struct Limits {
    std::size_t latencies = 1 << 22;
    std::size_t procedures = 1 << 17;
    std::size_t text = 32 << 20;  // octets of lines
  };

  explicit Summary(std::FILE* out) : Summary(out, Limits()) {}
  Summary(std::FILE* out, const Limits& limits) : out_(out), limits_(limits) {}

  void on_connection(const Connection& connection) override;
  void on_frame(const Frame& frame) override;
  void on_connection_end(std::uint32_t connection, const TcpCounters& counters) override;
  void on_capture_end(const CaptureEnd& end) override;

 private:
  // Of a procedure, and of one that comes when all have those of Limits.
  static constexpr std::size_t kMaxLatencies = 4096, kFewLatencies = 64;
  static constexpr std::size_t kMaxText = 512;  // octets of a line
  static constexpr std::size_t kMaxSlow = 5;
  static constexpr std::size_t kMaxProcedures = 256;  // of a connection; the others count as one
  static constexpr std::size_t kNumBins = 8;          // of the time in which credits are told

  struct Operations {
    std::uint64_t num = 0, octets = 0, segments = 0;
  };
  struct Procedure {
    std::uint64_t calls = 0, replies = 0, failed = 0;
    std::optional<Samples> latencies;
    std::size_t max_latencies = 0;
    Timestamp longest{};
  };
  struct Slow {
    Timestamp latency{}, time{};
    std::uint32_t xid = 0;
    std::string procedure;
  };
  struct Range {
    std::uint32_t least = UINT32_MAX, most = 0;
    bool is_empty() const { return least > most; }
    void add(const Range& other) {
      least = std::min(least, other.least);
      most = std::max(most, other.most);
    }
    friend bool operator==(const Range&, const Range&) = default;
  };
  // Credits: the bins are equally long, and together as long as the connection was so far, or up to twice that.
  struct Credits {
    Range all;
    std::uint32_t last = 0;
    std::array<Range, kNumBins> bins;
    Timestamp bin_len = std::chrono::microseconds(1);
  };
  struct Ends {
    Connection names;
    Timestamp first{}, last{};
    std::uint64_t frames = 0;
    // Startup frames, gaps, Terminates, ends: the first kMaxLines and the last kMaxLines.
    std::vector<std::string> first_lines;
    std::deque<std::string> last_lines;
    std::uint64_t lines_left_out = 0;
    std::map<std::pair<std::string_view, Side>, Operations> operations;
    std::map<std::string, Procedure> procedures;
    std::map<Side, Credits> credits;
    std::vector<Slow> slow;  // longest first
    std::uint64_t findings = 0;
  };

  void add_line(Ends& ends, std::string line);
  void give_back(const Ends& ends);
  static void count_credit(Ends& ends, const Frame& frame);
  void print_credits(Side side, const Credits& credits) const;
  void count_rpc(Ends& ends, const Frame& frame);
  void print(Ends& ends, const TcpCounters& counters);

  std::FILE* out_;
  const Limits limits_;
  std::map<std::uint32_t, Ends> open_;
  std::uint64_t num_connections_ = 0, num_frames_ = 0;
  // Of open connections.
  std::size_t num_latencies_ = 0, num_procedures_ = 0, text_len_ = 0;
};

}  // namespace weft::apps::dissect
