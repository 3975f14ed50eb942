#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "rpcrdma/chunk_lists.h"
#include "rpcrdma/xdr/xdr.h"

// The XDR of the three chunk lists, which is the same in all versions (RFC 8166 section 4.1.2, R2-7.2-3 to R2-7.2-5,
// W2-8.3-2).
namespace weft::rpcrdma {

inline constexpr std::size_t kSegmentLen = 16;
inline constexpr std::size_t kReadSegmentLen = 24;  // including its discriminator

enum class ListError : std::uint8_t {
  kNone,
  kTruncated,
  kDiscriminator,  // optional-data discriminator is neither 0 nor 1
  kCount,          // more segments than the remaining octets can hold
};

// Each parser reads one list or chunk with its discriminators, in place of what the result had, whose memory it takes.
// On an error the result holds the elements read so far.
ListError parse_read_list(xdr::XdrReader& in, std::vector<ReadSegment>& list);
ListError parse_write_list(xdr::XdrReader& in, std::vector<SegmentArray>& list);
ListError parse_reply_chunk(xdr::XdrReader& in, std::optional<SegmentArray>& chunk);

// emit_read_list writes the segments of `body` at Position Zero, and then the segments of `list`.
void emit_read_list(xdr::XdrWriter& out, std::span<const Segment> body, std::span<const ReadSegment> list);
void emit_write_list(xdr::XdrWriter& out, std::span<const SegmentArray> list);
void emit_reply_chunk(xdr::XdrWriter& out, const std::optional<SegmentArray>& chunk);

}  // namespace weft::rpcrdma
