#include "verbs-shim/soft/cm.h"

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <utility>

#include "mpa/startup.h"
#include "verbs-shim/soft/connect_words.h"
#include "verbs-shim/soft/connection.h"
#include "verbs-shim/soft/loop.h"
#include "verbs-shim/soft/port_map.h"
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

EventQueue::EventQueue(SoftDevice& device) : mutex_(device.threaded()), bell_(device.poller(), device.bell()) {}

int EventQueue::fd() {
  const std::scoped_lock lock(mutex_);
  return bell_.fd();
}

void EventQueue::push(CmEvent event) {
  const std::scoped_lock lock(mutex_);
  if (!open_ || static_cast<SoftCmId*>(event.id)->muted) return;
  events_.push_back(std::move(event));
  bell_.event_queued();
}

std::optional<CmEvent> EventQueue::pop() {
  const std::scoped_lock lock(mutex_);
  if (events_.empty()) return std::nullopt;
  std::optional<CmEvent> event(std::move(events_.front()));
  events_.pop_front();
  bell_.events_taken(1);
  return event;
}

void EventQueue::forget(const CmId& id) {
  std::deque<CmEvent> dropped;
  const std::scoped_lock lock(mutex_);
  std::deque<CmEvent> kept;
  for (CmEvent& event : events_) {
    if (event.id == &id && event.new_id) static_cast<SoftCmId&>(*event.new_id).muted = true;
    (event.id == &id ? dropped : kept).push_back(std::move(event));
  }
  events_ = std::move(kept);
  bell_.events_taken(dropped.size());
}

bool EventQueue::forget_request(const CmId& id) {
  CmEvent dropped;
  const std::scoped_lock lock(mutex_);
  const auto at = std::ranges::find_if(events_, [&](const CmEvent& event) { return event.new_id.get() == &id; });
  if (at == events_.end()) return false;
  dropped = std::move(*at);
  events_.erase(at);
  bell_.events_taken(1);
  return true;
}

void EventQueue::close() {
  std::deque<CmEvent> dropped;
  const std::scoped_lock lock(mutex_);
  open_ = false;
  dropped.swap(events_);
  bell_.events_taken(dropped.size());
}

SoftCmChannel::SoftCmChannel(SoftDevice& device) : device_(device), queue_(std::make_shared<EventQueue>(device)) {}

Result<std::unique_ptr<CmId>> SoftCmChannel::create_id() {
  return std::unique_ptr<CmId>(std::make_unique<SoftCmId>(device_.next_loop(), queue_));
}

SoftCmId::SoftCmId(Loop& loop, std::shared_ptr<EventQueue> queue) : loop_(loop), queue_(std::move(queue)) {
  loop_.device().add_id(*this);
}

SoftCmId::~SoftCmId() {
  loop_.device().remove_id(*this);
  close_listeners();
  loop_.run([this] {
    if (qp_ != nullptr) qp_->id_gone();
    if (connection_ != nullptr) std::exchange(connection_, nullptr)->id_gone();
  });
  queue_->forget(*this);
}

Status SoftCmId::check_device() const {
  if (loop_.device().gone()) return Error{ENODEV, "the device was removed"};
  return {};
}

void SoftCmId::device_gone() {
  push(CmEventType::kDeviceRemoval, ENODEV, "the device was removed", {});
  if (qp_ != nullptr) qp_->fail("");
}

Status SoftCmId::bind_addr(const sockaddr_storage& addr) {
  if (Status status = check_device(); !status) return status;
  if (state_ != State::kIdle) return Error{EINVAL, "the id is bound already"};
  auto fd = open_socket(addr.ss_family, loop_.config());
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
  if (Status status = check_device(); !status) return status;
  if (state_ != State::kBound) return Error{EINVAL, "bind_addr comes before listen"};
  // Silent clients must not fill the kernel's queue: it is as long as it may be, and emptied at every turn.
  if (::listen(fd_.get(), SOMAXCONN) != 0) return socket_error("listen on " + address_str(local_), errno);
  open_listeners(static_cast<std::size_t>(std::max(backlog, 1)));
  Status status = loop_.call([this]() -> Status {
    if (Status status = check_device(); !status) return status;  // it may have gone meanwhile
    std::vector<Listener*> all;
    for (const auto& listener : listeners_) all.push_back(listener.get());
    if (!listeners_[loop_.index()]->accept_on(fd_, std::move(all))) return socket_error("epoll", errno);
    return {};
  });
  if (!status) {
    close_listeners();
    return status;
  }
  state_ = State::kListening;
  set_answers(loop_.config().port_map.answer);
  return {};
}

void SoftCmId::set_answers(bool on) {
  if (std::exchange(answers_, on) == on) return;
  const sockaddr_storage local = local_addr();
  SoftDevice& device = loop_.device();
  device.loops().front()->run([&] {
    PortMapAnswers& answers = device.port_map_answers();
    if (!on) return answers.remove(local);
    if (!device.gone()) answers.add(local);  // it may have gone meanwhile
  });
}

void SoftCmId::open_listeners(std::size_t backlog) {
  const auto& loops = loop_.device().loops();
  const std::size_t share = std::max<std::size_t>(backlog / loops.size(), 1);
  for (const auto& loop : loops) {
    loop->run([&] { listeners_.push_back(std::make_unique<Listener>(*loop, *this, share)); });
  }
}

void SoftCmId::close_listeners() {
  set_answers(false);
  if (listeners_.empty()) return;
  // First the one that hands out to the others.
  loop_.run([this] { listeners_[loop_.index()].reset(); });
  for (auto& listener : listeners_) {
    if (listener) listener->loop().run([&] { listener.reset(); });
  }
  listeners_.clear();
}

Status SoftCmId::resolve_addr(const sockaddr_storage& dst, std::chrono::milliseconds /*timeout*/) {
  if (Status status = check_device(); !status) return status;
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
  auto qp = loop_.device().create_qp(*this, loop_, pd, attr);
  if (!qp) return qp;
  // device_gone reads it in the loop's thread. Where that was before, nobody else would fail the queue pair.
  loop_.run([&] {
    qp_ = static_cast<SoftQp*>(qp->get());
    if (loop_.device().gone()) qp_->fail("");
  });
  return qp;
}

// RFC 5044 section 7.1.1 allows 512 octets; RFC 6581 takes four of them, and some peers allow less.
Status SoftCmId::check_private_data(std::size_t len, std::uint8_t revision) const {
  const std::size_t most = mpa::max_private_data(revision, loop_.peer().max_pd_length);
  if (len > most) {
    return Error{EINVAL, std::to_string(len) + " octets of private data, and MPA revision " + std::to_string(revision) +
                             " carries at most " + std::to_string(most) + " to this kind of peer [MPA-7.1.1-24]"};
  }
  return {};
}

Status SoftCmId::check_qp() const {
  if (qp_ == nullptr) return Error{EINVAL, "create_qp comes before connect and accept"};
  if (qp_->state() == QpState::kErr) return Error{EINVAL, "the queue pair is in error"};
  return {};
}

Status SoftCmId::connect(const ConnParam& param) {
  if (Status status = check_device(); !status) return status;
  if (state_ != State::kRouteResolved) return Error{EINVAL, "resolve_addr and resolve_route come before connect"};
  if (Status status = check_qp(); !status) return status;
  if (Status status = check_private_data(param.private_data.size(), loop_.config().mpa_revision); !status) {
    return status;
  }
  if (!fd_) {
    auto fd = open_socket(peer_.ss_family, loop_.config());
    if (!fd) return fd.error();
    fd_ = std::move(*fd);
  }
  auto asking = loop_.config().port_map.ask ? PortMapAsk::open(loop_.config(), fd_.get(), peer_) : nullptr;
  if (!asking && ::connect(fd_.get(), as_sockaddr(peer_), address_len(peer_)) != 0 && errno != EINPROGRESS) {
    return connect_error(peer_, errno);
  }
  return loop_.call([&]() -> Status {
    if (Status status = check_device(); !status) return status;  // it may have gone meanwhile
    local_ = local_address(fd_.get());
    Connection& connection = start(std::move(fd_), param);
    if (asking ? connection.ask(std::move(asking)) : connection.watch()) return {};
    const int err = errno;
    connection_->drop("");
    return socket_error("epoll", err);
  });
}

Connection& SoftCmId::start(UniqueFd fd, const ConnParam& param) {
  state_ = State::kConnected;
  connection_ = &loop_.adopt(std::make_unique<Connection>(loop_, *this, *qp_, std::move(fd), peer_, param));
  return *connection_;
}

Status SoftCmId::check_answer(std::size_t private_data_len) const {
  if (connection_ == nullptr || connection_->phase() != Connection::Phase::kRequest) {
    return Error{ENOTCONN, address_str(peer_) + " has gone meanwhile"};
  }
  return check_private_data(private_data_len, connection_->request()->revision);
}

Status SoftCmId::accept(const ConnParam& param) {
  if (state_ != State::kRequested) return Error{EINVAL, "only an id that came with a connect request can accept"};
  if (Status status = check_device(); !status) return status;
  if (Status status = check_qp(); !status) return status;
  return loop_.call([&]() -> Status {
    if (Status status = check_answer(param.private_data.size()); !status) return status;
    state_ = State::kConnected;
    connection_->accept(*qp_, param);
    return {};
  });
}

Status SoftCmId::reject(std::span<const std::uint8_t> private_data) {
  if (state_ != State::kRequested) return Error{EINVAL, "only an id that came with a connect request can reject"};
  return loop_.call([&]() -> Status {
    if (Status status = check_answer(private_data.size()); !status) return status;
    state_ = State::kConnected;
    connection_->reject(private_data);
    return {};
  });
}

Status SoftCmId::disconnect() {
  if (state_ != State::kConnected) return Error{EINVAL, "the id was never connected"};
  // The other end may have been quicker: that is no error.
  loop_.run([this] {
    if (connection_ != nullptr) connection_->disconnect();
  });
  return {};
}

sockaddr_storage SoftCmId::peer_addr() const {
  return loop_.call([this] { return peer_; });
}

sockaddr_storage SoftCmId::local_addr() const {
  return loop_.call([this] { return local_; });
}

void SoftCmId::attach(Connection& connection) {
  connection_ = &connection;
  state_ = State::kRequested;
  local_ = local_address(connection.fd());
  peer_ = connection.peer();
}

void SoftCmId::push(CmEventType type, int status, std::string text, ConnParam param,
                    std::optional<CmEvent::RefusedWrite> refused_write) {
  CmEvent event;
  event.type = type;
  event.id = this;
  event.status = status;
  event.text = std::move(text);
  event.param = std::move(param);
  event.refused_write = refused_write;
  queue_->push(std::move(event));
}

}  // namespace weft::verbs::soft
