#pragma once

#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "apps/common/global_options.h"
#include "verbs-shim/api/log.h"
#include "verbs-shim/api/verbs.h"

namespace weft::apps {

// set_up_logging sends the default spdlog logger to stderr at a level of spdlog's names. Lines are printable().
void set_up_logging(const std::string& level);

// program_log is where devices and engines write their lines: the default spdlog logger, at its level of now.
verbs::Log program_log();

// raise_file_limit raises RLIMIT_NOFILE as far as this process may; returns the limit that holds then.
std::uint64_t raise_file_limit();

// DeviceWish is what a command wants of its device over and above the global options.
struct DeviceWish {
  std::string congestion_control = {};  // where --cc says nothing; empty: the system's
  // Connecting takes no longer than this, at each of its steps (soft); 0, or more than the device's own: those count.
  std::chrono::milliseconds answer_timeout{0};
  // Which peers' connections are taken, as SoftConfig::admits; RDMA devices of the kernel leave that to their user.
  std::function<bool(const sockaddr_storage& peer)> admits = {};
};

// open_device opens the device of --backend with what the global options say.
absl::StatusOr<std::unique_ptr<verbs::Device>> open_device(const GlobalOptions& options, const DeviceWish& wish = {});

}  // namespace weft::apps
