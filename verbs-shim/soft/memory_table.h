#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <variant>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "ddp/memory_table.h"
#include "verbs-shim/api/types.h"
#include "verbs-shim/soft/maybe_mutex.h"
#include "verbs-shim/soft/random.h"

namespace weft::verbs::soft {

// RegionTable is the device's table of registered memory. It says which memory an STag names, for which streams and for
// which access (RFC 5041 section 8.3, RFC 5042 section 2.2). Its entries are regions, and type-2 windows over parts of
// regions. lkey and rkey of a region are one STag; tagged offsets are virtual addresses.
//
// An STag is an index (24 random bits) and a key (8 bits); all 32 bits are compared. A peer cannot guess the STags of
// others (RFC 5040 section 8.1.1). A released index is not used again before kQuarantine other indexes were released. A
// region's key is random. A bind sets a window's key, which always differs from the key before.
//
// A window belongs to one stream from bind to invalidation, and only that stream's peer or user can invalidate it;
// regions belong to every stream of their protection domain.
class RegionTable final : public ddp::MemoryTable {
 public:
  static constexpr std::size_t kQuarantine = 65536;
  // A small part of the 2^24 indexes, so that a free one is found quickly and a random STag mostly names nothing.
  static constexpr std::size_t kMaxRegions = std::size_t{1} << 22;

  // max_regions bounds the regions, and the windows as well. shared: several threads use the table.
  explicit RegionTable(std::size_t max_regions, bool shared = false) : max_regions_(max_regions), mutex_(shared) {}

  // The new STag, or nothing if the range is empty or reaches 2^64, or the table is full.
  std::optional<ddp::Stag> add(std::uint32_t pd, std::uint64_t base, std::uint64_t len, Access access);
  // A new window that is not bound yet, under an STag that names nothing yet; nothing if the table is full.
  std::optional<ddp::Stag> add_window(std::uint32_t pd);
  // No look-up finds the memory through stag from here on. Removing a region invalidates the windows over it. A window
  // is found by its index, whatever its current key is.
  void remove(ddp::Stag stag);
  std::size_t size() const;
  // The number of windows that are bound to this region.
  std::size_t num_bound(ddp::Stag region) const;

  std::variant<MutBytes, ddp::AccessError> resolve(ddp::StreamScope scope, ddp::Stag stag, std::uint64_t to,
                                                   std::size_t len, ddp::Right right) override;
  // The streams of a protection domain share its regions. No peer may invalidate an STag that streams share (RFC 5040
  // section 8.1.1).
  std::variant<std::monostate, ddp::AccessError> invalidate(ddp::StreamScope scope, ddp::Stag stag) override;
  bool bind_window(ddp::StreamScope scope, const ddp::WindowBind& bind) override;
  bool invalidate_window(ddp::StreamScope scope, ddp::Stag stag) override;

 private:
  enum class Kind : std::uint8_t { kQuarantined, kRegion, kFreeWindow, kBoundWindow };
  struct Entry {
    Kind kind = Kind::kQuarantined;
    std::uint8_t key = 0;
    Access access = Access::kNone;
    std::uint32_t pd = 0;
    std::uint32_t stream = 0;  // of a bound window
    std::uint32_t region = 0;  // index of the region that a window is bound to
    std::uint64_t base = 0;
    std::uint64_t len = 0;
  };

  std::optional<ddp::Stag> insert(const Entry& entry);
  Entry* find(ddp::Stag stag);
  void unbind(std::uint32_t index, Entry& window);

  const std::size_t max_regions_;
  mutable SharedMutex mutex_;  // guards all below
  std::size_t num_regions_ = 0;
  std::size_t num_windows_ = 0;
  absl::flat_hash_map<std::uint32_t, Entry> entries_;                             // by index; includes the quarantined
  absl::flat_hash_map<std::uint32_t, absl::flat_hash_set<std::uint32_t>> bound_;  // windows of each region that has any
  std::deque<std::uint32_t> quarantine_;
  RandomSource random_;
};

}  // namespace weft::verbs::soft
