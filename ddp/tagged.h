#pragma once

#include <cstddef>
#include <variant>

#include "ddp/error.h"
#include "ddp/memory_table.h"
#include "ddp/segment.h"
#include "mpa/wire/bytes.h"

namespace weft::ddp {

// resolve_tagged says where the payload of a tagged segment goes, all payload_len octets of it, or why nowhere (RFC
// 5041 section 7.1). An empty payload goes nowhere and nothing about it is checked, neither STag nor TO (DDP-5.2-13).
// The view is valid as MemoryTable::resolve says. right: kRemoteWrite but for a Read Response that was matched with its
// request, whose sink is the stream's own memory.
std::variant<MutBytes, Error> resolve_tagged(MemoryTable& memory, StreamScope scope, const TaggedHeader& header,
                                             std::size_t payload_len, Right right = Right::kRemoteWrite);

}  // namespace weft::ddp
