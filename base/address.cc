#include "base/address.h"

#include <netdb.h>
#include <netinet/in.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <optional>

namespace weft {

namespace {

struct Text {
  std::string host, port;
};

socklen_t len_of(sa_family_t family) {
  return family == AF_INET6 ? sizeof(sockaddr_in6) : family == AF_INET ? sizeof(sockaddr_in) : 0;
}

std::optional<Text> text_of(const sockaddr& addr) {
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  const socklen_t len = len_of(addr.sa_family);
  if (len == 0) return {};
  if (::getnameinfo(&addr, len, host.data(), host.size(), port.data(), port.size(), NI_NUMERICHOST | NI_NUMERICSERV) !=
      0) {
    return {};
  }
  return Text{host.data(), port.data()};
}

// Both families have the port at the same place.
constexpr std::size_t kPortAt = offsetof(sockaddr_in, sin_port);
static_assert(kPortAt == offsetof(sockaddr_in6, sin6_port));

constexpr const char* kUnknown = "unknown address";

}  // namespace

socklen_t address_len(const sockaddr_storage& addr) {
  return len_of(addr.ss_family);
}

std::uint16_t port_of(const sockaddr_storage& addr) {
  in_port_t port = 0;
  if (address_len(addr) != 0) std::memcpy(&port, reinterpret_cast<const std::uint8_t*>(&addr) + kPortAt, sizeof(port));
  return ntohs(port);
}

void set_port(sockaddr_storage& addr, std::uint16_t port) {
  const in_port_t value = htons(port);
  if (address_len(addr) != 0) std::memcpy(reinterpret_cast<std::uint8_t*>(&addr) + kPortAt, &value, sizeof(value));
}

sockaddr_storage local_address(int fd) {
  sockaddr_storage addr{};
  socklen_t len = sizeof(addr);
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&addr), &len) != 0) addr = {};
  return addr;
}

sockaddr_storage peer_address(int fd) {
  sockaddr_storage addr{};
  socklen_t len = sizeof(addr);
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&addr), &len) != 0) addr = {};
  return addr;
}

std::string address_str(const sockaddr& addr) {
  const auto text = text_of(addr);
  if (!text) return kUnknown;
  return (addr.sa_family == AF_INET6 ? "[" + text->host + "]" : text->host) + ":" + text->port;
}

std::string address_str(const sockaddr_storage& addr) {
  return address_str(*as_sockaddr(addr));
}

std::string host_str(const sockaddr& addr) {
  const auto text = text_of(addr);
  return text ? text->host : kUnknown;
}

std::string host_str(const sockaddr_storage& addr) {
  return host_str(*as_sockaddr(addr));
}

}  // namespace weft
