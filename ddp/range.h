#pragma once

#include <cstdint>
#include <optional>

#include "ddp/memory_table.h"
#include "requirements/violates.h"

namespace weft::ddp {

// check_range is the last check of a MemoryTable: whether [to, to + len) lies in the region of region_len octets at
// base. A sum of exactly 2^64 counts as wrapped (DDP-A-08), so every region has to end before 2^64.
constexpr std::optional<AccessError> check_range(std::uint64_t base, std::uint64_t region_len, std::uint64_t to,
                                                 std::uint64_t len) {
  if (violates("DDP-7.1-15", to > UINT64_MAX - len)) return AccessError::kToWrap;
  const bool starts_inside = to >= base && to - base <= region_len;
  if (violates("DDP-7.1-13", !starts_inside)) return AccessError::kBaseBounds;
  if (violates("DDP-7.1-14", starts_inside && len > region_len - (to - base))) return AccessError::kBaseBounds;
  return std::nullopt;
}

}  // namespace weft::ddp
