#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/common/global_options.h"

namespace weft::apps::perf {

// Op is the measured operation; the numbers travel in Hello.
enum class Op : std::uint16_t {
  kSend = 1,
  kWrite = 2,
  kRead = 3,
  kRpcNull = 10,
  kRpcRead = 11,
  kRpcWrite = 12,
  kTcp = 20,
  kTcpLat = 21,
  kTcpBatch = 22,
  kTcpFileRead = 23,
  kTcpFileWrite = 24,
};

std::string_view op_name(Op op);
std::optional<Op> op_from_name(std::string_view name);
std::optional<Op> op_from_number(std::uint16_t number);
// Every op's name, in the order of the documentation.
std::vector<std::string> op_names();
constexpr bool is_rdma(Op op) {
  return op < Op::kRpcNull;
}
constexpr bool is_rpc(Op op) {
  return op >= Op::kRpcNull && op < Op::kTcp;
}
constexpr bool is_tcp(Op op) {
  return op >= Op::kTcp;
}
// Whether --lat has a meaning: one operation at a time, the whole way there and back.
bool has_latency(Op op);

// Limits of a client's requests to a listener.
inline constexpr std::uint64_t kMaxSize = std::uint64_t{1} << 30;  // octets
inline constexpr std::uint32_t kMaxDepth = 4096;
inline constexpr std::uint64_t kMaxSendMemory = std::uint64_t{1} << 30;

struct PerfOptions {
  std::string listen;  // ADDR:PORT, or empty
  std::string target;  // ADDR:PORT, or empty
  Op op = Op::kWrite;
  std::uint64_t size = 0;   // octets of one operation; 0: the op's own default
  std::uint32_t depth = 0;  // operations in flight; 0: the op's own default
  double seconds = 3;
  bool lat = false;
  bool json = false;
  std::uint16_t tcp_port = 0;            // listener: 0 picks one; client: 0 asks the listener
  std::string file;                      // listener: the file that tcp-file-read serves
  std::string sink;                      // listener: the file that tcp-file-write writes
  std::chrono::milliseconds timeout{0};  // 0: kPatience, kListenerPatience
};

// How long the other side may be silent: kPatience for a listener whose client waits for it, kListenerPatience for a
// client whose place the listener can spare.
inline constexpr std::chrono::seconds kPatience{10};
inline constexpr std::chrono::seconds kListenerPatience{30};
std::chrono::milliseconds patience(const PerfOptions& options);

// The size and depth that a run uses, with defaults filled in. tcp: 0 stays 0, for as many whole segments as make about
// 1 MiB.
std::uint64_t effective_size(const PerfOptions& options);
std::uint32_t effective_depth(const PerfOptions& options);

inline constexpr const char* kDefaultCongestionControl = "reno";
// The congestion control that the command line asks for, or perf's own default.
std::string wanted_congestion_control(const GlobalOptions& global);
// The congestion control of RDMA ops: "device" if the device has a transport of its own.
std::string rdma_congestion_control(const GlobalOptions& global);

}  // namespace weft::apps::perf
