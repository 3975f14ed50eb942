#include "apps/dissect/rdmap_decoder.h"

#include <algorithm>
#include <string_view>
#include <variant>

#include "apps/dissect/effect.h"
#include "apps/dissect/layer_writer.h"
#include "apps/dissect/terminate_layer.h"
#include "ddp/error.h"
#include "rdmap/atomic.h"
#include "rdmap/terminate.h"

namespace weft::apps::dissect {

namespace {

using rdmap::Opcode;

// Places of the header's fields in a ULPDU (RFC 5041 section 4, RFC 5040 section 4.1).
constexpr std::size_t kDdpControlAt = 0, kRdmapControlAt = 1;
constexpr std::size_t kStagAt = 2, kToAt = 6;
constexpr std::size_t kInvalidateAt = 2, kQnAt = 6, kMsnAt = 10, kMoAt = 14;

std::string_view opcode_str(Opcode opcode) {
  switch (opcode) {
    case Opcode::kWrite: return "RDMA Write";
    case Opcode::kReadRequest: return "RDMA Read Request";
    case Opcode::kReadResponse: return "RDMA Read Response";
    case Opcode::kSend: return "Send";
    case Opcode::kSendInvalidate: return "Send with Invalidate";
    case Opcode::kSendSe: return "Send with Solicited Event";
    case Opcode::kSendSeInvalidate: return "Send with Solicited Event and Invalidate";
    case Opcode::kTerminate: return "Terminate";
    case Opcode::kImmediate: return "Immediate Data";
    case Opcode::kImmediateSe: return "Immediate Data with Solicited Event";
    case Opcode::kAtomicRequest: return "Atomic Request";
    case Opcode::kAtomicResponse: return "Atomic Response";
  }
  return "a message of an unknown opcode";
}

// version: of DDP and RDMAP; empty: 0 or 1.
void find_header_faults(bool tagged, std::uint8_t dv, rdmap::Control control, std::uint32_t qn,
                        std::optional<std::uint8_t> version, Frame& frame) {
  const auto is_wrong = [version](std::uint8_t value) {
    return version ? value != *version : value > ddp::kDdpVersion;
  };
  const int due = version.value_or(ddp::kDdpVersion);
  if (is_wrong(dv)) {
    frame.findings.push_back(
        {tagged ? "DDP-7.2-07" : "DDP-7.2-13", fmt::format("DV is {}, not {}", dv, due),
         terminated(rdmap::to_terminate(tagged ? ddp::Error::kTaggedVersion : ddp::Error::kUntaggedVersion))});
  }
  if (is_wrong(control.rv)) {
    frame.findings.push_back(
        {"RDMAP-7.2-03", fmt::format("RV is {}, not {}", control.rv, due), terminated(rdmap::kInvalidVersion)});
  }
  if (control.opcode >= rdmap::kNumOpcodes7306) {
    frame.findings.push_back(
        {"RDMAP-7.2-02", fmt::format("opcode {} is reserved", control.opcode), terminated(rdmap::kUnexpectedOpcode)});
    return;
  }
  const Opcode opcode{control.opcode};
  if (tagged != rdmap::is_tagged(opcode)) {
    frame.findings.push_back({"RDMAP-7.2-02",
                              fmt::format("{} in the {} model", opcode_str(opcode), tagged ? "tagged" : "untagged"),
                              terminated(rdmap::kUnexpectedOpcode)});
  } else if (!tagged && qn != rdmap::queue_of(opcode)) {
    frame.findings.push_back(
        {"RDMAP-7.2-02", fmt::format("{} in queue {}", opcode_str(opcode), qn), terminated(rdmap::kUnexpectedOpcode)});
  }
}

void tell_control(std::uint8_t octet, std::string_view opcode, LayerWriter& layer) {
  constexpr unsigned kRsvShift = 4, kRsvMask = 0x03;
  const auto control = rdmap::parse_control(octet);
  layer.field("RV", kRdmapControlAt, 1, "{}", control.rv);
  layer.field("Rsv", kRdmapControlAt, 1, "{}", octet >> kRsvShift & kRsvMask);
  layer.field("Opcode", kRdmapControlAt, 1, "{} ({})", control.opcode, opcode);
}

std::string in_segments(std::size_t num) {
  return num == 1 ? "" : fmt::format(" in {} segments", num);
}

}  // namespace

void RdmapDecoder::on_startup_frame(Side from) {
  for (Untagged& queue : halves_[static_cast<std::size_t>(from)].queues) queue.next_msn = ddp::Msn().value;
}

void RdmapDecoder::on_start(Side from, const Start& start) {
  version_ = start.version;
  rules_.on_start(from, start.ird);
}

void RdmapDecoder::on_fpdu(Side from, const Fpdu& fpdu, Frame& frame) {
  if (!version_) rules_.stop();  // an FPDU before the Reply: the directions are not in their order
  rules_.on_fpdu(from, frame);
  const auto segment = ddp::parse_segment_wire(fpdu.ulpdu);
  if (!segment) {
    LayerWriter layer(frame, LayerKind::kDdp, options_, Source::kUlpdu);
    layer.text("a DDP segment without a whole header");
    if (!fpdu.cut)
      frame.findings.push_back({"DDP-4.4-01", "the ULPDU is shorter than its header",
                                terminated(rdmap::to_terminate(ddp::Error::kLocalCatastrophic))});
    return;
  }
  const std::size_t payload_len = segment->payload.size() + (fpdu.ulpdu_len - fpdu.ulpdu.size());
  std::visit(
      [&](const auto& header) {
        if constexpr (std::is_same_v<decltype(header), const ddp::TaggedHeader&>) {
          on_tagged(from, header, segment->payload, payload_len, frame);
        } else {
          on_untagged(from, header, segment->payload, payload_len, frame);
        }
      },
      segment->header);
}

void RdmapDecoder::on_gap(Side from) {
  rules_.stop();
  Half& half = halves_[static_cast<std::size_t>(from)];
  for (Untagged& queue : half.queues) {
    queue.broken = true;
    queue.next_msn.reset();
  }
}

void RdmapDecoder::on_tagged(Side from, const ddp::TaggedHeader& header, ConstBytes payload, std::size_t len,
                             Frame& frame) {
  const auto control = rdmap::parse_control(header.rsvd_ulp);
  {
    LayerWriter ddp(frame, LayerKind::kDdp, options_, Source::kUlpdu);
    ddp.field("T (tagged)", kDdpControlAt, 1, "1");
    ddp.field("L (last)", kDdpControlAt, 1, "{}", int{header.last});
    ddp.field("Resrv", kDdpControlAt, 1, "{:#x}", header.rsvd);
    ddp.field("DV", kDdpControlAt, 1, "{}", header.dv);
    ddp.field("STag", kStagAt, 4, "{:#010x}", header.stag.value);
    ddp.field("TO", kToAt, 8, "{:#x}", header.to);
    ddp.field("payload", ddp::kTaggedHeaderLen, payload.size(), "{} bytes", len);
  }
  find_header_faults(true, header.dv, control, 0, version_, frame);
  if (header.to > UINT64_MAX - len) {
    frame.findings.push_back({"DDP-7.1-15", fmt::format("TO {:#x} and {} bytes pass 2^64", header.to, len),
                              terminated(rdmap::to_terminate(ddp::Error::kToWrap))});
  }
  if (control.opcode >= rdmap::kNumOpcodes7306 || !rdmap::is_tagged(Opcode{control.opcode})) {
    LayerWriter(frame, LayerKind::kRdmap, options_, Source::kUlpdu)
        .line(FMT_COMPILE("a tagged segment with opcode {}"), control.opcode);
    return;
  }
  const Opcode opcode{control.opcode};
  rules_.on_tagged(from, opcode, header.last, frame);
  if (opcode == Opcode::kReadResponse) rules_.on_read_response(from, header, len, frame);
  Tagged& under_way = halves_[static_cast<std::size_t>(from)].tagged[opcode == Opcode::kWrite ? 0 : 1];
  const bool continues =
      under_way.num_segments != 0 && under_way.stag == header.stag.value && under_way.to + under_way.len == header.to;
  if (!continues) {
    under_way = {.stag = header.stag.value, .to = header.to, .head = std::move(under_way.head)};
    under_way.head.clear();
    under_way.began = frame.arrival.time;
  }
  if (under_way.head.size() == under_way.len) {
    const ConstBytes kept =
        payload.first(std::min(payload.size(), kMaxHead - std::min(kMaxHead, under_way.head.size())));
    under_way.head.insert(under_way.head.end(), kept.begin(), kept.end());
  }
  under_way.len += len;
  ++under_way.num_segments;
  LayerWriter layer(frame, LayerKind::kRdmap, options_, Source::kUlpdu);
  tell_control(header.rsvd_ulp, opcode_str(opcode), layer);
  if (!header.last) return;
  const Tagged& whole = under_way;
  frame.facts.rdma = {opcode_str(opcode), whole.len, whole.num_segments};
  layer.line(FMT_COMPILE("{}, STag {}, TO {:#x}, {} bytes{}"), opcode_str(opcode), Hex32(whole.stag).str(), whole.to,
             whole.len, in_segments(whole.num_segments));
  upper_.on_transfer({.kind = opcode == Opcode::kWrite ? Transfer::Kind::kWrite : Transfer::Kind::kReadResponse,
                      .from = from,
                      .stag = whole.stag,
                      .to = whole.to,
                      .len = whole.len,
                      .head = whole.head,
                      .began = whole.began,
                      .in_order = rules_.is_judging()},
                     frame, layer);
  under_way.num_segments = 0;
}

void RdmapDecoder::on_untagged(Side from, const ddp::UntaggedHeader& header, ConstBytes payload, std::size_t len,
                               Frame& frame) {
  const auto control = rdmap::parse_control(header.rsvd_ulp);
  {
    LayerWriter ddp(frame, LayerKind::kDdp, options_, Source::kUlpdu);
    ddp.field("T (tagged)", kDdpControlAt, 1, "0");
    ddp.field("L (last)", kDdpControlAt, 1, "{}", int{header.last});
    ddp.field("Resrv", kDdpControlAt, 1, "{:#x}", header.rsvd);
    ddp.field("DV", kDdpControlAt, 1, "{}", header.dv);
    ddp.field("QN", kQnAt, 4, "{}", header.qn);
    ddp.field("MSN", kMsnAt, 4, "{}", header.msn.value);
    ddp.field("MO", kMoAt, 4, "{}", header.mo);
    ddp.field("payload", ddp::kUntaggedHeaderLen, payload.size(), "{} bytes", len);
  }
  find_header_faults(false, header.dv, control, header.qn, version_, frame);
  {
    LayerWriter layer(frame, LayerKind::kRdmap, options_, Source::kUlpdu);
    const Opcode opcode{control.opcode};
    tell_control(header.rsvd_ulp, opcode_str(opcode), layer);
    layer.field(rdmap::invalidates(opcode) ? "Invalidate STag" : "RsvdULP, bits 8 to 39", kInvalidateAt, 4, "{:#010x}",
                header.rsvd_ulp_8_39);
  }
  if (header.qn >= kNumQueues) {
    frame.findings.push_back({"DDP-7.1-01", fmt::format("queue {} does not exist", header.qn),
                              terminated(rdmap::to_terminate(ddp::Error::kInvalidQn))});
    return;
  }
  Untagged& queue = halves_[static_cast<std::size_t>(from)].queues[header.qn];
  keep_order(queue, header, frame);
  if (header.mo != 0 && !queue.broken && control.opcode != queue.opcode) {
    frame.findings.push_back({"RDMAP-7.2-02",
                              fmt::format("opcode {} inside a message of opcode {}", control.opcode, queue.opcode),
                              terminated(rdmap::kUnexpectedOpcode)});
  }
  queue.opcode = control.opcode;
  keep(queue, header.last, payload);
  queue.len += len;
  ++queue.num_segments;
  if (!header.last) return;
  on_message(from, header, queue, frame);
  queue.octets.clear();
  queue.whole = {};
  queue.len = queue.num_segments = 0;
  queue.broken = false;
}

// A message of one segment stays where it is: most are.
void RdmapDecoder::keep(Untagged& queue, bool last, ConstBytes payload) {
  if (last && queue.len == 0) {
    queue.whole = payload.first(std::min(payload.size(), kMaxMessage));
    return;
  }
  // Octets behind ones that are missing have no place.
  if (queue.octets.size() == queue.len) {
    const std::size_t kept = std::min(payload.size(), kMaxMessage - std::min(kMaxMessage, queue.octets.size()));
    queue.octets.insert(queue.octets.end(), payload.begin(), payload.begin() + static_cast<std::ptrdiff_t>(kept));
  }
  queue.whole = queue.octets;
}

// RFC 5041 section 5.3: MSNs in order, and in a message the MO where the last segment ended.
void RdmapDecoder::keep_order(Untagged& queue, const ddp::UntaggedHeader& header, Frame& frame) {
  const std::uint32_t msn = header.msn.value;
  if (queue.next_msn && *queue.next_msn != msn) {
    frame.findings.push_back({"DDP-7.1-09",
                              fmt::format("MSN {} in queue {}, where {} is due", msn, header.qn, *queue.next_msn),
                              terminated(rdmap::to_terminate(ddp::Error::kMsnRange))});
  } else if (header.mo != queue.len && !queue.broken && queue.next_msn) {
    frame.findings.push_back({"DDP-7.1-07", fmt::format("MO {}, where {} is due", header.mo, queue.len),
                              terminated(rdmap::to_terminate(ddp::Error::kInvalidMo))});
  }
  if (header.mo == 0) {
    queue.octets.clear();
    queue.len = queue.num_segments = 0;
    queue.broken = false;
  } else if (header.mo != queue.len) {
    queue.broken = true;
  }
  queue.next_msn = header.last ? header.msn.next().value : msn;
}

void RdmapDecoder::on_message(Side from, const ddp::UntaggedHeader& header, Untagged& queue, Frame& frame) {
  const auto control = rdmap::parse_control(header.rsvd_ulp);
  if (control.opcode >= rdmap::kNumOpcodes7306) return;
  const Opcode opcode{control.opcode};
  frame.message = queue.whole;
  LayerWriter layer = LayerWriter::again(frame, options_, Source::kMessage);
  if (queue.broken) {
    layer.line(FMT_COMPILE("{}, MSN {}, whose beginning is not in the capture"), opcode_str(opcode), header.msn.value);
    return;
  }
  frame.facts.rdma = {opcode_str(opcode), queue.len, queue.num_segments};
  frame.facts.is_terminate = opcode == Opcode::kTerminate;
  const bool is_whole = queue.whole.size() == queue.len;
  switch (opcode) {
    case Opcode::kReadRequest: return tell_read_request(from, header, is_whole, frame, layer);
    case Opcode::kTerminate: rules_.on_terminate(from); return tell_terminate(frame.message, is_whole, frame, layer);
    case Opcode::kAtomicRequest: return tell_atomic_request(from, header, is_whole, frame, layer);
    case Opcode::kAtomicResponse: return tell_atomic_response(from, header, is_whole, frame, layer);
    default: return tell_send(from, opcode, header, queue, frame, layer);
  }
}

void RdmapDecoder::tell_send(Side from, Opcode opcode, const ddp::UntaggedHeader& header, const Untagged& queue,
                             Frame& frame, LayerWriter& layer) {
  Send send{.from = from, .octets = queue.whole, .len = queue.len, .in_order = rules_.is_judging()};
  layer.line(FMT_COMPILE("{}, MSN {}, {} bytes{}"), opcode_str(opcode), header.msn.value, queue.len,
             in_segments(queue.num_segments));
  if (rdmap::invalidates(opcode)) {
    send.invalidated = header.rsvd_ulp_8_39;
    layer.line(FMT_COMPILE(", invalidates STag {}"), Hex32(header.rsvd_ulp_8_39).str());
  }
  if (rdmap::is_immediate(opcode)) return tell_immediate(queue, frame, layer);
  if (rdmap::is_send(opcode)) upper_.on_send(send, frame);
}

void RdmapDecoder::tell_immediate(const Untagged& queue, Frame& frame, LayerWriter& layer) {
  if (queue.len != rdmap::kImmediateLen) {
    frame.findings.push_back({"EXT-6.3-04", fmt::format("Immediate Data of {} bytes, not 8", queue.len),
                              terminated(rdmap::kStreamCatastrophic)});
    return;
  }
  if (queue.whole.size() != queue.len) return;
  layer.text(": ");
  std::string hex;
  for (const std::uint8_t octet : queue.whole) hex += fmt::format("{:02x}", octet);
  layer.line(FMT_COMPILE("{}"), hex);
  layer.field("Immediate Data", 0, rdmap::kImmediateLen, "0x{}", hex);
}

void RdmapDecoder::tell_read_request(Side from, const ddp::UntaggedHeader& header, bool is_whole, Frame& frame,
                                     LayerWriter& layer) {
  const auto request = rdmap::parse_read_request_header(frame.message);
  if (!request) {
    layer.line(FMT_COMPILE("RDMA Read Request of {} bytes, not 28"), frame.facts.rdma->octets);
    if (!is_whole) return;
    const bool is_short = frame.message.size() < rdmap::kReadRequestHeaderLen;
    frame.findings.push_back(
        {is_short ? "RDMAP-4.4-01" : "DDP-7.1-08", "a Read Request has 28 octets",
         terminated(is_short ? rdmap::kStreamCatastrophic : rdmap::to_terminate(ddp::Error::kMessageTooLong))});
    return;
  }
  layer.line(FMT_COMPILE("RDMA Read Request, MSN {}: {} bytes at STag {}, TO {:#x} to STag {}, TO {:#x}"),
             header.msn.value, request->size, Hex32(request->src_stag.value).str(), request->src_to,
             Hex32(request->sink_stag.value).str(), request->sink_to);
  layer.field("Data Sink STag", 0, 4, "{:#010x}", request->sink_stag.value);
  layer.field("Data Sink TO", 4, 8, "{:#x}", request->sink_to);
  layer.field("RDMA Read Message Size", 12, 4, "{}", request->size);
  layer.field("Data Source STag", 16, 4, "{:#010x}", request->src_stag.value);
  layer.field("Data Source TO", 20, 8, "{:#x}", request->src_to);
  if (request->src_to > UINT64_MAX - request->size) {
    frame.findings.push_back({"RDMAP-7.2-09",
                              fmt::format("TO {:#x} and {} bytes pass 2^64", request->src_to, request->size),
                              terminated(rdmap::kReadToWrap)});
  }
  rules_.on_read_request(from, *request, frame);
  upper_.on_transfer({.kind = Transfer::Kind::kReadRequest,
                      .from = from,
                      .stag = request->src_stag.value,
                      .to = request->src_to,
                      .len = request->size,
                      .sink_stag = request->sink_stag.value,
                      .sink_to = request->sink_to,
                      .began = frame.arrival.time,
                      .in_order = rules_.is_judging()},
                     frame, layer);
}

void RdmapDecoder::tell_atomic_request(Side from, const ddp::UntaggedHeader& header, bool is_whole, Frame& frame,
                                       LayerWriter& layer) {
  const auto request = rdmap::parse_atomic_request_header(frame.message);
  if (!request) {
    layer.line(FMT_COMPILE("Atomic Request of {} bytes, not 52"), frame.facts.rdma->octets);
    if (is_whole) {
      frame.findings.push_back(
          {"EXT-4.2-01", "an Atomic Request has 52 octets", terminated(rdmap::kStreamCatastrophic)});
    }
    return;
  }
  const bool is_add = request->aop_code == static_cast<std::uint8_t>(rdmap::AtomicOp::kFetchAdd);
  if (!rdmap::is_atomic_op(request->aop_code)) {
    layer.line(FMT_COMPILE("Atomic Request, MSN {}: AOpCode {} is reserved"), header.msn.value, request->aop_code);
    frame.findings.push_back({"EXT-5.2.1-13", fmt::format("AOpCode {} is reserved", request->aop_code),
                              terminated(rdmap::kUnexpectedOpcode)});
  } else {
    layer.line(FMT_COMPILE("Atomic Request, MSN {}: {} {:#x} at STag {:#010x}, TO {:#x}, request {:#x}"),
               header.msn.value, is_add ? "FetchAdd of" : "CmpSwap to", request->operands.add_swap, request->stag.value,
               request->to, request->request_id);
  }
  layer.field("AOpCode", 3, 1, "{}", request->aop_code);
  layer.field("Request Identifier", 4, 4, "{:#x}", request->request_id);
  layer.field("Remote STag", 8, 4, "{:#010x}", request->stag.value);
  layer.field("Remote TO", 12, 8, "{:#x}", request->to);
  layer.field("Add or Swap Data", 20, 8, "{:#x}", request->operands.add_swap);
  layer.field("Add or Swap Mask", 28, 8, "{:#x}", request->operands.add_swap_mask);
  layer.field("Compare Data", 36, 8, "{:#x}", request->operands.compare);
  layer.field("Compare Mask", 44, 8, "{:#x}", request->operands.compare_mask);
  rules_.on_atomic_request(from, request->request_id, frame);
}

void RdmapDecoder::tell_atomic_response(Side from, const ddp::UntaggedHeader& header, bool is_whole, Frame& frame,
                                        LayerWriter& layer) {
  const auto response = rdmap::parse_atomic_response_header(frame.message);
  if (!response) {
    layer.line(FMT_COMPILE("Atomic Response of {} bytes, not 12"), frame.facts.rdma->octets);
    if (is_whole) {
      frame.findings.push_back(
          {"EXT-5.2.2-06", "an Atomic Response has 12 octets", terminated(rdmap::kStreamCatastrophic)});
    }
    return;
  }
  layer.line(FMT_COMPILE("Atomic Response, MSN {}: the word was {:#x}, request {:#x}"), header.msn.value,
             response->original, response->request_id);
  layer.field("Original Request Identifier", 0, 4, "{:#x}", response->request_id);
  layer.field("Original Remote Data Value", 4, 8, "{:#x}", response->original);
  rules_.on_atomic_response(from, response->request_id, frame);
}

}  // namespace weft::apps::dissect
