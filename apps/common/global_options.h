#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/common/trace_options.h"
#include "rpcrdma/policies.h"
#include "verbs-shim/api/verbs.h"

namespace CLI {
class App;
}

namespace weft::apps {

// ProgressMode says how a command's own thread waits. kSpin polls without sleeping. kBlock sleeps in poll(2). kAdapt
// polls while a core is free for it (apps/common/spin_budget.h), and otherwise sleeps.
enum class ProgressMode : std::uint8_t { kSpin, kBlock, kAdapt };

// RemoteInvalidation says which end of a connection of RPC-over-RDMA does its part of remote invalidation (R of RFC
// 8797). kAuto: servers, to which it costs nothing. kOn: also clients, whose chunks are then memory windows.
enum class RemoteInvalidation : std::uint8_t { kAuto, kOn, kOff };

// Credits that `weft serve` grants and `weft nfs` asks for: so many files of a tree can be under way at once, and a
// journal that is written once for all of them costs less for each.
inline constexpr std::uint32_t kCreditsForFiles = 128;
// Credits of the other programs.
inline constexpr std::uint32_t kCredits = 32;

// GlobalOptions are the options that every command takes (`weft --help`).
struct GlobalOptions {
  std::string backend = "soft";          // soft or ibv
  std::string device;                    // for backend ibv; empty: the first device
  std::optional<ProgressMode> progress;  // unset: the command's own default
  std::uint32_t num_workers = 0;         // threads for the device's connections; the command's own thread then blocks
  bool crc = true;
  bool markers = false;
  std::uint8_t mpa_revision = 2;  // 0, 1 or 2
  std::string rtr = "auto";
  std::string peer = "auto";
  std::size_t fpdu_limit = 0;  // octets, 0 for none
  bool direct_placement = false;
  bool port_map = false;                           // ask before connecting, answer when listening
  std::optional<std::chrono::milliseconds> nudge;  // 0: off; unset: the default of --peer
  std::uint8_t ird = 16;
  std::uint8_t ord = 16;
  std::size_t inline_threshold = 4096;   // octets, RPC-over-RDMA
  std::optional<std::uint32_t> credits;  // RPC-over-RDMA; unset: the default of each program
  std::vector<rpcrdma::Protocol> protocols = {rpcrdma::Protocol::k1};  // RPC-over-RDMA, best first
  bool literal_credits = false;      // RPC-over-RDMA 2-wg07: rpcrdma::ClientConfig::literal_credits
  std::optional<std::size_t> parts;  // RPC-over-RDMA 2-wg07, octets: ChunkUse::max_continued_call; unset: by round trip
  RemoteInvalidation remote_invalidation = RemoteInvalidation::kAuto;
  std::string congestion_control;  // empty: the command's own default (the system's, but reno for perf)
  std::string log_level = "warn";
  TraceOptions trace;  // a capture of the traffic
  // How long `weft nfs` tries to connect again after the end of a connection; 0: not at all. Not on the command line.
  std::chrono::milliseconds reconnect_for{60000};
  // `weft nfs` reports a silent server after this time. Not on the command line.
  std::chrono::milliseconds tell_after{5000};

  // Puts something around the device of the command. For tests: not on the command line.
  std::function<std::unique_ptr<verbs::Device>(std::unique_ptr<verbs::Device>)> wrap_device;

  // Whether the device is the soft RNIC: only it takes the protocol's options.
  bool is_soft() const { return backend == "soft"; }
  ProgressMode progress_or(ProgressMode fallback) const { return progress.value_or(fallback); }
};

// main and a command share a CommandContext. A command's callback runs the command and leaves the exit status here: 0
// done, 1 the operation failed, 2 usage.
struct CommandContext {
  GlobalOptions options;
  int exit_status = 0;
};

// add_global_options puts the global options on the root. Its subcommands take them too: add_global_options switches on
// CLI11's fallthrough, so call it before any command is registered. `options` outlives the parse.
void add_global_options(CLI::App& root, GlobalOptions& options);

// check_global_options throws CLI::ValidationError if a given option has no meaning for the command or the backend. The
// root's parse_complete_callback calls it.
void check_global_options(const CLI::App& root, const GlobalOptions& options);

}  // namespace weft::apps
