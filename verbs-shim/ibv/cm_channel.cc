#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/address.h"
#include "verbs-shim/ibv/cm.h"
#include "verbs-shim/ibv/ibv_device.h"
#include "verbs-shim/ibv/mapping.h"
#include "verbs-shim/ibv/qp.h"

namespace weft::verbs::ibv {

Result<std::shared_ptr<EventChannel>> EventChannel::create() {
  rdma_event_channel* channel = ::rdma_create_event_channel();
  if (channel == nullptr) return call_error("rdma_create_event_channel", errno);
  std::shared_ptr<EventChannel> out(new EventChannel(channel));
  if (!make_nonblocking(channel->fd) || !out->epoll_.add(channel->fd) || !out->epoll_.add(out->flag_.fd())) {
    return call_error("event channel's descriptor", errno);
  }
  return out;
}

EventChannel::~EventChannel() {
  ::rdma_destroy_event_channel(channel_);
}

void EventChannel::push(CmEvent event) {
  const std::lock_guard lock(mutex_);
  own_.push_back(std::move(event));
  has_own_.store(true, std::memory_order_release);
  flag_.raise();
}

std::optional<CmEvent> EventChannel::take() {
  if (!has_own_.load(std::memory_order_acquire)) return std::nullopt;
  const std::lock_guard lock(mutex_);
  if (own_.empty()) return std::nullopt;
  std::optional<CmEvent> event(std::move(own_.front()));
  own_.pop_front();
  if (own_.empty()) {
    has_own_.store(false, std::memory_order_relaxed);
    flag_.lower();
  }
  return event;
}

void EventChannel::forget(const CmId& id) {
  const std::lock_guard lock(mutex_);
  std::erase_if(own_, [&](const CmEvent& event) { return event.id == &id; });
  if (own_.empty()) flag_.lower();
}

Result<std::unique_ptr<IbvCmChannel>> IbvCmChannel::create(IbvDevice& device) {
  auto events = EventChannel::create();
  if (!events) return events.error();
  std::unique_ptr<IbvCmChannel> out(new IbvCmChannel(device, std::move(*events)));
  if (Status status = device.watch(out->fd()); !status) return status.error();
  return out;
}

IbvCmChannel::~IbvCmChannel() {
  device_.unwatch(fd());
}

Result<std::unique_ptr<CmId>> IbvCmChannel::create_id() {
  auto endpoint = std::make_shared<Endpoint>(device_, events_);
  if (::rdma_create_id(events_->get(), &endpoint->id, endpoint.get(), RDMA_PS_TCP) != 0) {
    return call_error("rdma_create_id", errno);
  }
  return std::unique_ptr<CmId>(std::make_unique<IbvCmId>(std::move(endpoint)));
}

std::optional<CmEvent> IbvCmChannel::get_event() {
  if (std::optional<CmEvent> own = events_->take()) return own;
  if (!device_.cm_turn(turn_)) return std::nullopt;
  rdma_cm_event* raw = nullptr;
  while (::rdma_get_cm_event(events_->get(), &raw) == 0) {
    std::optional<CmEvent> event = translate(*raw);
    // The event is acknowledged at once: `event` is a copy, and rdma_destroy_id waits for acknowledgements.
    ::rdma_ack_cm_event(raw);
    if (event) return event;
  }
  return std::nullopt;
}

namespace {

using State = Endpoint::State;

std::string peer_str(const Endpoint& endpoint) {
  return address_str(*::rdma_get_peer_addr(endpoint.id));
}

// errno values are negative in events. InfiniBand's reasons of a rejection are not errno values.
void describe(CmEvent& event, const rdma_cm_event& raw, const Endpoint& endpoint) {
  const std::string peer = peer_str(endpoint);
  const int err = std::abs(raw.status);
  event.status = err;
  const std::string why = err != 0 ? std::string(": ") + std::strerror(err) : std::string();
  switch (event.type) {
    case CmEventType::kAddrError:
      event.text = "cannot resolve " + peer + why + "; no RDMA device is on the way there (rdma link), or no answer";
      break;
    case CmEventType::kRouteError: event.text = "no route to " + peer + why; break;
    case CmEventType::kConnectError: event.text = "cannot connect to " + peer + why; break;
    case CmEventType::kUnreachable: event.text = peer + " is unreachable" + why; break;
    case CmEventType::kDeviceRemoval: event.text = "RDMA device " + endpoint.device.name() + " is gone"; break;
    default: break;
  }
}

// Without a listener TCP refuses the connection on iWARP, and the CM rejects it on other transports.
void describe_rejection(CmEvent& event, const rdma_cm_event& raw, const Endpoint& endpoint) {
  const std::string peer = peer_str(endpoint);
  const bool iwarp = endpoint.device.is_iwarp();
  const bool nobody = iwarp ? raw.status == -ECONNREFUSED : raw.status == kRejInvalidServiceId;
  event.status = ECONNREFUSED;
  if (nobody) {
    event.type = CmEventType::kUnreachable;
    event.text = "connection refused: no program listens on " + peer;
    return;
  }
  event.text = peer + " rejected the connection";
  if (!iwarp && raw.status != kRejConsumerDefined) event.text += ": " + reject_text(raw.status);
}

void describe_end(CmEvent& event, Endpoint& endpoint) {
  const std::lock_guard lock(endpoint.qp_mutex);
  const IbvQp* qp = endpoint.qp;
  const char* failure = qp != nullptr ? qp->failure() : nullptr;
  event.text = "the connection to " + peer_str(endpoint) + " ended";
  if (failure == nullptr) return;
  event.status = ECONNABORTED;
  event.text += std::string(": ") + failure;
}

// The kernel has bound the identifier, and lets it try again.
void resolving_failed(Endpoint& endpoint) {
  State expected = State::kResolving;
  endpoint.state.compare_exchange_strong(expected, State::kBound);
}

// Only the initiator is told the peer's offer.
void on_established(Endpoint& endpoint, const ConnParam& param) {
  if (!endpoint.connecting()) return;
  if (param.responder_resources != 0 || param.initiator_depth != 0) {
    endpoint.ird = std::min(endpoint.ird.load(), param.responder_resources);
    endpoint.ord = std::min(endpoint.ord.load(), param.initiator_depth);
  }
  State expected = State::kConnecting;
  endpoint.state.compare_exchange_strong(expected, State::kEstablished);
}

// The connection is over, or was never established: the posted requests are flushed.
void end(Endpoint& endpoint) {
  const std::lock_guard lock(endpoint.qp_mutex);
  IbvQp* qp = endpoint.qp;
  // On transports where both ends have to disconnect, this end does. That moves the queue pair to error, too.
  if (endpoint.connected() && !endpoint.device.is_iwarp()) ::rdma_disconnect(endpoint.id);
  endpoint.state = State::kEnded;
  if (qp == nullptr) return;
  qp->reset();
  qp->flush_forgotten();
  qp->tell_last_receive();
}

}  // namespace

std::optional<CmEvent> IbvCmChannel::translate(const rdma_cm_event& raw) {
  const std::optional<CmEventType> type = from_ibv(raw.event);
  if (!type) return std::nullopt;
  if (*type == CmEventType::kConnectRequest) return on_request(raw);
  Endpoint& endpoint = *static_cast<Endpoint*>(raw.id->context);
  if (endpoint.abandoned() && *type != CmEventType::kEstablished && *type != CmEventType::kDeviceRemoval) {
    return std::nullopt;
  }
  CmEvent event;
  event.type = *type;
  describe(event, raw, endpoint);
  switch (*type) {
    case CmEventType::kAddrResolved:
      if (Status status = device_.check_same(raw.id->verbs, peer_str(endpoint)); !status) {
        event.type = CmEventType::kAddrError;
        event.status = status.error().errno_value;
        event.text = status.error().message;
        break;
      }
      endpoint.state = State::kAddrResolved;
      break;
    case CmEventType::kAddrError: resolving_failed(endpoint); break;
    case CmEventType::kRouteResolved: endpoint.state = State::kRouteResolved; break;
    case CmEventType::kEstablished:
      event.param = from_ibv(raw.param.conn);
      // The kernel's rdma_cm swaps the depths of the iWARP connection manager here, too. The swap is right only for
      // requests.
      if (device_.is_iwarp()) std::swap(event.param.responder_resources, event.param.initiator_depth);
      on_established(endpoint, event.param);
      if (endpoint.abandoned()) {
        ::rdma_disconnect(raw.id);
        return std::nullopt;
      }
      break;
    case CmEventType::kRejected:
      event.param = from_ibv(raw.param.conn);
      describe_rejection(event, raw, endpoint);
      end(endpoint);
      break;
    case CmEventType::kDisconnected: describe_end(event, endpoint); [[fallthrough]];
    case CmEventType::kConnectError:
    case CmEventType::kUnreachable: end(endpoint); break;
    default: break;
  }
  event.id = endpoint.owner;
  if (event.id == nullptr) return std::nullopt;
  return event;
}

std::optional<CmEvent> IbvCmChannel::on_request(const rdma_cm_event& raw) {
  auto endpoint = std::make_shared<Endpoint>(device_, events_);
  endpoint->id = raw.id;
  raw.id->context = endpoint.get();
  endpoint->state = State::kRequest;
  const Endpoint& listener = *static_cast<Endpoint*>(raw.listen_id->context);
  CmEvent event;
  event.type = CmEventType::kConnectRequest;
  event.new_id = std::make_unique<IbvCmId>(endpoint);
  event.id = listener.owner;
  event.param = from_ibv(raw.param.conn);
  if (event.id == nullptr) return std::nullopt;
  if (const Status status = device_.check_same(raw.id->verbs, peer_str(*endpoint)); !status) {
    device_.log_turned_away(status.error().message);
    return std::nullopt;
  }
  return event;
}

}  // namespace weft::verbs::ibv
