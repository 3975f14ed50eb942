#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/time.h"
#include "verbs-shim/api/result.h"
#include "verbs-shim/api/types.h"

// The verbs API: the objects of libibverbs with the same names, arguments and rules, as interfaces. Two things differ
// from the C API: destructors destroy; a Device that the caller drives (Device::process) has no thread of its own.
//
// Threads. With polled progress one thread uses a Device and all objects that it made. With a device that moves by
// itself (Caps::own_progress) any thread may use them. A Qp, an Srq, a Cq and a channel then serve several threads at
// once, every other object one thread at a time.
// Lifetimes: a Device outlives the objects that it made, a Pd its Mrs, Mws, Srqs and Qps, a Cq and an Srq their Qps, a
// CompChannel its Cqs.
namespace weft::verbs {

class Cq;
class Qp;
class Srq;
struct SrqAttr;

// Mr: struct ibv_mr. Its destructor is ibv_dereg_mr: no peer and no work request reaches the memory from then on. The
// destructor waits for no peer. Work requests that still name the Mr complete with kLocProtErr. ibv_dereg_mr fails with
// EBUSY while windows are bound. A destructor cannot fail, so it invalidates the windows.
class Mr {
 public:
  virtual ~Mr() = default;
  virtual void* addr() const = 0;
  virtual std::size_t length() const = 0;
  virtual std::uint32_t lkey() const = 0;
  virtual std::uint32_t rkey() const = 0;
  // The number of windows that are bound to the region. A caller that wants ibv_dereg_mr's EBUSY asks here first.
  virtual std::size_t num_windows() const { return 0; }
};

// Mw: struct ibv_mw of type 2. A bind (WrOpcode::kBindMw) makes a part of a region reachable for the peer of one queue
// pair; kLocalInv or the peer's Send with Invalidate ends the access. Its destructor is ibv_dealloc_mw and is allowed
// in any state. The rkey names nothing afterwards.
class Mw {
 public:
  virtual ~Mw() = default;
  // The rkey of the last bind that was posted. Before the first bind it is an rkey that names nothing yet. The lower
  // octet is the key; the other bits stay the same.
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
  // A descriptor that polls readable when get_event may return an event. With polled progress it is an epoll descriptor
  // over the device's sockets and timer: call Device::process first after a wake-up. Some wake-ups bring no event.
  virtual int fd() const = 0;
  // ibv_get_cq_event(3) without blocking: returns the Cq whose event fired, or null. That Cq is no longer armed. Events
  // need no acknowledgement.
  virtual Cq* get_event() = 0;
};

// Cq: struct ibv_cq.
class Cq {
 public:
  virtual ~Cq() = default;
  // ibv_poll_cq(3): at most wc.size() completions, oldest first; returns their number. The result is negative after an
  // overflow: the Cq and its queue pairs are then in error.
  virtual int poll(std::span<Wc> wc) = 0;
  // ibv_req_notify_cq(3): asks for one event on the channel at the next completion (solicited_only: at the next receive
  // of a solicited Send or the next error). After arming poll until the Cq is empty: an earlier completion fires no
  // event.
  virtual Status req_notify(bool solicited_only) = 0;
};

// SrqAttr: struct ibv_srq_attr.
struct SrqAttr {
  std::uint32_t max_wr = 64;
  std::uint32_t max_sge = 4;
  std::uint32_t srq_limit = 0;  // kSrqLimitReached comes once, when fewer receives than this are left; 0: never
  // Not in ibverbs; for devices with Caps::srq_reserve. While fewer receives than this are left, no queue pair begins
  // to take in arrived messages: it waits for the next process(). So each peer in turn finds this many receives. Only a
  // peer that takes more in one turn finds the Srq empty. If the program never posts this many, no more messages
  // arrive. The newest receive is taken first: its memory is likely to be in the cache. 0: no reserve.
  std::uint32_t reserve = 0;
};

// Srq: struct ibv_srq. It holds receives that several queue pairs of its Pd share (QpInitAttr::srq). The queue pair for
// which a message arrives first takes a receive, which completes in the recv_cq of that queue pair. A receive that was
// not taken stays in the Srq when a queue pair ends. The destructor is ibv_destroy_srq; destroy the queue pairs first.
// The destructor forgets the receives that are left.
class Srq {
 public:
  virtual ~Srq() = default;
  // ibv_post_srq_recv(3), one request. Errors: ENOMEM (max_wr are posted), EINVAL (more than max_sge).
  virtual Status post_recv(const RecvWr& wr) = 0;
  // ibv_modify_srq(3) with IBV_SRQ_LIMIT: arms the event anew. The event comes at once if fewer than `srq_limit`
  // receives are left already. Errors: EINVAL (more than max_wr).
  virtual Status modify(std::uint32_t srq_limit) = 0;
  // ibv_query_srq(3). srq_limit is 0 once the event has come.
  virtual Result<SrqAttr> query() const = 0;
  // How many receives wait here for a message: all that were posted but those that queue pairs have taken. Only devices
  // with Caps::srq_reserve count them; others return nothing.
  virtual std::optional<std::uint32_t> num_waiting() const { return std::nullopt; }
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
  Srq* srq = nullptr;  // the source of the receives; cap.max_recv_wr and max_recv_sge then mean nothing, and post_recv
                       // fails with EINVAL
  QpCap cap;
  bool sq_sig_all = false;
};

enum class QpState : std::uint8_t { kReset, kInit, kRtr, kRts, kSqd, kSqe, kErr };

// QpAttr: struct ibv_qp_attr and the cap of struct ibv_qp_init_attr, as far as iWARP has them.
struct QpAttr {
  QpState qp_state = QpState::kInit;
  std::uint8_t max_rd_atomic = 0;       // ORD: outgoing Reads and Atomics that may be under way at once
  std::uint8_t max_dest_rd_atomic = 0;  // IRD: incoming Reads and Atomics that are served at once
  QpCap cap;                            // the granted values, which may exceed the requested ones
};

// Qp: struct ibv_qp. Every posted request ends in exactly one completion, kWrFlushErr when the connection ended first
// (a successful unsignaled send has none). Its destructor is ibv_destroy_qp: it forgets the outstanding requests and
// the completions that were not polled yet. It resets the connection unless CmId::disconnect has ended it. After
// CmId::disconnect the posted requests are still sent, from memory as long as the memory stays registered.
class Qp {
 public:
  virtual ~Qp() = default;
  // ibv_post_send(3), one request. kBindMw and kLocalInv are carried out in their turn among the other requests, so a
  // Send behind a bind may tell the peer of it. With kFence they wait for Reads and atomics. A bind or invalidation
  // that is not permitted completes with kMwBindErr. Errors: ENOMEM (queue full), EINVAL (not allowed on this queue
  // pair or by Caps), ENOTCONN (never connected). In state kErr the request is accepted and flushed.
  virtual Status post_send(const SendWr& wr) = 0;
  // ibv_post_recv(3), one request; allowed from creation on, before any connection.
  virtual Status post_recv(const RecvWr& wr) = 0;
  virtual QpState state() const = 0;
  // ibv_query_qp(3). The depths are 0 before the connection is established.
  virtual Result<QpAttr> query() const;
  // ibv_modify_qp(3): only kErr is allowed. It ends the connection at once and flushes the posted requests. The
  // connection manager makes all other changes of state on iWARP. A second kErr is no error. Errors: EINVAL (any other
  // state).
  virtual Status modify(QpState state);
  virtual std::uint32_t qp_num() const = 0;
  virtual QpCounters counters() const = 0;
  // Octets, headers included, that the device has handed to TCP and that TCP has not sent yet, since the peer's window
  // or the network takes no more. counters() may count some of them already. 0: there are none, or the device does
  // not know.
  virtual std::size_t num_unsent() const { return 0; }
};

class CmChannel;

// AsyncEventType: enum ibv_event_type, as far as iWARP has a counterpart.
enum class AsyncEventType : std::uint8_t {
  kCqErr,             // a Cq overflowed
  kQpFatal,           // the queue pair met an error of its own: it sent a Terminate, or the device failed it
  kQpReqErr,          // the peer broke the protocol
  kQpAccessErr,       // the peer reached for memory that it may not touch
  kCommEst,           // something arrived on a queue pair whose connection is not established yet
  kQpLastWqeReached,  // a queue pair with an Srq is in error and takes no more receives from it
  kSrqErr,
  kSrqLimitReached,  // SrqAttr::srq_limit
  kPortActive,
  kPortErr,
  kDeviceFatal,  // the device is gone: destroy all objects that it made
};

// The name that ibv_event_type_str(3) prints; never null.
const char* async_event_str(AsyncEventType type);

// AsyncEvent: struct ibv_async_event. Taking the event acknowledges it. The object that it names still existed when
// get_async_event returned the event; events of destroyed objects are dropped.
struct AsyncEvent {
  AsyncEventType type = AsyncEventType::kDeviceFatal;
  Cq* cq = nullptr;           // kCqErr
  Qp* qp = nullptr;           // kQp*, kCommEst
  Srq* srq = nullptr;         // kSrq*
  std::uint8_t port_num = 0;  // kPort*
  std::string text;           // one line that describes the event, if the device knows
};

// Transport: the transport below RDMA. It is enum rdma_transport_type with the distinctions that applications see.
enum class Transport : std::uint8_t { kIwarp, kInfiniBand, kRoce, kOther };

const char* transport_str(Transport transport);

// TerminateCount: the Terminates of one error that the connections of a device sent and received.
struct TerminateCount {
  std::uint8_t layer = 0, etype = 0, code = 0;  // RFC 5040 section 4.8
  std::string meaning;                          // a noun phrase
  std::uint64_t sent = 0, received = 0;
};

// DeviceAttr: the fields of struct ibv_device_attr and struct ibv_device that people look for. Engines ask Caps.
struct DeviceAttr {
  std::string name;  // "soft", "siw0" ...
  Transport transport = Transport::kIwarp;
  std::string fw_ver;           // empty if there is none
  std::uint64_t node_guid = 0;  // host byte order, 0 if there is none
  std::uint32_t vendor_id = 0;
  std::uint32_t num_ports = 1;
  bool port_active = true;       // port 1
  std::uint32_t active_mtu = 0;  // port 1, octets; 0 if it depends on the connection
  // Not in ibverbs: one entry for each error that occurred, and one with the layer 255 for all errors that no RFC
  // registers. Only the soft RNIC counts them.
  std::vector<TerminateCount> terminates = {};
};

// Device: struct ibv_context, with the calls by which user space lets it make progress.
class Device {
 public:
  virtual ~Device() = default;
  virtual const Caps& caps() const = 0;
  virtual Result<std::unique_ptr<Pd>> alloc_pd() = 0;
  virtual Result<std::unique_ptr<CompChannel>> create_comp_channel() = 0;
  // cqe: the number of completions that the Cq must hold. channel may be null: the Cq is then only polled.
  virtual Result<std::unique_ptr<Cq>> create_cq(int cqe, CompChannel* channel) = 0;
  virtual Result<std::unique_ptr<CmChannel>> create_event_channel() = 0;
  // ibv_query_device(3), ibv_query_port(3).
  virtual DeviceAttr query() const;

  // ibv_get_async_event(3) without blocking.
  virtual std::optional<AsyncEvent> get_async_event();
  // Like CompChannel::fd, for get_async_event; -1 if the device has no asynchronous events.
  virtual int async_fd();

  // process lets the device make progress without blocking: sockets, timers, completions, connection events. Call it
  // when fd() is readable, when next_timeout() has come, and otherwise as often as you like (spinning).
  // Returns the number of octets, completions and events that it moved, 0 for "nothing to do".
  virtual std::size_t process(TimePoint now) = 0;
  // The latest time at which process has work, even without news from the network. In the past if it has work now.
  virtual std::optional<TimePoint> next_timeout() const = 0;
  // An epoll descriptor that is readable whenever the driving caller has to wake up: for sockets and timers of process,
  // for events of the channels, for asynchronous events, and for completions in Cqs without a channel. The same loop
  // (process, get_event and poll until nothing is left, then sleep here) also drives a device that moves by itself.
  // There process reports whether Cqs without a channel may hold completions, and arms those Cqs anew.
  virtual int fd() const = 0;
  // on: until a call with false the caller calls process again and again and sleeps on no descriptor of the device. The
  // device need not keep the descriptors up to date meanwhile. Off is the initial state; the descriptors are up to date
  // again when the call returns.
  virtual void set_busy_polling(bool /*on*/) {}
};

}  // namespace weft::verbs
