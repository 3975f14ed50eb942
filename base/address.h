#pragma once

#include <sys/socket.h>

#include <string>

namespace weft {

// address_str writes an address for people: "192.0.2.1:20049", "[2001:db8::1]:20049", "[fe80::1%eth0]:20049".
// "unknown address" for a family other than IPv4 and IPv6. It never asks a name server.
std::string address_str(const sockaddr& addr);
std::string address_str(const sockaddr_storage& addr);
// host_str is the same without brackets and port.
std::string host_str(const sockaddr& addr);
std::string host_str(const sockaddr_storage& addr);

}  // namespace weft
