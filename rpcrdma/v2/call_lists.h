#pragma once

#include <cstdint>
#include <optional>

#include "rpcrdma/message.h"

namespace weft::rpcrdma::v2 {

// named_handle: the handle that the Reply may invalidate. A handle that is not of this header is treated as none
// (R2-7.2.3-6, W2-6.5-1).
std::optional<std::uint32_t> named_handle(std::uint32_t handle, const ChunkListsView& lists);

// take_call_lists puts valid lists into the Call, or says which error it gets. no_write_chunks: the error for Write
// chunks where none is accepted.
CallVerdict take_call_lists(ChunkListsView&& lists, const ChunkLimits& limits, TransportError::Code no_write_chunks,
                            ReceivedCall& call);

}  // namespace weft::rpcrdma::v2
