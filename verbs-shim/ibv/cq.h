#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "verbs-shim/api/verbs.h"
#include "verbs-shim/ibv/epoll.h"
#include "verbs-shim/ibv/siw_copies.h"

namespace weft::verbs::ibv {

class IbvCq;
class IbvDevice;
class IbvQp;

// Entries of a Cq beyond the number that the user asked for. The markers of disconnecting queue pairs (qp.h) have their
// completions there until the Cq is polled. More queue pairs than this overflow a Cq if they share it and disconnect
// while it is full and is not polled. A user with so many queue pairs asks for one more entry for each.
inline constexpr int kSpareCqe = 32;
// Entries of a Cq of siw beyond these, for completions that the user did not ask for and does not get (siw_copies.h):
// as many as the user asked for, and this many at least.
inline constexpr int kLeastHiddenCqe = 256;

class IbvCompChannel : public CompChannel {
 public:
  static Result<std::unique_ptr<IbvCompChannel>> create(IbvDevice& device);
  ~IbvCompChannel() override;

  int fd() const override { return epoll_.fd(); }
  Cq* get_event() override;

  ibv_comp_channel* get() const { return channel_; }
  // An event that the kernel does not make: for a completion that the backend put into the Cq itself.
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

// IbvCq: completions that were taken from the kernel and not polled yet wait in `held_`. They are older than all
// completions that the kernel still has. The lock is held from the kernel's queue to the receiver of a completion. So
// completions keep their order, and none is on its way when its queue pair goes.
class IbvCq : public Cq {
 public:
  // channel may be null: the device then waits for the Cq's events, so that a caller that sleeps on Device::fd learns
  // of completions.
  static Result<std::unique_ptr<IbvCq>> create(IbvDevice& device, int cqe, IbvCompChannel* channel);
  ~IbvCq() override;

  int poll(std::span<Wc> wc) override;
  Status req_notify(bool solicited_only) override;

  ibv_cq* get() const { return cq_; }
  void add(IbvQp& qp);
  // Forgets the completions of a queue pair that were not polled. The queue pair has been destroyed.
  void remove(IbvQp& qp);
  // Takes the kernel's completions, so that the queue pairs learn of them. Returns whether any is for the user.
  bool pump();
  // The completion of a request that the kernel did not get.
  void push(std::uint64_t wr_id, WcStatus status, std::uint32_t qp_num, WcOpcode opcode = WcOpcode::kSend);
  // Takes an entry of the Cq for a completion that the user does not get. False: all are in use.
  bool reserve_hidden();
  void release_hidden(std::uint32_t num) { hidden_room_.add(num); }
  void on_overflow() { overflown_.store(true, std::memory_order_release); }
  // For CompChannel::get_event.
  void on_fired() { armed_.store(Armed::kNot, std::memory_order_relaxed); }

 private:
  enum class Armed : std::uint8_t { kNot, kSolicited, kNext };

  IbvCq(IbvDevice& device, IbvCompChannel* channel) : device_(device), channel_(channel) {}
  std::size_t take_held(std::span<Wc> wc);
  int poll_kernel(std::span<ibv_wc> raw);
  // Tells the queue pairs; returns the number of completions in raw that are for the user.
  std::size_t account(std::span<ibv_wc> raw, std::span<Wc> wc);
  IbvQp* find(std::uint32_t qp_num);
  void pump_locked();

  IbvDevice& device_;
  IbvCompChannel* channel_;
  ibv_cq* cq_ = nullptr;
  HiddenRoom hidden_room_;
  std::atomic<bool> overflown_{false};
  std::atomic<Armed> armed_{Armed::kNot};
  std::mutex mutex_;  // guards all below, and the taking from cq_
  std::deque<Wc> held_;
  std::unordered_map<std::uint32_t, IbvQp*> qps_;
  IbvQp* last_ = nullptr;  // of the previous completion
};

}  // namespace weft::verbs::ibv
