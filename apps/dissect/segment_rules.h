#pragma once

#include <cstdint>
#include <optional>

#include "apps/dissect/frame.h"
#include "ddp/segment.h"
#include "rdmap/header.h"

namespace weft::apps::dissect {

// The rules about one DDP segment that its header alone shows (RFC 5041 sections 4 and 7, RFC 5040 sections 4.1
// and 7.2, RFC 7306 section 4.1). Each function adds its findings to the frame.

// Finds reserved bits that are set. No receiver looks at them. Every segment comes here, and few have such bits.
void find_set_bits(std::uint8_t ddp_rsvd, std::uint8_t rsvd_ulp, Frame& frame);
inline constexpr std::uint8_t kRsv = 0x30;
inline void find_reserved_bits(std::uint8_t ddp_rsvd, std::uint8_t rsvd_ulp, Frame& frame) {
  if (ddp_rsvd == 0 && (rsvd_ulp & kRsv) == 0) [[likely]]
    return;
  find_set_bits(ddp_rsvd, rsvd_ulp, frame);
}
// word: the Invalidate STag field of an untagged message.
void find_odd_invalidate_stag(rdmap::Opcode opcode, std::uint32_t word, Frame& frame);
inline void find_invalidate_stag(rdmap::Opcode opcode, std::uint32_t word, Frame& frame) {
  if (word != 0 && !rdmap::invalidates(opcode)) find_odd_invalidate_stag(opcode, word, frame);
}
// dv: DDP's version. version: of DDP and RDMAP; empty: 0 or 1. qn: of an untagged segment.
void find_wrong_header(bool tagged, std::uint8_t dv, rdmap::Control control, std::uint32_t qn,
                       std::optional<std::uint8_t> version, Frame& frame);
inline void find_header_faults(bool tagged, std::uint8_t dv, rdmap::Control control, std::uint32_t qn,
                               std::optional<std::uint8_t> version, Frame& frame) {
  const rdmap::Opcode opcode{control.opcode};
  const bool has_version = dv == version && control.rv == version;
  const bool has_place = tagged ? rdmap::is_tagged(opcode) : !rdmap::is_tagged(opcode) && qn == rdmap::queue_of(opcode);
  if (has_version && has_place && control.opcode < rdmap::kNumOpcodes7306) [[likely]]
    return;
  find_wrong_header(tagged, dv, control, qn, version, frame);
}
// An untagged message whose length is known ends in this segment, which does not say so. message: its octets so far.
void find_missing_last(const ddp::UntaggedHeader& header, ConstBytes message, std::size_t len, Frame& frame);
// A message has more than 2^32 - 1 octets.
void find_too_long(Frame& frame);
// A message without octets has `num` segments.
void find_empty_segments(std::size_t num, Frame& frame);

}  // namespace weft::apps::dissect
