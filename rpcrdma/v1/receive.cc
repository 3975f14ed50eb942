#include "rpcrdma/v1/receive.h"

#include <utility>

#include "requirements/violates.h"
#include "rpcrdma/returned_lists.h"
#include "rpcrdma/v1/header.h"

namespace weft::rpcrdma::v1 {

namespace {

using Code = TransportError::Code;

CallVerdict bad_header(ReceivedCall& call, const char* why) {
  return refuse(call, {.code = Code::kBadHeader}, why);
}

// The first two words of the Payload stream are the RPC's XID and msg_type.
CallVerdict check_payload(ReceivedCall& call) {
  xdr::XdrReader in(call.payload);
  std::uint32_t xid = 0;
  std::uint32_t type = 0;
  if (!in.u32(xid)) return bad_header(call, "RDMA_MSG without a Payload stream");
  if (violates("R1-5.5.2-04", xid != call.xid)) return bad_header(call, "header XID differs from RPC XID");
  if (violates("R1-7.1.4-02", in.u32(type) && type == 1)) return discard(call, "a Reply reached a responder");
  return CallVerdict::kAccept;
}

}  // namespace

CallVerdict receive_call(ConstBytes message, const ChunkLimits& limits, ReceivedCall& call) {
  if (violates("R1-5.5-01", message.size() < kMinHeader)) return discard(call, "shorter than 28 bytes");
  xdr::XdrReader in(message);
  Header header;
  const HeaderError error = parse_header(in, header);
  call.xid = header.xid;
  call.version = header.vers;
  call.credit = header.credit;
  if (violates("R1-5.5.1-01", header.vers != kVersion)) {  // before everything else
    return refuse(call, {.code = Code::kVersion}, "unsupported version");
  }
  if (violates("R1-5.2.4-04", header.proc == Proc::kError && error != HeaderError::kProc)) {
    return discard(call, "RDMA_ERROR reached a responder");
  }
  if (violates("R1-5.5.2-01", error != HeaderError::kNone)) return bad_header(call, header_error_str(error));
  if (violates("R1-5.6.2-02", header.proc == Proc::kDone)) return discard(call, "RDMA_DONE");
  if (violates("R1-5.6.1-02", header.proc == Proc::kMsgp))
    return refuse(call, {.code = Code::kMessageType}, "RDMA_MSGP");

  header.lists.split_position_zero();
  switch (ChunkLists::validate(std::move(header.lists), limits, call.lists)) {
    case ChunkError::kNone: break;
    case ChunkError::kTooManySegments: return refuse(call, {.code = Code::kSegments}, "too many segments");
    case ChunkError::kTooManyReadChunks: return refuse(call, {.code = Code::kReadChunks}, "too many chunks");
    case ChunkError::kTooManyWriteChunks: return refuse(call, {.code = Code::kWriteChunks}, "too many chunks");
    case ChunkError::kMisalignedPosition: return bad_header(call, "Position not a multiple of four");
    case ChunkError::kTooLong: return refuse(call, {.code = Code::kSystem}, "Read chunk too long");
    case ChunkError::kWraps: return bad_header(call, "a segment that ends beyond 2^64");
  }
  call.external = header.proc == Proc::kNomsg;
  const Chunk* position_zero = call.lists.call_chunk();
  if (call.external) {
    // Only a Position Zero Read chunk can hold a Call. Octets behind the header are ignored.
    if (violates("R1-5.2.4-02", position_zero == nullptr || position_zero->length == 0)) {
      return bad_header(call, "RDMA_NOMSG without a Position Zero Read chunk");
    }
    return CallVerdict::kAccept;
  }
  // The message has two candidates for the Payload stream, and no engine can use it.
  if (violates("R1-4.5.3-03", position_zero != nullptr)) {
    return bad_header(call, "RDMA_MSG with a Position Zero Read chunk");
  }
  call.payload = in.rest();
  return check_payload(call);
}

std::optional<std::uint32_t> reply_xid(ConstBytes message) {
  xdr::XdrReader in(message);
  std::uint32_t xid = 0;
  std::uint32_t proc = 0;
  if (message.size() < kErrChunkLen) return {};
  if (!in.u32(xid) || !in.skip(8) || !in.u32(proc)) return {};
  // ERR_CHUNK is 20 octets long.
  const bool is_error = proc == static_cast<std::uint32_t>(Proc::kError);
  if (violates("R1-5.5-01", message.size() < kMinHeader && !is_error)) return {};
  return xid;
}

ReplyVerdict receive_reply(ConstBytes message, const Offered& offered, ReceivedReply& reply) {
  if (!reply_xid(message)) return discard(reply, "too short");
  xdr::XdrReader in(message);
  HeaderWords header;
  const HeaderError error = parse_header(in, header, reply.lists);
  reply.xid = header.xid;
  reply.credit = header.credit;
  if (violates("R1-5.2.2-01", header.vers != kVersion)) return discard(reply, "unsupported version");
  // R1-5.5-08
  if (violates("R1-5.5-03", error != HeaderError::kNone)) return discard(reply, header_error_str(error));
  if (violates("R1-5.6.1-03", header.proc == Proc::kMsgp)) return discard(reply, "RDMA_MSGP");
  if (violates("R1-5.6.2-02", header.proc == Proc::kDone)) return discard(reply, "RDMA_DONE");
  if (header.proc == Proc::kError) {
    reply.error = {.code = header.err == Err::kVers ? Code::kVersion : Code::kChunk,
                   .low = header.vers_low,
                   .high = header.vers_high};
    return ReplyVerdict::kError;
  }
  if (const char* why = disagreement(reply.lists, offered); why != nullptr) return discard(reply, why);

  reply.reply_chunk_len = reply.lists.reply_chunk ? total_length(*reply.lists.reply_chunk) : 0;
  if (header.proc == Proc::kNomsg) {
    if (violates("R1-5.2.4-02", reply.reply_chunk_len == 0)) {
      return discard(reply, "RDMA_NOMSG Reply whose Reply chunk holds nothing");
    }
    return ReplyVerdict::kExternalReply;
  }
  if (violates("R1-5.3.3-05", reply.reply_chunk_len != 0)) {
    return discard(reply, "RDMA_MSG Reply with bytes in the Reply chunk");
  }
  reply.payload = in.rest();
  xdr::XdrReader payload(reply.payload);
  std::uint32_t xid = 0;
  std::uint32_t type = 0;
  if (!payload.u32(xid) || !payload.u32(type)) return discard(reply, "RDMA_MSG without a Payload stream");
  if (violates("R1-5.2.1-01", xid != header.xid)) return discard(reply, "header XID differs from RPC XID");
  if (violates("R1-7.1.4-02", type != 1)) return discard(reply, "a Call reached a requester");
  return ReplyVerdict::kReply;
}

}  // namespace weft::rpcrdma::v1
