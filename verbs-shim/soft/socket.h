#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <string>

#include "base/fd.h"
#include "verbs-shim/api/result.h"
#include "verbs-shim/soft/device.h"

namespace weft::verbs::soft {

// A nonblocking TCP socket of this family with the options that every connection of the device gets; sockets that a
// listener accepts inherit them.
Result<Fd> open_socket(int family, const SoftConfig& config);

// Sets the same options on a socket that other code has opened.
Status set_options(int fd, const SoftConfig& config);

// The EMSS of a connected socket in octets: the most that TCP puts into one segment now (RFC 5044 section 4.5). A
// likely value if the socket does not tell.
std::size_t read_emss(int fd);
// Octets that the socket has taken and TCP has not sent. 0 without a socket.
std::size_t num_unsent(int fd);
// The error that the socket holds, 0 for none.
int take_error(int fd);
// Makes close send RST.
void set_reset_on_close(int fd);

// "connect to 10.0.0.1:20049: Connection refused".
Error socket_error(const std::string& what, int errno_value);

}  // namespace weft::verbs::soft
