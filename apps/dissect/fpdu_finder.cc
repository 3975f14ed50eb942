#include "apps/dissect/fpdu_finder.h"

#include <algorithm>
#include <variant>

#include "apps/dissect/markers.h"
#include "ddp/segment.h"
#include "mpa/crc32c.h"
#include "mpa/fpdu.h"
#include "mpa/fpdu_reader.h"
#include "rdmap/header.h"

namespace weft::apps::dissect {

namespace {

// ULPDU_Length and the longer one of the headers.
constexpr std::size_t kFrontLen = mpa::kUlpduLengthLen + ddp::kUntaggedHeaderLen;

// Whether a ULPDU that begins like this can be from a working sender.
bool is_plausible(ConstBytes ulpdu) {
  const auto segment = ddp::parse_segment_wire(ulpdu);
  if (!segment) return false;
  if (const auto* tagged = std::get_if<ddp::TaggedHeader>(&segment->header)) {
    const auto control = rdmap::parse_control(tagged->rsvd_ulp);
    return tagged->dv == ddp::kDdpVersion && tagged->rsvd == 0 && control.rv == rdmap::kRdmapVersion &&
           control.opcode < rdmap::kNumOpcodes7306 && rdmap::is_tagged(rdmap::Opcode{control.opcode});
  }
  const auto& untagged = std::get<ddp::UntaggedHeader>(segment->header);
  const auto control = rdmap::parse_control(untagged.rsvd_ulp);
  return untagged.dv == ddp::kDdpVersion && untagged.rsvd == 0 && control.rv == rdmap::kRdmapVersion &&
         control.opcode < rdmap::kNumOpcodes7306 && untagged.qn == rdmap::queue_of(rdmap::Opcode{control.opcode});
}

bool begins_fpdu(ConstBytes front) {
  return ulpdu_length(front) >= ddp::kTaggedHeaderLen && is_plausible(front.subspan(mpa::kUlpduLengthLen));
}

// The length on the wire of the FPDU whose front is here.
std::size_t wire_len(ConstBytes octets, const mpa::MarkerLayout& layout) {
  const std::size_t length_at = layout.stream_len(mpa::kUlpduLengthLen) - mpa::kUlpduLengthLen;
  return layout.stream_len(mpa::fpdu_len(ulpdu_length(octets.subspan(length_at))));
}

// Whether the first Marker inside the FPDU of this length can stand at `at`: each FPDUPTR is its Marker's own distance.
bool can_mark(ConstBytes octets, std::size_t len, std::size_t at) {
  for (; at < len && at + mpa::kMarkerLen <= octets.size(); at += mpa::kMarkerSpacing, len += mpa::kMarkerLen) {
    const auto marker = octets.subspan(at).first<mpa::kMarkerLen>();
    if (marker[0] != 0 || marker[1] != 0 || mpa::parse_fpduptr(marker) != at) return false;
  }
  return true;
}

// The first Marker inside the FPDU that begins here. 0: there is none. Octets of the ULPDU can look like a Marker, and
// the CRC covers the same octets wherever the Markers are: kSeveral tells that the place is not certain.
constexpr std::size_t kSeveral = SIZE_MAX;
std::size_t first_marker(ConstBytes octets) {
  const std::size_t len = mpa::fpdu_len(ulpdu_length(octets));
  const std::size_t end = std::min({octets.size() - mpa::kMarkerLen + 1, mpa::kMarkerSpacing, len});
  std::size_t found = 0;
  for (std::size_t at = mpa::kMarkerLen; at < end; at += mpa::kMarkerLen) {
    if (!can_mark(octets, len, at)) continue;
    if (found != 0) return kSeveral;
    found = at;
  }
  return found;
}

bool all_markers_fit(ConstBytes wire, const mpa::MarkerLayout& layout) {
  return markers_fit(wire, layout, layout.num_within(wire.size()));
}

}  // namespace

FpduFinder::Guess FpduFinder::try_headers(ConstBytes octets, const Shape& shape, unsigned num) {
  std::size_t at = 0;
  for (unsigned i = 0; i < num; ++i) {
    const mpa::MarkerLayout layout = shape.layout(at);
    if (octets.size() < at + layout.stream_len(kFrontLen)) return Guess::kMore;
    const ConstBytes here = octets.subspan(at);
    std::array<std::uint8_t, kFrontLen> front;
    for (std::size_t bare = 0; bare < kFrontLen; ++bare) front[bare] = here[layout.stream_offset(bare)];
    if (!begins_fpdu(front)) return Guess::kNo;
    at += wire_len(here, layout);
  }
  return Guess::kYes;
}

bool FpduFinder::pays_for(std::size_t len) {
  if (len > crc_budget_) return false;
  crc_budget_ -= len;
  return true;
}

bool FpduFinder::crc_fits(ConstBytes wire) {
  if (!pays_for(wire.size())) return false;
  const std::size_t covered = wire.size() - mpa::kCrcLen;
  const bool fits = mpa::crc32c(wire.first(covered)) == mpa::parse_crc(wire.subspan(covered).first<mpa::kCrcLen>());
  saw_crc_ |= fits;
  return fits;
}

FpduFinder::Guess FpduFinder::try_known(ConstBytes octets, const Shape& shape) {
  if (!shape.crc) return try_headers(octets, shape, kHeadersKnown);
  if (const Guess front = try_headers(octets, shape, 1); front != Guess::kYes) return front;
  const std::size_t len = wire_len(octets, shape.layout(0));
  if (octets.size() < len) return Guess::kMore;
  return crc_fits(octets.first(len)) ? Guess::kYes : Guess::kNo;
}

FpduFinder::Guess FpduFinder::try_shape(ConstBytes octets, std::uint64_t place, Shape& shape) {
  if (const Guess front = try_headers(octets, shape, 1); front != Guess::kYes) return front;
  const std::size_t len = wire_len(octets, shape.layout(0));
  if (octets.size() < len) return Guess::kMore;
  std::uint64_t& bad_at = bad_crc_at_[shape.markers ? 1 : 0];
  shape.crc = bad_at != place && crc_fits(octets.first(len));
  if (shape.crc) return Guess::kYes;
  bad_at = place;
  if (saw_crc_ || (shape.markers && !all_markers_fit(octets.first(len), shape.layout(0)))) return Guess::kNo;
  return try_headers(octets, shape, kHeadersUnknown);
}

FpduFinder::Guess FpduFinder::try_any(ConstBytes octets, std::uint64_t place, Shape& shape) {
  if (octets.size() < kFrontLen) return Guess::kMore;
  if (std::ranges::all_of(octets.first(mpa::kMarkerLen), [](std::uint8_t octet) { return octet == 0; })) {
    // A Marker between two FPDUs belongs to the second.
    shape = {.markers = true};
    const Guess guess = try_shape(octets, place, shape);
    // Without a CRC that fits, the zeros can be any: the CRC field of the FPDU before it holds some, too.
    return guess == Guess::kYes && !shape.crc ? Guess::kNo : guess;
  }
  if (!begins_fpdu(octets)) return Guess::kNo;
  shape = {};
  const Guess plain = try_shape(octets, place, shape);
  const std::size_t marker = plain == Guess::kYes ? 0 : first_marker(octets);
  if (marker == 0 || marker == kSeveral) return plain;
  shape = {.markers = true, .phase = mpa::kMarkerSpacing - marker};
  const Guess marked = try_shape(octets, place, shape);
  return marked == Guess::kNo ? plain : marked;
}

FpduFinder::Guess FpduFinder::try_next(ConstBytes octets, const Shape& shape) {
  if (const Guess front = try_headers(octets, shape, 1); front != Guess::kYes) return front;
  const std::size_t len = wire_len(octets, shape.layout(0));
  if (octets.size() < len) return Guess::kMore;
  if (shape.crc) return crc_fits(octets.first(len)) ? Guess::kYes : Guess::kNo;
  // FPDUs that were too short for a Marker say nothing about Markers.
  const bool fits = shape.markers ? all_markers_fit(octets.first(len), shape.layout(0)) : first_marker(octets) == 0;
  return fits ? Guess::kYes : Guess::kNo;
}

}  // namespace weft::apps::dissect
