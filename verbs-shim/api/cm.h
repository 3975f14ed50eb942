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
  kRejected,      // the peer's reject; private_data is its
  kEstablished,   // private_data (active side): from the peer's accept
  kDisconnected,  // as soon as the connection is over for its user; the peer may keep TCP open for longer
  kDeviceRemoval,
};

const char* cm_event_str(CmEventType type);

// ConnParam: struct rdma_conn_param. responder_resources is the IRD, initiator_depth the ORD that is wanted (connect,
// accept; more than Caps allows is cut down to that) or that the peer offers, seen from our side (connect request,
// established). A connect request of a peer that told no depths shows what Caps allows. Where the ORD is 0, Reads and
// Atomics fail with kLocQpOpErr.
struct ConnParam {
  std::vector<std::uint8_t> private_data;  // at most Caps::max_private_data octets
  std::uint8_t responder_resources = 0;
  std::uint8_t initiator_depth = 0;
};

// CmEvent: struct rdma_cm_event, acknowledged by being taken.
struct CmEvent {
  CmEventType type = CmEventType::kDisconnected;
  CmId* id = nullptr;            // whose event; for kConnectRequest the listener
  std::unique_ptr<CmId> new_id;  // kConnectRequest: the connection to accept, reject or drop (which rejects it)
  int status = 0;                // errno value, 0 for none
  std::string text;              // errors and ends: one line that says what happened
  ConnParam param;               // kConnectRequest, kEstablished, kRejected
  // kDisconnected: the RDMA Write of ours that the peer refused, where the peer says which. It has often completed long
  // before, since on iWARP a Write is complete when TCP has taken it. Only the soft RNIC knows this.
  struct RefusedWrite {
    std::uint32_t rkey = 0;
    std::uint64_t remote_addr = 0;  // within what was written
  };
  std::optional<RefusedWrite> refused_write = {};
};

// CmId: struct rdma_cm_id of port space RDMA_PS_TCP. Destroying it closes the connection: in order where disconnect or
// reject came before, else at once. No event of it is delivered afterwards. Destroy its Qp first. It may outlive its
// CmChannel; its events then go nowhere.
class CmId {
 public:
  virtual ~CmId() = default;

  // rdma_bind_addr(3). Port 0 picks one; local_addr tells which.
  virtual Status bind_addr(const sockaddr_storage& addr) = 0;
  // rdma_listen(3). backlog bounds the connect requests that are neither accepted, rejected nor dropped yet; further
  // ones wait unseen.
  virtual Status listen(int backlog) = 0;

  // rdma_resolve_addr(3) and rdma_resolve_route(3): kAddrResolved and kRouteResolved follow.
  virtual Status resolve_addr(const sockaddr_storage& dst, std::chrono::milliseconds timeout) = 0;
  virtual Status resolve_route(std::chrono::milliseconds timeout) = 0;

  // rdma_create_qp(3): before connect or accept. The Qp must be destroyed before this id.
  virtual Result<std::unique_ptr<Qp>> create_qp(Pd& pd, const QpInitAttr& attr) = 0;

  // rdma_connect(3): kEstablished, kRejected, kUnreachable or kConnectError follows.
  virtual Status connect(const ConnParam& param) = 0;
  // rdma_accept(3), rdma_reject(3): for an id that came with kConnectRequest. After accept kEstablished follows (or
  // kConnectError). On iWARP nothing leaves before the peer's first FPDU (RFC 5044 section 7.1.2): posts are held.
  virtual Status accept(const ConnParam& param) = 0;
  virtual Status reject(std::span<const std::uint8_t> private_data) = 0;
  // rdma_disconnect(3): what was posted is sent, then the connection ends; kDisconnected follows.
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
  // As CompChannel::fd.
  virtual int fd() const = 0;
  // rdma_get_cm_event(3), never blocking.
  virtual std::optional<CmEvent> get_event() = 0;
  // rdma_create_id(3) with RDMA_PS_TCP.
  virtual Result<std::unique_ptr<CmId>> create_id() = 0;
};

}  // namespace weft::verbs
