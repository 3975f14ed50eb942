#include "verbs-shim/api/addr_info.h"

#include <netdb.h>

#include <cerrno>
#include <cstring>
#include <memory>

namespace weft::verbs {
namespace {

int errno_of(int error) {
  switch (error) {
    case EAI_NONAME:
    case EAI_NODATA:
    case EAI_SERVICE: return ENOENT;
    case EAI_AGAIN: return EAGAIN;
    case EAI_MEMORY: return ENOMEM;
    case EAI_SYSTEM: return errno;
    default: return EINVAL;
  }
}

std::string without_brackets(const std::string& node) {
  if (node.size() < 2 || node.front() != '[' || node.back() != ']') return node;
  return node.substr(1, node.size() - 2);
}

}  // namespace

Result<std::vector<sockaddr_storage>> getaddrinfo(const std::string& node, const std::string& service, bool passive) {
  const std::string host = without_brackets(node);
  const std::string port = service.empty() ? "0" : service;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = passive ? AI_PASSIVE : 0;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.empty() ? nullptr : host.c_str(), port.c_str(), &hints, &found);
  if (error != 0) {
    const int err = errno_of(error);
    return Error{err,
                 "cannot resolve '" + node + "': " + (error == EAI_SYSTEM ? std::strerror(err) : gai_strerror(error))};
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  std::vector<sockaddr_storage> addresses;
  for (const addrinfo* info = found; info != nullptr; info = info->ai_next) {
    if (info->ai_family != AF_INET && info->ai_family != AF_INET6) continue;
    std::memcpy(&addresses.emplace_back(), info->ai_addr, info->ai_addrlen);
  }
  if (addresses.empty()) return Error{ENOENT, "cannot resolve '" + node + "': neither an IPv4 nor an IPv6 address"};
  return addresses;
}

}  // namespace weft::verbs
