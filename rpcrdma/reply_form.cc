#include "rpcrdma/reply_form.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "requirements/violates.h"
#include "rpcrdma/framing.h"
#include "rpcrdma/gather.h"
#include "rpcrdma/xdr/xdr.h"

namespace weft::rpcrdma {

namespace {

// Copies the Call's Write list and Reply chunk to the Reply: same segments, none filled yet (R1-4.4.6-04, R1-5.3.3-05).
void return_unused(const ChunkLists& lists, ChunkListsView& view) {
  const auto copy = [](const Chunk& chunk) {
    SegmentArray segments = chunk.segments;
    for (Segment& segment : segments) segment.length = 0;
    return segments;
  };
  view.clear();
  for (const Chunk& chunk : lists.write_chunks()) view.write_list.push_back(copy(chunk));
  if (lists.reply_chunk() != nullptr) view.reply_chunk = copy(*lists.reply_chunk());
}

// Fills `returned` with the part of each segment that `len` octets take, in order (R1-4.4.6-03).
void fill_segments(const SegmentArray& offered, std::size_t len, SegmentArray& returned) {
  for (std::size_t i = 0; i < offered.size(); ++i) {
    returned[i].length = static_cast<std::uint32_t>(std::min<std::size_t>(offered[i].length, len));
    len -= returned[i].length;
  }
}

}  // namespace

std::size_t longest_reply(const ChunkLists& lists, const ReplyRules& rules) {
  if (lists.empty()) return std::max(rules.threshold - rules.lengths.empty, rules.max_continued);
  ChunkListsView returned;
  return_unused(lists, returned);
  const std::size_t external_header_len = rules.lengths.of(returned);
  std::size_t longest = 0;
  if (lists.reply_chunk() != nullptr && external_header_len <= rules.threshold) longest = lists.reply_chunk()->length;
  if (!rules.returns_reply_chunk) returned.reply_chunk.reset();
  const std::size_t header_len = rules.lengths.of(returned);
  if (header_len <= rules.threshold) longest = std::max(longest, rules.threshold - header_len);
  returned.reply_chunk.reset();
  if (rules.lengths.of(returned) + kLeastLast <= rules.threshold) longest = std::max(longest, rules.max_continued);
  return longest;
}

bool ReplyForm::is_padding(const Slice& piece) {
  return piece.octets.data() == kZeros;
}

// First items go to their Write chunks (R1-5.3.2-02), then the rest is measured (R1-4.5.3-05).
ReplyForm::Verdict ReplyForm::choose(const Answered& call, const ServedReply& reply, std::size_t rpc_header_len,
                                     const ReplyRules& rules, ChunkListsView& lists) {
  error_ = {.code = TransportError::Code::kReplyResource};
  return_unused(call.lists, lists);
  pair_items(call, reply);
  if (!fill_write_chunks(call, reply, rules.max_continued != 0, lists)) return Verdict::kNone;
  std::optional<SegmentArray> unused;
  if (!rules.returns_reply_chunk) std::swap(unused, lists.reply_chunk);
  const std::size_t header_len = rules.lengths.of(lists);
  const std::size_t payload_len = rpc_header_len + gather_payload(reply);
  if (violates("R1-5.2.4-05", header_len > rules.threshold)) {
    return none("its chunk lists leave no room for a Reply", {.code = TransportError::Code::kSystem});
  }
  if (payload_len <= rules.threshold - header_len) return Verdict::kInline;
  if (!rules.returns_reply_chunk) std::swap(unused, lists.reply_chunk);
  return choose_for_long(call, payload_len, header_len, rules, lists);
}

// R1-4.5.3-06, W2-6.6.3-3: the rest goes through the Reply chunk if it fits there. header_len: octets of the header of
// an inline Reply.
ReplyForm::Verdict ReplyForm::choose_for_long(const Answered& call, std::size_t payload_len, std::size_t header_len,
                                              const ReplyRules& rules, ChunkListsView& lists) {
  const Chunk* reply_chunk = call.lists.reply_chunk();
  const bool is_short = violates("R1-5.5.3-02", reply_chunk == nullptr || payload_len > reply_chunk->length);
  if (!is_short && rules.lengths.of(lists) <= rules.threshold) {
    fill_segments(reply_chunk->segments, payload_len, *lists.reply_chunk);
    return Verdict::kExternal;
  }
  // W2-6.6.4-1
  if (payload_len <= rules.max_continued && header_len + kLeastLast <= rules.threshold) {
    lists.reply_chunk.reset();
    return Verdict::kContinued;
  }
  if (error_.code == TransportError::Code::kWriteResource) return Verdict::kNone;  // W2-6.6.4-2
  return none(reply_chunk == nullptr ? "its Reply is too long to be inline, and it has no Reply chunk"
                                     : "its Reply is longer than its Reply chunk",
              {.code = TransportError::Code::kReplyResource, .needed = static_cast<std::uint32_t>(payload_len)});
}

ReplyForm::Verdict ReplyForm::none(const char* why, const TransportError& error) {
  why_none_ = why;
  error_ = error;
  return Verdict::kNone;
}

// Decides which items of a Reply have a Write chunk: the n-th chunk belongs to the n-th result that can have an item
// (RFC 8267 section 6.4.1, U1-6.4.1-03), which is the one that the service numbered so. A chunk is for one item.
void ReplyForm::pair_items(const Answered& call, const ServedReply& reply) {
  is_reduced_.assign(reply.items.size(), false);
  if (!call.may_place_results) return;
  const auto chunks = call.lists.write_chunks();
  std::size_t next = 0;
  for (std::size_t i = 0; i < reply.items.size(); ++i) {
    const std::size_t operation = reply.items[i].operation;
    // U1-6.4.1-05, U1-6.4.1-07: results without a chunk, or with an empty one, stay inline.
    is_reduced_[i] = operation >= next && operation < chunks.size() && !chunks[operation].segments.empty();
    if (is_reduced_[i]) next = operation + 1;
  }
}

// False: an item does not fit its chunk (U1-3.1-08: before anything is written) and may not stay inline. R1-4.4.6.1-02:
// a chunk gets the octets and no roundup. The chunk of an item without octets counts as used.
bool ReplyForm::fill_write_chunks(const Answered& call, const ServedReply& reply, bool may_stay_inline,
                                  ChunkListsView& lists) {
  for (std::size_t i = 0; i < reply.items.size(); ++i) {
    if (!is_reduced_[i]) continue;
    const ResultItem& item = reply.items[i];
    const Chunk& chunk = call.lists.write_chunks()[item.operation];
    const std::size_t len = item.data.octets.size();
    if (violates("U1-3.1-08", len > chunk.length)) {
      none("a result is longer than its Write chunk", {.code = TransportError::Code::kWriteResource,
                                                       .chunk = static_cast<std::uint32_t>(item.operation) + 1,
                                                       .needed = static_cast<std::uint32_t>(len)});
      if (!may_stay_inline) return false;
      is_reduced_[i] = false;
      continue;
    }
    fill_segments(chunk.segments, len, lists.write_list[item.operation]);
  }
  return true;
}

// Lays out the Payload stream behind its RPC header: the results with the items that are not reduced between them.
// Returns its length in octets.
std::size_t ReplyForm::gather_payload(const ServedReply& reply) {
  pieces_.clear();
  std::size_t item = 0;
  std::size_t done = 0;  // octets of the results
  std::size_t total = 0;
  const auto add = [this, &total](Slice piece) {
    total += piece.octets.size();
    if (!piece.octets.empty()) pieces_.push_back(piece);
  };
  const auto add_part = [&](Slice part, bool is_last) {
    for (; item < reply.items.size(); ++item) {
      const ResultItem& next = reply.items[item];
      if (is_reduced_[item]) continue;
      if (!is_last && next.position >= done + part.octets.size()) break;
      const std::size_t before = std::min(next.position - std::min(next.position, done), part.octets.size());
      add({part.octets.first(before), part.lkey});
      part.octets = part.octets.subspan(before);
      done += before;
      add(next.data);
      add({ConstBytes(kZeros).first(xdr::padding(next.data.octets.size())), 0});
    }
    done += part.octets.size();
    add(part);
  };
  add_part({reply.results, 0}, reply.more_results.empty());
  for (std::size_t i = 0; i < reply.more_results.size(); ++i) {
    add_part(reply.more_results[i], i + 1 == reply.more_results.size());
  }
  return total;
}

}  // namespace weft::rpcrdma
