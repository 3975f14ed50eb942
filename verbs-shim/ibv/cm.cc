#include "verbs-shim/ibv/cm.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/address.h"
#include "verbs-shim/ibv/ibv_device.h"
#include "verbs-shim/ibv/mapping.h"
#include "verbs-shim/ibv/qp.h"
#include "verbs-shim/ibv/tcp_port.h"

namespace weft::verbs::ibv {
namespace {

// Octets of private data in InfiniBand's REP and REJ.
constexpr std::size_t kMostReplyData = 196;
constexpr std::size_t kMostRejectData = 148;

sockaddr_storage storage(const sockaddr* addr) {
  sockaddr_storage out{};
  if (addr->sa_family == AF_INET) std::memcpy(&out, addr, sizeof(sockaddr_in));
  if (addr->sa_family == AF_INET6) std::memcpy(&out, addr, sizeof(sockaddr_in6));
  return out;
}

sockaddr* raw(sockaddr_storage& addr) {
  return reinterpret_cast<sockaddr*>(&addr);
}

int milliseconds(std::chrono::milliseconds timeout) {
  constexpr std::chrono::milliseconds kMost{1 << 30};
  return static_cast<int>(std::clamp(timeout, std::chrono::milliseconds(0), kMost).count());
}

bool means_unreachable(int errno_value) {
  constexpr std::array kThose = {ECONNREFUSED, ETIMEDOUT, EHOSTUNREACH, ENETUNREACH, EHOSTDOWN, ECONNRESET};
  return std::find(kThose.begin(), kThose.end(), errno_value) != kThose.end();
}

}  // namespace

Endpoint::~Endpoint() {
  if (id != nullptr) ::rdma_destroy_id(id);
}

Status Endpoint::bind(sockaddr_storage addr) {
  const std::string text = address_str(addr);
  if (!device.is_iwarp() || port_of(addr) != 0) {
    if (::rdma_bind_addr(id, raw(addr)) == 0) return {};
    return bind_error(text, device.name(), errno);
  }
  // An identifier of rdma_cm may have a port that TCP does not use. Such a port is held, so that TCP gives another.
  Fd taken;
  for (int attempts = 16;; --attempts) {
    set_port(addr, 0);
    Result<Fd> reserved = reserve_tcp_port(addr);
    if (!reserved) return bind_error(text, device.name(), reserved.error().errno_value);
    if (::rdma_bind_addr(id, raw(addr)) == 0) {
      reserved_port = std::move(*reserved);
      return {};
    }
    if (errno != EADDRINUSE || attempts == 1) return bind_error(text, device.name(), errno);
    taken = std::move(*reserved);
  }
}

Status Endpoint::start_over() {
  rdma_cm_id* fresh = nullptr;
  if (::rdma_create_id(channel->get(), &fresh, this, RDMA_PS_TCP) != 0) return call_error("rdma_create_id", errno);
  ::rdma_destroy_id(std::exchange(id, fresh));
  release_port();
  return {};
}

bool Endpoint::abandon() {
  State expected = State::kConnecting;
  return state.compare_exchange_strong(expected, State::kAbandoned);
}

void Endpoint::tell_abandoned() {
  CmEvent event;
  event.type = CmEventType::kConnectError;
  event.id = owner;
  event.status = ECONNABORTED;
  event.text = "the queue pair was put into error while it connected";
  if (event.id != nullptr) channel->push(std::move(event));
}

IbvCmId::IbvCmId(std::shared_ptr<Endpoint> endpoint) : endpoint_(std::move(endpoint)) {
  endpoint_->owner = this;
}

IbvCmId::~IbvCmId() {
  endpoint_->owner = nullptr;
  endpoint_->channel->forget(*this);
  if (endpoint_->state == State::kRequest) ::rdma_reject(endpoint_->id, nullptr, 0);
  IbvQp* qp = endpoint_->qp;
  if (qp != nullptr && endpoint_->state != State::kDisconnecting) qp->reset();
}

Status IbvCmId::out_of_order(const char* call) const {
  return Error{EINVAL, std::string(call) + " is not allowed in this state of the connection"};
}

Status IbvCmId::bind_addr(const sockaddr_storage& addr) {
  if (endpoint_->state != State::kIdle) return out_of_order("bind_addr");
  if (Status status = endpoint_->bind(addr); !status) return status;
  if (endpoint_->id->verbs != nullptr) {
    if (Status status = endpoint_->device.check_same(endpoint_->id->verbs, address_str(addr)); !status) {
      const Status fresh = endpoint_->start_over();
      return fresh ? status : fresh;
    }
  }
  endpoint_->state = State::kBound;
  return {};
}

Status IbvCmId::listen(int backlog) {
  if (endpoint_->state != State::kBound) return out_of_order("listen");
  if (::rdma_listen(endpoint_->id, backlog) != 0) return call_error("rdma_listen", errno);
  endpoint_->release_port();
  endpoint_->state = State::kListening;
  return {};
}

Status IbvCmId::resolve_addr(const sockaddr_storage& dst, std::chrono::milliseconds timeout) {
  if (endpoint_->state != State::kIdle && endpoint_->state != State::kBound) return out_of_order("resolve_addr");
  sockaddr_storage copy = dst;
  if (endpoint_->state == State::kIdle && endpoint_->device.is_iwarp()) {
    sockaddr_storage any{};  // rdma_resolve_addr would bind an identifier that is not bound, to a port of its choice
    any.ss_family = dst.ss_family;
    if (Status status = endpoint_->bind(any); !status) return status;
    endpoint_->state = State::kBound;
  }
  const State before = endpoint_->state.exchange(State::kResolving);  // first: the event may come at once
  if (::rdma_resolve_addr(endpoint_->id, nullptr, raw(copy), milliseconds(timeout)) != 0) {
    const int err = errno;
    endpoint_->state = before;
    Error error = call_error("cannot resolve " + address_str(*raw(copy)), err);
    if (err == ENODEV) error.message += "; no RDMA device is on the way there (rdma link)";
    return error;
  }
  return {};
}

Status IbvCmId::resolve_route(std::chrono::milliseconds timeout) {
  if (endpoint_->state != State::kAddrResolved) return out_of_order("resolve_route");
  if (::rdma_resolve_route(endpoint_->id, milliseconds(timeout)) != 0) return call_error("rdma_resolve_route", errno);
  return {};
}

Result<std::unique_ptr<Qp>> IbvCmId::create_qp(Pd& pd, const QpInitAttr& attr) {
  if (endpoint_->qp != nullptr) return Error{EINVAL, "the connection has a queue pair already"};
  if (endpoint_->id->verbs == nullptr) {
    return Error{EINVAL, "create_qp comes after kAddrResolved or kConnectRequest: before, the device is not known"};
  }
  return IbvQp::create(endpoint_, pd, attr);
}

std::size_t IbvCmId::room(std::size_t other) const {
  return endpoint_->device.is_iwarp() ? endpoint_->device.caps().max_private_data : other;
}

Result<ConnParam> IbvCmId::fit(const ConnParam& param, std::size_t most) const {
  const Caps& caps = endpoint_->device.caps();
  if (param.private_data.size() > most) {
    return Error{EINVAL, "private data has at most " + std::to_string(most) + " bytes here"};
  }
  ConnParam out = param;
  const auto cut = [](std::uint8_t depth, std::uint32_t most) {
    return static_cast<std::uint8_t>(std::min<std::uint32_t>(depth, most));
  };
  out.responder_resources = cut(param.responder_resources, caps.max_qp_rd_atom);
  out.initiator_depth = cut(param.initiator_depth, caps.max_qp_init_rd_atom);
  return out;
}

bool IbvCmId::has_sound_qp() const {
  const IbvQp* qp = endpoint_->qp;
  return qp != nullptr && qp->state() != QpState::kErr;
}

void IbvCmId::begin(const ConnParam& param) {
  endpoint_->ird = param.responder_resources;
  endpoint_->ord = param.initiator_depth;
  endpoint_->state = State::kConnecting;
}

// siw connects TCP inside the call and reports its failure as the call's failure. The user gets an event all the same.
Status IbvCmId::connect(const ConnParam& param) {
  Result<ConnParam> fitting = fit(param, endpoint_->device.caps().max_private_data);
  if (!fitting) return fitting.error();
  if (endpoint_->state != State::kRouteResolved || !has_sound_qp()) return out_of_order("connect");
  rdma_conn_param out = to_ibv(*fitting);
  begin(*fitting);
  const int err = ::rdma_connect(endpoint_->id, &out) == 0 ? 0 : errno;
  endpoint_->release_port();
  if (err == 0) return {};
  endpoint_->state = State::kEnded;
  endpoint_->qp.load()->reset();
  if (!means_unreachable(err)) return call_error("rdma_connect", err);
  CmEvent event;
  event.type = CmEventType::kUnreachable;
  event.id = this;
  event.status = err;
  event.text = err == ECONNREFUSED
                   ? "connection refused: no program listens on " + address_str(*::rdma_get_peer_addr(endpoint_->id))
                   : call_error("cannot connect to " + address_str(*::rdma_get_peer_addr(endpoint_->id)), err).message;
  endpoint_->channel->push(std::move(event));
  return {};
}

Status IbvCmId::accept(const ConnParam& param) {
  Result<ConnParam> fitting = fit(param, room(kMostReplyData));
  if (!fitting) return fitting.error();
  if (endpoint_->state != State::kRequest || !has_sound_qp()) return out_of_order("accept");
  rdma_conn_param out = to_ibv(*fitting);
  begin(*fitting);
  if (::rdma_accept(endpoint_->id, &out) == 0) return {};
  const int err = errno;
  endpoint_->state = State::kEnded;
  endpoint_->qp.load()->reset();
  return call_error("cannot accept " + address_str(*::rdma_get_peer_addr(endpoint_->id)), err);
}

Status IbvCmId::reject(std::span<const std::uint8_t> private_data) {
  if (endpoint_->state != State::kRequest) return out_of_order("reject");
  const std::size_t most = room(kMostRejectData);
  if (private_data.size() > most) {
    return Error{EINVAL, "the private data of a rejection has at most " + std::to_string(most) + " bytes here"};
  }
  endpoint_->state = State::kEnded;
  if (::rdma_reject(endpoint_->id, private_data.data(), static_cast<std::uint8_t>(private_data.size())) != 0) {
    return call_error("rdma_reject", errno);
  }
  return {};
}

Status IbvCmId::disconnect() {
  if (!endpoint_->was_connected()) return out_of_order("disconnect");
  if (endpoint_->state == State::kDisconnecting || endpoint_->state >= State::kEnded) return {};
  endpoint_->state = State::kDisconnecting;
  if (IbvQp* qp = endpoint_->qp) {
    qp->disconnect();
  } else {
    ::rdma_disconnect(endpoint_->id);
  }
  return {};
}

sockaddr_storage IbvCmId::local_addr() const {
  return storage(::rdma_get_local_addr(endpoint_->id));
}

sockaddr_storage IbvCmId::peer_addr() const {
  return storage(::rdma_get_peer_addr(endpoint_->id));
}

}  // namespace weft::verbs::ibv
