#include "verbs-shim/soft/memory_table.h"

#include <limits>

namespace weft::verbs::soft {
namespace {

constexpr std::uint64_t kMaxAddress = std::numeric_limits<std::uint64_t>::max();

bool granted(Access access, ddp::Right right) {
  switch (right) {
    case ddp::Right::kLocalRead: return true;
    case ddp::Right::kLocalWrite: return has(access, Access::kLocalWrite);
    case ddp::Right::kRemoteRead: return has(access, Access::kRemoteRead);
    case ddp::Right::kRemoteWrite: return has(access, Access::kRemoteWrite);
  }
  return false;
}

}  // namespace

std::optional<ddp::Stag> RegionTable::add(std::uint32_t pd, std::uint64_t base, std::uint64_t len, Access access) {
  if (len == 0 || len > kMaxAddress - base || num_valid_ >= max_regions_) return std::nullopt;
  for (;;) {
    const std::uint32_t value = random_.next();
    if (value == 0) continue;
    const auto [it, inserted] = regions_.try_emplace(value, Region{base, len, pd, access, true});
    if (!inserted) continue;
    ++num_valid_;
    return ddp::Stag{value};
  }
}

void RegionTable::remove(ddp::Stag stag) {
  const auto it = regions_.find(stag.value);
  if (it == regions_.end() || !it->second.valid) return;
  it->second = Region{};
  --num_valid_;
  quarantine_.push_back(stag.value);
  if (quarantine_.size() > kQuarantine) {
    regions_.erase(quarantine_.front());
    quarantine_.pop_front();
  }
}

std::variant<MutBytes, ddp::AccessError> RegionTable::resolve(ddp::StreamScope scope, ddp::Stag stag, std::uint64_t to,
                                                              std::size_t len, ddp::Right right) {
  const auto it = regions_.find(stag.value);
  if (it == regions_.end() || !it->second.valid) return ddp::AccessError::kInvalidStag;  // DDP-7.1-11
  const Region& region = it->second;
  if (region.pd != scope.pd) return ddp::AccessError::kNotAssociated;          // DDP-8.2-02
  if (!granted(region.access, right)) return ddp::AccessError::kAccessRights;  // DDP-7.1-12
  if (len > kMaxAddress - to) return ddp::AccessError::kToWrap;                // DDP-7.1-15
  if (to < region.base) return ddp::AccessError::kBaseBounds;                  // DDP-7.1-13
  const std::uint64_t off = to - region.base;
  if (off > region.len || len > region.len - off) return ddp::AccessError::kBaseBounds;  // DDP-7.1-14
  // A virtual address that reg_mr was given as a pointer becomes one again.
  return MutBytes{reinterpret_cast<std::uint8_t*>(static_cast<std::uintptr_t>(to)), len};
}

std::variant<std::monostate, ddp::AccessError> RegionTable::invalidate(ddp::StreamScope scope, ddp::Stag stag) {
  const auto it = regions_.find(stag.value);
  if (it != regions_.end() && it->second.valid && it->second.pd != scope.pd) return ddp::AccessError::kNotAssociated;
  return ddp::AccessError::kInvalidStag;
}

}  // namespace weft::verbs::soft
