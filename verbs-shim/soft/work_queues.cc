#include "verbs-shim/soft/work_queues.h"

#include <cerrno>
#include <utility>

#include "mpa/wire/release_memory.h"
#include "verbs-shim/soft/sges.h"

namespace weft::verbs::soft {

WorkQueues::WorkQueues(Core& core, Qp& qp, std::uint32_t pd, std::uint32_t qp_num, const QpInitAttr& attr)
    : core_(core),
      qp_(qp),
      pd_(pd),
      qp_num_(qp_num),
      attr_(attr),
      srq_(static_cast<SoftSrq*>(attr.srq)),
      mutex_(core.threaded()),
      recvs_(attr.cap.max_recv_wr) {}

// A request that the Stream will refuse later keeps its place in the order.
Status WorkQueues::queue(const rdmap::SendWr& request) {
  const bool allowed = core_.config().rfc7306 || !rdmap::is_rfc7306(request.op);
  if (!allowed || !rdmap::is_consistent(request)) return refused(rdmap::PostResult::kInvalid);
  posted_.push_back(request);
  ++outstanding_sends_;
  return {};
}

Status WorkQueues::refused(rdmap::PostResult result) {
  if (result == rdmap::PostResult::kQueueFull) {
    return Error{ENOMEM, "the send queue is full: poll its completions first"};
  }
  return Error{EINVAL, "the work request contradicts itself, or asks for what Caps denies"};
}

Status WorkQueues::post_recv(const RecvWr& wr) {
  if (srq_ != nullptr) return Error{EINVAL, "this queue pair takes its receives from its shared receive queue"};
  if (wr.sg_list.size() > attr_.cap.max_recv_sge) {
    return Error{EINVAL, "more scatter/gather elements than max_recv_sge of the queue pair"};
  }
  const std::scoped_lock lock(mutex_);
  if (outstanding_recvs_ == recvs_.capacity()) return Error{ENOMEM, "the receive queue is full"};
  if (failed()) {
    flush(recv_cq(), wr.wr_id, WcOpcode::kRecv);
    return {};
  }
  to_posted(wr, recvs_.extend());
  ++outstanding_recvs_;
  return {};
}

std::optional<rdmap::PostedRecv> WorkQueues::take_recv() {
  const std::scoped_lock lock(mutex_);
  if (failed()) return std::nullopt;
  if (srq_ != nullptr) {
    std::optional<rdmap::PostedRecv> shared = srq_->take();
    if (shared) ++outstanding_recvs_;
    return shared;
  }
  if (recvs_.empty()) return std::nullopt;
  std::optional<rdmap::PostedRecv> taken(std::move(recvs_.front()));
  recvs_.pop_front();
  return taken;
}

QpAttr WorkQueues::query() const {
  static constexpr QpState kStates[] = {QpState::kInit, QpState::kRtr, QpState::kRtr,
                                        QpState::kRts,  QpState::kErr, QpState::kErr};
  const std::scoped_lock lock(mutex_);
  return {.qp_state = kStates[static_cast<std::size_t>(state_)],
          .max_rd_atomic = ord_,
          .max_dest_rd_atomic = ird_,
          .cap = attr_.cap};
}

void WorkQueues::attach(Handle connection, bool accepted) {
  const std::scoped_lock lock(mutex_);
  connection_ = connection;
  if (state_ == State::kInit) state_ = accepted ? State::kAccepted : State::kConnecting;
}

void WorkQueues::established(std::uint8_t ird, std::uint8_t ord) {
  const std::scoped_lock lock(mutex_);
  ird_ = ird;
  ord_ = ord;
  if (!failed()) state_ = State::kRts;
}

void WorkQueues::report(AsyncEventType type, std::string text) {
  if (std::exchange(reported_, true)) return;
  core_.async().push({.type = type, .qp = &qp_, .text = std::move(text)});
}

void WorkQueues::report(const rdmap::Closed& why) {
  if (why.reason == rdmap::CloseReason::kTerminateSent && why.terminate) report(event_of(*why.terminate), why.text);
}

bool WorkQueues::take_overflow() {
  if (!cq_overflowed_) return false;
  report(AsyncEventType::kQpFatal, "its completion queue overflowed");
  return true;
}

void WorkQueues::trim() {
  release_memory(submitting_);
  const std::scoped_lock lock(mutex_);
  if (posted_.empty()) release_memory(posted_);
  if (late_sends_.empty()) release_memory(late_sends_);
}

void WorkQueues::stream_failed(const rdmap::Closed& why) {
  report(why);
  fail();
  flush_late_sends();
}

void WorkQueues::detach(const rdmap::StreamCounters& counters) {
  final_counters_ = to_api(counters);
  connection_ = {};
  fail();
  flush_late_sends();
}

void WorkQueues::fail() {
  const std::scoped_lock lock(mutex_);
  enter_error();
}

void WorkQueues::close() {
  const std::scoped_lock lock(mutex_);
  state_ = State::kDrained;
}

void WorkQueues::on_completion(const rdmap::Completion& completion) {
  const bool recv = completion.op == rdmap::WorkOp::kRecv;
  const std::scoped_lock lock(mutex_);
  --(recv ? outstanding_recvs_ : outstanding_sends_);
  if (is_told(completion)) {
    Wc wc = to_wc(completion);
    wc.qp_num = qp_num_;
    (recv ? recv_cq() : send_cq()).push(wc, completion.solicited);
  }
  if (completion.status != rdmap::WorkStatus::kSuccess) enter_error();
  check_last_recv();
}

void WorkQueues::enter_error() {
  if (failed()) return;
  state_ = State::kErr;
  for (; !recvs_.empty(); recvs_.pop_front()) {
    --outstanding_recvs_;
    flush(recv_cq(), recvs_.front().wr_id, WcOpcode::kRecv);
  }
  check_last_recv();
}

void WorkQueues::check_last_recv() {
  if (srq_ == nullptr || state_ != State::kErr || outstanding_recvs_ > 0) return;
  state_ = State::kDrained;
  core_.async().push(
      {.type = AsyncEventType::kQpLastWqeReached,
       .qp = &qp_,
       .text = "queue pair " + std::to_string(qp_num_) + " takes no more from its shared receive queue"});
}

void WorkQueues::flush_late_sends() {
  const std::scoped_lock lock(mutex_);
  for (const rdmap::SendWr& request : late_sends_) flush_send(request);
  late_sends_.clear();
}

void WorkQueues::flush_send(const rdmap::SendWr& request) {
  --outstanding_sends_;
  flush(send_cq(), request.wr_id, opcode_of(request));
}

// With polled progress this may run inside a call of the user. Nothing else would wake a user that sleeps next.
void WorkQueues::flush(SoftCq& cq, std::uint64_t wr_id, WcOpcode opcode) {
  cq.push({.wr_id = wr_id, .status = WcStatus::kWrFlushErr, .opcode = opcode, .qp_num = qp_num_}, false);
  core_.want_caller();
}

}  // namespace weft::verbs::soft
