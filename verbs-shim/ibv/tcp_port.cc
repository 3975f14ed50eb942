#include "verbs-shim/ibv/tcp_port.h"

#include <cerrno>
#include <cstring>

#include "base/address.h"

namespace weft::verbs::ibv {
namespace {

Error failed(const char* call) {
  const int err = errno;
  return Error{err, std::string(call) + ": " + std::strerror(err)};
}

}  // namespace

Result<Fd> reserve_tcp_port(sockaddr_storage& addr) {
  Fd fd(::socket(addr.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return failed("socket");
  if (::bind(fd.get(), as_sockaddr(addr), address_len(addr)) != 0) return failed("bind");
  // Only now: a socket that has this option in bind may get a port that sockets with the option are using.
  const int on = 1;
  if (::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0) return failed("setsockopt");
  set_port(addr, port_of(local_address(fd.get())));
  return fd;
}

}  // namespace weft::verbs::ibv
