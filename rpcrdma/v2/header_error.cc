#include "rpcrdma/v2/header_error.h"

namespace weft::rpcrdma::v2 {

const char* header_error_str(HeaderError error) {
  switch (error) {
    case HeaderError::kNone: return "none";
    case HeaderError::kTooShort: return "shorter than 16 bytes";
    case HeaderError::kVersion: return "unsupported version";
    case HeaderError::kHeaderType: return "unknown header type";
    case HeaderError::kErrorCode: return "unknown rdma_err";
    case HeaderError::kTruncated: return "truncated";
    case HeaderError::kDiscriminator: return "optional-data discriminator is neither 0 nor 1";
    case HeaderError::kCount: return "a count exceeds the message or the limit";
    case HeaderError::kDirection: return "direction is neither CALL nor REPLY";
    case HeaderError::kOpaque: return "malformed opaque";
    case HeaderError::kPropertyValue: return "malformed value of a property";
    case HeaderError::kTrailing: return "bytes behind the header";
    case HeaderError::kNoPayload: return "no Payload stream";
    case HeaderError::kPayloadXid: return "header XID differs from RPC XID";
    case HeaderError::kPayloadType: return "direction differs from RPC message type";
    case HeaderError::kReadList: return "Read list present in a Reply";
    case HeaderError::kPosition: return "Read segment at a wrong Position";
    case HeaderError::kBodyChunk: return "no chunk holds the Payload stream";
  }
  return "unknown";
}

HeaderError header_error(ListError error) {
  switch (error) {
    case ListError::kNone: return HeaderError::kNone;
    case ListError::kTruncated: return HeaderError::kTruncated;
    case ListError::kDiscriminator: return HeaderError::kDiscriminator;
    case ListError::kCount: return HeaderError::kCount;
  }
  return HeaderError::kTruncated;
}

}  // namespace weft::rpcrdma::v2
