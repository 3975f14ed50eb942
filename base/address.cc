#include "base/address.h"

#include <netdb.h>
#include <netinet/in.h>

#include <array>
#include <optional>

namespace weft {

namespace {

struct Text {
  std::string host, port;
};

std::optional<Text> text_of(const sockaddr& addr) {
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  if (addr.sa_family != AF_INET && addr.sa_family != AF_INET6) return {};
  const socklen_t len = addr.sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  if (::getnameinfo(&addr, len, host.data(), host.size(), port.data(), port.size(), NI_NUMERICHOST | NI_NUMERICSERV) !=
      0) {
    return {};
  }
  return Text{host.data(), port.data()};
}

// The socket interface takes every kind of address through this one type.
const sockaddr& generic(const sockaddr_storage& addr) {
  return reinterpret_cast<const sockaddr&>(addr);
}

constexpr const char* kUnknown = "unknown address";

}  // namespace

std::string address_str(const sockaddr& addr) {
  const auto text = text_of(addr);
  if (!text) return kUnknown;
  return (addr.sa_family == AF_INET6 ? "[" + text->host + "]" : text->host) + ":" + text->port;
}

std::string address_str(const sockaddr_storage& addr) {
  return address_str(generic(addr));
}

std::string host_str(const sockaddr& addr) {
  const auto text = text_of(addr);
  return text ? text->host : kUnknown;
}

std::string host_str(const sockaddr_storage& addr) {
  return host_str(generic(addr));
}

}  // namespace weft
