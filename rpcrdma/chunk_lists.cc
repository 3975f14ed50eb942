#include "rpcrdma/chunk_lists.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "requirements/violates.h"

namespace weft::rpcrdma {

bool wraps(const Segment& segment) {
  constexpr std::uint64_t kLast = std::numeric_limits<std::uint64_t>::max();
  return segment.length != 0 && segment.length - 1 > kLast - segment.offset;
}

namespace {

bool any_wraps(const SegmentArray& segments) {
  return std::ranges::any_of(segments, wraps);
}

ChunkError group_read_list(const std::vector<ReadSegment>& list, const ChunkLimits& limits,
                           std::vector<Chunk>& chunks) {
  for (const ReadSegment& segment : list) {
    if (violates("R1-4.4.5-05 W2-4.5.1-2", segment.position % 4 != 0)) return ChunkError::kMisalignedPosition;
    if (violates("R1-5.5-02", wraps(segment.target))) return ChunkError::kWraps;
    // R1-4.4.5-06, R1-4.4.5-07: one chunk per Position, wherever in the list its segments stand.
    auto at = std::lower_bound(chunks.begin(), chunks.end(), segment.position,
                               [](const Chunk& chunk, std::uint32_t position) { return chunk.position < position; });
    if (at == chunks.end() || at->position != segment.position) at = chunks.insert(at, Chunk{segment.position, 0, {}});
    at->length += segment.target.length;
    at->segments.push_back(segment.target);
  }
  const bool are_too_many = chunks.size() > limits.max_read_chunks;
  return violates("U1-6.4.2-07 R2-7.2.4-9 W2-7.3.1-1", are_too_many) ? ChunkError::kTooManyReadChunks
                                                                     : ChunkError::kNone;
}

// R1-4.4.4-02: lengths are sums of segments. Chunks to read are held here, and are therefore bounded.
ChunkError check_lengths(const Chunk* call_chunk, const std::vector<Chunk>& read_chunks, const ChunkLimits& limits) {
  std::uint64_t sum = call_chunk != nullptr ? call_chunk->length : 0;
  if (violates("R1-4.4.4-03", sum > limits.max_message)) return ChunkError::kTooLong;
  for (const Chunk& chunk : read_chunks) {
    if (violates("R1-4.4.4-03", chunk.length > limits.max_item)) return ChunkError::kTooLong;
    sum += chunk.length;
  }
  return violates("R1-10.1-03", sum > limits.max_read_list) ? ChunkError::kTooLong : ChunkError::kNone;
}

Chunk make_chunk(SegmentArray segments) {
  const std::uint64_t length = total_length(segments);
  return Chunk{0, length, std::move(segments)};
}

}  // namespace

void ChunkListsView::split_position_zero() {
  if (read_list.empty()) return;
  for (const ReadSegment& segment : read_list) {
    if (segment.position == 0) call_chunk.push_back(segment.target);
  }
  std::erase_if(read_list, [](const ReadSegment& segment) { return segment.position == 0; });
}

std::uint64_t total_length(std::span<const Segment> segments) {
  std::uint64_t sum = 0;
  for (const Segment& segment : segments) sum += segment.length;
  return sum;
}

ChunkError ChunkLists::validate(ChunkListsView view, const ChunkLimits& limits, ChunkLists& out) {
  ChunkLists lists;
  const std::size_t num_to_read = view.call_chunk.size() + view.read_list.size();
  if (violates("U1-6.4.2-07 R2-7.2.4-16", num_to_read > limits.max_segments)) {
    return ChunkError::kTooManySegments;
  }
  if (violates("R1-5.5-02", any_wraps(view.call_chunk))) return ChunkError::kWraps;
  if (!view.call_chunk.empty()) lists.call_chunk_ = make_chunk(std::move(view.call_chunk));
  ChunkError error = group_read_list(view.read_list, limits, lists.read_chunks_);
  if (error == ChunkError::kNone) error = check_lengths(lists.call_chunk(), lists.read_chunks_, limits);
  if (error != ChunkError::kNone) return error;

  if (violates("U1-6.4.2-07 R2-7.2.4-13 W2-7.3.2-1", view.write_list.size() > limits.max_write_chunks)) {
    return ChunkError::kTooManyWriteChunks;
  }
  std::size_t num_segments = 0;
  for (const SegmentArray& array : view.write_list) num_segments += array.size();
  if (violates("U1-6.4.2-07 R2-7.2.4-16", num_segments > limits.max_segments)) {
    return ChunkError::kTooManySegments;
  }
  const std::size_t num_reply_segments = view.reply_chunk ? view.reply_chunk->size() : 0;
  if (violates("U1-6.4.2-07 R2-7.2.4-16", num_reply_segments > limits.max_segments)) {
    return ChunkError::kTooManySegments;
  }

  const bool write_wraps = std::ranges::any_of(view.write_list, any_wraps);
  if (violates("R1-5.5-02", write_wraps || (view.reply_chunk && any_wraps(*view.reply_chunk)))) {
    return ChunkError::kWraps;
  }

  lists.write_chunks_.reserve(view.write_list.size());
  for (SegmentArray& array : view.write_list) lists.write_chunks_.push_back(make_chunk(std::move(array)));
  if (view.reply_chunk) lists.reply_chunk_ = make_chunk(std::move(*view.reply_chunk));
  out = std::move(lists);
  return ChunkError::kNone;
}

}  // namespace weft::rpcrdma
