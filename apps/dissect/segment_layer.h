#pragma once

#include <array>
#include <string_view>

#include "apps/dissect/frame.h"
#include "ddp/segment.h"
#include "rdmap/header.h"

namespace weft::apps::dissect {

class LayerWriter;

inline constexpr std::array<std::string_view, rdmap::kNumOpcodes7306> kOpcodeNames = {
    "RDMA Write",
    "RDMA Read Request",
    "RDMA Read Response",
    "Send",
    "Send with Invalidate",
    "Send with Solicited Event",
    "Send with Solicited Event and Invalidate",
    "Terminate",
    "Immediate Data",
    "Immediate Data with Solicited Event",
    "Atomic Request",
    "Atomic Response",
};
// opcode_str returns the name of the message in RFC 5040 and RFC 7306.
constexpr std::string_view opcode_str(rdmap::Opcode opcode) {
  const auto number = static_cast<std::size_t>(opcode);
  return number < kOpcodeNames.size() ? kOpcodeNames[number] : "a message of an unknown opcode";
}

// tell_segment adds a layer of DDP, with each field of the header, if fields are wanted: it has no line. kept, len:
// octets of the payload that the capture has, and that the segment had.
void tell_segment(const ddp::TaggedHeader& header, std::size_t kept, std::size_t len, const Options& options,
                  Frame& frame);
void tell_segment(const ddp::UntaggedHeader& header, std::size_t kept, std::size_t len, const Options& options,
                  Frame& frame);

// tell_control tells the RDMAP octet of a segment in fields. The layer's fields are those of the ULPDU.
void tell_control(std::uint8_t rsvd_ulp, LayerWriter& layer);
// tell_invalidate tells bits 8 to 39 of RsvdULP in an untagged segment.
void tell_invalidate(const ddp::UntaggedHeader& header, LayerWriter& layer);

}  // namespace weft::apps::dissect
