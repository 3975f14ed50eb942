#include "rpcrdma/receive_pool.h"

#include <algorithm>
#include <cerrno>

namespace weft::rpcrdma {

verbs::Result<std::unique_ptr<ReceivePool>> ReceivePool::create(verbs::Pd& pd, const Config& config) {
  if (config.max_receives <= config.slack) return verbs::Error{EINVAL, "no Receive beyond the slack"};
  if (config.reserve > config.slack) return verbs::Error{EINVAL, "the slack does not hold what is kept for a turn"};
  auto srq = pd.create_srq({.max_wr = config.max_receives, .max_sge = 1, .reserve = config.reserve});
  if (!srq.ok()) return srq.error();
  std::unique_ptr<ReceivePool> pool(new ReceivePool(pd, config, std::move(*srq)));
  if (!pool->fill()) return verbs::Error{ENOMEM, "no memory for Receives"};
  return pool;
}

bool ReceivePool::post(std::uint32_t slot) {
  const verbs::Sge sge{reinterpret_cast<std::uintptr_t>(octets(slot).data()),
                       static_cast<std::uint32_t>(config_.receive_len), buffers_.lkey(slot)};
  const auto status = srq_->post_recv({.wr_id = kReceiveBit | slot, .sg_list = std::span(&sge, 1)});
  if (!status.ok()) buffers_.give_back(slot);
  return status.ok();
}

// How many buffers there are to be, posted or with messages. Those of connections that are gone are nobody's share. A
// message that arrives in part may hold one of each connection, so beside these the reserve is always posted.
std::uint32_t ReceivePool::num_wanted() const {
  std::uint32_t num = reserved_;
  if (config_.max_posted != UINT32_MAX) {
    const std::uint32_t held = num_held_ - num_left_behind_;
    num = std::min(num, num_connections_ + config_.max_posted + held);
    num = std::max(num, num_connections_ + held);
  }
  return num + config_.slack + num_left_behind_;
}

// Every buffer that is taken is posted or will be, so their number is all that counts.
bool ReceivePool::fill() {
  while (buffers_.num_taken() < num_wanted()) {
    const auto slot = buffers_.take();
    if (!slot || !post(*slot)) return false;
  }
  return true;
}

bool ReceivePool::reserve(std::uint32_t num, std::uint32_t grown) {
  if (num > max_reserved() - reserved_ || grown > config_.max_grown - grown_) return false;
  reserved_ += num;
  if (fill()) {
    grown_ += grown;
    return true;
  }
  reserved_ -= num;
  return false;
}

void ReceivePool::release(std::uint32_t num, std::uint32_t grown) {
  reserved_ -= num;
  grown_ -= grown;
}

bool ReceivePool::give_back(std::uint32_t slot) {
  --num_held_;
  // What was posted cannot be taken back, so that is how the pool becomes smaller after release.
  if (buffers_.num_taken() > num_wanted()) {
    buffers_.give_back(slot);
    return true;
  }
  return post(slot);
}

void ReceivePool::Lease::leave_behind(std::vector<std::uint32_t> slots) {
  slots_ = std::move(slots);
  if (const auto pool = pool_.lock()) (*pool)->num_left_behind_ += static_cast<std::uint32_t>(slots_.size());
}

ReceivePool::Lease::~Lease() {
  const auto pool = pool_.lock();
  if (!pool) return;
  (*pool)->num_left_behind_ -= static_cast<std::uint32_t>(slots_.size());
  for (const std::uint32_t slot : slots_) (*pool)->give_back(slot);
}

}  // namespace weft::rpcrdma
