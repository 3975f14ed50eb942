#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/time.h"
#include "verbs-shim/api/cm.h"
#include "verbs-shim/api/verbs.h"
#include "verbs-shim/ibv/async.h"
#include "verbs-shim/ibv/device.h"
#include "verbs-shim/ibv/epoll.h"
#include "verbs-shim/ibv/windows.h"

namespace weft::verbs::ibv {

class IbvCq;
class IbvQp;

// IbvDevice: an RDMA device of the kernel, through the ibv_context that librdmacm has for it, so that identifiers,
// protection domains and queues agree. That context stays open as long as the process lives.
//
// Its descriptor is an epoll over all channels and over `own_`: the private completion channel of the Cqs without a
// channel, asynchronous events, and events of the backend itself.
class IbvDevice : public Device {
 public:
  static Result<std::unique_ptr<IbvDevice>> open(ibv_context* context, const IbvConfig& config);
  ~IbvDevice() override;

  const Caps& caps() const override { return caps_; }
  Result<std::unique_ptr<Pd>> alloc_pd() override;
  Result<std::unique_ptr<CompChannel>> create_comp_channel() override;
  Result<std::unique_ptr<Cq>> create_cq(int cqe, CompChannel* channel) override;
  Result<std::unique_ptr<CmChannel>> create_event_channel() override;
  DeviceAttr query() const override;
  std::optional<AsyncEvent> get_async_event() override;
  int async_fd() override { return async_.fd(); }
  std::size_t process(TimePoint now) override;
  std::optional<TimePoint> next_timeout() const override;
  int fd() const override { return epoll_.fd(); }
  void set_busy_polling(bool on) override;

  // ---- for the objects that it made
  ibv_context* context() const { return context_; }
  std::string name() const { return ::ibv_get_device_name(context_->device); }
  bool is_iwarp() const { return transport_ == Transport::kIwarp; }
  // The kernel's two software devices have habits of their own (README.md).
  bool is_siw() const { return is_siw_; }
  bool is_rxe() const { return is_rxe_; }
  bool is_software() const { return is_siw_ || is_rxe_; }
  AsyncHub& hub() { return *hub_; }
  AsyncQueue& async() { return async_; }
  WindowTable& windows() { return windows_; }
  ibv_comp_channel* private_channel() const { return private_channel_; }
  // An error if an identifier for `whom` belongs to another device.
  Status check_same(const ibv_context* other, const std::string& whom) const;
  // Tells of a connect request that was turned away; the first 50, then each thousandth.
  void log_turned_away(const std::string& why);

  // Device::fd covers the descriptor of a channel from now on. An error if the user may watch no more descriptors.
  Status watch(int fd);
  void unwatch(int fd) { epoll_.remove(fd); }
  // adopt: the device arms a Cq without a channel from now on. release: ends this, and runs `destroy` under the same
  // lock.
  void adopt(IbvCq& cq);
  void release(IbvCq& cq, const std::function<void()>& destroy);
  // A Cq without a channel may hold more completions: process says so once.
  void set_more() { more_.store(true, std::memory_order_relaxed); }
  // Like set_more, for completions without an event of the kernel: a caller that sleeps on fd wakes up, too.
  void wake_for_more();
  // A queue pair whose disconnect waits for its send queue.
  void add_draining(IbvQp& qp);
  void forget_draining(IbvQp& qp);
  // Whether a CmChannel that asked the kernel in turn `last` may do so again: with busy polling only now and then.
  bool cm_turn(std::atomic<unsigned>& last) const;

 private:
  explicit IbvDevice(ibv_context* context);
  Status set_up(const IbvConfig& config);
  std::uint32_t probe_inline(ibv_pd* pd) const;
  // Takes the events of the private channel and arms its Cqs again; returns their number.
  std::size_t take_private_events();
  void arm_all();
  std::size_t pump_draining();

  ibv_context* context_;
  Transport transport_ = Transport::kOther;
  ibv_port_attr port_{};
  ibv_device_attr attr_{};
  Caps caps_;
  bool is_siw_ = false;
  bool is_rxe_ = false;
  std::shared_ptr<AsyncHub> hub_;
  AsyncQueue async_;
  WindowTable windows_;
  Epoll epoll_;
  Epoll own_;
  ibv_comp_channel* private_channel_ = nullptr;
  std::atomic<bool> more_{false};
  std::atomic<bool> busy_{false};
  std::atomic<unsigned> num_turns_{0};  // calls of process with busy polling
  Log log_;
  std::atomic<unsigned> num_logged_{0};

  std::mutex mutex_;
  std::set<IbvCq*> without_channel_;
  std::mutex draining_mutex_;
  std::vector<IbvQp*> draining_;
  std::atomic<std::size_t> num_draining_{0};
};

}  // namespace weft::verbs::ibv
