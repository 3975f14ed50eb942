#include "rpcrdma/v2/call_lists.h"

#include <algorithm>
#include <utility>

#include "requirements/violates.h"

namespace weft::rpcrdma::v2 {

namespace {

using Code = TransportError::Code;

}  // namespace

std::optional<std::uint32_t> named_handle(std::uint32_t handle, const ChunkListsView& lists) {
  const auto names = [handle](const Segment& segment) { return segment.handle == handle; };
  const auto any = [&](const SegmentArray& segments) { return std::ranges::any_of(segments, names); };
  const auto read = [&](const ReadSegment& segment) { return names(segment.target); };
  const bool is_there = any(lists.call_chunk) || std::ranges::any_of(lists.read_list, read) ||
                        std::ranges::any_of(lists.write_list, any) || (lists.reply_chunk && any(*lists.reply_chunk));
  return handle != 0 && !violates("R2-7.2.3-6", !is_there) ? std::optional(handle) : std::nullopt;
}

CallVerdict take_call_lists(ChunkListsView&& lists, const ChunkLimits& limits, Code no_write_chunks,
                            ReceivedCall& call) {
  if (violates("R2-7.2.4-10 W2-7.3.1-1", limits.max_read_chunks == 0 && !lists.read_list.empty())) {
    return refuse(call, {.code = Code::kReadChunks}, "it has Read chunks");
  }
  if (violates("R2-7.2.4-14", limits.max_write_chunks == 0 && !lists.write_list.empty())) {
    return refuse(call, {.code = no_write_chunks}, "it has Write chunks");
  }
  const auto limit = [](std::size_t most) { return static_cast<std::uint32_t>(most); };
  switch (ChunkLists::validate(std::move(lists), limits, call.lists)) {
    case ChunkError::kNone: return CallVerdict::kAccept;
    case ChunkError::kTooManySegments:
      return refuse(call, {.code = Code::kSegments, .limit = limit(limits.max_segments)}, "too many segments");
    case ChunkError::kTooManyReadChunks:
      return refuse(call, {.code = Code::kReadChunks, .limit = limit(limits.max_read_chunks)}, "too many Read chunks");
    case ChunkError::kTooManyWriteChunks:
      return refuse(call, {.code = Code::kWriteChunks, .limit = limit(limits.max_write_chunks)},
                    "too many Write chunks");
    case ChunkError::kTooLong: return refuse(call, {.code = Code::kSystem}, "Read chunk too long");
    case ChunkError::kMisalignedPosition:
      return refuse(call, {.code = Code::kBadHeader}, "Position not a multiple of four");
    case ChunkError::kWraps: return refuse(call, {.code = Code::kBadHeader}, "a segment that ends beyond 2^64");
  }
  return CallVerdict::kDiscard;
}

}  // namespace weft::rpcrdma::v2
