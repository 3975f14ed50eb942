#include "verbs-shim/soft/cq.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>

namespace weft::verbs::soft {

SoftCq::SoftCq(Core& core, std::size_t capacity, SoftCompChannel* channel)
    : core_(core), channel_(channel), mutex_(core.threaded()), ring_(capacity) {}

SoftCq::~SoftCq() {
  if (channel_ != nullptr) channel_->forget(*this);
  core_.async().forget(*this);
}

int SoftCq::poll(std::span<Wc> wc) {
  const std::scoped_lock lock(mutex_);
  if (overflow_) return -1;
  const std::size_t n = std::min(wc.size(), ring_.size());
  for (std::size_t i = 0; i < n; ++i) {
    wc[i] = ring_.front();
    ring_.pop_front();
  }
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
  // The completion is queued first, so that the woken thread finds it.
  if (channel_ == nullptr && core_.threaded()) core_.bell().completed();
}

void SoftCq::enter(const Wc& wc, bool solicited) {
  const std::scoped_lock lock(mutex_);
  if (ring_.full()) {
    overflow();
  } else {
    ring_.extend() = wc;
  }
  const bool fires = armed_ == Armed::kNext ||
                     (armed_ == Armed::kSolicited && (solicited || overflow_ || wc.status != WcStatus::kSuccess));
  if (!fires) return;
  armed_ = Armed::kNo;
  if (channel_ != nullptr) channel_->push(*this);
}

void SoftCq::overflow() {
  if (std::exchange(overflow_, true)) return;
  core_.async().push({.type = AsyncEventType::kCqErr,
                      .cq = this,
                      .text = "a completion queue of " + std::to_string(ring_.capacity()) + " completions overflowed"});
  for (User& user : users_) user.on_overflow();
}

void SoftCq::add_qp(std::uint32_t qp_num, OnOverflow on_overflow) {
  const std::scoped_lock lock(mutex_);
  users_.push_back({qp_num, std::move(on_overflow)});
}

void SoftCq::remove_qp(std::uint32_t qp_num) {
  const std::scoped_lock lock(mutex_);
  // A queue pair with one Cq for both of its queues has two entries.
  std::erase_if(users_, [&](const User& user) { return user.qp_num == qp_num; });
}

void SoftCq::forget(std::uint32_t qp_num) {
  const std::scoped_lock lock(mutex_);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < ring_.size(); ++i) {
    if (ring_[i].qp_num != qp_num) ring_[kept++] = ring_[i];
  }
  ring_.truncate(kept);
  for (auto at = charges_.begin(); at != charges_.end();) {
    if (at->qp_num != qp_num) {
      ++at;
      continue;
    }
    const Charge gone = *at;
    at = charges_.erase(at);
    // One queue pair has the whole charge of a shared receive queue. The charge passes on to the next one.
    const auto heir = gone.srq == nullptr ? charges_.end() : find(*gone.srq);
    if (heir != charges_.end()) {
      heir->num += gone.num;
    } else {
      charged_ -= gone.num;
    }
  }
}

std::vector<SoftCq::Charge>::iterator SoftCq::find(const Srq& srq) {
  return std::ranges::find_if(charges_, [&](const Charge& charge) { return charge.srq == &srq; });
}

bool SoftCq::charge(std::uint32_t qp_num, std::size_t num, const Srq* srq) {
  const std::scoped_lock lock(mutex_);
  if (srq != nullptr && find(*srq) != charges_.end()) num = 0;
  const bool room = num <= ring_.capacity() - std::min(ring_.capacity(), charged_) || core_.config().cq_overcommit;
  if (!room) return false;
  charges_.push_back({qp_num, srq, num});
  charged_ += num;
  return true;
}

}  // namespace weft::verbs::soft
