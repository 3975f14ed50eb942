#pragma once

#include <sys/socket.h>

#include "verbs-shim/api/result.h"

namespace weft::verbs::soft {

// connect_error says that no TCP connection came about, what that most likely means and what to try, in one line. What
// goes wrong behind that is MPA's to say (mpa/startup_fault.h).
Error connect_error(const sockaddr_storage& peer, int errno_value);

}  // namespace weft::verbs::soft
