#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rpcrdma/call.h"
#include "rpcrdma/chunk_lists.h"
#include "rpcrdma/profile.h"

namespace weft::rpcrdma {

// Answered: inputs for a Reply's form besides the Reply itself.
struct Answered {
  const ChunkLists& lists;         // of its Call
  bool may_place_results = false;  // whether results may go to Write chunks
};

// ReplyRules: limits for the Replies of one connection.
struct ReplyRules {
  HeaderLengths lengths;
  std::size_t threshold = 0;        // octets of one message, header included
  bool returns_reply_chunk = true;  // Profile::returns_reply_chunk
  std::size_t max_continued = 0;    // octets of a Payload stream that may come in several messages; 0: none may
};

// longest_reply returns the octets of the longest RPC message that a Reply to a Call with these lists can be if no
// result goes to a Write chunk.
std::size_t longest_reply(const ChunkLists& lists, const ReplyRules& rules);

// ReplyForm decides how a Reply travels (RFC 8166 sections 3.5 and 4.3): which results go to their Write chunks, and
// whether the rest is inline or in the Reply chunk. A value without I/O. Use one object for all Replies: it keeps its
// memory.
class ReplyForm {
 public:
  enum class Verdict : std::uint8_t {
    kInline,
    kExternal,   // through the Reply chunk
    kContinued,  // inline, in several messages
    kNone,       // no offered form carries the Reply
  };

  // rpc_header_len: octets of the Reply's RPC header. The lists of the Reply are filled in `lists`.
  Verdict choose(const Answered& call, const ServedReply& reply, std::size_t rpc_header_len, const ReplyRules& rules,
                 ChunkListsView& lists);

  // After kNone: the reason, for the log, and the error for the peer.
  const char* why_none() const { return why_none_; }
  const TransportError& error() const { return error_; }
  // Whether item i of the Reply goes to its Write chunk.
  bool is_reduced(std::size_t i) const { return is_reduced_[i]; }
  // The Payload stream behind its RPC header, in order; lkey 0: not registered. Padding is a piece of its own.
  const std::vector<Slice>& pieces() const { return pieces_; }
  static bool is_padding(const Slice& piece);

 private:
  void pair_items(const Answered& call, const ServedReply& reply);
  bool fill_write_chunks(const Answered& call, const ServedReply& reply, bool may_stay_inline, ChunkListsView& lists);
  Verdict choose_for_long(const Answered& call, std::size_t payload_len, std::size_t header_len,
                          const ReplyRules& rules, ChunkListsView& lists);
  std::size_t gather_payload(const ServedReply& reply);
  Verdict none(const char* why, const TransportError& error);

  const char* why_none_ = "";
  TransportError error_;
  std::vector<bool> is_reduced_;  // one for each item
  std::vector<Slice> pieces_;
};

}  // namespace weft::rpcrdma
