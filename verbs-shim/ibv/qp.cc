#include "verbs-shim/ibv/qp.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <optional>
#include <thread>

#include "verbs-shim/ibv/cm.h"
#include "verbs-shim/ibv/cq.h"
#include "verbs-shim/ibv/ibv_device.h"
#include "verbs-shim/ibv/mapping.h"
#include "verbs-shim/ibv/pd.h"

namespace weft::verbs::ibv {
namespace {

constexpr std::uint64_t kMarkerId = 0x7765'6674'6d61'726bULL;
constexpr std::uint64_t kHiddenId = 0x7765'6674'6869'6465ULL;
constexpr std::chrono::seconds kDrainTimeout{2};

bool is_receive(ibv_wc_opcode opcode) {
  return (static_cast<unsigned>(opcode) & IBV_WC_RECV) != 0;
}

}  // namespace

IbvQp::IbvQp(std::shared_ptr<Endpoint> endpoint, const QpInitAttr& attr)
    : endpoint_(std::move(endpoint)),
      device_(endpoint_->device),
      send_cq_(static_cast<IbvCq*>(attr.send_cq)),
      recv_cq_(static_cast<IbvCq*>(attr.recv_cq)),
      srq_(static_cast<IbvSrq*>(attr.srq)),
      cap_(attr.cap),
      sq_sig_all_(attr.sq_sig_all) {}

Result<std::unique_ptr<Qp>> IbvQp::create(std::shared_ptr<Endpoint> endpoint, Pd& pd, const QpInitAttr& attr) {
  const Caps& caps = endpoint->device.caps();
  if (attr.send_cq == nullptr || attr.recv_cq == nullptr) return invalid("a queue pair needs a send_cq and a recv_cq");
  if (attr.cap.max_send_sge > caps.max_sge || attr.cap.max_recv_sge > caps.max_sge) {
    return invalid("this device takes " + std::to_string(caps.max_sge) + " sges in a request");
  }
  if (attr.cap.max_send_wr > caps.max_qp_wr || attr.cap.max_recv_wr > caps.max_qp_wr) {
    return invalid("a queue of this device has room for " + std::to_string(caps.max_qp_wr) + " requests");
  }
  if (attr.cap.max_inline_data > caps.max_inline_data) {
    return invalid("this device takes " + std::to_string(caps.max_inline_data) + " bytes inline");
  }
  Endpoint& at = *endpoint;
  std::unique_ptr<IbvQp> out(new IbvQp(std::move(endpoint), attr));
  const IbvSrq* srq = out->srq_;
  ibv_qp_init_attr init =
      to_ibv(attr, out->send_cq_->get(), out->recv_cq_->get(), srq != nullptr ? srq->get() : nullptr);
  ++init.cap.max_send_wr;  // the marker's place, which max_qp_wr leaves free
  if (::rdma_create_qp(at.id, static_cast<IbvPd&>(pd).get(), &init) != 0) return call_error("rdma_create_qp", errno);
  out->qp_ = at.id->qp;
  out->qp_num_ = out->qp_->qp_num;
  if (out->device_.is_siw()) {
    out->sends_ = std::make_unique<Unfinished>(init.cap.max_send_wr);
    if (srq == nullptr) out->receives_ = std::make_unique<Unfinished>(init.cap.max_recv_wr);
  }
  out->send_cq_->add(*out);
  if (out->recv_cq_ != out->send_cq_) out->recv_cq_->add(*out);
  out->device_.hub().add(out->qp_, out->device_.async(), out.get());
  at.qp = out.get();
  return std::unique_ptr<Qp>(std::move(out));
}

IbvQp::~IbvQp() {
  if (qp_ == nullptr) return;
  wait_until_drained();
  if (!ended_ && endpoint_->connected()) reset();
  device_.forget_draining(*this);
  {
    const std::lock_guard lock(endpoint_->qp_mutex);
    endpoint_->qp = nullptr;
  }
  device_.hub().remove(qp_);
  ::rdma_destroy_qp(endpoint_->id);
  send_cq_->remove(*this);
  send_cq_->release_hidden(hidden_);
  if (recv_cq_ != send_cq_) recv_cq_->remove(*this);
}

Status IbvQp::check(const SendWr& wr) const {
  if (wr.sg_list.size() > cap_.max_send_sge) {
    return invalid("the request has more sges than the " + std::to_string(cap_.max_send_sge) + " of this queue pair");
  }
  const bool read = wr.opcode == WrOpcode::kRdmaRead;
  const bool atomic = wr.opcode == WrOpcode::kAtomicCmpAndSwp || wr.opcode == WrOpcode::kAtomicFetchAndAdd;
  if (has(wr.send_flags, SendFlags::kInline)) {
    std::uint64_t octets = 0;
    for (const Sge& sge : wr.sg_list) octets += sge.length;
    if (octets > cap_.max_inline_data) return invalid("more bytes than this queue pair takes inline");
    if (read || atomic) return invalid("a Read or Atomic has no inline data");
  }
  const Caps& caps = device_.caps();
  if (read && wr.sg_list.size() > caps.max_sge_rd) {
    return invalid("a Read's sink has at most " + std::to_string(caps.max_sge_rd) + " sges on this device");
  }
  if (atomic && !caps.atomics) return invalid("this device has no Atomics");
  if (atomic && (wr.sg_list.size() != 1 || wr.sg_list[0].length != 8)) return invalid("an Atomic's result has 8 bytes");
  if (wr.opcode == WrOpcode::kRdmaWriteWithImm && !caps.imm_data) return invalid("this device has no immediate data");
  if (wr.opcode == WrOpcode::kSendWithImm) return invalid("kSendWithImm has no counterpart on iWARP");
  if (wr.opcode != WrOpcode::kBindMw) return {};
  const MwBind& bind = wr.bind_mw;
  constexpr Access kRights = Access::kRemoteRead | Access::kRemoteWrite | Access::kRemoteAtomic;
  if (!caps.mem_windows_type2) return invalid("this device has no memory windows of type 2");
  if (bind.mw == nullptr || bind.mr == nullptr || bind.length == 0 || !wr.sg_list.empty() ||
      (bind.rkey ^ bind.mw->rkey()) >> 8 != 0 || bind.rkey == bind.mw->rkey() ||
      (unsigned(bind.access) & ~unsigned(kRights)) != 0 || static_cast<IbvMw*>(bind.mw)->get() == nullptr) {
    return invalid("a bind needs a window, a region, bytes, another key, and rights of a peer's alone");
  }
  return {};
}

Status IbvQp::post_send(const SendWr& wr) {
  if (!dead() && !endpoint_->was_connected()) return Error{ENOTCONN, "the queue pair was never connected"};
  if (Status status = check(wr); !status) return status;
  if (dead()) {
    send_cq_->push(wr.wr_id, WcStatus::kWrFlushErr, qp_num_);
    return {};
  }
  if (wr.opcode == WrOpcode::kLocalInv && device_.is_rxe() && device_.windows().is_free(wr.invalidate_rkey)) {
    // rxe's kernel module crashes on the invalidation of an unbound window (a null pointer in rxe_do_invalidate_mw).
    send_cq_->push(wr.wr_id, WcStatus::kSuccess, qp_num_, WcOpcode::kLocalInv);
    return {};
  }
  const bool needs_depth = wr.opcode == WrOpcode::kRdmaRead || wr.opcode == WrOpcode::kAtomicCmpAndSwp ||
                           wr.opcode == WrOpcode::kAtomicFetchAndAdd;
  if (needs_depth && endpoint_->ord == 0) return fail_without_depth(wr);
  auto* mw = static_cast<IbvMw*>(wr.bind_mw.mw);
  auto* mr = static_cast<IbvMr*>(wr.bind_mw.mr);
  std::array<ibv_sge, kMaxSge> sges;
  ibv_send_wr raw = to_ibv(wr, sges.data(), mw != nullptr ? mw->get() : nullptr, mr != nullptr ? mr->get() : nullptr);
  const bool asked = sq_sig_all_ || has(wr.send_flags, SendFlags::kSignaled);
  const bool hidden = !asked && device_.is_siw() && is_sent_without_copy(wr);
  if (hidden) {
    if (Status status = hide_signal(raw); !status) return status;
  }
  const bool signaled = asked || hidden;
  if (signaled) {
    ++signaled_;
  } else {
    unsignaled_tail_.store(true, std::memory_order_relaxed);
  }
  const Reported reported = hidden ? Reported::kToUs : asked ? Reported::kToUser : Reported::kNot;
  if (const int err = hand_over(raw, wr.wr_id, reported); err != 0) {
    if (signaled) --signaled_;
    if (hidden) {
      --hidden_;
      send_cq_->release_hidden(1);
    }
    if (!ended_) return call_error("ibv_post_send", err);
    send_cq_->push(wr.wr_id, WcStatus::kWrFlushErr, qp_num_);
    return {};
  }
  // Cleared only now: after a refused request the unsignaled requests before it are still the last.
  if (signaled) unsignaled_tail_.store(false, std::memory_order_relaxed);
  if (wr.opcode == WrOpcode::kBindMw) {
    mw->set_rkey(wr.bind_mw.rkey);
    mw->get()->rkey = wr.bind_mw.rkey;  // drivers name the window of the next bind by this rkey
    device_.windows().on_bound(*mw, *mr, wr.bind_mw.rkey);
  } else if (wr.opcode == WrOpcode::kLocalInv) {
    device_.windows().on_invalidated(wr.invalidate_rkey);
  }
  return {};
}

Status IbvQp::hide_signal(ibv_send_wr& raw) {
  if (!send_cq_->reserve_hidden()) {
    return Error{ENOMEM,
                 "too many unsignaled requests of a page and more are under way: siw needs an entry of the "
                 "completion queue for each; a longer queue has more"};
  }
  ++hidden_;
  raw.wr_id = kHiddenId;
  raw.send_flags |= IBV_SEND_SIGNALED;
  return {};
}

int IbvQp::hand_over(ibv_send_wr& raw, std::uint64_t wr_id, Reported reported) {
  ibv_send_wr* bad = nullptr;
  if (!sends_) return ::ibv_post_send(qp_, &raw, &bad);
  const std::lock_guard order(sends_->order());
  if (flushed_) return EINVAL;  // nothing would report its completion
  const bool remembered = sends_->add(wr_id, reported);
  if (!remembered && reported == Reported::kToUs) return ENOMEM;  // its completion would pass for another one
  const int err = ::ibv_post_send(qp_, &raw, &bad);
  // siw's library has queued the request before the kernel refuses it (-1), as the kernel does while the connection
  // ends. Its completion comes, or flush_forgotten flushes it.
  if (err == -1 && !endpoint_->connecting()) return 0;
  if (err != 0 && remembered) sends_->take_back();
  return err;
}

int IbvQp::hand_over(ibv_recv_wr& raw) {
  ibv_recv_wr* bad = nullptr;
  if (!receives_) return ::ibv_post_recv(qp_, &raw, &bad);
  const std::lock_guard order(receives_->order());
  if (flushed_) return EINVAL;
  const bool remembered = receives_->add(raw.wr_id, Reported::kToUser);
  const int err = ::ibv_post_recv(qp_, &raw, &bad);
  if (err != 0 && remembered) receives_->take_back();
  return err;
}

void IbvQp::flush_forgotten() {
  if (!sends_) return;
  pump_both();
  flushed_.store(true, std::memory_order_release);
  pump_both();  // a thread that accounted for a completion meanwhile has finished
  for (const std::uint64_t wr_id : sends_->take_all()) send_cq_->push(wr_id, WcStatus::kWrFlushErr, qp_num_);
  if (!receives_) return;
  for (const std::uint64_t wr_id : receives_->take_all()) recv_cq_->push(wr_id, WcStatus::kWrFlushErr, qp_num_);
}

void IbvQp::tell_last_receive() {
  if (srq_ == nullptr || !device_.is_software() || told_last_.load()) return;
  device_.hub().raise(qp_, AsyncEventType::kQpLastWqeReached);
}

bool IbvQp::on_async(AsyncEventType type) {
  // rxe of Linux 6.12 raises it each time that it looks at a queue pair in error.
  if (type == AsyncEventType::kQpLastWqeReached) return !told_last_.exchange(true);
  if (type != AsyncEventType::kCommEst) failure_.store(async_event_str(type), std::memory_order_relaxed);
  return true;
}

// Drivers refuse the request, or keep it for ever.
Status IbvQp::fail_without_depth(const SendWr& wr) {
  failure_.store("a Read or Atomic on a connection with an initiator_depth of 0", std::memory_order_relaxed);
  send_cq_->push(wr.wr_id, WcStatus::kLocQpOpErr, qp_num_);
  reset();
  return {};
}

Status IbvQp::post_recv(const RecvWr& wr) {
  if (srq_ != nullptr) return invalid("receives of this queue pair come from its Srq");
  if (wr.sg_list.size() > cap_.max_recv_sge) {
    return invalid("the request has more sges than the " + std::to_string(cap_.max_recv_sge) + " of this queue pair");
  }
  if (dead()) {
    recv_cq_->push(wr.wr_id, WcStatus::kWrFlushErr, qp_num_);
    return {};
  }
  std::array<ibv_sge, kMaxSge> sges;
  ibv_recv_wr raw = to_ibv(wr, sges.data());
  if (device_.is_siw()) fill_empty(raw);
  if (const int err = hand_over(raw); err != 0) {
    if (!ended_) return call_error("ibv_post_recv", err);
    recv_cq_->push(wr.wr_id, WcStatus::kWrFlushErr, qp_num_);
  }
  return {};
}

void IbvQp::remember(const ibv_wc& wc) {
  if (is_receive(wc.opcode)) {
    if (receives_) receives_->on_completion(wc.wr_id, true);
  } else {
    sends_->on_completion(wc.wr_id, wc.status == IBV_WC_SUCCESS);
  }
}

bool IbvQp::note_failure(ibv_wc_status status) {
  if (status == IBV_WC_SUCCESS) return false;
  const bool first = !ended_.exchange(true, std::memory_order_acq_rel);
  if (status != IBV_WC_WR_FLUSH_ERR && failure() == nullptr) {
    failure_.store(wc_status_str(from_ibv(status)), std::memory_order_relaxed);
  }
  return first;
}

// Only an error is for the user, as that of every unsignaled request is.
bool IbvQp::on_hidden(ibv_wc& wc) {
  --hidden_;
  send_cq_->release_hidden(1);
  const std::optional<std::uint64_t> wr_id = sends_->on_our_completion();
  wc.wr_id = wr_id.value_or(0);
  return wr_id && wc.status != IBV_WC_SUCCESS;
}

bool IbvQp::on_completion(ibv_wc& wc) {
  if (flushed_.load(std::memory_order_acquire)) return false;
  const bool ends = note_failure(wc.status);
  if (wc.wr_id == kMarkerId && marker_.exchange(false)) {
    if (draining_) drained();
    return false;
  }
  bool for_user = true;
  if (wc.wr_id == kHiddenId && hidden_ > 0 && !is_receive(wc.opcode)) {
    for_user = on_hidden(wc);
  } else if (sends_) {
    remember(wc);
  }
  if (srq_ != nullptr && is_receive(wc.opcode)) srq_->on_taken();
  if (wc.status != IBV_WC_SUCCESS) {
    if (draining_) {
      drained();
    } else if (ends && !device_.is_iwarp() && endpoint_->connected()) {
      // The transport has no Terminate that would end the connection at the peer. The first error may be a flush, since
      // rxe of Linux 6.12 flushes the request that failed as well.
      ::rdma_disconnect(endpoint_->id);
    }
    return for_user;
  }
  if (is_receive(wc.opcode)) {
    if ((wc.wc_flags & IBV_WC_WITH_INV) != 0) device_.windows().on_invalidated(wc.invalidated_rkey);
    return true;
  }
  --signaled_;
  return for_user;
}

// state: siw does not report it (query_qp leaves the field alone), so it is derived here.
QpState IbvQp::state() const {
  if (dead()) return QpState::kErr;
  if (endpoint_->established()) return QpState::kRts;
  return endpoint_->was_connected() ? QpState::kRtr : QpState::kInit;
}

Result<QpAttr> IbvQp::query() const {
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  if (const int err = ::ibv_query_qp(qp_, &attr, IBV_QP_CAP, &init); err != 0) return call_error("ibv_query_qp", err);
  QpAttr out;
  out.qp_state = state();
  if (endpoint_->established()) {
    out.max_rd_atomic = endpoint_->ord;
    out.max_dest_rd_atomic = endpoint_->ird;
  }
  // Drivers may leave max_send_wr 0. One entry is the marker's place.
  const std::uint32_t granted = std::max(attr.cap.max_send_wr, 1u) - 1;
  out.cap = {.max_send_wr = std::max(cap_.max_send_wr, granted),
             .max_recv_wr = std::max(cap_.max_recv_wr, attr.cap.max_recv_wr),
             .max_send_sge = cap_.max_send_sge,
             .max_recv_sge = cap_.max_recv_sge,
             .max_inline_data = cap_.max_inline_data};
  return out;
}

Status IbvQp::modify(QpState state) {
  if (state != QpState::kErr) return invalid("the connection manager makes all changes of state but that to kErr");
  if (ended_) return {};  // a disconnect under way is cut short
  const bool abandoned = endpoint_->abandon();
  const bool connected = endpoint_->connected();
  reset();
  if (connected) return {};  // the rest comes with the end of the connection
  flush_forgotten();
  tell_last_receive();
  if (abandoned) endpoint_->tell_abandoned();
  return {};
}

void IbvQp::disconnect() {
  if (dead()) {
    // The requests may have failed before the connection was there: then it has not ended with them.
    if (!draining_ && !device_.is_iwarp() && endpoint_->connected()) ::rdma_disconnect(endpoint_->id);
    return;
  }
  if (!sends_under_way() || !post_marker()) {
    end();
    ::rdma_disconnect(endpoint_->id);
    return;
  }
  device_.add_draining(*this);
}

bool IbvQp::post_marker() {
  draining_.store(true, std::memory_order_release);
  marker_.store(true, std::memory_order_release);
  ibv_send_wr raw{};
  raw.wr_id = kMarkerId;
  raw.opcode = IBV_WR_RDMA_WRITE;
  raw.send_flags = IBV_SEND_SIGNALED;
  ibv_send_wr* bad = nullptr;
  if (::ibv_post_send(qp_, &raw, &bad) == 0) return true;
  marker_.store(device_.is_siw(), std::memory_order_release);  // as in hand_over: it may complete all the same
  draining_.store(false, std::memory_order_release);
  return false;
}

void IbvQp::drained() {
  ended_.store(true, std::memory_order_release);
  draining_.store(false, std::memory_order_release);
  ::rdma_disconnect(endpoint_->id);
}

void IbvQp::wait_until_drained() {
  const auto deadline = std::chrono::steady_clock::now() + kDrainTimeout;
  for (int turn = 0; draining_; ++turn) {
    pump();
    if (!draining_ || std::chrono::steady_clock::now() > deadline) break;
    constexpr int kSpins = 100;
    if (turn > kSpins) std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

void IbvQp::pump() {
  send_cq_->pump();
}

void IbvQp::pump_both() {
  send_cq_->pump();
  if (recv_cq_ != send_cq_) recv_cq_->pump();
}

void IbvQp::end() {
  ended_.store(true, std::memory_order_release);
}

void IbvQp::reset() {
  end();
  draining_.store(false, std::memory_order_release);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  ::ibv_modify_qp(qp_, &attr, IBV_QP_STATE);
  // While it connects, iWARP's connection manager would wait for the peer's answer first.
  const bool waits = device_.is_iwarp() && endpoint_->connecting();
  if (endpoint_->connected() && !waits) ::rdma_disconnect(endpoint_->id);
}

}  // namespace weft::verbs::ibv
