#include "apps/perf/options.h"

#include <array>

namespace weft::apps::perf {
namespace {

// OpTraits is one op with its defaults.
struct OpTraits {
  Op op;
  std::string_view name;
  std::uint64_t size;
  std::uint32_t depth;
  bool latency;
};

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::array kOps = {
    OpTraits{Op::kSend, "send", 64, 64, true},
    OpTraits{Op::kWrite, "write", kMiB, 16, false},
    OpTraits{Op::kRead, "read", kMiB, 16, true},
    OpTraits{Op::kRpcNull, "rpc-null", 0, 16, true},
    OpTraits{Op::kRpcRead, "rpc-read", kMiB, 8, true},
    OpTraits{Op::kRpcWrite, "rpc-write", kMiB, 8, true},
    OpTraits{Op::kTcp, "tcp", 0, 1, false},
    OpTraits{Op::kTcpLat, "tcp-lat", 64, 1, true},
    OpTraits{Op::kTcpBatch, "tcp-batch", 64, 64, false},
    OpTraits{Op::kTcpFileRead, "tcp-file-read", kMiB, 1, false},
    OpTraits{Op::kTcpFileWrite, "tcp-file-write", kMiB, 1, false},
};

const OpTraits& traits(Op op) {
  for (const OpTraits& one : kOps) {
    if (one.op == op) return one;
  }
  return kOps.front();
}

}  // namespace

std::string_view op_name(Op op) {
  return traits(op).name;
}

std::optional<Op> op_from_name(std::string_view name) {
  for (const OpTraits& one : kOps) {
    if (one.name == name) return one.op;
  }
  return std::nullopt;
}

std::optional<Op> op_from_number(std::uint16_t number) {
  for (const OpTraits& one : kOps) {
    if (std::uint16_t(one.op) == number) return one.op;
  }
  return std::nullopt;
}

std::vector<std::string> op_names() {
  std::vector<std::string> names;
  for (const OpTraits& one : kOps) names.emplace_back(one.name);
  return names;
}

bool has_latency(Op op) {
  return traits(op).latency;
}

std::uint64_t effective_size(const PerfOptions& options) {
  return options.size != 0 ? options.size : traits(options.op).size;
}

std::chrono::milliseconds patience(const PerfOptions& options) {
  if (options.timeout.count() > 0) return options.timeout;
  return options.listen.empty() ? kPatience : kListenerPatience;
}

std::uint32_t effective_depth(const PerfOptions& options) {
  if (options.lat) return 1;
  return options.depth != 0 ? options.depth : traits(options.op).depth;
}

std::string wanted_congestion_control(const GlobalOptions& global) {
  return global.congestion_control.empty() ? kDefaultCongestionControl : global.congestion_control;
}

std::string rdma_congestion_control(const GlobalOptions& global) {
  return global.is_soft() ? wanted_congestion_control(global) : "device";
}

}  // namespace weft::apps::perf
