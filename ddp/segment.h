#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <variant>

#include "base/bytes.h"
#include "base/result.h"
#include "ddp/error.h"
#include "ddp/memory_table.h"
#include "requirements/violates.h"

namespace weft::ddp {

inline constexpr std::size_t kTaggedHeaderLen = 14;    // RFC 5041 section 4.2
inline constexpr std::size_t kUntaggedHeaderLen = 18;  // RFC 5041 section 4.3
inline constexpr std::uint8_t kDdpVersion = 1;

// Msn is a Message Sequence Number: a serial number modulo 2^32 that starts at 1 (RFC 5041 section 4.3).
struct Msn {
  std::uint32_t value = 1;

  // The following MSN; 0 comes after 0xffffffff (DDP-4.3-11).
  constexpr Msn next() const { return {value + 1}; }
  // Whether this MSN comes before `other`: it lies behind `other` by less than half the number space.
  constexpr bool before(Msn other) const { return value != other.value && other.value - value < 0x80000000; }
  friend constexpr bool operator==(Msn, Msn) = default;
};

// TaggedHeader and UntaggedHeader are the headers as they are on the wire, valid or not. rsvd_ulp belongs to the layer
// above (RDMAP's control octet).
struct TaggedHeader {
  bool last = true;       // L
  std::uint8_t rsvd = 0;  // 4 bits, never checked (DDP-4.1-11)
  std::uint8_t dv = kDdpVersion;
  std::uint8_t rsvd_ulp = 0;
  Stag stag = {};
  std::uint64_t to = 0;
  friend bool operator==(const TaggedHeader&, const TaggedHeader&) = default;
};

struct UntaggedHeader {
  bool last = true;
  std::uint8_t rsvd = 0;
  std::uint8_t dv = kDdpVersion;
  std::uint8_t rsvd_ulp = 0;        // bits 0 to 7 of RsvdULP
  std::uint32_t rsvd_ulp_8_39 = 0;  // RDMAP: Invalidate STag
  std::uint32_t qn = 0;
  Msn msn = {};
  std::uint32_t mo = 0;
  friend bool operator==(const UntaggedHeader&, const UntaggedHeader&) = default;
};

// Segment is one DDP segment; payload is a view into the ULPDU it was parsed from.
struct Segment {
  std::variant<TaggedHeader, UntaggedHeader> header;
  ConstBytes payload;
};

// parse_segment_wire takes a ULPDU apart and checks its length only. It fails if the ULPDU is shorter than the header
// that its T bit announces. The first form overwrites `segment`, which has no meaning after a failure.
[[nodiscard]] bool parse_segment_wire(ConstBytes ulpdu, Segment& segment);
std::optional<Segment> parse_segment_wire(ConstBytes ulpdu);

// parse_segment takes a ULPDU apart and refuses a segment that no receiver may take. A ULPDU shorter than its header is
// kLocalCatastrophic: the Terminate cannot carry a header then. A DV other than dv is kTaggedVersion or
// kUntaggedVersion. All segments of the stream have the version dv (DDP-4.1-13): 1, or 0 if both ends agreed on RDMAC's
// version (RFC 5044 appendix C). A receiver uses the first form. It is inline and fills
// the receiver's own Segment: a copy of fields that were just written costs more than the parsing
// (docs/performance.md).
inline std::optional<Error> parse_segment(ConstBytes ulpdu, std::uint8_t dv, Segment& segment) {
  if (violates("DDP-4.4-01", !parse_segment_wire(ulpdu, segment))) return Error::kLocalCatastrophic;  // DDP-A-09
  if (const auto* tagged = std::get_if<TaggedHeader>(&segment.header)) {
    if (violates("DDP-7.2-07", tagged->dv != dv)) return Error::kTaggedVersion;
  } else {
    const auto& untagged = std::get<UntaggedHeader>(segment.header);
    if (violates("DDP-7.2-13", untagged.dv != dv)) return Error::kUntaggedVersion;
  }
  return std::nullopt;
}

inline Result<Segment, Error> parse_segment(ConstBytes ulpdu, std::uint8_t dv = kDdpVersion) {
  Segment segment;
  if (const auto error = parse_segment(ulpdu, dv, segment)) return *error;
  return segment;
}

void emit_header(const TaggedHeader& header, std::span<std::uint8_t, kTaggedHeaderLen> out);
void emit_header(const UntaggedHeader& header, std::span<std::uint8_t, kUntaggedHeaderLen> out);

}  // namespace weft::ddp
