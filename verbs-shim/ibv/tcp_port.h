#pragma once

#include <sys/socket.h>

#include "base/fd.h"
#include "verbs-shim/api/result.h"

namespace weft::verbs::ibv {

// reserve_tcp_port finds a free TCP port at `addr`, whose port is 0, and writes it there. While the returned socket is
// open, only a socket with SO_REUSEADDR can be bound to that port. An error has the errno value of socket(2) or
// bind(2).
//
// rdma_cm numbers its ports without a look at those of TCP. An iWARP device of the kernel then opens a TCP connection
// or a TCP listener at the number of its identifier, with SO_REUSEADDR, and fails if a TCP connection to the same peer
// has it already, even one that only waits for its time to be over (TIME_WAIT). iwpmd reserves ports of hardware in
// this way.
Result<Fd> reserve_tcp_port(sockaddr_storage& addr);

}  // namespace weft::verbs::ibv
