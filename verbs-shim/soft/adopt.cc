// Delayed startup: MPA on TCP connections that were there before it, and that may outlive it.
#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "verbs-shim/soft/cm.h"
#include "verbs-shim/soft/connection.h"
#include "verbs-shim/soft/device.h"
#include "verbs-shim/soft/loop.h"
#include "verbs-shim/soft/qp.h"
#include "verbs-shim/soft/socket.h"

namespace weft::verbs {
namespace {

// Their owner keeps the descriptor where an error comes back.
Status adopt(int fd, Status (*start)(soft::SoftCmId&, soft::UniqueFd, const ConnParam&, ConstBytes), CmId& id,
             const ConnParam& param, ConstBytes received) {
  soft::UniqueFd own(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!own) return soft::socket_error("the socket", errno);
  Status status = start(static_cast<soft::SoftCmId&>(id), std::move(own), param, received);
  if (status) ::close(fd);
  return status;
}

}  // namespace

Status connect_socket(CmId& id, int fd, const ConnParam& param, std::span<const std::uint8_t> received) {
  return adopt(
      fd,
      [](soft::SoftCmId& of, soft::UniqueFd own, const ConnParam& with, ConstBytes octets) {
        return of.connect_socket(std::move(own), with, octets);
      },
      id, param, received);
}

Status accept_socket(CmId& id, int fd, std::span<const std::uint8_t> received) {
  return adopt(
      fd,
      [](soft::SoftCmId& of, soft::UniqueFd own, const ConnParam&, ConstBytes octets) {
        return of.accept_socket(std::move(own), octets);
      },
      id, {}, received);
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

Status SoftCmId::connect_socket(UniqueFd fd, const ConnParam& param, ConstBytes received) {
  if (Status status = check_device(); !status) return status;
  if (state_ != State::kIdle) return Error{EINVAL, "the id is bound or has a destination already"};
  if (Status status = check_qp(); !status) return status;
  if (Status status = check_private_data(param.private_data.size(), loop_.config().mpa_revision); !status) {
    return status;
  }
  if (Status status = prepare(fd.get(), loop_.config()); !status) return status;
  peer_ = peer_address(fd.get());
  return loop_.call([&]() -> Status {
    if (Status status = check_device(); !status) return status;
    local_ = local_address(fd.get());
    Connection& connection = start(std::move(fd), param);
    connection.set_adopted();
    connection.begin_with(received, loop_.now());
    if (connection.watch()) return {};
    const int err = errno;
    connection.drop("");
    return socket_error("epoll", err);
  });
}

Status SoftCmId::accept_socket(UniqueFd fd, ConstBytes received) {
  if (Status status = check_device(); !status) return status;
  if (state_ != State::kIdle && state_ != State::kListening) return Error{EINVAL, "the id does something else already"};
  if (Status status = prepare(fd.get(), loop_.config()); !status) return status;
  if (listeners_.empty()) open_listeners(SOMAXCONN);
  state_ = State::kListening;
  const sockaddr_storage peer = peer_address(fd.get());
  return loop_.call([&]() -> Status {
    Connection& connection = listeners_[loop_.index()]->take(std::move(fd), peer);
    if (connection.dead()) return Error{ENOSPC, "epoll has no room for the socket"};
    connection.set_adopted();
    connection.begin_with(received, loop_.now());
    return {};
  });
}

void SoftCmId::keep_socket(UniqueFd fd, std::vector<std::uint8_t> received) {
  kept_ = std::move(fd);
  kept_received_ = std::move(received);
}

Result<ReleasedSocket> SoftCmId::release_socket() {
  ReleasedSocket out;
  loop_.run([&] {
    out.fd = kept_.release();
    out.received.swap(kept_received_);
  });
  if (out.fd < 0) return Error{ENOTCONN, "MPA has not left a socket behind"};
  return out;
}

}  // namespace soft
}  // namespace weft::verbs
