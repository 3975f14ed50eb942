#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "rpcrdma/framing.h"
#include "rpcrdma/message.h"
#include "rpcrdma/property_exchange.h"
#include "rpcrdma/terms.h"
#include "rpcrdma/xdr/xdr.h"

namespace weft::rpcrdma {

// HeaderLengths: octets of a transport header and of the additions of its lists.
struct HeaderLengths {
  std::size_t empty = 0;         // with empty lists
  std::size_t call_chunk = 0;    // without its segments
  std::size_t read_segment = 0;  // of the Read list or the Call chunk
  std::size_t write_chunk = 0;   // without its segments
  std::size_t reply_chunk = 0;   // the same
  std::size_t segment = 0;       // of a Write or Reply chunk

  std::size_t of(const ChunkListsView& lists) const {
    std::size_t len = empty + read_segment * (lists.call_chunk.size() + lists.read_list.size());
    if (!lists.call_chunk.empty()) len += call_chunk;
    for (const SegmentArray& chunk : lists.write_list) len += of_write_chunk(chunk.size());
    if (lists.reply_chunk) len += reply_chunk + segment * lists.reply_chunk->size();
    return len;
  }
  std::size_t of_write_chunk(std::size_t num_segments) const { return write_chunk + segment * num_segments; }
};

// Profile: one version of RPC-over-RDMA as the engines need it. Plain data and functions without state. The engines
// know versions only through Profiles.
struct Profile {
  std::string_view name;      // as users choose it
  std::uint32_t version = 0;  // the word on the wire
  HeaderLengths call_lengths, reply_lengths;
  std::size_t default_threshold = 0;  // octets of one message, if neither side said otherwise
  std::size_t first_threshold = 0;    // octets of a client's messages before the first Reply; 0: the same as later
  // A Call names the handle that its Reply may invalidate. Otherwise R of RFC 8797 allows every handle of the Call.
  bool names_invalidation = false;
  // A Call that is sent again after an error keeps its XID.
  bool retries_keep_xid = false;
  // An error that names other versions grants credits like any answer.
  bool version_errors_grant = false;
  // Another version after a served Call has an error of its own.
  bool refuses_other_version = false;
  // An inline Reply returns the Reply chunk that was offered.
  bool returns_reply_chunk = true;
  // Credits count messages, and one RPC message may be several messages. Null: credits count Calls (RFC 8166 section
  // 3.3.1).
  const Framing* framing = nullptr;
  // Both ends serve Calls of the reverse direction, even without a program for them.
  bool serves_reverse = false;
  // Only transport properties raise the thresholds above the default. Otherwise private data does (RFC 8797).
  bool thresholds_by_properties = false;
  // Chunks that a peer takes that has told nothing.
  ChunkTerms default_chunks = {};
  // Reverse direction of a client that has told nothing.
  ReverseSupport default_reverse = ReverseSupport::kGeneral;

  // is_first: whether the first message of a client, on a connection whose version is not known yet, is of this
  // profile.
  bool (*is_first)(ConstBytes message);

  // message_kind classifies a message on a connection where both Calls and Replies arrive. The message may still be
  // malformed.
  MessageKind (*message_kind)(ConstBytes message);
  // receive_call judges one message that reached a responder. xid and version are set for every verdict but kDiscard.
  CallVerdict (*receive_call)(ConstBytes message, const ChunkLimits& limits, ReceivedCall& call);
  // reply_xid reads the XID of a message. Empty if the message is too short to be judged.
  std::optional<std::uint32_t> (*reply_xid)(ConstBytes message);
  // receive_reply judges one message that reached a requester, for the pending RPC with the message's XID.
  ReplyVerdict (*receive_reply)(ConstBytes message, const Offered& offered, ReceivedReply& reply);
  // other_draft names the profile of the same version that the server speaks instead, by its answer to a client's first
  // Call. It judges an answer before receive_reply does. Empty: the answer does not show that. Null: there is no other.
  std::string_view (*other_draft)(std::uint32_t xid, ConstBytes answer) = nullptr;
  // error_name is the version's name for an error, for logs.
  std::string_view (*error_name)(TransportError::Code code);
  // make_exchange makes this end's part of the exchange of transport properties. Null: the version has none.
  std::unique_ptr<PropertyExchange> (*make_exchange)(const Properties& own) = nullptr;
  // emit writes the transport header. The Payload stream follows it unless the message is external.
  void (*emit)(xdr::XdrWriter& out, const Message& message);
};

// Profiles: the profiles that one end speaks, best first; at least one. They outlive every user.
using Profiles = std::vector<const Profile*>;

}  // namespace weft::rpcrdma
