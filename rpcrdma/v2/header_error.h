#pragma once

#include <cstdint>

#include "rpcrdma/chunk_list_codec.h"

namespace weft::rpcrdma::v2 {

// HeaderError: why a message of version 2 is refused. answer() of a draft's header.h says which error code a responder
// sends for it.
enum class HeaderError : std::uint8_t {
  kNone,
  kTooShort,       // shorter than the prefix: even the XID cannot be trusted
  kVersion,        // rdma_vers is not 2
  kHeaderType,     // rdma_proc or rdma_htype is unknown
  kErrorCode,      // rdma_err is unknown
  kTruncated,      // the message ends inside its header
  kDiscriminator,  // optional-data discriminator is neither 0 nor 1
  kCount,          // more elements than the remaining octets can hold, or more properties than are accepted
  kDirection,      // rdma_direction or rdma_optdir is neither CALL nor REPLY
  kOpaque,         // an opaque that ends beyond the message, or whose roundup is not zero
  kPropertyValue,  // the value of a known property has the wrong length or is out of range, or ends beyond the message
  kTrailing,       // octets behind a header that no Payload stream follows
  kNoPayload,      // no Payload stream where one has to follow
  kPayloadXid,     // the Payload stream has another XID than the header
  kPayloadType,    // the Payload stream is a Reply and the header says Call, or the other way round
  kReadList,       // a Reply with a Read list
  kPosition,       // a Read segment at a Position that its list cannot have
  kBodyChunk,      // no octets in the chunk that should hold the Payload stream
};

// header_error_str is for logs.
const char* header_error_str(HeaderError error);

HeaderError header_error(ListError error);

}  // namespace weft::rpcrdma::v2
