#pragma once

#include <sys/socket.h>

#include <boost/asio/ip/tcp.hpp>
#include <cstring>

#include "base/address.h"

namespace weft::apps {

// The same address as Asio and as the socket interface have it.
inline boost::asio::ip::tcp::endpoint to_endpoint(const sockaddr_storage& addr) {
  boost::asio::ip::tcp::endpoint endpoint;
  // An endpoint has the room for both families. Its size() follows the family that is in it already: here it is IPv4.
  std::memcpy(endpoint.data(), &addr, address_len(addr));
  return endpoint;
}

inline sockaddr_storage to_sockaddr(const boost::asio::ip::tcp::endpoint& endpoint) {
  sockaddr_storage addr{};
  std::memcpy(&addr, endpoint.data(), endpoint.size());
  return addr;
}

}  // namespace weft::apps
