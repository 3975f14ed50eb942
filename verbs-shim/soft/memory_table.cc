#include "verbs-shim/soft/memory_table.h"

#include <limits>
#include <mutex>
#include <shared_mutex>

#include "ddp/range.h"
#include "requirements/violates.h"

namespace weft::verbs::soft {
namespace {

constexpr std::uint64_t kMaxAddress = std::numeric_limits<std::uint64_t>::max();

bool granted(Access access, ddp::Right right) {
  switch (right) {
    case ddp::Right::kLocalRead: return true;
    case ddp::Right::kLocalWrite: return has(access, Access::kLocalWrite);
    case ddp::Right::kRemoteRead: return has(access, Access::kRemoteRead);
    case ddp::Right::kRemoteWrite: return has(access, Access::kRemoteWrite);
    case ddp::Right::kRemoteAtomic: return has(access, Access::kRemoteAtomic);
  }
  return false;
}

constexpr std::uint32_t index_of(ddp::Stag stag) {
  return stag.value >> 8;
}
constexpr std::uint8_t key_of(ddp::Stag stag) {
  return static_cast<std::uint8_t>(stag.value);
}

}  // namespace

std::optional<ddp::Stag> RegionTable::insert(const Entry& entry) {
  while (true) {
    const ddp::Stag stag{random_.next()};
    if (index_of(stag) == 0) continue;  // so that no STag is 0, whatever key a bind gives it
    const auto [it, inserted] = entries_.try_emplace(index_of(stag), entry);
    if (!inserted) continue;
    it->second.key = key_of(stag);
    return stag;
  }
}

std::optional<ddp::Stag> RegionTable::add(std::uint32_t pd, std::uint64_t base, std::uint64_t len, Access access) {
  const std::scoped_lock lock(mutex_);
  if (len == 0 || len > kMaxAddress - base || num_regions_ >= max_regions_) return std::nullopt;
  ++num_regions_;
  return insert({.kind = Kind::kRegion, .access = access, .pd = pd, .base = base, .len = len});
}

std::optional<ddp::Stag> RegionTable::add_window(std::uint32_t pd) {
  const std::scoped_lock lock(mutex_);
  if (num_windows_ >= max_regions_) return std::nullopt;
  ++num_windows_;
  return insert({.kind = Kind::kFreeWindow, .pd = pd});
}

void RegionTable::remove(ddp::Stag stag) {
  const std::scoped_lock lock(mutex_);
  const auto it = entries_.find(index_of(stag));
  if (it == entries_.end()) return;
  Entry& entry = it->second;
  if (entry.kind == Kind::kQuarantined || (entry.kind == Kind::kRegion && entry.key != key_of(stag))) return;
  if (entry.kind == Kind::kRegion) {
    if (const auto windows = bound_.extract(it->first)) {
      for (const std::uint32_t index : windows.mapped()) entries_[index].kind = Kind::kFreeWindow;
    }
    --num_regions_;
  } else {
    if (entry.kind == Kind::kBoundWindow) unbind(it->first, entry);
    --num_windows_;
  }
  entry = Entry{};
  quarantine_.push_back(it->first);
  if (quarantine_.size() > kQuarantine) {
    entries_.erase(quarantine_.front());
    quarantine_.pop_front();
  }
}

std::size_t RegionTable::size() const {
  const std::shared_lock lock(mutex_);
  return num_regions_ + num_windows_;
}

std::size_t RegionTable::num_bound(ddp::Stag region) const {
  const std::shared_lock lock(mutex_);
  const auto it = bound_.find(index_of(region));
  return it == bound_.end() ? 0 : it->second.size();
}

// The entry that all 32 bits name, if it gives access to memory.
RegionTable::Entry* RegionTable::find(ddp::Stag stag) {
  const auto it = entries_.find(index_of(stag));
  if (it == entries_.end() || it->second.key != key_of(stag)) return nullptr;
  const bool live = it->second.kind == Kind::kRegion || it->second.kind == Kind::kBoundWindow;
  return live ? &it->second : nullptr;
}

void RegionTable::unbind(std::uint32_t index, Entry& window) {
  window.kind = Kind::kFreeWindow;
  const auto it = bound_.find(window.region);
  it->second.erase(index);
  if (it->second.empty()) bound_.erase(it);
}

std::variant<MutBytes, ddp::AccessError> RegionTable::resolve(ddp::StreamScope scope, ddp::Stag stag, std::uint64_t to,
                                                              std::size_t len, ddp::Right right) {
  const std::shared_lock lock(mutex_);
  const Entry* entry = find(stag);
  if (violates("DDP-7.1-11", entry == nullptr)) return ddp::AccessError::kInvalidStag;
  if (violates("DDP-8.2-02", entry->pd != scope.pd)) return ddp::AccessError::kNotAssociated;
  const bool window = entry->kind == Kind::kBoundWindow;
  if (violates("SEC-6.1.1-03", window && entry->stream != scope.stream)) return ddp::AccessError::kNotAssociated;
  const bool local = right == ddp::Right::kLocalRead || right == ddp::Right::kLocalWrite;
  // A window has no local key.
  if (violates("DDP-7.1-12", (window && local) || !granted(entry->access, right)))
    return ddp::AccessError::kAccessRights;
  if (const auto error = ddp::check_range(entry->base, entry->len, to, len)) return *error;
  // reg_mr got this virtual address as a pointer; it becomes a pointer again.
  return MutBytes{reinterpret_cast<std::uint8_t*>(static_cast<std::uintptr_t>(to)), len};
}

std::variant<std::monostate, ddp::AccessError> RegionTable::invalidate(ddp::StreamScope scope, ddp::Stag stag) {
  const std::scoped_lock lock(mutex_);
  Entry* entry = find(stag);
  if (violates("RDMAP-7.2-04", entry == nullptr)) return ddp::AccessError::kInvalidStag;
  if (violates("SEC-6.1.1-02", entry->pd != scope.pd)) return ddp::AccessError::kNotAssociated;
  // The streams of a protection domain share its regions.
  if (violates("RDMAP-8.1.1-06", entry->kind == Kind::kRegion)) return ddp::AccessError::kInvalidStag;
  if (violates("RDMAP-5.3-15", entry->stream != scope.stream)) return ddp::AccessError::kNotAssociated;
  unbind(index_of(stag), *entry);
  return std::monostate{};
}

bool RegionTable::bind_window(ddp::StreamScope scope, const ddp::WindowBind& bind) {
  const std::scoped_lock lock(mutex_);
  const auto it = entries_.find(index_of(bind.stag));
  if (it == entries_.end() || it->second.kind != Kind::kFreeWindow || it->second.pd != scope.pd) return false;
  Entry& window = it->second;
  if (window.key == key_of(bind.stag)) return false;  // an STag told to a peer stays dead (RFC 5042 section 6.2.2)
  const Entry* region = find(bind.region);
  if (region == nullptr || region->kind != Kind::kRegion || region->pd != scope.pd) return false;
  if (!has(region->access, Access::kMwBind)) return false;
  if ((bind.remote_write || bind.remote_atomic) && !has(region->access, Access::kLocalWrite)) return false;
  if (bind.len == 0 || bind.to < region->base) return false;
  const std::uint64_t off = bind.to - region->base;
  if (off > region->len || bind.len > region->len - off) return false;

  const Access access = (bind.remote_read ? Access::kRemoteRead : Access::kNone) |
                        (bind.remote_write ? Access::kRemoteWrite : Access::kNone) |
                        (bind.remote_atomic ? Access::kRemoteAtomic : Access::kNone);
  window = {.kind = Kind::kBoundWindow,
            .key = key_of(bind.stag),
            .access = access,
            .pd = scope.pd,
            .stream = scope.stream,
            .region = index_of(bind.region),
            .base = bind.to,
            .len = bind.len};
  bound_[window.region].insert(it->first);
  return true;
}

bool RegionTable::invalidate_window(ddp::StreamScope scope, ddp::Stag stag) {
  const std::scoped_lock lock(mutex_);
  const auto it = entries_.find(index_of(stag));
  if (it == entries_.end() || it->second.key != key_of(stag) || it->second.pd != scope.pd) return false;
  Entry& window = it->second;
  if (window.kind == Kind::kFreeWindow) return true;  // the peer was faster
  if (window.kind != Kind::kBoundWindow || window.stream != scope.stream) return false;
  unbind(it->first, window);
  return true;
}

}  // namespace weft::verbs::soft
