#include "verbs-shim/ibv/cq.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include "verbs-shim/ibv/ibv_device.h"
#include "verbs-shim/ibv/mapping.h"
#include "verbs-shim/ibv/qp.h"

namespace weft::verbs::ibv {
namespace {

constexpr std::size_t kBatch = 16;
}  // namespace

Result<std::unique_ptr<IbvCompChannel>> IbvCompChannel::create(IbvDevice& device) {
  ibv_comp_channel* channel = ::ibv_create_comp_channel(device.context());
  if (channel == nullptr) return call_error("ibv_create_comp_channel", errno);
  std::unique_ptr<IbvCompChannel> out(new IbvCompChannel(device, channel));
  if (!make_nonblocking(channel->fd) || !out->epoll_.add(channel->fd) || !out->epoll_.add(out->flag_.fd())) {
    return call_error("completion channel's descriptor", errno);
  }
  if (Status status = device.watch(out->fd()); !status) return status.error();
  return out;
}

IbvCompChannel::~IbvCompChannel() {
  device_.unwatch(fd());
  ::ibv_destroy_comp_channel(channel_);
}

Cq* IbvCompChannel::get_event() {
  if (has_own_.load(std::memory_order_acquire)) {
    if (IbvCq* cq = take_own()) return cq;
  }
  ibv_cq* raw = nullptr;
  void* context = nullptr;
  if (::ibv_get_cq_event(channel_, &raw, &context) != 0) return nullptr;
  ::ibv_ack_cq_events(raw, 1);
  auto* cq = static_cast<IbvCq*>(context);
  cq->on_fired();
  return cq;
}

IbvCq* IbvCompChannel::take_own() {
  const std::lock_guard lock(mutex_);
  if (own_.empty()) return nullptr;
  IbvCq* cq = own_.front();
  own_.pop_front();
  if (own_.empty()) {
    has_own_.store(false, std::memory_order_relaxed);
    flag_.lower();
  }
  return cq;
}

void IbvCompChannel::push(IbvCq& cq) {
  const std::lock_guard lock(mutex_);
  own_.push_back(&cq);
  has_own_.store(true, std::memory_order_release);
  flag_.raise();
}

void IbvCompChannel::forget(IbvCq& cq) {
  const std::lock_guard lock(mutex_);
  std::erase(own_, &cq);
  if (own_.empty()) flag_.lower();
}

Result<std::unique_ptr<IbvCq>> IbvCq::create(IbvDevice& device, int cqe, IbvCompChannel* channel) {
  const int most = static_cast<int>(device.caps().max_cqe);
  if (cqe <= 0 || cqe > most) {
    return Error{EINVAL, "a completion queue has 1 to " + std::to_string(most) + " entries on this device, not " +
                             std::to_string(cqe)};
  }
  std::unique_ptr<IbvCq> out(new IbvCq(device, channel));
  ibv_comp_channel* events = channel != nullptr ? channel->get() : device.private_channel();
  const int hidden = device.is_siw() ? std::clamp(most - cqe - kSpareCqe, 0, std::max(cqe, kLeastHiddenCqe)) : 0;
  out->cq_ = ::ibv_create_cq(device.context(), std::min(cqe + kSpareCqe, most) + hidden, out.get(), events, 0);
  if (out->cq_ == nullptr) return call_error("ibv_create_cq", errno);
  out->hidden_room_.add(static_cast<std::uint32_t>(hidden));
  device.hub().add(out->cq_, device.async(), out.get());
  if (channel == nullptr) device.adopt(*out);
  return out;
}

IbvCq::~IbvCq() {
  if (cq_ == nullptr) return;
  device_.hub().remove(cq_);
  if (channel_ == nullptr) {
    device_.release(*this, [this] { ::ibv_destroy_cq(cq_); });
    return;
  }
  channel_->forget(*this);
  ::ibv_destroy_cq(cq_);
}

int IbvCq::poll(std::span<Wc> wc) {
  const std::lock_guard lock(mutex_);
  std::size_t num = take_held(wc);
  std::array<ibv_wc, kBatch> raw;
  while (num < wc.size()) {
    const std::size_t asked = std::min(kBatch, wc.size() - num);
    const int got = poll_kernel(std::span(raw).first(asked));
    if (got < 0) return -1;
    if (got > 0) num += account({raw.data(), static_cast<std::size_t>(got)}, wc.subspan(num));
    if (static_cast<std::size_t>(got) < asked) break;
  }
  if (num == 0 && overflown_.load(std::memory_order_acquire)) return -1;
  // There may be more completions, so the caller is told to look again: the rest fires no event.
  if (num == wc.size() && channel_ == nullptr) device_.set_more();
  return static_cast<int>(num);
}

int IbvCq::poll_kernel(std::span<ibv_wc> raw) {
  const int got = ::ibv_poll_cq(cq_, static_cast<int>(raw.size()), raw.data());
  if (!device_.is_rxe()) return got;
  // rxe returns the kernel's bit for "with invalidate"; libibverbs has a different bit.
  constexpr unsigned kKernelsWithInvalidate = 1 << 2;
  for (int i = 0; i < got; ++i) {
    unsigned& flags = raw[static_cast<std::size_t>(i)].wc_flags;
    if ((flags & kKernelsWithInvalidate) != 0) flags |= IBV_WC_WITH_INV;
  }
  return got;
}

std::size_t IbvCq::take_held(std::span<Wc> wc) {
  const std::size_t num = std::min(wc.size(), held_.size());
  std::copy_n(held_.begin(), num, wc.begin());
  held_.erase(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(num));
  return num;
}

std::size_t IbvCq::account(std::span<ibv_wc> raw, std::span<Wc> wc) {
  std::size_t num = 0;
  for (ibv_wc& one : raw) {
    IbvQp* qp = find(one.qp_num);
    if (qp != nullptr && qp->on_completion(one)) wc[num++] = from_ibv(one);
  }
  return num;
}

IbvQp* IbvCq::find(std::uint32_t qp_num) {
  if (last_ != nullptr && last_->qp_num() == qp_num) return last_;
  const auto found = qps_.find(qp_num);
  if (found == qps_.end()) return nullptr;
  return last_ = found->second;
}

bool IbvCq::pump() {
  const std::lock_guard lock(mutex_);
  pump_locked();
  return !held_.empty();
}

void IbvCq::pump_locked() {
  std::array<ibv_wc, kBatch> raw;
  int got = 0;
  while ((got = poll_kernel(raw)) > 0) {
    for (int i = 0; i < got; ++i) {
      ibv_wc& one = raw[static_cast<std::size_t>(i)];
      IbvQp* qp = find(one.qp_num);
      if (qp != nullptr && qp->on_completion(one)) held_.push_back(from_ibv(one));
    }
  }
  if (!held_.empty() && channel_ == nullptr) device_.set_more();
}

// Completions in the queue may be all that is in the way: then they wait in held_.
bool IbvCq::reserve_hidden() {
  if (hidden_room_.take()) return true;
  pump();
  return hidden_room_.take();
}

void IbvCq::push(std::uint64_t wr_id, WcStatus status, std::uint32_t qp_num, WcOpcode opcode) {
  {
    const std::lock_guard lock(mutex_);
    pump_locked();
    Wc wc;
    wc.wr_id = wr_id;
    wc.status = status;
    wc.opcode = opcode;
    wc.qp_num = qp_num;
    held_.push_back(wc);
  }
  if (channel_ == nullptr) return device_.wake_for_more();
  if (armed_.exchange(Armed::kNot) != Armed::kNot) channel_->push(*this);
}

void IbvCq::add(IbvQp& qp) {
  const std::lock_guard lock(mutex_);
  qps_[qp.qp_num()] = &qp;
}

// The kernel may give the number to another queue pair at once, so no completion of this one may stay in its queue.
void IbvCq::remove(IbvQp& qp) {
  const std::lock_guard lock(mutex_);
  const std::uint32_t qp_num = qp.qp_num();
  qps_.erase(qp_num);
  last_ = nullptr;
  pump_locked();
  std::erase_if(held_, [&](const Wc& wc) { return wc.qp_num == qp_num; });
}

Status IbvCq::req_notify(bool solicited_only) {
  // siw would arm for solicited events and then fire for nothing; rxe of Linux 6.12 fires for solicited messages, and
  // for no request that failed.
  if (device_.is_software()) solicited_only = false;
  // A Cq that is armed for the next completion stays so; some drivers would forget it.
  if (solicited_only && armed_.load(std::memory_order_relaxed) == Armed::kNext) return {};
  armed_.store(solicited_only ? Armed::kSolicited : Armed::kNext, std::memory_order_relaxed);
  if (const int err = ::ibv_req_notify_cq(cq_, solicited_only ? 1 : 0); err != 0) {
    return call_error("ibv_req_notify_cq", err);
  }
  return {};
}

}  // namespace weft::verbs::ibv
