#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>

namespace weft {

// The socket interface takes every kind of address through this one type.
inline const sockaddr* as_sockaddr(const sockaddr_storage& addr) {
  return reinterpret_cast<const sockaddr*>(&addr);
}
// The length of the address in octets; 0 for a family other than IPv4 and IPv6.
socklen_t address_len(const sockaddr_storage& addr);
// 0 for a family other than IPv4 and IPv6; set_port does nothing then.
std::uint16_t port_of(const sockaddr_storage& addr);
void set_port(sockaddr_storage& addr, std::uint16_t port);
// The addresses of a socket; without a family if it has none.
sockaddr_storage local_address(int fd);
sockaddr_storage peer_address(int fd);

// address_str writes an address for people: "192.0.2.1:20049", "[2001:db8::1]:20049", "[fe80::1%eth0]:20049".
// "unknown address" for a family other than IPv4 and IPv6. It never asks a name server.
std::string address_str(const sockaddr& addr);
std::string address_str(const sockaddr_storage& addr);
// host_str is the same without brackets and port.
std::string host_str(const sockaddr& addr);
std::string host_str(const sockaddr_storage& addr);

}  // namespace weft
