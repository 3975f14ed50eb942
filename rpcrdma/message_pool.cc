#include "rpcrdma/message_pool.h"

#include <algorithm>
#include <functional>
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
  std::size_t place = 0;
  while (place < mrs_.size() && mrs_[place] != nullptr) ++place;
  if (place == mrs_.size()) {
    memory_->emplace_back();
    mrs_.emplace_back();
  }
  const auto first = static_cast<std::uint32_t>(place) * kSlab;
  (*memory_)[place] = std::move(slab);
  mrs_[place] = std::move(*mr);
  ++num_slabs_;
  for (std::uint32_t i = kSlab; i > 0; --i) free_.push_back(first + i - 1);
  return true;
}

bool MessagePool::reserve(std::uint32_t num) {
  while (num_slabs_ * kSlab < num) {
    if (!grow()) return false;
  }
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

void MessagePool::trim() {
  if (free_.size() < kSlab) return;
  std::vector<std::uint32_t> num_free(mrs_.size());
  for (const std::uint32_t slot : free_) ++num_free[slot / kSlab];
  std::erase_if(free_, [&](std::uint32_t slot) { return num_free[slot / kSlab] == kSlab; });
  for (std::size_t slab = 0; slab < mrs_.size(); ++slab) {
    if (num_free[slab] != kSlab) continue;
    mrs_[slab].reset();
    (*memory_)[slab].reset();
    --num_slabs_;
  }
  // The remaining buffers are taken from the front, so that slabs at the back become free.
  std::ranges::sort(free_, std::greater<>());
}

}  // namespace weft::rpcrdma
