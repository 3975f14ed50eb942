#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/common/progress.h"
#include "apps/common/samples.h"
#include "apps/perf/options.h"

namespace weft::apps::perf {

// Measured is the result of one run.
struct Measured {
  Op op = Op::kWrite;
  std::uint64_t size = 0;  // octets of one operation
  std::uint32_t depth = 1;
  double seconds = 0;  // from the first post until the peer said that it had everything
  std::uint64_t octets = 0;
  std::uint64_t ops = 0;
  std::optional<std::uint64_t> p50_ns, p99_ns;  // round trips
  std::string congestion_control, peer_congestion_control;
  std::optional<bool> crc;  // RDMA ops of the soft RNIC: whether CRCs were in use
  std::optional<int> mss;   // octets, TCP ops
  HowItWaited waiting;
  bool interrupted = false;  // a stop signal came before its time was over
};

// take_quantiles fills p50_ns and p99_ns from round trips.
void take_quantiles(Measured& measured, Samples& samples);
// The line for people, and the JSON object; no newline at the end.
std::string to_line(const Measured& measured);
std::string to_json(const Measured& measured);
void print(const Measured& measured, bool json);

}  // namespace weft::apps::perf
