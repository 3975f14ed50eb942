#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rdmap/stream.h"
#include "verbs-shim/api/verbs.h"
#include "verbs-shim/soft/cq.h"
#include "verbs-shim/soft/maybe_mutex.h"

namespace weft::verbs::soft {

class Connection;
class Loop;
class SoftCmId;
class SoftSrq;

// SendOpcodes is what a work request is called on the wire and in its completion.
struct SendOpcodes {
  rdmap::SendOp wire;
  WcOpcode completed;
};

// SoftQp: the queues of a queue pair. The requests of its send queue wait in the connection's Stream and here only
// their names do; its receives wait here, or in an Srq, until the Stream takes them. With workers any thread posts:
// receives go into the queue, sends wait here for the loop's next turn.
//
//   kInit --connect, accept--> kRtr --established--> kRts --first error, or the connection's end--> kErr
//
// In kErr everything is flushed: what the Stream held by the Stream, the receives here. Those of an Srq stay there.
class SoftQp final : public Qp {
 public:
  SoftQp(SoftCmId& id, Loop& loop, std::uint32_t pd, std::uint32_t qp_num, const QpInitAttr& attr);
  ~SoftQp() override;

  Status post_send(const SendWr& wr) override;
  Status post_recv(const RecvWr& wr) override;
  QpState state() const override;
  Result<QpAttr> query() const override;
  Status modify(QpState state) override;
  std::uint32_t qp_num() const override { return qp_num_; }
  QpCounters counters() const override;

  std::uint32_t pd() const { return pd_; }
  std::uint32_t max_send_wr() const { return attr_.cap.max_send_wr; }

  // ---- in the loop's thread, from the connection
  // may_post: sends are taken from here on, else when established.
  void attach(Connection& connection, bool may_post);
  void established(std::uint8_t ird, std::uint8_t ord);
  void on_completion(const rdmap::Completion& completion);
  // The connection's Stream met an error: what is posted from here on is flushed.
  void stream_failed(const rdmap::Closed& why);
  // The connection's Stream has come to its end.
  void closed(const rdmap::Closed& why);
  void detach(const rdmap::StreamCounters& counters);
  std::optional<rdmap::PostedRecv> take_recv();
  // Whether its shared receive queue holds too few receives for a turn of the connection to begin.
  bool lacks_receives() const;

  // ---- in the loop's thread, from the others
  void id_gone() { id_ = nullptr; }
  // Resets the connection, where there is one; what is posted is flushed.
  void fail(const std::string& why);
  // What waits for the loop: sends that were posted, the end of a connection whose Cq overflowed.
  void attend();

  // ---- in any thread
  void cq_overflowed();
  bool in_inbox = false;  // the Loop's own mark

 private:
  struct SendSlot {
    std::uint64_t wr_id = 0;
    WcOpcode opcode = WcOpcode::kSend;
    bool signaled = false;
  };

  Status check_send(const SendWr& wr) const;
  Status take_send(const SendWr& wr, const SendOpcodes& op);
  Status hand_over(const rdmap::SendWr& request);
  rdmap::PostResult submit(const rdmap::SendWr& request);
  void enter_error();
  void check_last_recv();
  void report(const rdmap::Closed& why);
  void report(AsyncEventType type, std::string text);
  void flush(Cq* cq, std::uint64_t wr_id, WcOpcode opcode);
  void flush_send(std::uint32_t slot);
  void flush_late_sends();
  void complete_send(const rdmap::Completion& completion);
  void complete_recv(const rdmap::Completion& completion);
  void push(Cq* cq, const Wc& wc, bool solicited);

  Loop& loop_;
  const bool threaded_;
  const std::uint32_t pd_;
  const std::uint32_t qp_num_;
  const QpInitAttr attr_;
  SoftSrq* const srq_;

  // The loop's thread alone.
  SoftCmId* id_;
  Connection* connection_ = nullptr;
  QpCounters final_counters_;
  std::vector<rdmap::SendWr> submitting_;  // what attend works through
  bool reported_ = false;

  std::atomic<bool> cq_overflowed_ = false;

  mutable Mutex mutex_;  // guards all below
  QpState state_ = QpState::kInit;
  bool may_post_ = false;
  std::uint8_t ird_ = 0;
  std::uint8_t ord_ = 0;
  rdmap::SendWr request_;              // what a post makes of its work request
  std::vector<rdmap::SendWr> posted_;  // for attend

  std::vector<SendSlot> send_slots_;
  std::vector<std::uint32_t> free_sends_;
  // Posted when the Stream took no more, before the queue pair knew of its end: flushed behind what the Stream flushes.
  std::vector<std::uint32_t> late_sends_;

  std::vector<rdmap::PostedRecv> recvs_;  // a ring
  std::size_t recv_head_ = 0;
  std::size_t num_recvs_ = 0;          // in the ring
  std::size_t outstanding_recvs_ = 0;  // these and what the Stream took
  bool last_recv_reported_ = false;    // with an Srq
};

}  // namespace weft::verbs::soft
