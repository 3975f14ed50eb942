#pragma once

#include <sys/socket.h>

#include "base/fd.h"
#include "verbs-shim/api/result.h"

namespace weft::verbs::ibv {

// reserve_tcp_port finds a free TCP port at `addr`, whose port is 0, and writes it there. While the returned socket is
// open, only a socket with SO_REUSEADDR can be bound to that port. An error has the errno value of socket(2) or
// bind(2).
//
// rdma_cm gives out port numbers that TCP may be using. A software iWARP device of the kernel (siw) binds a TCP socket,
// with SO_REUSEADDR, to the number that its identifier got. It cannot connect if another TCP connection to the same
// peer has this local port, or had it a minute ago (TIME_WAIT). iwpmd reserves ports for hardware in the same way.
Result<Fd> reserve_tcp_port(sockaddr_storage& addr);

}  // namespace weft::verbs::ibv
