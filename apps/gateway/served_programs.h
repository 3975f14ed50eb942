#pragma once

#include <sys/socket.h>

#include <chrono>
#include <vector>

#include "absl/status/statusor.h"
#include "apps/common/rpcbind_registration.h"

namespace weft::gateway {

// served_programs asks a server over TCP, by Calls of procedure 0, which of the programs that a gateway passes on it
// has. Blocking; stop_fd as in onc_tcp::Client.
absl::StatusOr<std::vector<apps::ProgramVersion>> served_programs(const sockaddr_storage& server,
                                                                  std::chrono::milliseconds timeout, int stop_fd = -1);

}  // namespace weft::gateway
