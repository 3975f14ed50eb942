#include "rpcrdma/chunk_list_codec.h"

#include "requirements/violates.h"

namespace weft::rpcrdma {

namespace {

ListError parse_discriminator(xdr::XdrReader& in, bool& present) {
  std::uint32_t word = 0;
  if (!in.u32(word)) return ListError::kTruncated;
  present = word == 1;
  return violates("R1-5.3-01", word > 1) ? ListError::kDiscriminator : ListError::kNone;
}

[[nodiscard]] bool parse_segment(xdr::XdrReader& in, Segment& segment) {
  return in.u32(segment.handle) && in.u32(segment.length) && in.u64(segment.offset);
}

ListError parse_segments(xdr::XdrReader& in, SegmentArray& segments) {
  std::uint32_t count = 0;
  segments.clear();
  if (!in.u32(count)) return ListError::kTruncated;
  // The available octets bound the allocation for a false count.
  if (violates("R1-5.5.2-01", count > in.remaining() / kSegmentLen)) return ListError::kCount;
  segments.resize(count);
  for (Segment& segment : segments) {
    if (!parse_segment(in, segment)) return ListError::kTruncated;
  }
  return ListError::kNone;
}

void emit_segment(xdr::XdrWriter& out, const Segment& segment) {
  out.u32(segment.handle);
  out.u32(segment.length);
  out.u64(segment.offset);
}

void emit_segments(xdr::XdrWriter& out, const SegmentArray& segments) {
  out.u32(static_cast<std::uint32_t>(segments.size()));
  for (const Segment& segment : segments) emit_segment(out, segment);
}

void emit_read_segment(xdr::XdrWriter& out, std::uint32_t position, const Segment& segment) {
  out.boolean(true);
  out.u32(position);
  emit_segment(out, segment);
}

}  // namespace

ListError parse_read_list(xdr::XdrReader& in, std::vector<ReadSegment>& list) {
  list.clear();
  for (;;) {
    bool present = false;
    if (const auto error = parse_discriminator(in, present); error != ListError::kNone) return error;
    if (!present) return ListError::kNone;
    ReadSegment segment;
    if (!in.u32(segment.position) || !parse_segment(in, segment.target)) return ListError::kTruncated;
    list.push_back(segment);
  }
}

namespace {

// num: how many chunks are there. `list` may have more.
ListError parse_chunks(xdr::XdrReader& in, std::vector<SegmentArray>& list, std::size_t& num) {
  for (num = 0;;) {
    bool present = false;
    if (const auto error = parse_discriminator(in, present); error != ListError::kNone) return error;
    if (!present) return ListError::kNone;
    if (num == list.size()) list.emplace_back();
    if (const auto error = parse_segments(in, list[num++]); error != ListError::kNone) return error;
  }
}

}  // namespace

ListError parse_write_list(xdr::XdrReader& in, std::vector<SegmentArray>& list) {
  std::size_t num = 0;
  const ListError error = parse_chunks(in, list, num);
  list.resize(num);
  return error;
}

ListError parse_reply_chunk(xdr::XdrReader& in, std::optional<SegmentArray>& chunk) {
  bool present = false;
  const ListError error = parse_discriminator(in, present);
  if (!present) chunk.reset();
  if (error != ListError::kNone || !present) return error;
  return parse_segments(in, chunk ? *chunk : chunk.emplace());
}

void emit_read_list(xdr::XdrWriter& out, std::span<const Segment> body, std::span<const ReadSegment> list) {
  for (const Segment& segment : body) emit_read_segment(out, 0, segment);
  for (const ReadSegment& segment : list) emit_read_segment(out, segment.position, segment.target);
  out.boolean(false);
}

void emit_write_list(xdr::XdrWriter& out, std::span<const SegmentArray> list) {
  for (const SegmentArray& array : list) {
    out.boolean(true);
    emit_segments(out, array);
  }
  out.boolean(false);
}

void emit_reply_chunk(xdr::XdrWriter& out, const std::optional<SegmentArray>& chunk) {
  out.boolean(chunk.has_value());
  if (chunk) emit_segments(out, *chunk);
}

}  // namespace weft::rpcrdma
