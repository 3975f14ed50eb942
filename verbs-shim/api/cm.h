#pragma once

#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "verbs-shim/api/verbs.h"

// The connection manager: librdmacm's identifiers and events (rdma_cm(7)), as interfaces.
namespace weft::verbs {

class CmId;

// CmEventType: enum rdma_cm_event_type.
enum class CmEventType : std::uint8_t {
  kAddrResolved,
  kAddrError,
  kRouteResolved,
  kRouteError,
  kConnectRequest,
  kConnectError,  // set-up failed for a local or protocol reason
  kUnreachable,   // refused, no route, or no answer in time
  kRejected,      // the peer's reject; private_data is the peer's
  kEstablished,   // private_data (active side): from the peer's accept
  kDisconnected,  // as soon as the connection is over for its user; the peer may keep TCP open for longer
  kDeviceRemoval,
};

const char* cm_event_str(CmEventType type);

// ConnParam: struct rdma_conn_param. responder_resources is the IRD, and initiator_depth is the ORD. In connect and
// accept they are the wanted depths; values above the limits of Caps are reduced to those limits. In a connect request
// and in kEstablished they are the peer's offer, seen from our side. The connect request of a peer that told no depths
// shows the limits of Caps. If the ORD is 0, Reads and Atomics fail with kLocQpOpErr.
struct ConnParam {
  std::vector<std::uint8_t> private_data;  // at most Caps::max_private_data octets
  std::uint8_t responder_resources = 0;
  std::uint8_t initiator_depth = 0;
};

// CmEvent: struct rdma_cm_event. Taking the event acknowledges it.
struct CmEvent {
  CmEventType type = CmEventType::kDisconnected;
  CmId* id = nullptr;            // the id of the event; for kConnectRequest the listener
  std::unique_ptr<CmId> new_id;  // kConnectRequest: the connection to accept, reject or drop (which rejects it)
  int status = 0;                // errno value, 0 for none
  std::string text;              // errors and ends: one line with the cause
  ConnParam param;               // kConnectRequest, kEstablished, kRejected
  // kDisconnected: our RDMA Write that the peer refused, if the peer names it. The Write has often completed long
  // before, since on iWARP a Write is complete when TCP has taken it. Only the soft RNIC reports it.
  struct RefusedWrite {
    std::uint32_t rkey = 0;
    std::uint64_t remote_addr = 0;  // within the Write's range
  };
  std::optional<RefusedWrite> refused_write = {};
};

// CmId: struct rdma_cm_id of port space RDMA_PS_TCP. Its destructor closes the connection: in order after disconnect or
// reject, else at once. No event of the id is delivered afterwards. Destroy its Qp first. The id may outlive its
// CmChannel; its events are then dropped.
class CmId {
 public:
  virtual ~CmId() = default;

  // rdma_bind_addr(3). Port 0 picks a port; local_addr tells it.
  virtual Status bind_addr(const sockaddr_storage& addr) = 0;
  // rdma_listen(3). backlog bounds the connect requests that are neither accepted, rejected nor dropped yet; further
  // requests wait undelivered.
  virtual Status listen(int backlog) = 0;

  // rdma_resolve_addr(3) and rdma_resolve_route(3): kAddrResolved and kRouteResolved follow.
  virtual Status resolve_addr(const sockaddr_storage& dst, std::chrono::milliseconds timeout) = 0;
  virtual Status resolve_route(std::chrono::milliseconds timeout) = 0;

  // rdma_create_qp(3): before connect or accept. The Qp must be destroyed before this id.
  virtual Result<std::unique_ptr<Qp>> create_qp(Pd& pd, const QpInitAttr& attr) = 0;

  // rdma_connect(3): kEstablished, kRejected, kUnreachable or kConnectError follows.
  virtual Status connect(const ConnParam& param) = 0;
  // rdma_accept(3), rdma_reject(3): for an id that came with kConnectRequest. After accept kEstablished follows (or
  // kConnectError). On iWARP nothing leaves before the peer's first FPDU (RFC 5044 section 7.1.2): posted requests are
  // held.
  virtual Status accept(const ConnParam& param) = 0;
  virtual Status reject(std::span<const std::uint8_t> private_data) = 0;
  // rdma_disconnect(3): the posted requests are sent, then the connection ends; kDisconnected follows.
  virtual Status disconnect() = 0;

  // rdma_get_local_addr(3), rdma_get_peer_addr(3).
  virtual sockaddr_storage local_addr() const = 0;
  virtual sockaddr_storage peer_addr() const = 0;

  // A word for the user's own use; ids start with 0.
  std::uint64_t context = 0;
};

// CmChannel: struct rdma_event_channel.
class CmChannel {
 public:
  virtual ~CmChannel() = default;
  // Like CompChannel::fd.
  virtual int fd() const = 0;
  // rdma_get_cm_event(3) without blocking.
  virtual std::optional<CmEvent> get_event() = 0;
  // rdma_create_id(3) with RDMA_PS_TCP.
  virtual Result<std::unique_ptr<CmId>> create_id() = 0;
};

}  // namespace weft::verbs
