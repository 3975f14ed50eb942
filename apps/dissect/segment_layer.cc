#include "apps/dissect/segment_layer.h"

#include "apps/dissect/layer_writer.h"

namespace weft::apps::dissect {

using rdmap::Opcode;

namespace {

// Places of the header's fields in a ULPDU (RFC 5041 section 4, RFC 5040 section 4.1).
constexpr std::size_t kDdpControlAt = 0, kRdmapControlAt = 1;
constexpr std::size_t kStagAt = 2, kToAt = 6;
constexpr std::size_t kInvalidateAt = 2, kQnAt = 6, kMsnAt = 10, kMoAt = 14;

}  // namespace

void tell_segment(const ddp::TaggedHeader& header, std::size_t kept, std::size_t len, const Options& options,
                  Frame& frame) {
  if (!options.fields) return;
  LayerWriter ddp(frame, LayerKind::kDdp, options, Source::kUlpdu);
  ddp.field("T (tagged)", kDdpControlAt, 1, "1");
  ddp.field("L (last)", kDdpControlAt, 1, "{}", int{header.last});
  ddp.field("Resrv", kDdpControlAt, 1, "{:#x}", header.rsvd);
  ddp.field("DV", kDdpControlAt, 1, "{}", header.dv);
  ddp.field("STag", kStagAt, 4, "{:#010x}", header.stag.value);
  ddp.field("TO", kToAt, 8, "{:#x}", header.to);
  ddp.field("payload", ddp::kTaggedHeaderLen, kept, "{} bytes", len);
}

void tell_segment(const ddp::UntaggedHeader& header, std::size_t kept, std::size_t len, const Options& options,
                  Frame& frame) {
  if (!options.fields) return;
  LayerWriter ddp(frame, LayerKind::kDdp, options, Source::kUlpdu);
  ddp.field("T (tagged)", kDdpControlAt, 1, "0");
  ddp.field("L (last)", kDdpControlAt, 1, "{}", int{header.last});
  ddp.field("Resrv", kDdpControlAt, 1, "{:#x}", header.rsvd);
  ddp.field("DV", kDdpControlAt, 1, "{}", header.dv);
  ddp.field("QN", kQnAt, 4, "{}", header.qn);
  ddp.field("MSN", kMsnAt, 4, "{}", header.msn.value);
  ddp.field("MO", kMoAt, 4, "{}", header.mo);
  ddp.field("payload", ddp::kUntaggedHeaderLen, kept, "{} bytes", len);
}

void tell_control(std::uint8_t rsvd_ulp, LayerWriter& layer) {
  constexpr unsigned kRsvShift = 4, kRsvMask = 0x03;
  const auto control = rdmap::parse_control(rsvd_ulp);
  layer.field("RV", kRdmapControlAt, 1, "{}", control.rv);
  layer.field("Rsv", kRdmapControlAt, 1, "{}", rsvd_ulp >> kRsvShift & kRsvMask);
  layer.field("Opcode", kRdmapControlAt, 1, "{} ({})", control.opcode, opcode_str(Opcode{control.opcode}));
}

void tell_invalidate(const ddp::UntaggedHeader& header, LayerWriter& layer) {
  const Opcode opcode{rdmap::parse_control(header.rsvd_ulp).opcode};
  layer.field(rdmap::invalidates(opcode) ? "Invalidate STag" : "RsvdULP, bits 8 to 39", kInvalidateAt, 4, "{:#010x}",
              header.rsvd_ulp_8_39);
}

}  // namespace weft::apps::dissect
