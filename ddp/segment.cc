#include "ddp/segment.h"

#include <cassert>

#include "mpa/wire/cursor.h"

namespace weft::ddp {
namespace {

constexpr std::uint8_t kFlagT = 0x80;
constexpr std::uint8_t kFlagL = 0x40;
constexpr std::uint8_t kRsvdMask = 0x0f;
constexpr int kRsvdShift = 2;
constexpr std::uint8_t kVersionMask = 0x03;

template <typename Header>
std::uint8_t control_octet(const Header& header, std::uint8_t t) {
  return static_cast<std::uint8_t>(t | (header.last ? kFlagL : 0) | ((header.rsvd & kRsvdMask) << kRsvdShift) |
                                   (header.dv & kVersionMask));
}

template <typename Header>
void set_control(Header& header, std::uint8_t octet) {
  header.last = (octet & kFlagL) != 0;
  header.rsvd = octet >> kRsvdShift & kRsvdMask;
  header.dv = octet & kVersionMask;
}

bool parse_fields(Reader& reader, TaggedHeader& header) {
  return reader.u8(header.rsvd_ulp) && reader.u32(header.stag.value) && reader.u64(header.to);
}

bool parse_fields(Reader& reader, UntaggedHeader& header) {
  return reader.u8(header.rsvd_ulp) && reader.u32(header.rsvd_ulp_8_39) && reader.u32(header.qn) &&
         reader.u32(header.msn.value) && reader.u32(header.mo);
}

template <typename Header>
bool parse_as(std::uint8_t control, Reader& reader, Segment& segment) {
  Header& header = segment.header.emplace<Header>();
  set_control(header, control);
  if (!parse_fields(reader, header)) return false;
  segment.payload = reader.rest();
  return true;
}

}  // namespace

bool parse_segment_wire(ConstBytes ulpdu, Segment& segment) {
  Reader reader(ulpdu);
  std::uint8_t control = 0;
  if (!reader.u8(control)) return false;
  const bool is_tagged = (control & kFlagT) != 0;  // DDP-4.1-03
  return is_tagged ? parse_as<TaggedHeader>(control, reader, segment)
                   : parse_as<UntaggedHeader>(control, reader, segment);
}

std::optional<Segment> parse_segment_wire(ConstBytes ulpdu) {
  std::optional<Segment> segment(std::in_place);
  if (!parse_segment_wire(ulpdu, *segment)) segment.reset();
  return segment;
}

void emit_header(const TaggedHeader& header, std::span<std::uint8_t, kTaggedHeaderLen> out) {
  Writer writer(out);
  const bool fits = writer.u8(control_octet(header, kFlagT)) && writer.u8(header.rsvd_ulp) &&
                    writer.u32(header.stag.value) && writer.u64(header.to);
  assert(fits);
  (void)fits;
}

void emit_header(const UntaggedHeader& header, std::span<std::uint8_t, kUntaggedHeaderLen> out) {
  Writer writer(out);
  const bool fits = writer.u8(control_octet(header, 0)) && writer.u8(header.rsvd_ulp) &&
                    writer.u32(header.rsvd_ulp_8_39) && writer.u32(header.qn) && writer.u32(header.msn.value) &&
                    writer.u32(header.mo);
  assert(fits);
  (void)fits;
}

}  // namespace weft::ddp
