#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "verbs-shim/api/result.h"
#include "verbs-shim/api/types.h"

// The verbs API: the objects of libibverbs with the same names, arguments and rules, as interfaces. What is new against
// the C API: destructors destroy; a Device that the caller drives (Device::process) has no thread of its own.
//
// Threads. Polled progress: one thread uses a Device and all that came from it. A device that moves by itself
// (Caps::own_progress): any thread; Qp, Srq, Cq and the channels are for several at once, of the others one object is
// for one at a time.
// Lifetimes: a Device outlives what came from it, a Pd its Mrs, Mws, Srqs and Qps, a Cq and an Srq their Qps, a
// CompChannel its Cqs.
namespace weft::verbs {

class Cq;
class Qp;
class Srq;
struct SrqAttr;

// Mr: struct ibv_mr. Its destruction is ibv_dereg_mr: from then on no peer and no work request reaches the memory;
// it waits for no peer. Work requests that still name it complete with kLocProtErr. Where ibv_dereg_mr fails with EBUSY
// because windows are bound, a destructor cannot: it invalidates them.
class Mr {
 public:
  virtual ~Mr() = default;
  virtual void* addr() const = 0;
  virtual std::size_t length() const = 0;
  virtual std::uint32_t lkey() const = 0;
  virtual std::uint32_t rkey() const = 0;
  // How many windows are bound to it: who wants ibv_dereg_mr's EBUSY asks here first.
  virtual std::size_t num_windows() const { return 0; }
};

// Mw: struct ibv_mw of type 2. A bind (WrOpcode::kBindMw) makes a part of a region reachable for the peer of one queue
// pair; kLocalInv or the peer's Send with Invalidate ends that. Its destruction is ibv_dealloc_mw, allowed in any
// state: its rkey then names nothing.
class Mw {
 public:
  virtual ~Mw() = default;
  // The rkey of the last bind that was posted, before that one that names nothing yet. Its lower octet is the key, the
  // rest stays the same.
  virtual std::uint32_t rkey() const = 0;
};

// Pd: struct ibv_pd.
class Pd {
 public:
  virtual ~Pd() = default;
  // reg_mr: ibv_reg_mr(3). The memory stays the caller's and outlives the Mr. Errors: EINVAL (kRemoteWrite or
  // kRemoteAtomic without kLocalWrite, a range that wraps), ENOMEM (limit).
  virtual Result<std::unique_ptr<Mr>> reg_mr(void* addr, std::size_t length, Access access) = 0;
  // alloc_mw: ibv_alloc_mw(3) of IBV_MW_TYPE_2. Errors: EOPNOTSUPP (Caps::mem_windows_type2), ENOMEM (limit).
  virtual Result<std::unique_ptr<Mw>> alloc_mw();
  // create_srq: ibv_create_srq(3). Errors: EOPNOTSUPP (Caps::max_srq is 0), EINVAL (more than Caps allows), ENOMEM.
  virtual Result<std::unique_ptr<Srq>> create_srq(const SrqAttr& attr);
};

// CompChannel: struct ibv_comp_channel.
class CompChannel {
 public:
  virtual ~CompChannel() = default;
  // A descriptor that polls readable when get_event may return something. With polled progress it is an epoll
  // descriptor over the device's sockets and timer: on wake-up call Device::process first; wake-ups without an event
  // happen.
  virtual int fd() const = 0;
  // ibv_get_cq_event(3), never blocking: the Cq whose event fired, which is then no longer armed; null for none.
  // Events need no acknowledgement.
  virtual Cq* get_event() = 0;
};

// Cq: struct ibv_cq.
class Cq {
 public:
  virtual ~Cq() = default;
  // ibv_poll_cq(3): at most wc.size() completions, oldest first; returns how many. Negative after an overflow: the Cq
  // and its queue pairs are then in error.
  virtual int poll(std::span<Wc> wc) = 0;
  // ibv_req_notify_cq(3): one event on the channel at the next completion (solicited_only: the next receive of a
  // solicited Send, or error). After arming poll again until empty: what came before does not fire.
  virtual Status req_notify(bool solicited_only) = 0;
};

// SrqAttr: struct ibv_srq_attr.
struct SrqAttr {
  std::uint32_t max_wr = 64;
  std::uint32_t max_sge = 4;
  std::uint32_t srq_limit = 0;  // kSrqLimitReached comes once, when fewer receives than this are left; 0: never
  // Not of ibverbs: where Caps::srq_reserve, no queue pair begins to take in what has arrived while fewer receives than
  // this are left, but waits for the next process(). So one peer after the other finds as many; who takes more in one
  // turn finds it empty, and nobody else. With fewer posted for good, nothing more arrives. 0: never.
  std::uint32_t reserve = 0;
};

// Srq: struct ibv_srq, receives that several queue pairs of its Pd share (QpInitAttr::srq). Each is taken by the queue
// pair for which a message arrives first, completes in that one's recv_cq, and stays the Srq's when a queue pair ends
// before it was taken. Its destruction is ibv_destroy_srq, after that of its queue pairs; it forgets what is left.
class Srq {
 public:
  virtual ~Srq() = default;
  // ibv_post_srq_recv(3), one request. Errors: ENOMEM (max_wr are posted), EINVAL (more than max_sge).
  virtual Status post_recv(const RecvWr& wr) = 0;
  // ibv_modify_srq(3) with IBV_SRQ_LIMIT: arms the event anew. Where fewer than `srq_limit` are left already it comes
  // at once. Errors: EINVAL (more than max_wr).
  virtual Status modify(std::uint32_t srq_limit) = 0;
  // ibv_query_srq(3). srq_limit is 0 once the event has come.
  virtual Result<SrqAttr> query() const = 0;
};

struct QpCap {
  std::uint32_t max_send_wr = 64;
  std::uint32_t max_recv_wr = 64;
  std::uint32_t max_send_sge = 4;
  std::uint32_t max_recv_sge = 4;
  std::uint32_t max_inline_data = 0;  // octets
};

// QpInitAttr: struct ibv_qp_init_attr of a reliable connection (iWARP knows no other type).
struct QpInitAttr {
  Cq* send_cq = nullptr;
  Cq* recv_cq = nullptr;
  Srq* srq = nullptr;  // where receives come from; cap.max_recv_wr and max_recv_sge then mean nothing, and post_recv is
                       // refused with EINVAL
  QpCap cap;
  bool sq_sig_all = false;
};

enum class QpState : std::uint8_t { kReset, kInit, kRtr, kRts, kSqd, kSqe, kErr };

// QpAttr: struct ibv_qp_attr and the cap of struct ibv_qp_init_attr, as far as iWARP has them.
struct QpAttr {
  QpState qp_state = QpState::kInit;
  std::uint8_t max_rd_atomic = 0;       // ORD: Reads and Atomics of ours that may be on their way at once
  std::uint8_t max_dest_rd_atomic = 0;  // IRD: of the peer's that we serve at once
  QpCap cap;                            // as granted, which may be more than was asked for
};

// Qp: struct ibv_qp. Every posted request ends in exactly one completion, kWrFlushErr when the connection ended first
// (successful unsignaled sends have none). Its destruction is ibv_destroy_qp: what is outstanding, and completions of
// it that were not polled yet, are forgotten. A connection that was not ended by CmId::disconnect is reset by it; one
// that was still sends what was posted, from memory as long as that stays registered.
class Qp {
 public:
  virtual ~Qp() = default;
  // ibv_post_send(3), one request. kBindMw and kLocalInv are carried out in their turn among the others: behind a bind
  // the peer may be told of it; with kFence they wait for Reads and atomics. A bind or invalidation that asks for what
  // it may not completes with kMwBindErr. Errors: ENOMEM (queue full), EINVAL (not allowed on this queue pair or by
  // Caps), ENOTCONN (never connected). In state kErr the request is accepted and flushed.
  virtual Status post_send(const SendWr& wr) = 0;
  // ibv_post_recv(3), one request; allowed from creation on, before any connection.
  virtual Status post_recv(const RecvWr& wr) = 0;
  virtual QpState state() const = 0;
  // ibv_query_qp(3). The depths are 0 before the connection is established.
  virtual Result<QpAttr> query() const;
  // ibv_modify_qp(3): to kErr alone, which ends the connection at once and flushes what is posted; the connection
  // manager makes all other changes of state on iWARP. kErr again is no error. Errors: EINVAL (any other state).
  virtual Status modify(QpState state);
  virtual std::uint32_t qp_num() const = 0;
  virtual QpCounters counters() const = 0;
};

class CmChannel;

// AsyncEventType: enum ibv_event_type, as far as iWARP has a counterpart.
enum class AsyncEventType : std::uint8_t {
  kCqErr,             // a Cq overflowed
  kQpFatal,           // the queue pair met an error of its own: a Terminate was sent, or the device failed it
  kQpReqErr,          // the peer broke the protocol
  kQpAccessErr,       // the peer reached for memory that it may not touch
  kCommEst,           // something arrived on a queue pair whose connection is not established yet
  kQpLastWqeReached,  // a queue pair with an Srq is in error and takes no more receives from it
  kSrqErr,
  kSrqLimitReached,  // SrqAttr::srq_limit
  kPortActive,
  kPortErr,
  kDeviceFatal,  // the device is gone: destroy everything that came from it
};

// The name ibv_event_type_str(3) would print; never null.
const char* async_event_str(AsyncEventType type);

// AsyncEvent: struct ibv_async_event, acknowledged by being taken. The object that it names was not destroyed yet when
// get_async_event returned it; events of destroyed objects are dropped.
struct AsyncEvent {
  AsyncEventType type = AsyncEventType::kDeviceFatal;
  Cq* cq = nullptr;           // kCqErr
  Qp* qp = nullptr;           // kQp*, kCommEst
  Srq* srq = nullptr;         // kSrq*
  std::uint8_t port_num = 0;  // kPort*
  std::string text;           // one line that says what happened, where the device knows
};

// Transport: what is below RDMA, enum rdma_transport_type told apart as applications see it.
enum class Transport : std::uint8_t { kIwarp, kInfiniBand, kRoce, kOther };

const char* transport_str(Transport transport);

// DeviceAttr: of struct ibv_device_attr and struct ibv_device what people look for. Caps has what engines ask.
struct DeviceAttr {
  std::string name;  // "soft", "siw0" ...
  Transport transport = Transport::kIwarp;
  std::string fw_ver;           // empty where there is none
  std::uint64_t node_guid = 0;  // host byte order, 0 where there is none
  std::uint32_t vendor_id = 0;
  std::uint32_t num_ports = 1;
  bool port_active = true;       // port 1
  std::uint32_t active_mtu = 0;  // port 1, octets; 0 where it depends on the connection
};

// Device: struct ibv_context, with the progress that user space lends it.
class Device {
 public:
  virtual ~Device() = default;
  virtual const Caps& caps() const = 0;
  virtual Result<std::unique_ptr<Pd>> alloc_pd() = 0;
  virtual Result<std::unique_ptr<CompChannel>> create_comp_channel() = 0;
  // cqe: how many completions it must hold. channel may be null: then the Cq is only polled.
  virtual Result<std::unique_ptr<Cq>> create_cq(int cqe, CompChannel* channel) = 0;
  virtual Result<std::unique_ptr<CmChannel>> create_event_channel() = 0;
  // ibv_query_device(3), ibv_query_port(3).
  virtual DeviceAttr query() const;

  // ibv_get_async_event(3), never blocking.
  virtual std::optional<AsyncEvent> get_async_event();
  // As CompChannel::fd, for get_async_event; -1 where the device has no such events.
  virtual int async_fd();

  // process lets the device make progress without blocking: sockets, timers, completions, connection events. To be
  // called when fd() is readable, when next_timeout() has come, and as often as the caller likes (spinning).
  // Returns how many octets, completions and events it moved, 0 for "nothing to do".
  virtual std::size_t process(TimePoint now) = 0;
  // When process has something to do at the latest, even without news from the network; in the past where it has now.
  virtual std::optional<TimePoint> next_timeout() const = 0;
  // An epoll descriptor over everything that a caller who drives this device has to wake up for: whatever process waits
  // for, timers included; events of its channels and asynchronous ones; completions in Cqs without a channel. With it
  // the same loop (process, get_event and poll until nothing is left, sleep here) drives a device that moves by itself:
  // there process says whether there may be completions in Cqs without a channel, and arms them anew.
  virtual int fd() const = 0;
  // on: until further notice the caller calls process again and again and sleeps on no descriptor of the device, which
  // may then save what keeps them true. Off, as it begins: they are true again on return.
  virtual void set_busy_polling(bool /*on*/) {}
};

}  // namespace weft::verbs
