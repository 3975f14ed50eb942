#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <variant>

#include "absl/container/flat_hash_map.h"
#include "ddp/memory_table.h"
#include "verbs-shim/api/types.h"
#include "verbs-shim/soft/random.h"

namespace weft::verbs::soft {

// RegionTable is the device's table of registered memory: what an STag names, to whom and for what (RFC 5041 section
// 8.3, RFC 5042 section 2.2). lkey and rkey of a region are one STag; tagged offsets are virtual addresses.
//
// STags are 32 random bits, never 0, so that a peer cannot guess what others registered (RFC 5040 section 8.1.1), and
// one that was deregistered is not given out again before kQuarantine others were.
class RegionTable final : public ddp::MemoryTable {
 public:
  static constexpr std::size_t kQuarantine = 65536;

  explicit RegionTable(std::size_t max_regions) : max_regions_(max_regions) {}

  // The new STag, or nothing where the range is empty or reaches 2^64, or the table is full.
  std::optional<ddp::Stag> add(std::uint32_t pd, std::uint64_t base, std::uint64_t len, Access access);
  // From here on nobody reaches the memory through stag.
  void remove(ddp::Stag stag);
  std::size_t size() const { return num_valid_; }

  std::variant<MutBytes, ddp::AccessError> resolve(ddp::StreamScope scope, ddp::Stag stag, std::uint64_t to,
                                                   std::size_t len, ddp::Right right) override;
  // Regions belong to every stream of their protection domain, and what streams share no peer may invalidate
  // (RFC 5040 section 8.1.1); windows will be the exception.
  std::variant<std::monostate, ddp::AccessError> invalidate(ddp::StreamScope scope, ddp::Stag stag) override;

 private:
  struct Region {
    std::uint64_t base = 0;
    std::uint64_t len = 0;
    std::uint32_t pd = 0;
    Access access = Access::kNone;
    bool valid = false;
  };

  std::size_t max_regions_;
  std::size_t num_valid_ = 0;
  absl::flat_hash_map<std::uint32_t, Region> regions_;  // those in quarantine too, as invalid ones
  std::deque<std::uint32_t> quarantine_;
  RandomSource random_;
};

}  // namespace weft::verbs::soft
