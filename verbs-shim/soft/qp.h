#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "rdmap/stream.h"
#include "verbs-shim/api/verbs.h"
#include "verbs-shim/soft/cq.h"

namespace weft::verbs::soft {

class Connection;
class SoftCmId;

// SoftQp: the queues of a queue pair. The requests of its send queue wait in the connection's Stream and here only
// their names do; its receives wait here until the Stream takes them.
//
//   kInit --connect, accept--> kRtr --established--> kRts --first error, or the connection's end--> kErr
//
// In kErr everything is flushed: what the Stream held by the Stream, the receives here.
class SoftQp final : public Qp {
 public:
  SoftQp(SoftCmId& id, std::uint32_t pd, std::uint32_t qp_num, const QpInitAttr& attr);
  ~SoftQp() override;

  Status post_send(const SendWr& wr) override;
  Status post_recv(const RecvWr& wr) override;
  QpState state() const override { return state_; }
  std::uint32_t qp_num() const override { return qp_num_; }
  QpCounters counters() const override;

  std::uint32_t pd() const { return pd_; }
  std::uint32_t max_send_wr() const { return attr_.cap.max_send_wr; }

  // ---- from the connection
  void attach(Connection& connection);
  void established();
  void on_completion(const rdmap::Completion& completion);
  // The connection's Stream met an error: what is posted from here on is flushed.
  void stream_failed() { enter_error(); }
  // The connection's Stream has come to its end.
  void detach(const rdmap::StreamCounters& counters);
  std::optional<rdmap::PostedRecv> take_recv();

  // ---- from the others
  void id_gone() { id_ = nullptr; }
  // One of its Cqs overflowed: the connection is aborted.
  void fail();

 private:
  struct SendSlot {
    std::uint64_t wr_id = 0;
    WcOpcode opcode = WcOpcode::kSend;
    bool signaled = false;
  };

  Status check_send(const SendWr& wr) const;
  void enter_error();
  void flush_send(std::uint32_t slot);
  void complete_send(const rdmap::Completion& completion);
  void complete_recv(const rdmap::Completion& completion);
  void push(Cq* cq, const Wc& wc, bool solicited);

  SoftCmId* id_;
  Connection* connection_ = nullptr;
  const std::uint32_t pd_;
  const std::uint32_t qp_num_;
  const QpInitAttr attr_;
  QpState state_ = QpState::kInit;
  QpCounters final_counters_;

  std::vector<SendSlot> send_slots_;
  std::vector<std::uint32_t> free_sends_;
  // Posted when the Stream took no more, before the queue pair knew of its end: flushed behind what the Stream flushes.
  std::vector<std::uint32_t> late_sends_;

  std::vector<rdmap::PostedRecv> recvs_;  // a ring
  std::size_t recv_head_ = 0;
  std::size_t num_recvs_ = 0;          // in the ring
  std::size_t outstanding_recvs_ = 0;  // these and what the Stream took
};

}  // namespace weft::verbs::soft
