#include "rdmap/sge.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace weft::rdmap {

std::optional<ddp::AccessError> resolve_range(ddp::MemoryTable& memory, ddp::StreamScope scope, const SgeList& list,
                                              std::uint64_t offset, std::size_t len, ddp::Right right, ViewList& out) {
  for (const Sge& sge : list) {
    if (len == 0) break;
    if (offset >= sge.len) {
      offset -= sge.len;
      continue;
    }
    const std::size_t piece = std::min<std::size_t>(len, static_cast<std::size_t>(sge.len - offset));
    // The whole entry is checked, not only the piece: half of a message must not leave or land before the check of the
    // other half fails.
    const auto found = memory.resolve(scope, sge.key, sge.addr, sge.len, right);
    if (const auto* error = std::get_if<ddp::AccessError>(&found)) return *error;
    out.emplace_back(std::get<MutBytes>(found).data() + offset, piece);
    offset = 0;
    len -= piece;
  }
  assert(len == 0);
  return std::nullopt;
}

void scatter(ConstBytes octets, const ViewList& views) {
  for (MutBytes view : views) {
    assert(view.size() <= octets.size());
    if (!view.empty()) std::memcpy(view.data(), octets.data(), view.size());
    octets = octets.subspan(view.size());
  }
  assert(octets.empty());
}

}  // namespace weft::rdmap
