#pragma once

#include <cstdint>
#include <string_view>

#include "rpcrdma/policies.h"

// The rules that the versions of RPC-over-RDMA share, and where each version's document has them.
namespace weft::apps::dissect {

enum class RpcRule : std::uint8_t {
  kPayload,         // an RPC message follows the header
  kXid,             // it has the XID of the header
  kPosition,        // a Position is a multiple of four
  kWrap,            // no segment passes 2^64
  kReplyReadList,   // a Reply has no Read list
  kNumSegments,     // a chunk comes back with the segments that were offered
  kSegments,        // their handles and offsets come back, and no longer ones
  kNumChunks,       // all Write chunks come back
  kReplyChunk,      // the Reply chunk comes back if it was offered
  kWritten,         // a Write chunk comes back with the octets that were written
  kReplyWritten,    // so does the Reply chunk
  kRoundup,         // XDR roundup is not written into a Write chunk
  kReadChunkLen,    // a Read chunk has the length of its argument
  kArgument,        // an argument that is reduced may be
  kResult,          // so may a result
  kChunkOrder,      // the Write chunks belong to the results in their order
  kEligibleResult,  // an eligible result is in its Write chunk
  kCredits,         // no more Calls at once than credits
  kFirstReply,      // one Call until the first Reply
  kZeroCredits,     // no grant of 0
  kNotSolicited,    // no Send with Invalidate if the Call names no handle
  kInvalidated,     // it invalidates what the Call allows
  kNamedHandle,     // the handle that a Call names is in its lists
  kErrorXid,        // an error has the XID of the message that it answers
  kErrorVersion,    // an error has the version of the message that it answers
  kVersionRange,    // a version error names a range without the refused version
  kVersionError,    // a message of another version gets a version error
  kTypeError,       // only an unknown header type gets a type error, and no other error
  kBadXdr,          // a readable header is not refused as malformed
  kProcessed,       // a refused Call gets no Reply
  kReadChunks,      // a limit on Read chunks refuses only Calls with more Read chunks
  kWriteChunks,     // a limit on Write chunks refuses only Calls with more Write chunks
  kSegmentLimit,    // a limit on segments refuses only Calls with more segments
  kWriteResource,   // an error about a short Write chunk answers a Call with Write chunks
  kChunkIndex,      // the error names a Write chunk that the Call has
  kChunkLength,     // the named Write chunk is shorter than the needed length
  kReplyResource,   // the Reply chunk is shorter than the needed length
  kThreshold,       // no Send is longer than its receiver takes
  kBodyPadding,     // the Payload stream in a chunk has its XDR padding
  kInlineRoundup,   // the padding of a reduced result is not inline
  kGssControl,      // control messages of RPCSEC_GSS are not reduced
  kGssWrapped,      // wrapped arguments and results of RPCSEC_GSS are not reduced
};

// requirement_of gives the row of the version's own table. The drafts leave some rules to RFC 8166: then its row.
// Empty: the version has no rule of this kind.
std::string_view requirement_of(RpcRule rule, rpcrdma::Protocol protocol);

// refusal_of says what a responder does with a Call whose header breaks a rule.
std::string_view refusal_of(rpcrdma::Protocol protocol);

}  // namespace weft::apps::dissect
