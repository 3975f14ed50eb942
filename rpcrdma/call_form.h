#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "rpcrdma/call.h"
#include "rpcrdma/profile.h"
#include "rpcrdma/rpc_message.h"

// Chooses the form of a Call and the chunks that it offers for its Reply. The choice depends on lengths alone, before
// any memory is registered (RFC 8166 sections 3.5, 4.3.2 and 4.3.3).
namespace weft::rpcrdma {

// Octets in all buffers of an item.
template <typename Buffers>
std::size_t len_of(const Buffers& buffers) {
  std::size_t len = 0;
  for (const auto& buffer : buffers) len += buffer.size();
  return len;
}

// max_segment: octets of the longest segment.
inline std::size_t num_segments_of(std::size_t len, std::size_t max_segment) {
  return len / max_segment + (len % max_segment != 0 ? 1 : 0);
}
template <typename Buffers>
std::size_t num_segments_of(const Buffers& buffers, std::size_t max_segment) {
  std::size_t num = 0;
  for (const auto& buffer : buffers) num += num_segments_of(buffer.size(), max_segment);
  return num;
}

// Octets of the longest Call in several messages that only the round trip speaks for. A server takes twice these octets
// while the parts arrive, and gives every connection 64 KiB before it asks what others need.
inline constexpr std::size_t kMaxTimelyCall = 32 << 10;

// CallRules: limits for the Calls of one connection.
struct CallRules {
  HeaderLengths call_lengths, reply_lengths;
  std::size_t call_threshold = 0;  // octets of one message, header included
  std::size_t reply_threshold = 0;
  ChunkUse chunks = {};
  ChunkTerms chunk_terms = {};
  bool short_only = false;  // no chunks at all (RFC 8167 section 5.3)
  // ChunkUse has the meaning. part_header_len: octets of a message before its part of the Payload stream if another
  // message continues it.
  std::optional<std::size_t> max_continued_call = 0, max_continued_reply = 0;
  std::size_t part_header_len = 0;
  // Without max_continued_call: a Call of at most so many messages, and of at most kMaxTimelyCall octets, goes in
  // several messages because its chunk would take a round trip more. 0: the same as 2, whatever the round trip is.
  std::size_t max_timely_messages = 0;
  std::size_t max_unpredictable_reply = 0;  // the same for Replies without a predictable length
  // Whether a message goes in parts where its chunks have more segments than the peer takes.
  bool may_replace_chunks = false;

  // Segments of the Read chunk of an item.
  std::size_t num_read_segments(const GatheredBytes& data) const;
  // Segments of a chunk over these buffers.
  template <typename Buffers>
  std::size_t num_segments(const Buffers& buffers) const {
    return num_segments_of(buffers, chunk_terms.max_segment);
  }
};

// ReplyOffer: chunks that a Call offers for its Reply.
struct ReplyOffer {
  std::size_t num_writes = 0;       // Write chunks, for the first result items
  std::size_t reply_chunk_len = 0;  // octets; 0 for none
  std::size_t max_reply = 0;        // octets of the longest Reply without chunks, if its length can be predicted
};

// min_reply_chunk: octets that the Reply chunk must have, because a shorter one was not enough; 0: no Reply chunk is
// required.
ReplyOffer choose_reply_offer(const CallSpec& spec, std::size_t min_reply_chunk, const CallRules& rules);

// CallForm: all inline, items as Read chunks, the Payload stream without the reduced items through the Call chunk, or
// inline in several messages.
struct CallForm {
  // A piece of an external or continued Payload stream: part of an item or, if `octets` is null, of `head`.
  struct Piece {
    const std::uint8_t* octets = nullptr;
    std::size_t offset = 0;  // in head
    std::size_t len = 0;
  };

  bool external = false;
  bool continued = false;
  std::uint64_t reduced = 0;  // items that have a Read chunk, one bit for each item
  std::vector<Piece> pieces;  // if external: the segments of the Call chunk. If continued: the Payload stream
  // The reason why the Call has no form; empty if it has one.
  std::string_view refusal;

  bool is_reduced(std::size_t item) const { return (reduced >> item & 1) != 0; }
};

// head: receives the octets of an external or continued Payload stream besides the items, or the whole external stream
// if the items have too many segments. The form assumes a header that contains the offer for the Reply.
CallForm choose_call_form(const CallSpec& spec, const CallHeaderView& rpc, const ReplyOffer& offer,
                          const CallRules& rules, std::vector<std::uint8_t>& head);

}  // namespace weft::rpcrdma
