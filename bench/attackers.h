#pragma once

#include <netinet/in.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "tests/exhaust/attack.h"

namespace weft::bench {

// attack begins the attack on a server in a process of its own, and returns that process. The connections come from
// these addresses in turn. `done` lies in memory that processes share.
pid_t attack(const exhaust::Attack& what, const sockaddr_in& server, const std::vector<std::string>& addresses,
             exhaust::Done& done);

}  // namespace weft::bench
