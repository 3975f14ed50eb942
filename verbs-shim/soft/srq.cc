#include "verbs-shim/soft/srq.h"

#include <cerrno>
#include <mutex>
#include <string>
#include <utility>

#include "verbs-shim/soft/sges.h"

namespace weft::verbs::soft {

SoftSrq::SoftSrq(SoftDevice& device, std::uint32_t pd, const SrqAttr& attr)
    : device_(device),
      pd_(pd),
      max_wr_(attr.max_wr),
      max_sge_(attr.max_sge),
      reserve_(device.threaded() ? 0 : attr.reserve),
      mutex_(device.threaded()),
      limit_(attr.srq_limit),
      ring_(attr.max_wr) {}

SoftSrq::~SoftSrq() {
  device_.async().forget(*this);
  device_.release_srq();
}

Status SoftSrq::post_recv(const RecvWr& wr) {
  if (wr.sg_list.size() > max_sge_) {
    return Error{EINVAL, "more scatter/gather elements than max_sge of the shared receive queue"};
  }
  const std::scoped_lock lock(mutex_);
  if (size_ == ring_.size()) return Error{ENOMEM, "the shared receive queue is full"};
  std::size_t tail = head_ + size_;
  if (tail >= ring_.size()) tail -= ring_.size();
  ring_[tail].wr_id = wr.wr_id;
  ring_[tail].sg_list.clear();
  copy_sges(wr.sg_list, ring_[tail].sg_list);
  ++size_;
  return {};
}

std::optional<rdmap::PostedRecv> SoftSrq::take() {
  const std::scoped_lock lock(mutex_);
  if (size_ == 0) return std::nullopt;
  std::optional<rdmap::PostedRecv> taken(std::move(ring_[head_]));
  head_ = head_ + 1 == ring_.size() ? 0 : head_ + 1;
  --size_;
  check_limit();
  return taken;
}

// The consumer hears in time that peers take more than their share, and which of them QpCounters tell (SEC-6.4.3.1-05,
// RDMAP-8.1.2-07).
void SoftSrq::check_limit() {
  if (size_ >= limit_) return;
  const std::uint32_t limit = std::exchange(limit_, 0);
  AsyncEvent event;
  event.type = AsyncEventType::kSrqLimitReached;
  event.srq = this;
  event.text = "fewer than " + std::to_string(limit) + " receives are left in a shared receive queue";
  device_.async().push(std::move(event));
}

Status SoftSrq::modify(std::uint32_t srq_limit) {
  if (srq_limit > max_wr_) return Error{EINVAL, "a limit above max_wr of the shared receive queue"};
  const std::scoped_lock lock(mutex_);
  limit_ = srq_limit;
  check_limit();
  return {};
}

Result<SrqAttr> SoftSrq::query() const {
  const std::scoped_lock lock(mutex_);
  return SrqAttr{.max_wr = max_wr_, .max_sge = max_sge_, .srq_limit = limit_, .reserve = reserve_};
}

}  // namespace weft::verbs::soft
