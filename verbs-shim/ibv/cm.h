#pragma once

#include <rdma/rdma_cma.h>

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/fd.h"
#include "verbs-shim/api/cm.h"
#include "verbs-shim/ibv/epoll.h"

namespace weft::verbs::ibv {

class IbvCmId;
class IbvDevice;
class IbvQp;
struct Endpoint;

// EventChannel owns a rdma_event_channel. The user's CmChannel and every identifier hold a share, because librdmacm
// needs the channel for as long as an identifier of it lives.
class EventChannel {
 public:
  static Result<std::shared_ptr<EventChannel>> create();
  ~EventChannel();
  EventChannel(const EventChannel&) = delete;
  EventChannel& operator=(const EventChannel&) = delete;

  rdma_event_channel* get() const { return channel_; }
  int fd() const { return epoll_.fd(); }

  // For events that the backend makes: the kernel reports them only as the result of a call.
  void push(CmEvent event);
  std::optional<CmEvent> take();
  // No event of id comes from now on.
  void forget(const CmId& id);

 private:
  explicit EventChannel(rdma_event_channel* channel) : channel_(channel) {}

  rdma_event_channel* channel_;
  Epoll epoll_;
  Flag flag_;
  std::atomic<bool> has_own_{false};
  std::mutex mutex_;
  std::deque<CmEvent> own_;
};

// Endpoint is one rdma_cm_id, shared by the CmId and the Qp. Either of the two may be destroyed first.
// rdma_cm_id::context points to the Endpoint.
struct Endpoint {
  enum class State : std::uint8_t {
    kIdle,
    kBound,
    kListening,
    kResolving,
    kAddrResolved,
    kRouteResolved,
    kRequest,     // a connect request that was not answered yet
    kConnecting,  // connect or accept was called
    kEstablished,
    kDisconnecting,
    kEnded,
    kAbandoned,  // ended by the user while it connected: later events of the kernel for it are dropped
  };

  Endpoint(IbvDevice& the_device, std::shared_ptr<EventChannel> events)
      : device(the_device), channel(std::move(events)) {}
  ~Endpoint();

  // Binds to addr. If its port is 0 and the device is iWARP, the port is one that TCP does not use either (tcp_port.h),
  // and it stays reserved until release_port.
  Status bind(sockaddr_storage addr);
  // Ends the reservation: the device has its own TCP socket at the port, or the identifier is gone.
  void release_port() { reserved_port.reset(); }
  // Whether the kernel may still hold a connection.
  bool connected() const {
    const State now = state;
    return now == State::kConnecting || now == State::kEstablished || now == State::kDisconnecting;
  }
  bool was_connected() const { return state >= State::kConnecting; }
  bool connecting() const { return state == State::kConnecting; }
  bool established() const { return state == State::kEstablished; }
  // Replaces an rdma_cm_id that the kernel has bound and that must not stay bound. Not to be called inside an event of
  // it.
  Status start_over();
  // The user gives up. True if the Endpoint was connecting: then tell_abandoned reports the end, not the kernel.
  bool abandon();
  bool abandoned() const { return state == State::kAbandoned; }
  void tell_abandoned();

  IbvDevice& device;
  std::shared_ptr<EventChannel> channel;
  rdma_cm_id* id = nullptr;
  Fd reserved_port;  // the socket that reserves it, or none
  std::atomic<State> state{State::kIdle};
  // The requested depths; from kEstablished on, the agreed depths. They are kept here because siw swaps the two in a
  // query.
  std::atomic<std::uint8_t> ird{0}, ord{0};
  std::atomic<IbvCmId*> owner{nullptr};  // null once the user destroyed it
  std::atomic<IbvQp*> qp{nullptr};
  // The thread of the CmChannel holds it while it uses qp, because another thread may destroy qp.
  std::mutex qp_mutex;
};

class IbvCmId : public CmId {
 public:
  explicit IbvCmId(std::shared_ptr<Endpoint> endpoint);
  ~IbvCmId() override;

  Status bind_addr(const sockaddr_storage& addr) override;
  Status listen(int backlog) override;
  Status resolve_addr(const sockaddr_storage& dst, std::chrono::milliseconds timeout) override;
  Status resolve_route(std::chrono::milliseconds timeout) override;
  Result<std::unique_ptr<Qp>> create_qp(Pd& pd, const QpInitAttr& attr) override;
  Status connect(const ConnParam& param) override;
  Status accept(const ConnParam& param) override;
  Status reject(std::span<const std::uint8_t> private_data) override;
  Status disconnect() override;
  sockaddr_storage local_addr() const override;
  sockaddr_storage peer_addr() const override;

 private:
  using State = Endpoint::State;
  // The parameters within the limits of the device; an error if the private data is longer than `most`.
  Result<ConnParam> fit(const ConnParam& param, std::size_t most) const;
  // The octets of private data for which a message of the connection manager has room: on iWARP the limit of Caps, on
  // other transports `other`.
  std::size_t room(std::size_t other) const;
  // Whether there is a queue pair that was not put into error.
  bool has_sound_qp() const;
  void begin(const ConnParam& param);
  Status out_of_order(const char* call) const;

  std::shared_ptr<Endpoint> endpoint_;
};

class IbvCmChannel : public CmChannel {
 public:
  static Result<std::unique_ptr<IbvCmChannel>> create(IbvDevice& device);
  ~IbvCmChannel() override;

  int fd() const override { return events_->fd(); }
  std::optional<CmEvent> get_event() override;
  Result<std::unique_ptr<CmId>> create_id() override;

 private:
  IbvCmChannel(IbvDevice& device, std::shared_ptr<EventChannel> events) : device_(device), events_(std::move(events)) {}
  // Nothing for an event that concerns librdmacm alone, for an identifier that is gone, or for a request that the
  // backend turned away.
  std::optional<CmEvent> translate(const rdma_cm_event& raw);
  std::optional<CmEvent> on_request(const rdma_cm_event& raw);

  IbvDevice& device_;
  std::shared_ptr<EventChannel> events_;
  std::atomic<unsigned> turn_{0};  // of IbvDevice::cm_turn, at the last question to the kernel
};

}  // namespace weft::verbs::ibv
