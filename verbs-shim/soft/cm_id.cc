#include "verbs-shim/soft/cm_id.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/address.h"
#include "mpa/startup.h"
#include "verbs-shim/soft/connect_words.h"
#include "verbs-shim/soft/port_map_ask.h"
#include "verbs-shim/soft/qp.h"
#include "verbs-shim/soft/socket.h"

namespace weft::verbs::soft {
namespace {

std::uint8_t or_most(const std::optional<std::uint16_t>& offered, std::uint8_t most) {
  return offered ? static_cast<std::uint8_t>(std::min<std::uint16_t>(*offered, 0xff)) : most;
}

}  // namespace

SoftCmId::SoftCmId(Fleet& fleet, Loop& loop, std::shared_ptr<EventQueue> queue)
    : fleet_(fleet), loop_(loop), share_(*this, std::move(queue)) {
  loop_.run([this] { loop_.add_id(share_); });
}

SoftCmId::~SoftCmId() {
  close_listeners();
  loop_.run([this] { loop_.remove(share_); });
  share_.queue->forget(*this);
}

Status SoftCmId::check_device() const {
  if (fleet_.core().gone()) return Error{ENODEV, "the device was removed"};
  return {};
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
  share_.local = local_address(fd->get());
  fd_ = std::move(*fd);
  state_ = State::kBound;
  return {};
}

Status SoftCmId::listen(int backlog) {
  if (Status status = check_device(); !status) return status;
  if (state_ != State::kBound) return Error{EINVAL, "bind_addr comes before listen"};
  // Silent clients must not fill the kernel's queue: it has the maximum length, and every turn empties it.
  if (::listen(fd_.get(), SOMAXCONN) != 0) return socket_error("listen on " + address_str(share_.local), errno);
  open_listeners(static_cast<std::size_t>(std::max(backlog, 1)));
  Status status = loop_.call([this]() -> Status {
    if (Status status = check_device(); !status) return status;  // the device may have gone meanwhile
    std::vector<Listener*> all;
    all.reserve(listeners_.size());
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
  fleet_.front().run([&] {
    PortMapAnswers& answers = fleet_.port_map_answers();
    if (!on) return answers.remove(local);
    if (!fleet_.core().gone()) answers.add(local);  // the device may have gone meanwhile
  });
}

void SoftCmId::open_listeners(std::size_t backlog) {
  const auto& loops = fleet_.loops();
  const std::size_t share = std::max<std::size_t>(backlog / loops.size(), 1);
  for (const auto& loop : loops) {
    const auto deliver_of = [this, of = loop.get()](Handle who) { deliver(*of, who); };
    loop->run([&] { listeners_.push_back(std::make_unique<Listener>(*loop, share, deliver_of)); });
  }
}

void SoftCmId::close_listeners() {
  set_answers(false);
  if (listeners_.empty()) return;
  // The Listener that hands out to the others goes first.
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
  share_.peer = dst;
  state_ = State::kAddrResolved;
  share_.push(CmEventType::kAddrResolved, 0, "");
  return {};
}

Status SoftCmId::resolve_route(std::chrono::milliseconds /*timeout*/) {
  if (state_ != State::kAddrResolved) return Error{EINVAL, "resolve_addr comes before resolve_route"};
  state_ = State::kRouteResolved;
  share_.push(CmEventType::kRouteResolved, 0, "");
  return {};
}

Result<std::unique_ptr<Qp>> SoftCmId::create_qp(Pd& pd, const QpInitAttr& attr) {
  if (!share_.queues.expired()) return Error{EINVAL, "the id has a queue pair already"};
  auto qp = SoftQp::create(loop_, static_cast<SoftPd&>(pd), attr);
  if (!qp) return qp.error();
  // If the device has gone meanwhile, only this code fails the queue pair.
  loop_.run([&] {
    share_.queues = (*qp)->queues();
    if (fleet_.core().gone()) share_.queues.lock()->fail();
  });
  return std::unique_ptr<Qp>(std::move(*qp));
}

// RFC 5044 section 7.1.1 allows 512 octets; RFC 6581 takes four of them, and some peers allow less.
Status SoftCmId::check_private_data(std::size_t len, std::uint8_t revision) const {
  const std::size_t most = mpa::max_private_data(revision, fleet_.core().peer().max_pd_length);
  if (len > most) {
    return Error{EINVAL, std::to_string(len) + " bytes of private data, and MPA revision " + std::to_string(revision) +
                             " carries at most " + std::to_string(most) + " to this kind of peer [MPA-7.1.1-24]"};
  }
  return {};
}

Status SoftCmId::check_qp() const {
  const auto queues = share_.queues.lock();
  if (!queues) return Error{EINVAL, "create_qp comes before connect and accept"};
  if (queues->state() == QpState::kErr) return Error{EINVAL, "the queue pair is in error"};
  return {};
}

Status SoftCmId::check_connect(const ConnParam& param) const {
  if (Status status = check_qp(); !status) return status;
  return check_private_data(param.private_data.size(), loop_.config().mpa_revision);
}

Status SoftCmId::connect(const ConnParam& param) {
  if (Status status = check_device(); !status) return status;
  if (state_ != State::kRouteResolved) return Error{EINVAL, "resolve_addr and resolve_route come before connect"};
  if (Status status = check_connect(param); !status) return status;
  if (!fd_) {
    auto fd = open_socket(share_.peer.ss_family, loop_.config());
    if (!fd) return fd.error();
    fd_ = std::move(*fd);
  }
  auto asking = loop_.config().port_map.ask ? PortMapAsk::open(loop_.config(), fd_.get(), share_.peer) : nullptr;
  if (!asking && ::connect(fd_.get(), as_sockaddr(share_.peer), address_len(share_.peer)) != 0 &&
      errno != EINPROGRESS) {
    return connect_error(share_.peer, errno);
  }
  return start(fd_, false, param,
               [&](Connection& connection) { return asking ? connection.ask(std::move(asking)) : connection.watch(); });
}

Status SoftCmId::start(Fd& fd, bool adopted, const ConnParam& param, absl::FunctionRef<bool(Connection&)> begin) {
  return loop_.call([&]() -> Status {
    if (Status status = check_device(); !status) return status;  // the device may have gone meanwhile
    share_.local = local_address(fd.get());
    state_ = State::kConnected;
    const auto queues = share_.queues.lock();
    Connection& connection = loop_.add([&](Handle self) {
      return std::make_unique<Connection>(loop_, self, share_, *queues, std::move(fd), adopted, param);
    });
    if (begin(connection)) return {};
    const int err = errno;
    connection.drop("");
    return socket_error("epoll", err);
  });
}

template <typename F>
Status SoftCmId::answer(std::size_t private_data_len, F answer) {
  return loop_.call([&]() -> Status {
    Connection* connection = loop_.find(share_.connection);
    const rdmap::ConnectionRequest* request = connection != nullptr ? connection->request() : nullptr;
    if (request == nullptr) return Error{ENOTCONN, address_str(share_.peer) + " has gone meanwhile"};
    if (Status status = check_private_data(private_data_len, request->revision); !status) return status;
    state_ = State::kConnected;
    answer(*connection);
    return {};
  });
}

Status SoftCmId::accept(const ConnParam& param) {
  if (state_ != State::kRequested) return Error{EINVAL, "only an id that came with a connect request can accept"};
  if (Status status = check_device(); !status) return status;
  if (Status status = check_qp(); !status) return status;
  return answer(param.private_data.size(),
                [&](Connection& connection) { connection.accept(*share_.queues.lock(), param); });
}

Status SoftCmId::reject(std::span<const std::uint8_t> private_data) {
  if (state_ != State::kRequested) return Error{EINVAL, "only an id that came with a connect request can reject"};
  return answer(private_data.size(), [&](Connection& connection) { connection.reject(private_data); });
}

Status SoftCmId::disconnect() {
  if (state_ != State::kConnected) return Error{EINVAL, "the id was never connected"};
  // The other end may have been quicker. That is no error.
  loop_.run([this] {
    if (Connection* connection = loop_.find(share_.connection)) connection->disconnect();
  });
  return {};
}

sockaddr_storage SoftCmId::peer_addr() const {
  return loop_.call([this] { return share_.peer; });
}

sockaddr_storage SoftCmId::local_addr() const {
  return loop_.call([this] { return share_.local; });
}

void SoftCmId::deliver(Loop& loop, Handle who) {
  Connection& connection = *loop.find(who);
  auto id = std::make_unique<SoftCmId>(fleet_, loop, share_.queue);
  id->state_ = State::kRequested;
  connection.deliver_to(id->share_);
  rdmap::ConnectionRequest& request = *connection.request();
  CmEvent event;
  event.type = CmEventType::kConnectRequest;
  event.id = this;
  event.new_id = std::move(id);
  event.param.private_data = std::move(request.private_data);
  // Our IRD is asked to serve the peer's ORD, and the peer's IRD our ORD.
  event.param.responder_resources = or_most(request.peer_ord, loop.config().ird);
  event.param.initiator_depth = or_most(request.peer_ird, loop.config().ord);
  share_.queue->push(std::move(event));
}

}  // namespace weft::verbs::soft
