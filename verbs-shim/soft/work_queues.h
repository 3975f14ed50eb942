#pragma once

#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "rdmap/stream.h"
#include "verbs-shim/api/verbs.h"
#include "verbs-shim/soft/core.h"
#include "verbs-shim/soft/cq.h"
#include "verbs-shim/soft/fixed_ring.h"
#include "verbs-shim/soft/handle.h"
#include "verbs-shim/soft/maybe_mutex.h"
#include "verbs-shim/soft/srq.h"
#include "verbs-shim/soft/translate.h"

namespace weft::verbs::soft {

// WorkQueues: the queues of a queue pair, as its connection sees them. The queue pair owns them. Sends wait in the
// connection's Stream and are only counted here. Receives wait here, or in an Srq, until the Stream takes them. With
// workers any thread posts: receives go into the queue, and sends wait here for the loop's next turn.
//
//   kInit --connect--> kConnecting --established--> kRts --first error, or the connection's end--> kErr
//         --accept---> kAccepted ---established--'                          --last receive of an Srq--> kDrained
//
// In kErr all requests are flushed: the Stream flushes the requests that it holds, and WorkQueues flushes the receives.
// Receives of an Srq stay in the Srq.
class WorkQueues {
 public:
  // qp: its name in asynchronous events.
  WorkQueues(Core& core, Qp& qp, std::uint32_t pd, std::uint32_t qp_num, const QpInitAttr& attr);

  std::uint32_t pd() const { return pd_; }
  std::uint32_t qp_num() const { return qp_num_; }
  const QpInitAttr& attr() const { return attr_; }
  SoftCq& send_cq() const { return static_cast<SoftCq&>(*attr_.send_cq); }
  SoftCq& recv_cq() const { return static_cast<SoftCq&>(*attr_.recv_cq); }

  // ---- any thread
  // With workers the request waits for hand_over. Otherwise it goes to the Stream through post(request), which returns
  // a PostResult. The queue pair has checked the request.
  template <typename Post>
  Status post_send(const SendWr& wr, const SendOpcodes& op, Post post);
  Status post_recv(const RecvWr& wr);
  QpAttr query() const;
  QpState state() const { return query().qp_state; }
  // A Cq has overflowed; take_overflow reports it once.
  void set_overflow() { cq_overflowed_ = true; }

  // ---- the loop's thread
  // Sends are taken from here on if the connection was accepted, else from established on.
  void attach(Handle connection, bool accepted);
  void established(std::uint8_t ird, std::uint8_t ord);
  void on_completion(const rdmap::Completion& completion);
  // The connection's Stream met an error: requests that are posted from here on are flushed.
  void stream_failed(const rdmap::Closed& why);
  // The connection is gone, or MPA has ended on it.
  void detach(const rdmap::StreamCounters& counters);
  // Flushes the requests that wait here, and all later ones.
  void fail();
  // The queue pair goes away: nothing is flushed any more.
  void close();
  std::optional<rdmap::PostedRecv> take_recv();
  // Whether its shared receive queue holds too few receives for a turn of the connection to begin.
  bool lacks_receives() const { return srq_ != nullptr && !srq_->has_reserve(); }
  // Passes posted sends to the Stream through post(request).
  template <typename Post>
  void hand_over(Post post);
  bool take_overflow();
  // The connection has come to rest: gives back the memory of lists without requests.
  void trim();
  // Reports an asynchronous event that names the end at fault, if a Terminate of ours tells it. Completions and the
  // connection's own event tell of a Terminate from the peer and of a lost connection.
  void report(const rdmap::Closed& why);
  Handle connection() const { return connection_; }
  const QpCounters& final_counters() const { return final_counters_; }

  bool in_inbox = false;  // the Loop's own mark

 private:
  enum class State : std::uint8_t { kInit, kConnecting, kAccepted, kRts, kErr, kDrained };

  bool failed() const { return state_ >= State::kErr; }
  Status queue(const rdmap::SendWr& request);
  Status refused(rdmap::PostResult result);
  void enter_error();
  void check_last_recv();
  void report(AsyncEventType type, std::string text);
  void flush(SoftCq& cq, std::uint64_t wr_id, WcOpcode opcode);
  void flush_send(const rdmap::SendWr& request);
  void flush_late_sends();

  Core& core_;
  Qp& qp_;
  const std::uint32_t pd_;
  const std::uint32_t qp_num_;
  const QpInitAttr attr_;
  SoftSrq* const srq_;

  // For the loop's thread only.
  Handle connection_;
  QpCounters final_counters_;
  std::vector<rdmap::SendWr> submitting_;  // the sends that hand_over works through
  bool reported_ = false;

  std::atomic<bool> cq_overflowed_ = false;

  mutable Mutex mutex_;  // guards all below
  State state_ = State::kInit;
  std::uint8_t ird_ = 0;
  std::uint8_t ord_ = 0;
  rdmap::SendWr request_;              // the request that a post makes of its work request
  std::vector<rdmap::SendWr> posted_;  // for hand_over
  std::size_t outstanding_sends_ = 0;
  // Sends that were posted after the Stream's end, before the queue pair knew of the end. They are flushed behind the
  // Stream's own flushes.
  std::vector<rdmap::SendWr> late_sends_;
  FixedRing<rdmap::PostedRecv> recvs_;
  std::size_t outstanding_recvs_ = 0;  // these and the receives that the Stream took
};

template <typename Post>
Status WorkQueues::post_send(const SendWr& wr, const SendOpcodes& op, Post post) {
  const std::scoped_lock lock(mutex_);
  if (state_ < State::kAccepted) return Error{ENOTCONN, "the queue pair is not connected"};
  if (outstanding_sends_ == attr_.cap.max_send_wr) return refused(rdmap::PostResult::kQueueFull);
  if (failed() && !core_.threaded()) {
    flush(send_cq(), wr.wr_id, op.completed);
    return {};
  }
  to_request(wr, op, attr_.sq_sig_all || has(wr.send_flags, SendFlags::kSignaled), request_);
  if (core_.threaded()) return queue(request_);
  const rdmap::PostResult result = post(request_);
  if (result == rdmap::PostResult::kQueueFull || result == rdmap::PostResult::kInvalid) return refused(result);
  ++outstanding_sends_;
  if (result == rdmap::PostResult::kNotConnected) late_sends_.push_back(request_);
  return {};
}

template <typename Post>
void WorkQueues::hand_over(Post post) {
  const std::scoped_lock lock(mutex_);
  submitting_.swap(posted_);
  for (const rdmap::SendWr& request : submitting_) {
    if (failed()) {
      flush_send(request);
      continue;
    }
    const rdmap::PostResult result = post(request);
    assert(result == rdmap::PostResult::kOk || result == rdmap::PostResult::kNotConnected);  // queue() checked
    if (result != rdmap::PostResult::kOk) late_sends_.push_back(request);
  }
  submitting_.clear();
}

}  // namespace weft::verbs::soft
