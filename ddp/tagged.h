#pragma once

#include <cstddef>
#include <variant>

#include "base/bytes.h"
#include "ddp/error.h"
#include "ddp/memory_table.h"
#include "ddp/segment.h"

namespace weft::ddp {

// resolve_tagged returns the memory for all payload_len octets of a tagged segment's payload, or the error that refuses
// it (RFC 5041 section 7.1). An empty payload needs no memory: neither its STag nor its TO is checked (DDP-5.2-13). The
// view is valid as long as MemoryTable::resolve says. right: kRemoteWrite, except for a Read Response that was matched
// with its request: its sink is the stream's own memory.
std::variant<MutBytes, Error> resolve_tagged(MemoryTable& memory, StreamScope scope, Stag stag, std::uint64_t to,
                                             std::size_t payload_len, Right right = Right::kRemoteWrite);

}  // namespace weft::ddp
