#include "base/peer_group.h"

#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/address.h"

namespace weft {

namespace {

constexpr std::size_t kPrefixBytes = 8;  // of an IPv6 address: a /64
constexpr std::size_t kMappedAt = 12;    // where a mapped IPv4 address stands

}  // namespace

std::string peer_group(const sockaddr_storage& addr) {
  if (addr.ss_family != AF_INET6) return host_str(addr);
  sockaddr_in6 v6{};
  std::memcpy(&v6, &addr, sizeof v6);
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    std::memcpy(&v4.sin_addr, v6.sin6_addr.s6_addr + kMappedAt, sizeof v4.sin_addr);
    return host_str(reinterpret_cast<const sockaddr&>(v4));
  }
  const std::uint32_t scope = std::exchange(v6.sin6_scope_id, 0);
  if (IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr)) return host_str(reinterpret_cast<const sockaddr&>(v6));
  std::fill(v6.sin6_addr.s6_addr + kPrefixBytes, v6.sin6_addr.s6_addr + sizeof v6.sin6_addr.s6_addr, std::uint8_t{0});
  // Every link has the same prefix for its own addresses.
  const std::string link = scope != 0 ? "%" + std::to_string(scope) : "";
  return host_str(reinterpret_cast<const sockaddr&>(v6)) + link + "/64";
}

}  // namespace weft
