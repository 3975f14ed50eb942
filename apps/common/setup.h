#pragma once

#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "apps/common/global_options.h"
#include "verbs-shim/api/log.h"
#include "verbs-shim/api/verbs.h"

namespace weft::verbs {
struct SoftConfig;
}

namespace weft::apps {

// set_up_logging sends the default spdlog logger to stderr at a level of spdlog's names. Lines are printable().
void set_up_logging(const std::string& level);

// Devices and engines write their lines to program_log: the default spdlog logger, at its current level.
verbs::Log program_log();

// raise_file_limit raises RLIMIT_NOFILE as far as this process may, and returns the new limit.
std::uint64_t raise_file_limit();

// DeviceWish holds a command's settings for its device beyond the global options.
struct DeviceWish {
  std::string congestion_control = {};  // used without --cc; empty: the system's default
  // The longest time for each step of connecting (soft). If it is 0 or more than the device's own times, the device's
  // own times hold.
  std::chrono::milliseconds answer_timeout{0};
  // The most connections without a whole MPA Request, and the most that are closing (soft). Without a value the
  // device's own numbers hold.
  std::optional<std::size_t> max_silent = {}, max_lingering = {};
  // Decides which peers may connect, as SoftConfig::admits. RDMA devices of the kernel leave this to their user.
  std::function<bool(const sockaddr_storage& peer)> admits = {};
  // Names of local files that the command reads or writes, among other words: the trace replaces none of them.
  std::vector<std::string> files = {};
};

// soft_config is the soft RNIC that the global options and the wish describe, without its trace.
verbs::SoftConfig soft_config(const GlobalOptions& options, const DeviceWish& wish = {});

// open_device opens the device of --backend with the global options.
absl::StatusOr<std::unique_ptr<verbs::Device>> open_device(const GlobalOptions& options, const DeviceWish& wish = {});

}  // namespace weft::apps
