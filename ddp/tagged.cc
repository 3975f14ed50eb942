#include "ddp/tagged.h"

namespace weft::ddp {

std::variant<MutBytes, Error> resolve_tagged(MemoryTable& memory, StreamScope scope, Stag stag, std::uint64_t to,
                                             std::size_t payload_len, Right right) {
  if (payload_len == 0) return MutBytes{};  // DDP-5.2-13
  const auto resolved = memory.resolve(scope, stag, to, payload_len, right);
  if (const auto* error = std::get_if<AccessError>(&resolved)) return to_error(*error);  // DDP-7.1-11 to DDP-7.1-15
  return MutBytes(std::get<MutBytes>(resolved).data(), payload_len);
}

}  // namespace weft::ddp
