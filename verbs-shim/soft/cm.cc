#include "verbs-shim/soft/cm.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "mpa/startup.h"
#include "verbs-shim/soft/connection.h"
#include "verbs-shim/soft/qp.h"
#include "verbs-shim/soft/socket.h"
#include "verbs-shim/soft/soft_device.h"

namespace weft::verbs::soft {
namespace {

// The socket API's own generic address.
const sockaddr* as_sockaddr(const sockaddr_storage& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

}  // namespace

void EventQueue::push(CmEvent event) {
  if (!open_) return;
  events_.push_back(std::move(event));
  poller_.event_queued();
}

std::optional<CmEvent> EventQueue::pop() {
  if (events_.empty()) return std::nullopt;
  std::optional<CmEvent> event(std::move(events_.front()));
  events_.pop_front();
  poller_.events_taken(1);
  return event;
}

void EventQueue::forget(const CmId& id) {
  // A dropped connect request destroys its id, which comes back here: first out of the queue, then destroyed.
  std::deque<CmEvent> kept;
  std::deque<CmEvent> dropped;
  for (CmEvent& event : events_) (event.id == &id ? dropped : kept).push_back(std::move(event));
  events_ = std::move(kept);
  poller_.events_taken(dropped.size());
}

bool EventQueue::forget_request(const CmId& id) {
  const auto at = std::ranges::find_if(events_, [&](const CmEvent& event) { return event.new_id.get() == &id; });
  if (at == events_.end()) return false;
  const CmEvent dropped = std::move(*at);  // the id's end comes back to this queue, which must be in order by then
  events_.erase(at);
  poller_.events_taken(1);
  return true;
}

void EventQueue::close() {
  open_ = false;
  const std::deque<CmEvent> dropped = std::exchange(events_, {});
  poller_.events_taken(dropped.size());
}

SoftCmChannel::SoftCmChannel(SoftDevice& device)
    : device_(device), queue_(std::make_shared<EventQueue>(device.poller())) {}

int SoftCmChannel::fd() const {
  if (!fd_) fd_ = device_.poller().nested();
  return fd_.get();
}

Result<std::unique_ptr<CmId>> SoftCmChannel::create_id() {
  return std::unique_ptr<CmId>(std::make_unique<SoftCmId>(device_, queue_));
}

SoftCmId::~SoftCmId() {
  queue_->forget(*this);
  listener_.reset();
  if (qp_ != nullptr) qp_->id_gone();
  if (connection_ != nullptr) std::exchange(connection_, nullptr)->id_gone();
}

Status SoftCmId::bind_addr(const sockaddr_storage& addr) {
  if (state_ != State::kIdle) return Error{EINVAL, "the id is bound already"};
  auto fd = open_socket(addr.ss_family, device_.config());
  if (!fd) return fd.error();
  const int on = 1;
  ::setsockopt(fd->get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (::bind(fd->get(), as_sockaddr(addr), address_len(addr)) != 0) {
    return socket_error("bind to " + address_str(addr), errno);
  }
  local_ = local_address(fd->get());
  fd_ = std::move(*fd);
  state_ = State::kBound;
  return {};
}

Status SoftCmId::listen(int backlog) {
  if (state_ != State::kBound) return Error{EINVAL, "bind_addr comes before listen"};
  // Silent clients must not fill the kernel's queue: it is as long as it may be, and emptied at every turn.
  if (::listen(fd_.get(), SOMAXCONN) != 0) return socket_error("listen on " + address_str(local_), errno);
  listener_ =
      std::make_unique<Listener>(device_, *this, std::move(fd_), static_cast<std::size_t>(backlog > 0 ? backlog : 1));
  if (!listener_->watch()) {
    const Error error = socket_error("epoll", errno);
    listener_.reset();
    return error;
  }
  state_ = State::kListening;
  return {};
}

Status SoftCmId::resolve_addr(const sockaddr_storage& dst, std::chrono::milliseconds /*timeout*/) {
  if (state_ != State::kIdle && state_ != State::kBound) return Error{EINVAL, "the id has a destination already"};
  if (address_len(dst) == 0) return Error{EAFNOSUPPORT, "neither an IPv4 nor an IPv6 address"};
  peer_ = dst;
  state_ = State::kAddrResolved;
  push(CmEventType::kAddrResolved, 0, "", {});
  return {};
}

Status SoftCmId::resolve_route(std::chrono::milliseconds /*timeout*/) {
  if (state_ != State::kAddrResolved) return Error{EINVAL, "resolve_addr comes before resolve_route"};
  state_ = State::kRouteResolved;
  push(CmEventType::kRouteResolved, 0, "", {});
  return {};
}

Result<std::unique_ptr<Qp>> SoftCmId::create_qp(Pd& pd, const QpInitAttr& attr) {
  if (qp_ != nullptr) return Error{EINVAL, "the id has a queue pair already"};
  auto qp = device_.create_qp(*this, pd, attr);
  if (qp) qp_ = static_cast<SoftQp*>(qp->get());
  return qp;
}

// RFC 5044 section 7.1.1 allows 512 octets; RFC 6581 takes four of them, and some peers allow less.
Status SoftCmId::check_private_data(std::size_t len, std::uint8_t revision) const {
  const std::size_t most = mpa::max_private_data(revision, device_.peer().max_pd_length);
  if (len > most) return Error{EINVAL, "at most " + std::to_string(most) + " octets of private data"};
  return {};
}

Status SoftCmId::connect(const ConnParam& param) {
  if (state_ != State::kRouteResolved) return Error{EINVAL, "resolve_addr and resolve_route come before connect"};
  if (qp_ == nullptr) return Error{EINVAL, "create_qp comes before connect"};
  if (Status status = check_private_data(param.private_data.size(), device_.config().mpa_revision); !status) {
    return status;
  }
  if (!fd_) {
    auto fd = open_socket(peer_.ss_family, device_.config());
    if (!fd) return fd.error();
    fd_ = std::move(*fd);
  }
  if (::connect(fd_.get(), as_sockaddr(peer_), address_len(peer_)) != 0 && errno != EINPROGRESS) {
    return socket_error("connect to " + address_str(peer_), errno);
  }
  local_ = local_address(fd_.get());
  if (!start(std::move(fd_), param).watch()) {
    const int err = errno;
    connection_->drop("");
    return socket_error("epoll", err);
  }
  return {};
}

Connection& SoftCmId::start(UniqueFd fd, const ConnParam& param) {
  state_ = State::kConnected;
  connection_ = &device_.adopt(std::make_unique<Connection>(device_, *this, *qp_, std::move(fd), peer_, param));
  return *connection_;
}

Status SoftCmId::accept(const ConnParam& param) {
  if (state_ != State::kRequested) return Error{EINVAL, "only an id that came with a connect request can accept"};
  if (qp_ == nullptr) return Error{EINVAL, "create_qp comes before accept"};
  if (connection_ == nullptr || connection_->phase() != Connection::Phase::kRequest) {
    return Error{ENOTCONN, address_str(peer_) + " has gone meanwhile"};
  }
  if (Status status = check_private_data(param.private_data.size(), connection_->request()->revision); !status) {
    return status;
  }
  state_ = State::kConnected;
  connection_->accept(*qp_, param);
  return {};
}

Status SoftCmId::reject(std::span<const std::uint8_t> private_data) {
  if (state_ != State::kRequested) return Error{EINVAL, "only an id that came with a connect request can reject"};
  if (connection_ == nullptr || connection_->phase() != Connection::Phase::kRequest) {
    return Error{ENOTCONN, address_str(peer_) + " has gone meanwhile"};
  }
  if (Status status = check_private_data(private_data.size(), connection_->request()->revision); !status) return status;
  state_ = State::kConnected;
  connection_->reject(private_data);
  return {};
}

Status SoftCmId::disconnect() {
  if (state_ != State::kConnected) return Error{EINVAL, "the id was never connected"};
  // The other end may have been quicker: that is no error.
  if (connection_ != nullptr) connection_->disconnect();
  return {};
}

void SoftCmId::attach(Connection& connection) {
  connection_ = &connection;
  state_ = State::kRequested;
  local_ = local_address(connection.fd());
  peer_ = connection.peer();
}

void SoftCmId::push(CmEventType type, int status, std::string text, ConnParam param) {
  CmEvent event;
  event.type = type;
  event.id = this;
  event.status = status;
  event.text = std::move(text);
  event.param = std::move(param);
  queue_->push(std::move(event));
}

}  // namespace weft::verbs::soft
