#include "verbs-shim/soft/cq.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>

#include "verbs-shim/soft/qp.h"
#include "verbs-shim/soft/soft_device.h"
#include "verbs-shim/soft/srq.h"

namespace weft::verbs::soft {

SoftCompChannel::SoftCompChannel(SoftDevice& device)
    : mutex_(device.threaded()), bell_(device.poller(), device.bell()) {}

SoftCompChannel::~SoftCompChannel() {
  bell_.events_taken(fired_.size());
}

int SoftCompChannel::fd() const {
  const std::scoped_lock lock(mutex_);
  return bell_.fd();
}

Cq* SoftCompChannel::get_event() {
  const std::scoped_lock lock(mutex_);
  if (fired_.empty()) return nullptr;
  SoftCq* cq = fired_.front();
  fired_.pop_front();
  bell_.events_taken(1);
  return cq;
}

void SoftCompChannel::push(SoftCq& cq) {
  const std::scoped_lock lock(mutex_);
  fired_.push_back(&cq);
  bell_.event_queued();
}

void SoftCompChannel::forget(const SoftCq& cq) {
  const std::scoped_lock lock(mutex_);
  bell_.events_taken(std::erase(fired_, &cq));
}

SoftCq::SoftCq(SoftDevice& device, std::size_t capacity, SoftCompChannel* channel)
    : device_(device), channel_(channel), mutex_(device.threaded()), ring_(capacity) {}

SoftCq::~SoftCq() {
  if (channel_ != nullptr) channel_->forget(*this);
  device_.async().forget(*this);
}

int SoftCq::poll(std::span<Wc> wc) {
  const std::scoped_lock lock(mutex_);
  if (overflow_) return -1;
  const std::size_t n = std::min(wc.size(), size_);
  for (std::size_t i = 0; i < n; ++i) {
    wc[i] = ring_[head_];
    head_ = head_ + 1 == ring_.size() ? 0 : head_ + 1;
  }
  size_ -= n;
  return static_cast<int>(n);
}

Status SoftCq::req_notify(bool solicited_only) {
  const std::scoped_lock lock(mutex_);
  if (!solicited_only) {
    armed_ = Armed::kNext;
  } else if (armed_ == Armed::kNo) {
    armed_ = Armed::kSolicited;
  }
  return {};
}

void SoftCq::push(const Wc& wc, bool solicited) {
  enter(wc, solicited);
  // Behind the completion, so that who is woken finds it.
  if (channel_ == nullptr && device_.threaded()) device_.bell().completed();
}

void SoftCq::enter(const Wc& wc, bool solicited) {
  const std::scoped_lock lock(mutex_);
  if (size_ == ring_.size()) {
    overflow();
  } else {
    std::size_t tail = head_ + size_;
    if (tail >= ring_.size()) tail -= ring_.size();
    ring_[tail] = wc;
    ++size_;
  }
  const bool fires = armed_ == Armed::kNext ||
                     (armed_ == Armed::kSolicited && (solicited || overflow_ || wc.status != WcStatus::kSuccess));
  if (!fires) return;
  armed_ = Armed::kNo;
  if (channel_ != nullptr) channel_->push(*this);
}

void SoftCq::overflow() {
  if (std::exchange(overflow_, true)) return;
  AsyncEvent event;
  event.type = AsyncEventType::kCqErr;
  event.cq = this;
  event.text = "a completion queue of " + std::to_string(ring_.size()) + " completions overflowed";
  device_.async().push(std::move(event));
  for (SoftQp* qp : qps_) qp->cq_overflowed();
}

void SoftCq::forget(const SoftQp& qp) {
  const std::scoped_lock lock(mutex_);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < size_; ++i) {
    const Wc wc = ring_[(head_ + i) % ring_.size()];
    if (wc.qp_num != qp.qp_num()) ring_[(head_ + kept++) % ring_.size()] = wc;
  }
  size_ = kept;
  const SoftSrq* srq = nullptr;
  std::size_t freed = 0;
  std::erase_if(charges_, [&](const Charge& charge) {
    if (charge.qp != &qp) return false;
    srq = charge.srq != nullptr ? charge.srq : srq;
    freed += charge.srq == nullptr ? charge.num : 0;
    return true;
  });
  charged_ -= freed;
  if (srq != nullptr && !is_charged(*srq)) charged_ -= srq->max_wr();
}

void SoftCq::add_qp(SoftQp& qp) {
  const std::scoped_lock lock(mutex_);
  qps_.push_back(&qp);
}

void SoftCq::remove_qp(const SoftQp& qp) {
  const std::scoped_lock lock(mutex_);
  std::erase(qps_, &qp);  // twice, where it uses one Cq for both of its queues
}

bool SoftCq::has_room(std::size_t num) const {
  return num <= ring_.size() - std::min(ring_.size(), charged_) || device_.config().cq_overcommit;
}

bool SoftCq::is_charged(const SoftSrq& srq) const {
  return std::ranges::any_of(charges_, [&](const Charge& charge) { return charge.srq == &srq; });
}

bool SoftCq::charge(const SoftQp& qp, std::size_t num) {
  const std::scoped_lock lock(mutex_);
  if (!has_room(num)) return false;
  charges_.push_back({&qp, nullptr, num});
  charged_ += num;
  return true;
}

bool SoftCq::charge(const SoftQp& qp, const SoftSrq& srq) {
  const std::scoped_lock lock(mutex_);
  const std::size_t num = is_charged(srq) ? 0 : srq.max_wr();
  if (!has_room(num)) return false;
  charges_.push_back({&qp, &srq, num});
  charged_ += num;
  return true;
}

}  // namespace weft::verbs::soft
