#pragma once

#include <sys/socket.h>

#include <string>

namespace weft {

// peer_group names the addresses that limits for each address count together: an IPv4 address, or the /64 of an IPv6
// address, because one host may choose freely within its /64. An IPv4 address mapped into IPv6 counts as the IPv4
// address. The text is for logs: "192.0.2.7", "2001:db8:0:1::/64", "fe80::%3/64". Other families are "unknown address".
std::string peer_group(const sockaddr_storage& addr);

}  // namespace weft
