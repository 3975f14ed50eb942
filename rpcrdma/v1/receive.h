#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "rpcrdma/bytes.h"
#include "rpcrdma/chunk_lists.h"
#include "rpcrdma/v1/header.h"

// What a version 1 receiver does with a message, before anything that needs the RPC program (RFC 8166 section 4.5).
// Functions without state, so that every malformed message can be held against them.
namespace weft::rpcrdma::v1 {

enum class CallVerdict : std::uint8_t {
  kAccept,
  kDiscard,   // no answer
  kErrVers,   // RDMA_ERROR ERR_VERS
  kErrChunk,  // RDMA_ERROR ERR_CHUNK
};

// ReceivedCall: a Call whose header is in order.
struct ReceivedCall {
  std::uint32_t xid = 0;
  std::uint32_t vers = 0;    // for RDMA_ERROR: the version word as it came
  std::uint32_t credit = 0;  // requested
  bool long_call = false;    // RDMA_NOMSG: the Payload stream is in lists.position_zero()
  ChunkLists lists;
  ConstBytes payload;    // RDMA_MSG: views the message
  const char* why = "";  // for logs, unless kAccept
};

// receive_call judges one Send that reached a responder. xid and vers are set for every verdict but kDiscard.
CallVerdict receive_call(ConstBytes message, const ChunkLimits& limits, ReceivedCall& call);

enum class ReplyVerdict : std::uint8_t {
  kDiscard,    // no such RPC, or a header that is not to be trusted
  kReply,      // RDMA_MSG: Payload stream inline
  kLongReply,  // RDMA_NOMSG: Payload stream in the Reply chunk
  kErrVers,
  kErrChunk,
};

// Offered: the lists that a requester put into its Call.
struct Offered {
  std::span<const SegmentArray> write_list;
  const SegmentArray* reply_chunk = nullptr;
};

// ReceivedReply: a Reply whose header agrees with what was offered.
struct ReceivedReply {
  std::uint32_t xid = 0;
  std::uint32_t credit = 0;           // granted
  Header header;                      // lists with the lengths that the responder filled
  ConstBytes payload;                 // kReply: views the message
  std::uint64_t reply_chunk_len = 0;  // kLongReply: octets of the Payload stream
  const char* why = "";               // for logs, if kDiscard
};

// reply_xid reads the XID of a message that is long enough to be looked at; nothing otherwise (RFC 8166 section 4.5,
// and 20 octets for RDMA_ERROR ERR_CHUNK).
std::optional<std::uint32_t> reply_xid(ConstBytes message);

// receive_reply judges one Send that reached a requester, for the pending RPC with the message's XID.
ReplyVerdict receive_reply(ConstBytes message, const Offered& offered, ReceivedReply& reply);

}  // namespace weft::rpcrdma::v1
