#include "rpcrdma/message_pool.h"

#include <new>
#include <utility>

namespace weft::rpcrdma {

MessagePool::MessagePool(verbs::Pd& pd, std::size_t len, std::uint32_t max) : pd_(pd), len_(len), max_(max) {}

bool MessagePool::grow() {
  // Not cleared: pages that no message ever touches stay unused.
  std::unique_ptr<std::uint8_t[]> slab(new (std::nothrow) std::uint8_t[kSlab * len_]);
  if (!slab) return false;
  auto mr = pd_.reg_mr(slab.get(), kSlab * len_, verbs::Access::kLocalWrite);
  if (!mr.ok()) return false;
  const auto first = static_cast<std::uint32_t>(mrs_.size()) * kSlab;
  memory_->push_back(std::move(slab));
  mrs_.push_back(std::move(*mr));
  for (std::uint32_t i = kSlab; i > 0; --i) free_.push_back(first + i - 1);
  return true;
}

std::optional<std::uint32_t> MessagePool::take() {
  if (num_taken_ == max_ || (free_.empty() && !grow())) return {};
  const std::uint32_t slot = free_.back();
  free_.pop_back();
  ++num_taken_;
  return slot;
}

void MessagePool::give_back(std::uint32_t slot) {
  --num_taken_;
  free_.push_back(slot);
}

MutBytes MessagePool::octets(std::uint32_t slot) const {
  return MutBytes((*memory_)[slot / kSlab].get() + slot % kSlab * len_, len_);
}

}  // namespace weft::rpcrdma
