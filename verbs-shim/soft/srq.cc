#include "verbs-shim/soft/srq.h"

#include <cerrno>
#include <mutex>
#include <string>
#include <utility>

#include "verbs-shim/soft/sges.h"

namespace weft::verbs::soft {

SoftSrq::SoftSrq(Core& core, std::uint32_t pd, const SrqAttr& attr)
    : core_(core),
      pd_(pd),
      max_wr_(attr.max_wr),
      max_sge_(attr.max_sge),
      reserve_(core.threaded() ? 0 : attr.reserve),
      newest_first_(attr.reserve != 0),
      mutex_(core.threaded()),
      limit_(attr.srq_limit),
      ring_(attr.max_wr) {}

SoftSrq::~SoftSrq() {
  core_.async().forget(*this);
  core_.release_srq();
}

Status SoftSrq::post_recv(const RecvWr& wr) {
  if (wr.sg_list.size() > max_sge_) {
    return Error{EINVAL, "more scatter/gather elements than max_sge of the shared receive queue"};
  }
  const std::scoped_lock lock(mutex_);
  if (ring_.full()) return Error{ENOMEM, "the shared receive queue is full"};
  to_posted(wr, ring_.extend());
  return {};
}

std::optional<rdmap::PostedRecv> SoftSrq::take() {
  const std::scoped_lock lock(mutex_);
  if (ring_.empty()) return std::nullopt;
  std::optional<rdmap::PostedRecv> taken(std::move(newest_first_ ? ring_.back() : ring_.front()));
  if (newest_first_) {
    ring_.truncate(ring_.size() - 1);
  } else {
    ring_.pop_front();
  }
  check_limit();
  return taken;
}

// The consumer hears in time that peers take more than their share. QpCounters tell which peers do (SEC-6.4.3.1-05,
// RDMAP-8.1.2-07).
void SoftSrq::check_limit() {
  if (ring_.size() >= limit_) return;
  const std::uint32_t limit = std::exchange(limit_, 0);
  core_.async().push({.type = AsyncEventType::kSrqLimitReached,
                      .srq = this,
                      .text = "fewer than " + std::to_string(limit) + " receives are left in a shared receive queue"});
}

Status SoftSrq::modify(std::uint32_t srq_limit) {
  if (srq_limit > max_wr_) return Error{EINVAL, "a limit above max_wr of the shared receive queue"};
  const std::scoped_lock lock(mutex_);
  limit_ = srq_limit;
  check_limit();
  return {};
}

std::optional<std::uint32_t> SoftSrq::num_waiting() const {
  if (reserve_ == 0) return std::nullopt;
  return static_cast<std::uint32_t>(ring_.size());  // with a reserve there is one thread
}

Result<SrqAttr> SoftSrq::query() const {
  const std::scoped_lock lock(mutex_);
  return SrqAttr{.max_wr = max_wr_, .max_sge = max_sge_, .srq_limit = limit_, .reserve = reserve_};
}

}  // namespace weft::verbs::soft
