#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace weft::apps {

// ProgressMode says how a command's own thread waits: kSpin polls without sleeping, kBlock sleeps in poll(2), kAdapt
// polls where a core is free for that (apps/common/spin_budget.h) and sleeps elsewhere.
enum class ProgressMode : std::uint8_t { kSpin, kBlock, kAdapt };

// GlobalOptions are the options that every command takes (`weft --help`). What is not built yet never gets here: it is
// refused while the command line is parsed.
struct GlobalOptions {
  std::string backend = "soft";          // soft or ibv
  std::string device;                    // of backend ibv; empty: the first
  std::optional<ProgressMode> progress;  // nothing: the command's own default
  std::uint32_t num_workers = 0;         // threads that move the device's connections; the command's own then blocks
  bool crc = true;
  bool markers = false;
  std::uint8_t mpa_revision = 2;  // 0, 1 or 2
  std::string rtr = "auto";
  std::string peer = "auto";
  std::size_t fpdu_limit = 0;  // octets, 0 for none
  bool direct_placement = false;
  bool port_map = false;                           // ask before connecting, answer when listening
  std::optional<std::chrono::milliseconds> nudge;  // 0: off; nothing: what --peer says
  std::uint8_t ird = 16;
  std::uint8_t ord = 16;
  std::size_t inline_threshold = 4096;  // octets, RPC-over-RDMA
  std::uint32_t credits = 32;           // RPC-over-RDMA
  std::string congestion_control;       // empty: the command's own default (the system's, but reno for perf)
  std::string log_level = "warn";
  // How long `weft nfs` tries to connect again where a connection ended, 0 for not at all. Not on the command line.
  std::chrono::milliseconds reconnect_for{60000};
  // After how long a silence of the server it says so. Not on the command line.
  std::chrono::milliseconds tell_after{5000};

  // Whether the device is ours: the protocol's options are for it alone.
  bool is_soft() const { return backend == "soft"; }
  ProgressMode progress_or(ProgressMode fallback) const { return progress.value_or(fallback); }
};

// CommandContext is what main and a command share. A command's callback runs it and leaves the exit status here:
// 0 done, 1 the operation failed, 2 usage.
struct CommandContext {
  GlobalOptions options;
  int exit_status = 0;
};

// add_global_options puts the global options on the root; its subcommands take them too (CLI11's fallthrough, which
// is switched on here, so call this before any command is registered). `options` outlives the parse.
void add_global_options(CLI::App& root, GlobalOptions& options);

// check_global_options throws CLI::ValidationError where options were given that mean nothing to the backend: for the
// root's parse_complete_callback.
void check_global_options(const CLI::App& root, const GlobalOptions& options);

// add_unbuilt_commands registers the commands that are named in the documentation and not built yet; each ends with
// exit status 2 and says so.
void add_unbuilt_commands(CLI::App& root, CommandContext& context);

}  // namespace weft::apps
