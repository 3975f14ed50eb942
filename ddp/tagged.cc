#include "ddp/tagged.h"

namespace weft::ddp {

std::variant<MutBytes, Error> resolve_tagged(MemoryTable& memory, StreamScope scope, const TaggedHeader& header,
                                             std::size_t payload_len, Right right) {
  if (payload_len == 0) return MutBytes{};  // DDP-5.2-13
  const auto resolved = memory.resolve(scope, header.stag, header.to, payload_len, right);
  if (const auto* error = std::get_if<AccessError>(&resolved)) return to_error(*error);  // DDP-7.1-11 to DDP-7.1-15
  return std::get<MutBytes>(resolved);
}

}  // namespace weft::ddp
