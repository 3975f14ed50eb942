#include "verbs-shim/soft/qp.h"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>

#include "verbs-shim/soft/cm.h"
#include "verbs-shim/soft/connection.h"
#include "verbs-shim/soft/loop.h"
#include "verbs-shim/soft/pd.h"
#include "verbs-shim/soft/sges.h"
#include "verbs-shim/soft/srq.h"

namespace weft::verbs::soft {
namespace {

constexpr const char* kSendQueueFull = "the send queue is full: poll its completions first";
constexpr const char* kContradiction = "the work request contradicts itself, or asks for what Caps denies";

WcStatus wc_status(rdmap::WorkStatus status) {
  switch (status) {
    case rdmap::WorkStatus::kSuccess: return WcStatus::kSuccess;
    case rdmap::WorkStatus::kFlushed: return WcStatus::kWrFlushErr;
    case rdmap::WorkStatus::kLocalLength: return WcStatus::kLocLenErr;
    case rdmap::WorkStatus::kLocalProtection: return WcStatus::kLocProtErr;
    case rdmap::WorkStatus::kLocalOperation: return WcStatus::kLocQpOpErr;
    case rdmap::WorkStatus::kRemoteAccess: return WcStatus::kRemAccessErr;
    case rdmap::WorkStatus::kRemoteOperation: return WcStatus::kRemOpErr;
    case rdmap::WorkStatus::kRemoteInvalidRequest: return WcStatus::kRemInvReqErr;
    case rdmap::WorkStatus::kWindow: return WcStatus::kMwBindErr;
    case rdmap::WorkStatus::kFatal: return WcStatus::kFatalErr;
  }
  return WcStatus::kGeneralErr;
}

std::optional<SendOpcodes> send_op(WrOpcode opcode) {
  switch (opcode) {
    case WrOpcode::kSend: return SendOpcodes{rdmap::SendOp::kSend, WcOpcode::kSend};
    case WrOpcode::kSendWithInv: return SendOpcodes{rdmap::SendOp::kSendInvalidate, WcOpcode::kSend};
    case WrOpcode::kRdmaWrite: return SendOpcodes{rdmap::SendOp::kRdmaWrite, WcOpcode::kRdmaWrite};
    case WrOpcode::kRdmaRead: return SendOpcodes{rdmap::SendOp::kRdmaRead, WcOpcode::kRdmaRead};
    case WrOpcode::kRdmaWriteWithImm: return SendOpcodes{rdmap::SendOp::kWriteImmediate, WcOpcode::kRdmaWrite};
    case WrOpcode::kAtomicCmpAndSwp: return SendOpcodes{rdmap::SendOp::kAtomic, WcOpcode::kCompSwap};
    case WrOpcode::kAtomicFetchAndAdd: return SendOpcodes{rdmap::SendOp::kAtomic, WcOpcode::kFetchAdd};
    case WrOpcode::kBindMw: return SendOpcodes{rdmap::SendOp::kBindWindow, WcOpcode::kBindMw};
    case WrOpcode::kLocalInv: return SendOpcodes{rdmap::SendOp::kInvalidateWindow, WcOpcode::kLocalInv};
    case WrOpcode::kSendWithImm: return std::nullopt;  // WrOpcode says why
  }
  return std::nullopt;
}

rdmap::AtomicOperands atomic_operands(const SendWr& wr) {
  rdmap::AtomicOperands out;
  if (wr.opcode == WrOpcode::kAtomicFetchAndAdd) {
    out.add_swap = wr.compare_add;
    return out;
  }
  out.op = rdmap::AtomicOp::kCmpSwap;
  out.compare = wr.compare_add;
  out.add_swap = wr.swap;
  out.add_swap_mask = ~std::uint64_t{0};
  return out;
}

rdmap::ImmediateData immediate_data(std::uint32_t imm_data) {
  rdmap::ImmediateData out{};
  std::memcpy(out.data(), &imm_data, sizeof(imm_data));
  return out;
}

ddp::WindowBind window_bind(const MwBind& bind) {
  ddp::WindowBind out;
  out.stag = ddp::Stag{bind.rkey};
  out.region = ddp::Stag{bind.mr->lkey()};
  out.to = bind.addr;
  out.len = bind.length;
  out.remote_read = has(bind.access, Access::kRemoteRead);
  out.remote_write = has(bind.access, Access::kRemoteWrite);
  out.remote_atomic = has(bind.access, Access::kRemoteAtomic);
  return out;
}

Status check_bind(const SendWr& wr) {
  const MwBind& bind = wr.bind_mw;
  constexpr unsigned kAllowed = unsigned(Access::kRemoteRead | Access::kRemoteWrite | Access::kRemoteAtomic);
  constexpr std::uint32_t kKeyMask = 0xff;
  if (bind.mw == nullptr || bind.mr == nullptr) return Error{EINVAL, "a bind names a window and a region"};
  if (((bind.rkey ^ bind.mw->rkey()) & ~kKeyMask) != 0)
    return Error{EINVAL, "a bind may change the lower octet of the window's rkey only"};
  if ((unsigned(bind.access) & ~kAllowed) != 0) return Error{EINVAL, "a window has remote access flags only"};
  if (bind.length == 0) return Error{EINVAL, "an empty window"};
  return {};
}

bool is_atomic(WrOpcode opcode) {
  return opcode == WrOpcode::kAtomicCmpAndSwp || opcode == WrOpcode::kAtomicFetchAndAdd;
}
bool is_local(WrOpcode opcode) {
  return opcode == WrOpcode::kBindMw || opcode == WrOpcode::kLocalInv;
}

std::uint32_t vendor_err(const rdmap::Terminate& terminate) {
  return std::uint32_t{static_cast<std::uint8_t>(terminate.layer)} << 12 | std::uint32_t{terminate.etype} << 8 |
         terminate.code;
}

// Whose fault it was, by what the Terminate says that we sent.
AsyncEventType event_of(const rdmap::Terminate& terminate) {
  constexpr std::uint8_t kProtection = 1;  // of RDMAP, tagged buffers of DDP
  constexpr std::uint8_t kOperation = 2;   // of RDMAP, untagged buffers of DDP
  constexpr std::uint8_t kTaggedVersion = 0x04;
  if (terminate == rdmap::kStreamCatastrophic || terminate.layer == rdmap::Layer::kLlp) return AsyncEventType::kQpFatal;
  if (terminate.etype == kOperation) return AsyncEventType::kQpReqErr;
  if (terminate.etype != kProtection) return AsyncEventType::kQpFatal;
  if (terminate.layer == rdmap::Layer::kDdp && terminate.code == kTaggedVersion) return AsyncEventType::kQpReqErr;
  return AsyncEventType::kQpAccessErr;
}

QpCounters to_api(const rdmap::StreamCounters& in) {
  QpCounters out;
  out.sends_tx = in.sends_tx;
  out.sends_rx = in.sends_rx;
  out.writes_tx = in.writes_tx;
  out.writes_rx = in.writes_rx;
  out.write_octets_tx = in.write_octets_tx;
  out.write_octets_rx = in.write_octets_rx;
  out.reads_tx = in.reads_tx;
  out.reads_rx = in.reads_rx;
  out.read_octets_tx = in.read_octets_tx;
  out.read_octets_rx = in.read_octets_rx;
  out.immediates_tx = in.immediates_tx;
  out.immediates_rx = in.immediates_rx;
  out.atomics_tx = in.atomics_tx;
  out.atomics_rx = in.atomics_rx;
  return out;
}

void copy_inline(std::span<const Sge> from, std::vector<std::uint8_t>& to) {
  for (const Sge& sge : from) {
    if (sge.length == 0) continue;
    // The caller's own pointer, handed over as a number as ibv_sge does.
    const auto* octets = reinterpret_cast<const std::uint8_t*>(static_cast<std::uintptr_t>(sge.addr));
    to.insert(to.end(), octets, octets + sge.length);
  }
}

// Into a request that may have been used before: its memory is.
void to_request(const SendWr& wr, rdmap::SendOp op, rdmap::SendWr& out) {
  out.sg_list.clear();
  out.inline_data.clear();
  out.args = {};
  out.op = op;
  out.solicited = has(wr.send_flags, SendFlags::kSolicited);
  out.fence = has(wr.send_flags, SendFlags::kFence);
  if (has(wr.send_flags, SendFlags::kInline)) {
    copy_inline(wr.sg_list, out.inline_data);
  } else {
    copy_sges(wr.sg_list, out.sg_list);
  }
  const bool invalidates = wr.opcode == WrOpcode::kSendWithInv || wr.opcode == WrOpcode::kLocalInv;
  out.remote_stag = ddp::Stag{invalidates ? wr.invalidate_rkey : wr.rkey};
  out.remote_to = wr.remote_addr;
  if (is_atomic(wr.opcode)) out.args = atomic_operands(wr);
  if (wr.opcode == WrOpcode::kRdmaWriteWithImm) out.args = immediate_data(wr.imm_data);
  if (wr.opcode == WrOpcode::kBindMw) out.args = window_bind(wr.bind_mw);
}

}  // namespace

SoftQp::SoftQp(SoftCmId& id, Loop& loop, std::uint32_t pd, std::uint32_t qp_num, const QpInitAttr& attr)
    : loop_(loop),
      threaded_(loop.device().threaded()),
      pd_(pd),
      qp_num_(qp_num),
      attr_(attr),
      srq_(static_cast<SoftSrq*>(attr.srq)),
      id_(&id),
      mutex_(threaded_),
      send_slots_(attr.cap.max_send_wr),
      recvs_(attr.cap.max_recv_wr) {
  free_sends_.reserve(attr.cap.max_send_wr);
  for (std::uint32_t i = attr.cap.max_send_wr; i > 0; --i) free_sends_.push_back(i - 1);
  static_cast<SoftCq*>(attr_.send_cq)->add_qp(*this);
  static_cast<SoftCq*>(attr_.recv_cq)->add_qp(*this);
}

SoftQp::~SoftQp() {
  // First out of the Cqs: from then on nobody enters it in the loop's inbox.
  for (Cq* cq : {attr_.send_cq, attr_.recv_cq}) static_cast<SoftCq*>(cq)->remove_qp(*this);
  loop_.run([this] {
    if (connection_ != nullptr) std::exchange(connection_, nullptr)->qp_gone();
    if (id_ != nullptr) id_->qp_gone();
    loop_.forget_qp(*this);
  });
  for (Cq* cq : {attr_.send_cq, attr_.recv_cq}) static_cast<SoftCq*>(cq)->forget(*this);
  loop_.device().async().forget(*this);
}

Status SoftQp::check_send(const SendWr& wr) const {
  const auto op = send_op(wr.opcode);
  if (!op) return Error{EINVAL, "iWARP in user space has no counterpart of this opcode"};
  if (wr.sg_list.size() > attr_.cap.max_send_sge) {
    return Error{EINVAL, "more scatter/gather elements than max_send_sge of the queue pair"};
  }
  std::uint64_t len = 0;
  for (const Sge& sge : wr.sg_list) len += sge.length;
  if (is_atomic(wr.opcode) && len != rdmap::kAtomicLen)
    return Error{EINVAL, "an atomic's scatter/gather list has 8 octets, for what was there before"};
  if (is_local(wr.opcode) && len != 0) return Error{EINVAL, "binding and invalidating a window move no octets"};
  if (wr.opcode == WrOpcode::kBindMw) {
    if (Status status = check_bind(wr); !status) return status;
  }
  if (has(wr.send_flags, SendFlags::kInline)) {
    if (wr.opcode == WrOpcode::kRdmaRead || is_atomic(wr.opcode)) return Error{EINVAL, "what is read cannot be inline"};
    if (len > attr_.cap.max_inline_data) return Error{EINVAL, "more inline data than the queue pair was created for"};
  }
  return {};
}

Status SoftQp::post_send(const SendWr& wr) {
  if (Status status = check_send(wr); !status) return status;
  if (Status status = take_send(wr, *send_op(wr.opcode)); !status) return status;
  // Not under the lock, which who is woken wants first.
  if (threaded_) loop_.attend(*this);
  if (wr.opcode == WrOpcode::kBindMw) static_cast<SoftMw*>(wr.bind_mw.mw)->set_rkey(wr.bind_mw.rkey);
  return {};
}

Status SoftQp::take_send(const SendWr& wr, const SendOpcodes& op) {
  const std::scoped_lock lock(mutex_);
  if (!may_post_ && state_ != QpState::kErr) return Error{ENOTCONN, "the queue pair is not connected"};
  if (free_sends_.empty()) return Error{ENOMEM, kSendQueueFull};
  const std::uint32_t slot = free_sends_.back();
  free_sends_.pop_back();
  send_slots_[slot] = {wr.wr_id, op.completed, attr_.sq_sig_all || has(wr.send_flags, SendFlags::kSignaled)};
  if (state_ == QpState::kErr && !threaded_) {
    flush_send(slot);
    return {};
  }
  to_request(wr, op.wire, request_);
  request_.wr_id = slot;
  Status status = hand_over(request_);
  if (!status) free_sends_.push_back(slot);
  return status;
}

// To the Stream, or with workers to the loop's next turn: what fails there keeps its place in the order.
Status SoftQp::hand_over(const rdmap::SendWr& request) {
  if (threaded_) {
    const bool allowed = loop_.config().rfc7306 || !rdmap::is_rfc7306(request.op);
    if (!allowed || !rdmap::is_consistent(request)) return Error{EINVAL, kContradiction};
    posted_.push_back(request);
    return {};
  }
  switch (submit(request)) {
    case rdmap::PostResult::kQueueFull: return Error{ENOMEM, kSendQueueFull};
    case rdmap::PostResult::kInvalid: return Error{EINVAL, kContradiction};
    default: return {};
  }
}

rdmap::PostResult SoftQp::submit(const rdmap::SendWr& request) {
  const auto slot = static_cast<std::uint32_t>(request.wr_id);
  const rdmap::PostResult result = connection_->post_send(request);
  if (result == rdmap::PostResult::kNotConnected) late_sends_.push_back(slot);
  return result;
}

void SoftQp::attend() {
  if (cq_overflowed_ && connection_ != nullptr) {
    report(AsyncEventType::kQpFatal, "its completion queue overflowed");
    connection_->abort();
  }
  const std::scoped_lock lock(mutex_);
  submitting_.swap(posted_);
  for (const rdmap::SendWr& request : submitting_) {
    const auto slot = static_cast<std::uint32_t>(request.wr_id);
    if (state_ == QpState::kErr) {
      flush_send(slot);
    } else {
      [[maybe_unused]] const rdmap::PostResult result = submit(request);
      assert(result == rdmap::PostResult::kOk || result == rdmap::PostResult::kNotConnected);  // hand_over looked
    }
  }
  submitting_.clear();
}

void SoftQp::cq_overflowed() {
  cq_overflowed_ = true;
  loop_.attend(*this);
}

Status SoftQp::post_recv(const RecvWr& wr) {
  if (srq_ != nullptr) return Error{EINVAL, "the receives of this queue pair are those of its shared receive queue"};
  if (wr.sg_list.size() > attr_.cap.max_recv_sge) {
    return Error{EINVAL, "more scatter/gather elements than max_recv_sge of the queue pair"};
  }
  const std::scoped_lock lock(mutex_);
  if (outstanding_recvs_ == recvs_.size()) return Error{ENOMEM, "the receive queue is full"};
  if (state_ == QpState::kErr) {
    flush(attr_.recv_cq, wr.wr_id, WcOpcode::kRecv);
    return {};
  }
  std::size_t tail = recv_head_ + num_recvs_;
  if (tail >= recvs_.size()) tail -= recvs_.size();
  recvs_[tail].wr_id = wr.wr_id;
  recvs_[tail].sg_list.clear();
  copy_sges(wr.sg_list, recvs_[tail].sg_list);
  ++num_recvs_;
  ++outstanding_recvs_;
  return {};
}

std::optional<rdmap::PostedRecv> SoftQp::take_recv() {
  const std::scoped_lock lock(mutex_);
  if (state_ == QpState::kErr) return std::nullopt;
  if (srq_ != nullptr) {
    std::optional<rdmap::PostedRecv> shared = srq_->take();
    if (shared) ++outstanding_recvs_;
    return shared;
  }
  if (num_recvs_ == 0) return std::nullopt;
  std::optional<rdmap::PostedRecv> taken(std::move(recvs_[recv_head_]));
  recv_head_ = recv_head_ + 1 == recvs_.size() ? 0 : recv_head_ + 1;
  --num_recvs_;
  return taken;
}

bool SoftQp::lacks_receives() const {
  return srq_ != nullptr && !srq_->has_reserve();
}

QpState SoftQp::state() const {
  const std::scoped_lock lock(mutex_);
  return state_;
}

Result<QpAttr> SoftQp::query() const {
  const std::scoped_lock lock(mutex_);
  return QpAttr{.qp_state = state_, .max_rd_atomic = ord_, .max_dest_rd_atomic = ird_, .cap = attr_.cap};
}

Status SoftQp::modify(QpState state) {
  if (state != QpState::kErr)
    return Error{EINVAL, "the connection manager makes all changes of state but that to kErr"};
  loop_.run([this] { fail("the queue pair was put into error"); });
  return {};
}

void SoftQp::fail(const std::string& why) {
  if (connection_ != nullptr) connection_->cut(why);
  const std::scoped_lock lock(mutex_);
  enter_error();
}

QpCounters SoftQp::counters() const {
  return loop_.call([this] {
    const rdmap::StreamCounters* live = connection_ != nullptr ? connection_->counters() : nullptr;
    return live != nullptr ? to_api(*live) : final_counters_;
  });
}

void SoftQp::attach(Connection& connection, bool may_post) {
  const std::scoped_lock lock(mutex_);
  connection_ = &connection;
  may_post_ = may_post;
  if (state_ == QpState::kInit) state_ = QpState::kRtr;
}

void SoftQp::established(std::uint8_t ird, std::uint8_t ord) {
  const std::scoped_lock lock(mutex_);
  may_post_ = true;
  ird_ = ird;
  ord_ = ord;
  if (state_ == QpState::kRtr) state_ = QpState::kRts;
}

void SoftQp::report(AsyncEventType type, std::string text) {
  if (std::exchange(reported_, true)) return;
  AsyncEvent event;
  event.type = type;
  event.qp = this;
  event.text = std::move(text);
  loop_.device().async().push(std::move(event));
}

// Of what the peer says, or of a connection that is lost, completions and the connection's own event tell.
void SoftQp::report(const rdmap::Closed& why) {
  if (why.reason == rdmap::CloseReason::kTerminateSent && why.terminate) report(event_of(*why.terminate), why.text);
}

void SoftQp::closed(const rdmap::Closed& why) {
  report(why);
}

void SoftQp::stream_failed(const rdmap::Closed& why) {
  report(why);
  const std::scoped_lock lock(mutex_);
  enter_error();
  flush_late_sends();
}

void SoftQp::on_completion(const rdmap::Completion& completion) {
  const bool failed = completion.status != rdmap::WorkStatus::kSuccess;
  const std::scoped_lock lock(mutex_);
  if (completion.op == rdmap::WorkOp::kRecv) {
    complete_recv(completion);
  } else {
    complete_send(completion);
  }
  if (failed) enter_error();
  check_last_recv();
}

void SoftQp::complete_send(const rdmap::Completion& completion) {
  const auto slot = static_cast<std::uint32_t>(completion.wr_id);
  const SendSlot done = send_slots_[slot];
  free_sends_.push_back(slot);
  if (completion.status == rdmap::WorkStatus::kSuccess && !done.signaled) return;
  Wc wc{.wr_id = done.wr_id, .status = wc_status(completion.status), .opcode = done.opcode};
  if (completion.op == rdmap::WorkOp::kRdmaRead || completion.op == rdmap::WorkOp::kAtomic)
    wc.byte_len = completion.byte_len;
  if (completion.terminate) wc.vendor_err = vendor_err(*completion.terminate);
  push(attr_.send_cq, wc, false);
}

void SoftQp::complete_recv(const rdmap::Completion& completion) {
  --outstanding_recvs_;
  Wc wc{.wr_id = completion.wr_id, .status = wc_status(completion.status), .opcode = WcOpcode::kRecv};
  wc.byte_len = completion.byte_len;
  if (completion.immediate) {
    wc.opcode = WcOpcode::kRecvRdmaWithImm;
    wc.wc_flags = WcFlags::kWithImm;
    std::memcpy(&wc.imm_data, completion.immediate->data(), sizeof(wc.imm_data));
  }
  if (completion.invalidated) {
    wc.wc_flags = WcFlags::kWithInv;
    wc.invalidated_rkey = completion.invalidated->value;
  }
  if (completion.terminate) wc.vendor_err = vendor_err(*completion.terminate);
  push(attr_.recv_cq, wc, completion.solicited);
}

void SoftQp::detach(const rdmap::StreamCounters& counters) {
  final_counters_ = to_api(counters);
  connection_ = nullptr;
  const std::scoped_lock lock(mutex_);
  enter_error();
  flush_late_sends();
}

void SoftQp::enter_error() {
  if (state_ == QpState::kErr) return;
  state_ = QpState::kErr;
  while (num_recvs_ > 0) {
    const std::uint64_t wr_id = recvs_[recv_head_].wr_id;
    recv_head_ = recv_head_ + 1 == recvs_.size() ? 0 : recv_head_ + 1;
    --num_recvs_;
    --outstanding_recvs_;
    flush(attr_.recv_cq, wr_id, WcOpcode::kRecv);
  }
  check_last_recv();
}

void SoftQp::check_last_recv() {
  if (srq_ == nullptr || state_ != QpState::kErr || outstanding_recvs_ > 0) return;
  if (std::exchange(last_recv_reported_, true)) return;
  AsyncEvent event;
  event.type = AsyncEventType::kQpLastWqeReached;
  event.qp = this;
  event.text = "queue pair " + std::to_string(qp_num_) + " takes no more from its shared receive queue";
  loop_.device().async().push(std::move(event));
}

void SoftQp::flush_late_sends() {
  for (const std::uint32_t slot : late_sends_) flush_send(slot);
  late_sends_.clear();
}

void SoftQp::flush_send(std::uint32_t slot) {
  const SendSlot done = send_slots_[slot];
  free_sends_.push_back(slot);
  flush(attr_.send_cq, done.wr_id, done.opcode);
}

// With polled progress this may be within a call of the user's: nothing else would wake him, should he sleep next.
void SoftQp::flush(Cq* cq, std::uint64_t wr_id, WcOpcode opcode) {
  push(cq, {.wr_id = wr_id, .status = WcStatus::kWrFlushErr, .opcode = opcode}, false);
  if (!threaded_) loop_.poller().set_wanted(true);
}

void SoftQp::push(Cq* cq, const Wc& wc, bool solicited) {
  Wc numbered = wc;
  numbered.qp_num = qp_num_;
  static_cast<SoftCq*>(cq)->push(numbered, solicited);
}

}  // namespace weft::verbs::soft
