#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/bytes.h"
#include "rpcrdma/chunk_lists.h"
#include "rpcrdma/transport_error.h"

// Transport messages as the engines see them, independent of the version on the wire. A Profile turns them into octets
// and back.
namespace weft::rpcrdma {

// MessageKind: which engine of a connection a message is for.
enum class MessageKind : std::uint8_t {
  kCall,     // for the responder: its credit word is a request
  kReply,    // for the requester: its credit word is a grant
  kUnclear,  // the message does not tell: its credit word means nothing
};

// Message: a transport header that is to be sent. The Payload stream follows it unless it is `external`. The Call chunk
// holds the Payload stream of an external Call, the Reply chunk the Payload stream of an external Reply.
struct Message {
  enum class Type : std::uint8_t { kCall, kReply, kError };

  Type type = Type::kCall;
  std::uint32_t xid = 0;
  std::uint32_t version = 0;  // kError: the version of the Call, as it came
  std::uint32_t credit = 0;
  std::uint32_t inv_handle =
      0;  // kCall: the handle that the Reply may invalidate (Profile::names_invalidation); 0: none
  bool external = false;
  ChunkListsView lists;  // kCall, kReply
  TransportError error;  // kError
};

// ReceivedCall: a Call that reached a responder.
struct ReceivedCall {
  std::uint32_t xid = 0;
  std::uint32_t version = 0;  // for an error answer: the word as it came
  std::uint32_t credit = 0;   // requested
  // The handle of the lists that the Reply may invalidate (Profile::names_invalidation).
  std::optional<std::uint32_t> inv_handle;
  bool external = false;  // the Payload stream is in lists.call_chunk()
  ChunkLists lists;
  ConstBytes payload;    // if not external: views the message
  TransportError error;  // CallVerdict::kError
  const char* why = "";  // for logs, unless kAccept
};

enum class CallVerdict : std::uint8_t {
  kAccept,
  kDiscard,  // no answer
  kError,    // answered by ReceivedCall::error
};

inline CallVerdict discard(ReceivedCall& call, const char* why) {
  call.why = why;
  return CallVerdict::kDiscard;
}

inline CallVerdict refuse(ReceivedCall& call, const TransportError& error, const char* why) {
  call.error = error;
  call.why = why;
  return CallVerdict::kError;
}

// Offered: the lists that a requester put into its Call.
struct Offered {
  std::span<const SegmentArray> write_list;
  const SegmentArray* reply_chunk = nullptr;
};

// ReceivedReply: a Reply that reached a requester, whose header agrees with the offered lists. Use one object for all
// Replies: its lists keep their memory.
struct ReceivedReply {
  std::uint32_t xid = 0;
  std::uint32_t credit = 0;           // granted
  ChunkListsView lists;               // with the lengths that the responder filled
  ConstBytes payload;                 // kReply: views the message
  std::uint64_t reply_chunk_len = 0;  // kExternalReply: octets of the Payload stream
  TransportError error;               // kError
  const char* why = "";               // for logs, if kDiscard
};

enum class ReplyVerdict : std::uint8_t {
  kDiscard,        // no pending RPC has its XID, or its header breaks a rule
  kReply,          // the Payload stream is inline
  kExternalReply,  // the Payload stream is in the Reply chunk
  kError,
};

inline ReplyVerdict discard(ReceivedReply& reply, const char* why) {
  reply.why = why;
  return ReplyVerdict::kDiscard;
}

}  // namespace weft::rpcrdma
