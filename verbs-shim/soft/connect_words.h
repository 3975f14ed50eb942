#pragma once

#include <sys/socket.h>

#include "verbs-shim/api/result.h"

namespace weft::verbs::soft {

// connect_error says in one line that the TCP connection failed, the most likely cause and the remedy. Later failures
// belong to MPA (mpa/startup_fault.h).
Error connect_error(const sockaddr_storage& peer, int errno_value);

}  // namespace weft::verbs::soft
