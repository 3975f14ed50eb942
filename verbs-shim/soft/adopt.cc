// Delayed startup: MPA on TCP connections that existed before MPA and may outlive it.
#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "base/address.h"
#include "verbs-shim/soft/cm_id.h"
#include "verbs-shim/soft/device.h"
#include "verbs-shim/soft/socket.h"

namespace weft::verbs {
namespace {

// start(own) hands over a socket to an id. The socket's owner keeps the descriptor if an error comes back.
template <typename F>
Status adopt(int fd, F start) {
  Fd own(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!own) return soft::socket_error("the socket", errno);
  Status status = start(std::move(own));
  if (status) ::close(fd);
  return status;
}

}  // namespace

Status connect_socket(CmId& id, int fd, const ConnParam& param, std::span<const std::uint8_t> received) {
  auto& of = static_cast<soft::SoftCmId&>(id);
  return adopt(fd, [&](Fd own) { return of.connect_socket(std::move(own), param, received); });
}

Status accept_socket(CmId& id, int fd, std::span<const std::uint8_t> received) {
  auto& of = static_cast<soft::SoftCmId&>(id);
  return adopt(fd, [&](Fd own) { return of.accept_socket(std::move(own), received); });
}

Result<ReleasedSocket> release_socket(CmId& id) {
  return static_cast<soft::SoftCmId&>(id).release_socket();
}

namespace soft {
namespace {

Status prepare(int fd, const SoftConfig& config) {
  if (address_len(peer_address(fd)) == 0) return Error{EINVAL, "not a connected TCP socket"};
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0 || ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0) return socket_error("O_NONBLOCK", errno);
  return set_options(fd, config);
}

}  // namespace

Status SoftCmId::connect_socket(Fd fd, const ConnParam& param, ConstBytes received) {
  if (Status status = check_device(); !status) return status;
  if (state_ != State::kIdle) return Error{EINVAL, "the id is bound or has a destination already"};
  if (Status status = check_connect(param); !status) return status;
  if (Status status = prepare(fd.get(), loop_.config()); !status) return status;
  share_.peer = peer_address(fd.get());
  return start(fd, true, param, [&](Connection& connection) {
    connection.begin_with(received, loop_.now());
    return connection.watch();
  });
}

Status SoftCmId::accept_socket(Fd fd, ConstBytes received) {
  if (Status status = check_device(); !status) return status;
  if (state_ != State::kIdle && state_ != State::kListening) return Error{EINVAL, "the id does something else already"};
  if (Status status = prepare(fd.get(), loop_.config()); !status) return status;
  if (listeners_.empty()) open_listeners(SOMAXCONN);
  state_ = State::kListening;
  const sockaddr_storage peer = peer_address(fd.get());
  return loop_.call([&]() -> Status {
    Connection& connection = listeners_[loop_.index()]->take(std::move(fd), peer, true);
    if (connection.dead()) return Error{ENOSPC, "epoll has no room for the socket"};
    connection.begin_with(received, loop_.now());
    return {};
  });
}

Result<ReleasedSocket> SoftCmId::release_socket() {
  ReleasedSocket out;
  loop_.run([&] {
    out.fd = share_.kept.release();
    out.received.swap(share_.kept_received);
  });
  if (out.fd < 0) return Error{ENOTCONN, "MPA has not left a socket behind"};
  return out;
}

}  // namespace soft
}  // namespace weft::verbs
