#include "verbs-shim/soft/connect_words.h"

#include <cerrno>
#include <string_view>

#include "base/address.h"
#include "verbs-shim/soft/socket.h"

namespace weft::verbs::soft {
namespace {

struct Hint {
  int errno_value;
  std::string_view cause;
  std::string_view advice;
};

constexpr Hint kHints[] = {
    {ECONNREFUSED,
     "no program listens on that port, or the peer is a hardware RNIC whose host runs iwpmd and listens on a port that "
     "iwpmd chose",
     "the listener's own address and port; a listener for iWARP at the peer; with a hardware RNIC stop iwpmd there and "
     "start its listener again (or SoftConfig::port_map.ask)"},
    {EHOSTUNREACH, "no host answers at that address, or a firewall turns connections away",
     "ping and 'ip route get' of the address; the firewall of the peer"},
    {ENETUNREACH, "this machine has no route to that network", "'ip route get' of the address; another address"},
    {ETIMEDOUT, "no host answers at that address, or a firewall drops the packets to it",
     "ping of the address; the firewall of the peer for that TCP port"},
    {ECONNRESET, "the peer's host accepts and drops at once: a proxy or a firewall without a program behind it",
     "whether the program listens there ('ss -ltn' at the peer)"},
    {EADDRNOTAVAIL, "this machine has no such local address, or no local port left for one connection more",
     "'ip addr'; fewer connections at once, or a wider net.ipv4.ip_local_port_range"},
    {EACCES, "a security policy of this machine forbids it", "the firewall and security modules of this machine"},
    {EPERM, "a firewall of this machine forbids it", "the firewall of this machine"},
    {EAFNOSUPPORT, "this machine has no support for that kind of address", "an IPv4 address instead of IPv6"},
    {EMFILE, "this process has no descriptors left", "a higher limit of open files (ulimit -n)"},
};

}  // namespace

Error connect_error(const sockaddr_storage& peer, int errno_value) {
  Error error = socket_error("connect to " + address_str(peer), errno_value);
  for (const Hint& hint : kHints) {
    if (hint.errno_value != errno_value) continue;
    error.message += ". Likely cause: ";
    error.message += hint.cause;
    error.message += ". Try: ";
    error.message += hint.advice;
  }
  return error;
}

}  // namespace weft::verbs::soft
