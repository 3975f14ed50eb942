#include "rpcrdma/receive_pool.h"

#include <algorithm>
#include <cerrno>

namespace weft::rpcrdma {

verbs::Result<std::unique_ptr<ReceivePool>> ReceivePool::create(verbs::Pd& pd, const Config& config) {
  if (config.shares.max_receives <= config.shares.slack) return verbs::Error{EINVAL, "no Receive beyond the slack"};
  if (config.reserve > config.shares.slack)
    return verbs::Error{EINVAL, "the slack does not hold the Receives that are kept for a turn"};
  auto srq = pd.create_srq({.max_wr = config.shares.max_receives, .max_sge = 1, .reserve = config.reserve});
  if (!srq.ok()) return srq.error();
  std::unique_ptr<ReceivePool> pool(new ReceivePool(pd, config, std::move(*srq)));
  if (!pool->fill()) return verbs::Error{ENOMEM, "no memory for Receives"};
  return pool;
}

bool ReceivePool::post(std::uint32_t slot) {
  const verbs::Sge sge{reinterpret_cast<std::uintptr_t>(buffers_.octets(slot).data()),
                       static_cast<std::uint32_t>(buffers_.len()), buffers_.lkey(slot)};
  const auto status = srq_->post_recv({.wr_id = kReceiveBit | slot, .sg_list = std::span(&sge, 1)});
  if (!status.ok()) buffers_.give_back(slot);
  return status.ok();
}

// How many buffers there must be. A device that does not count what waits in the queue may have taken one for a message
// that has begun to arrive on each connection.
std::uint32_t ReceivePool::wanted(std::uint32_t returned) const {
  const auto waiting = srq_->num_waiting();
  const std::uint32_t out = buffers_.num_taken() - shares_.held() - returned;
  return shares_.wanted(waiting ? out - std::min(out, *waiting) : shares_.connections());
}

// Every buffer that is taken is posted or will be, so their number is all that counts.
bool ReceivePool::fill() {
  for (std::uint32_t num = wanted(); buffers_.num_taken() < num;) {
    const auto slot = buffers_.take();
    if (!slot || !post(*slot)) return false;
  }
  return true;
}

bool ReceivePool::reserve(std::uint32_t num) {
  if (!shares_.reserve(num)) return false;
  if (fill()) return true;
  shares_.release(num);
  return false;
}

// Another client of the address should find an eighth.
bool ReceivePool::is_low(std::string_view address) const {
  return shares_.is_low() || grown_.asks(address, grown_.bounds().all / 8) != Ledger::Verdict::kFits;
}

bool ReceivePool::give_back(std::uint32_t slot) {
  shares_.on_done();
  // Posted Receives cannot be taken back, so the pool becomes smaller in this way after release.
  if (buffers_.num_taken() > wanted(1)) {
    buffers_.give_back(slot);
    return true;
  }
  return post(slot);
}

void ReceivePool::Lease::leave_behind(std::vector<std::uint32_t> slots) {
  slots_ = std::move(slots);
  if (const auto pool = pool_.lock()) (*pool)->shares_.leave_behind(static_cast<std::uint32_t>(slots_.size()));
}

ReceivePool::Lease::~Lease() {
  const auto pool = pool_.lock();
  if (!pool) return;
  (*pool)->shares_.forget(static_cast<std::uint32_t>(slots_.size()));
  for (const std::uint32_t slot : slots_) (*pool)->give_back(slot);
}

}  // namespace weft::rpcrdma
