#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "ddp/memory_table.h"
#include "rdmap/inlined_vector.h"
#include "rdmap/work.h"

namespace weft::rdmap {

// ViewList is the memory behind a part of an SgeList, in order.
using ViewList = absl::InlinedVector<MutBytes, 4>;

// total_len counts the octets of a list. It has 64 bits, since a caller's list has no bound.
inline std::uint64_t total_len(const SgeList& list) {
  std::uint64_t len = 0;
  for (const Sge& sge : list) len += sge.len;
  return len;
}

// resolve_range appends to out the memory of octets [offset, offset + len) of list, checked for `right`. Otherwise it
// returns the reason why an entry may not be used, and the caller has to discard out. Entries outside the range are not
// checked. Precondition: the range is inside the list.
std::optional<ddp::AccessError> resolve_range(ddp::MemoryTable& memory, ddp::StreamScope scope, const SgeList& list,
                                              std::uint64_t offset, std::size_t len, ddp::Right right, ViewList& out);

// scatter copies octets into views, front to back. Precondition: the views hold exactly octets.size() octets.
void scatter(ConstBytes octets, const ViewList& views);

}  // namespace weft::rdmap
