#pragma once

#include <sys/socket.h>

#include <chrono>
#include <vector>

#include "absl/status/statusor.h"
#include "apps/common/rpcbind_registration.h"

namespace weft::gateway {

// served_programs finds out which of a gateway's programs a server over TCP has. It makes Calls of procedure 0. It
// blocks; stop_fd is as in onc_tcp::Client.
absl::StatusOr<std::vector<apps::ProgramVersion>> served_programs(const sockaddr_storage& server,
                                                                  std::chrono::milliseconds timeout, int stop_fd = -1);

}  // namespace weft::gateway
