#include "rpcrdma/receive_pool.h"

#include <cerrno>

namespace weft::rpcrdma {

verbs::Result<std::unique_ptr<ReceivePool>> ReceivePool::create(verbs::Pd& pd, const Config& config) {
  if (config.max_receives <= config.slack) return verbs::Error{EINVAL, "no Receive beyond the slack"};
  auto srq = pd.create_srq({.max_wr = config.max_receives, .max_sge = 1});
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

// Every buffer that is taken is posted or will be, so their number is all that counts.
bool ReceivePool::fill() {
  while (buffers_.num_taken() < reserved_ + config_.slack) {
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
  // What was posted cannot be taken back, so that is how the pool becomes smaller after release.
  if (buffers_.num_taken() > reserved_ + config_.slack) {
    buffers_.give_back(slot);
    return true;
  }
  return post(slot);
}

ReceivePool::Lease::~Lease() {
  const auto pool = pool_.lock();
  if (!pool) return;
  for (const std::uint32_t slot : slots) (*pool)->give_back(slot);
}

}  // namespace weft::rpcrdma
