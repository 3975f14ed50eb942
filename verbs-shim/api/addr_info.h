#pragma once

#include <sys/socket.h>

#include <string>
#include <vector>

#include "verbs-shim/api/result.h"

namespace weft::verbs {

// getaddrinfo is rdma_getaddrinfo(3) of port space RDMA_PS_TCP: the addresses of a host, in the order in which to try
// them; never empty. node: a numeric IPv4 or IPv6 address (with or without brackets) or a name; empty for the loopback,
// or with `passive` for all addresses of this host. service: a port number or a name of services(5); empty for 0.
// passive: for bind_addr rather than resolve_addr. The call may block on DNS. Errors: ENOENT (no such host or service),
// EAGAIN (no answer now), EINVAL, ENOMEM; the text names the host.
Result<std::vector<sockaddr_storage>> getaddrinfo(const std::string& node, const std::string& service, bool passive);

}  // namespace weft::verbs
