#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "apps/common/setup.h"
#include "apps/doctor/facts.h"
#include "base/address.h"
#include "base/fd.h"

namespace weft::apps::doctor {
namespace {

std::uint64_t limit_value(rlim_t value) {
  return value == RLIM_INFINITY ? kNoLimit : std::uint64_t{value};
}

void ask_limits(Facts& facts) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    facts.nofile_soft = limit_value(limit.rlim_cur);
    facts.nofile_hard = limit_value(limit.rlim_max);
  }
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) == 0) facts.memlock = limit_value(limit.rlim_cur);
}

// Whether the loopback can bind a port. With SO_REUSEADDR only a listener, or a bound UDP socket, is in the way. It
// will be in the way of the next process that binds, too.
PortState try_port(int type, std::uint16_t port) {
  const Fd fd(::socket(AF_INET, type | SOCK_CLOEXEC, 0));
  if (!fd) return PortState::kUnknown;
  const int on = 1;
  if (type == SOCK_STREAM) ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  // sockaddr is the socket API's own generic address.
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return errno == EADDRINUSE ? PortState::kInUse : errno == EACCES ? PortState::kForbidden : PortState::kUnknown;
  }
  return PortState::kFree;
}

std::optional<Address> address_of(const ifaddrs& entry) {
  if (entry.ifa_addr == nullptr) return std::nullopt;
  Address address;
  address.interface = entry.ifa_name;
  address.loopback = (entry.ifa_flags & IFF_LOOPBACK) != 0;
  address.up = (entry.ifa_flags & IFF_UP) != 0;
  if (entry.ifa_addr->sa_family == AF_INET) {
    address.text = host_str(*entry.ifa_addr);
  } else if (entry.ifa_addr->sa_family == AF_INET6) {
    sockaddr_in6 in{};
    std::memcpy(&in, entry.ifa_addr, sizeof(in));
    address.link_local = IN6_IS_ADDR_LINKLOCAL(&in.sin6_addr);
    in.sin6_scope_id = 0;  // Address::interface has it
    address.text = host_str(reinterpret_cast<const sockaddr&>(in));
  } else {
    return std::nullopt;
  }
  return address;
}

void ask_addresses(Facts& facts) {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (auto address = address_of(*entry)) facts.addresses.push_back(std::move(*address));
  }
  ::freeifaddrs(list);
}

std::vector<std::string> built_backends() {
  std::vector<std::string> names;
  const std::string all = WEFT_BACKENDS;
  for (std::size_t begin = 0; begin <= all.size();) {
    const std::size_t end = std::min(all.find(' ', begin), all.size());
    if (end > begin) names.push_back(all.substr(begin, end - begin));
    begin = end + 1;
  }
  return names;
}

}  // namespace

void ask_process(Facts& facts) {
  facts.version = WEFT_VERSION;
  facts.backends = built_backends();
  ask_limits(facts);
  ask_addresses(facts);
  for (const std::uint16_t port : {kNfsRdmaPort, kMountPort, kRpingPort}) {
    facts.tcp_ports[port] = try_port(SOCK_STREAM, port);
  }
  facts.iwpm_port = try_port(SOCK_DGRAM, kIwpmPort);
  auto device = open_device(GlobalOptions{});
  if (!device.ok()) {
    facts.soft_error = std::string(device.status().message());
    return;
  }
  const verbs::Caps& caps = (*device)->caps();
  facts.soft_atomics = caps.atomics;
  facts.soft_windows = caps.mem_windows_type2;
  facts.soft_max_qp_wr = caps.max_qp_wr;
}

}  // namespace weft::apps::doctor
