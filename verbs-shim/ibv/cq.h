#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "verbs-shim/api/verbs.h"
#include "verbs-shim/ibv/epoll.h"

namespace weft::verbs::ibv {

class IbvCq;
class IbvDevice;
class IbvQp;

// Entries of a Cq over what the user counted: the markers of queue pairs that disconnect (qp.h) have their completions
// there until somebody polls. More queue pairs than this that share a Cq, and disconnect while it is full and nobody
// polls, overflow it; who has so many asks for an entry more for each.
inline constexpr int kSpareCqe = 32;

class IbvCompChannel : public CompChannel {
 public:
  static Result<std::unique_ptr<IbvCompChannel>> create(IbvDevice& device);
  ~IbvCompChannel() override;

  int fd() const override { return epoll_.fd(); }
  Cq* get_event() override;

  ibv_comp_channel* get() const { return channel_; }
  // An event that the kernel does not make: of a completion that the backend put there itself.
  void push(IbvCq& cq);
  void forget(IbvCq& cq);

 private:
  IbvCompChannel(IbvDevice& device, ibv_comp_channel* channel) : device_(device), channel_(channel) {}
  IbvCq* take_own();

  IbvDevice& device_;
  ibv_comp_channel* channel_;
  Epoll epoll_;
  Flag flag_;
  std::atomic<bool> has_own_{false};
  std::mutex mutex_;
  std::deque<IbvCq*> own_;
};

// IbvCq: what was taken from the kernel and not polled yet waits in `held_`, older than all that the kernel still has.
// Its lock is held from the kernel's queue to whoever a completion is for, so that they keep their order, and none of a
// queue pair that goes is on its way.
class IbvCq : public Cq {
 public:
  // channel may be null: the device then waits for its events, so that who sleeps on Device::fd learns of completions.
  static Result<std::unique_ptr<IbvCq>> create(IbvDevice& device, int cqe, IbvCompChannel* channel);
  ~IbvCq() override;

  int poll(std::span<Wc> wc) override;
  Status req_notify(bool solicited_only) override;

  ibv_cq* get() const { return cq_; }
  void add(IbvQp& qp);
  // Its completions that nobody polled are forgotten; the queue pair has been destroyed.
  void remove(IbvQp& qp);
  // Takes what the kernel has, so that its queue pairs learn of it; whether any is for the user.
  bool pump();
  // The completion of a request that the kernel did not get.
  void push(std::uint64_t wr_id, WcStatus status, std::uint32_t qp_num, WcOpcode opcode = WcOpcode::kSend);
  void on_overflow() { overflown_.store(true, std::memory_order_release); }
  // For CompChannel::get_event.
  void on_fired() { armed_.store(Armed::kNot, std::memory_order_relaxed); }

 private:
  enum class Armed : std::uint8_t { kNot, kSolicited, kNext };

  IbvCq(IbvDevice& device, IbvCompChannel* channel) : device_(device), channel_(channel) {}
  std::size_t take_held(std::span<Wc> wc);
  int poll_kernel(std::span<ibv_wc> raw);
  // Tells the queue pairs; returns how many of raw are the user's.
  std::size_t account(std::span<const ibv_wc> raw, std::span<Wc> wc);
  IbvQp* find(std::uint32_t qp_num);
  void pump_locked();

  IbvDevice& device_;
  IbvCompChannel* channel_;
  ibv_cq* cq_ = nullptr;
  std::atomic<bool> overflown_{false};
  std::atomic<Armed> armed_{Armed::kNot};
  std::mutex mutex_;  // guards all below, and the taking from cq_
  std::deque<Wc> held_;
  std::unordered_map<std::uint32_t, IbvQp*> qps_;
  IbvQp* last_ = nullptr;  // of the completion before
};

}  // namespace weft::verbs::ibv
