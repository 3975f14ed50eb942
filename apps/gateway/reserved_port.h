#pragma once

#include <boost/asio/ip/tcp.hpp>

namespace weft::gateway {

// bind_reserved_port binds a socket to a port below 1024 if this process may: NFS servers ask for one (exports without
// `insecure`). Otherwise the socket stays as it is.
void bind_reserved_port(boost::asio::ip::tcp::socket& socket);

}  // namespace weft::gateway
