#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <memory>
#include <string>

#include "verbs-shim/api/verbs.h"
#include "verbs-shim/ibv/unfinished.h"

namespace weft::verbs::ibv {

class IbvCq;
class IbvDevice;
class IbvSrq;
struct Endpoint;

// IbvQp: the queue pair of one connection.
//
// The API sends the posted requests before the connection ends. The kernel does not: rdma_disconnect flushes them. So a
// disconnect with requests under way posts a marker behind them, an RDMA Write of no octets, and calls rdma_disconnect
// when the marker has completed. A poll of the Cq and Device::process move the disconnect on. The destructor waits for
// it, up to kDrainTimeout.
class IbvQp : public Qp {
 public:
  static Result<std::unique_ptr<Qp>> create(std::shared_ptr<Endpoint> endpoint, Pd& pd, const QpInitAttr& attr);
  ~IbvQp() override;

  Status post_send(const SendWr& wr) override;
  Status post_recv(const RecvWr& wr) override;
  QpState state() const override;
  Result<QpAttr> query() const override;
  Status modify(QpState state) override;
  std::uint32_t qp_num() const override { return qp_num_; }
  QpCounters counters() const override { return {}; }

  // For the Cqs and the asynchronous events. False: the completion is the backend's own. Puts the user's wr_id into wc.
  bool on_completion(ibv_wc& wc);
  // False: the user has the event already.
  bool on_async(AsyncEventType type);

  // For the connection manager.
  void disconnect();
  // The connection is over: the posted requests are flushed.
  void end();
  // Ends the connection at once.
  void reset();
  // The connection is over and the kernel has flushed: flushes the requests that the kernel forgot.
  void flush_forgotten();
  // Reports that no more receives are taken from the Srq. Some of the kernel's software devices do not report it.
  void tell_last_receive();
  // Takes the completions of its Cq, so that a disconnect goes on.
  void pump();
  bool is_draining() const { return draining_.load(std::memory_order_acquire); }
  // Why the connection broke; null if it did not.
  const char* failure() const { return failure_.load(std::memory_order_relaxed); }

 private:
  IbvQp(std::shared_ptr<Endpoint> endpoint, const QpInitAttr& attr);
  Status check(const SendWr& wr) const;
  Status fail_without_depth(const SendWr& wr);
  // Has siw copy the memory of the request (siw_copies.h).
  Status hide_signal(ibv_send_wr& raw);
  int hand_over(ibv_send_wr& raw, std::uint64_t wr_id, Reported reported);
  int hand_over(ibv_recv_wr& raw);
  void remember(const ibv_wc& wc);
  bool on_hidden(ibv_wc& wc);
  // Whether the connection ends with this completion.
  bool note_failure(ibv_wc_status status);
  bool sends_under_way() const { return signaled_ > 0 || unsignaled_tail_; }
  bool dead() const { return ended_.load(std::memory_order_acquire) || draining_.load(std::memory_order_acquire); }
  bool post_marker();
  void pump_both();
  void drained();
  void wait_until_drained();

  std::shared_ptr<Endpoint> endpoint_;
  IbvDevice& device_;
  ibv_qp* qp_ = nullptr;
  IbvCq* send_cq_;
  IbvCq* recv_cq_;
  IbvSrq* srq_;
  QpCap cap_;  // the requested values
  bool sq_sig_all_;
  std::uint32_t qp_num_ = 0;

  // The two members tell whether all requests of the send queue have completed: the last request was signaled, and no
  // signaled request lacks its completion.
  std::atomic<std::uint32_t> signaled_{0};
  std::atomic<bool> unsignaled_tail_{false};
  std::unique_ptr<Unfinished> sends_, receives_;  // siw only
  std::atomic<std::uint32_t> hidden_{0};          // requests whose completion is kept from the user
  std::atomic<bool> flushed_{false};              // by flush_forgotten: later completions repeat its flushes
  std::atomic<bool> draining_{false};             // disconnect waits for the marker
  std::atomic<bool> marker_{false};               // it is posted; its completion is never delivered
  std::atomic<bool> told_last_{false};            // by the device or by tell_last_receive
  std::atomic<bool> ended_{false};                // the connection is gone, or an error came
  std::atomic<const char*> failure_{nullptr};
};

}  // namespace weft::verbs::ibv
