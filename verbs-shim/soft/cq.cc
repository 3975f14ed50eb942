#include "verbs-shim/soft/cq.h"

#include <algorithm>

namespace weft::verbs::soft {

SoftCompChannel::~SoftCompChannel() {
  poller_.events_taken(fired_.size());
}

int SoftCompChannel::fd() const {
  if (!fd_) fd_ = poller_.nested();
  return fd_.get();
}

Cq* SoftCompChannel::get_event() {
  if (fired_.empty()) return nullptr;
  SoftCq* cq = fired_.front();
  fired_.pop_front();
  poller_.events_taken(1);
  return cq;
}

void SoftCompChannel::push(SoftCq& cq) {
  fired_.push_back(&cq);
  poller_.event_queued();
}

void SoftCompChannel::forget(const SoftCq& cq) {
  poller_.events_taken(std::erase(fired_, &cq));
}

SoftCq::~SoftCq() {
  if (channel_ != nullptr) channel_->forget(*this);
  std::erase(overflowed_list_, this);
}

int SoftCq::poll(std::span<Wc> wc) {
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
  if (!solicited_only) {
    armed_ = Armed::kNext;
  } else if (armed_ == Armed::kNo) {
    armed_ = Armed::kSolicited;
  }
  return {};
}

void SoftCq::push(const Wc& wc, bool solicited) {
  if (size_ == ring_.size()) {
    if (!overflow_) overflowed_list_.push_back(this);
    overflow_ = true;
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

void SoftCq::forget(std::uint32_t qp_num) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < size_; ++i) {
    const Wc wc = ring_[(head_ + i) % ring_.size()];
    if (wc.qp_num != qp_num) ring_[(head_ + kept++) % ring_.size()] = wc;
  }
  size_ = kept;
}

void SoftCq::remove_qp(const SoftQp& qp) {
  // A queue pair that uses one Cq for both of its queues stands here twice.
  std::erase(qps_, &qp);
  std::erase_if(charges_, [&](const auto& charge) {
    if (charge.first != &qp) return false;
    charged_ -= charge.second;
    return true;
  });
}

void SoftCq::charge(const SoftQp& qp, std::size_t num) {
  charges_.emplace_back(&qp, num);
  charged_ += num;
}

}  // namespace weft::verbs::soft
