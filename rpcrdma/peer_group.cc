#include "rpcrdma/peer_group.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace weft::rpcrdma {

namespace {

constexpr std::size_t kPrefixBytes = 8;  // of an IPv6 address: a /64
constexpr std::size_t kMappedAt = 12;    // where a mapped IPv4 address stands
constexpr const char* kUnknown = "unknown address";

std::string text_of(int family, const void* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  return inet_ntop(family, address, text.data(), text.size()) != nullptr ? text.data() : kUnknown;
}

}  // namespace

std::string peer_group(const sockaddr_storage& addr) {
  if (addr.ss_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &addr, sizeof v4);
    return text_of(AF_INET, &v4.sin_addr);
  }
  if (addr.ss_family != AF_INET6) return kUnknown;
  sockaddr_in6 v6{};
  std::memcpy(&v6, &addr, sizeof v6);
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) return text_of(AF_INET, v6.sin6_addr.s6_addr + kMappedAt);
  if (IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr)) return text_of(AF_INET6, &v6.sin6_addr);
  std::fill(v6.sin6_addr.s6_addr + kPrefixBytes, v6.sin6_addr.s6_addr + sizeof v6.sin6_addr.s6_addr, std::uint8_t{0});
  // Every link has the same prefix for its own addresses.
  const std::string link = v6.sin6_scope_id != 0 ? "%" + std::to_string(v6.sin6_scope_id) : "";
  return text_of(AF_INET6, &v6.sin6_addr) + link + "/64";
}

}  // namespace weft::rpcrdma
