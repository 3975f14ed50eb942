#include "rpcrdma/v1/profile.h"

#include "rpcrdma/chunk_list_codec.h"
#include "rpcrdma/v1/header.h"
#include "rpcrdma/v1/message_kind.h"
#include "rpcrdma/v1/receive.h"

namespace weft::rpcrdma::v1 {

namespace {

constexpr HeaderLengths kLengths{.empty = kMinHeader,
                                 .read_segment = kReadSegmentLen,
                                 .write_chunk = kWriteChunkLen,
                                 .reply_chunk = kReplyChunkLen,
                                 .segment = kSegmentLen};

}  // namespace

const Profile kProfile{
    .name = "1",
    .version = kVersion,
    .call_lengths = kLengths,
    .reply_lengths = kLengths,
    .default_threshold = 1024,
    .version_errors_grant = true,
    .is_first = is_first,
    .message_kind = message_kind,
    .receive_call = receive_call,
    .reply_xid = reply_xid,
    .receive_reply = receive_reply,
    .error_name = error_name,
    .emit = emit_message,
};

}  // namespace weft::rpcrdma::v1
