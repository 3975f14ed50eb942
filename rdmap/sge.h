#pragma once

#include <cstdint>
#include <optional>

#include "ddp/memory_table.h"
#include "mpa/wire/bytes.h"
#include "rdmap/inlined_vector.h"
#include "rdmap/work.h"

namespace weft::rdmap {

// ViewList is the memory behind a part of an SgeList, in order.
using ViewList = absl::InlinedVector<MutBytes, 4>;

// total_len counts the octets of a list; 64 bits, since nothing bounds a caller's list.
inline std::uint64_t total_len(const SgeList& list) {
  std::uint64_t len = 0;
  for (const Sge& sge : list) len += sge.len;
  return len;
}

// resolve_range appends to out the memory of octets [offset, offset + len) of list, checked for `right`, or says why
// one of the entries touched may not be used; out is then to be thrown away. An entry that contributes nothing is not
// looked at. Precondition: the range is inside the list.
std::optional<ddp::AccessError> resolve_range(ddp::MemoryTable& memory, ddp::StreamScope scope, const SgeList& list,
                                              std::uint64_t offset, std::size_t len, ddp::Right right, ViewList& out);

// scatter copies octets into views, front to back. Precondition: the views hold exactly octets.size() octets.
void scatter(ConstBytes octets, const ViewList& views);

}  // namespace weft::rdmap
