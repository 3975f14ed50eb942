#include "apps/dissect/rdmap_decoder.h"

#include <algorithm>
#include <string_view>
#include <variant>

#include "apps/dissect/layer_writer.h"
#include "ddp/error.h"
#include "rdmap/atomic.h"
#include "rdmap/diagnosis.h"
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

// The answer of a receiver.
std::string terminated(const rdmap::Terminate& terminate) {
  return "the receiver ends the connection: Terminate " + rdmap::describe(terminate);
}

void find_header_faults(bool tagged, std::uint8_t dv, rdmap::Control control, std::uint32_t qn, Frame& frame) {
  if (dv > ddp::kDdpVersion) {
    frame.findings.push_back(
        {tagged ? "DDP-7.2-07" : "DDP-7.2-13", fmt::format("DV is {}, not 1", dv),
         terminated(rdmap::to_terminate(tagged ? ddp::Error::kTaggedVersion : ddp::Error::kUntaggedVersion))});
  }
  if (control.rv > rdmap::kRdmapVersion) {
    frame.findings.push_back(
        {"RDMAP-7.2-03", fmt::format("RV is {}, not 1", control.rv), terminated(rdmap::kInvalidVersion)});
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

std::string in_segments(std::size_t num) {
  return num == 1 ? "" : fmt::format(" in {} segments", num);
}

}  // namespace

void RdmapDecoder::on_fpdu(Side from, const Fpdu& fpdu, Frame& frame) {
  const auto segment = ddp::parse_segment_wire(fpdu.ulpdu);
  if (!segment) {
    LayerWriter layer(frame, LayerKind::kDdp, options_, Source::kUlpdu);
    layer.line("a DDP segment without a whole header");
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
    ddp.field("DV", kDdpControlAt, 1, "{}", header.dv);
    ddp.field("STag", kStagAt, 4, "{:#010x}", header.stag.value);
    ddp.field("TO", kToAt, 8, "{:#x}", header.to);
    ddp.field("payload", ddp::kTaggedHeaderLen, payload.size(), "{} bytes", len);
  }
  find_header_faults(true, header.dv, control, 0, frame);
  if (control.opcode >= rdmap::kNumOpcodes7306 || !rdmap::is_tagged(Opcode{control.opcode})) {
    LayerWriter(frame, LayerKind::kRdmap, options_, Source::kUlpdu)
        .line("a tagged segment with opcode {}", control.opcode);
    return;
  }
  const Opcode opcode{control.opcode};
  Tagged& under_way = halves_[static_cast<std::size_t>(from)].tagged[opcode == Opcode::kWrite ? 0 : 1];
  const bool continues =
      under_way.num_segments != 0 && under_way.stag == header.stag.value && under_way.to + under_way.len == header.to;
  if (!continues) {
    under_way = {.stag = header.stag.value, .to = header.to, .head = std::move(under_way.head)};
    under_way.head.clear();
  }
  if (under_way.head.size() == under_way.len) {
    const ConstBytes kept =
        payload.first(std::min(payload.size(), kMaxHead - std::min(kMaxHead, under_way.head.size())));
    under_way.head.insert(under_way.head.end(), kept.begin(), kept.end());
  }
  under_way.len += len;
  ++under_way.num_segments;
  LayerWriter layer(frame, LayerKind::kRdmap, options_, Source::kUlpdu);
  layer.field("RV", kRdmapControlAt, 1, "{}", control.rv);
  layer.field("Opcode", kRdmapControlAt, 1, "{} ({})", control.opcode, opcode_str(opcode));
  if (!header.last) return;
  const Tagged& whole = under_way;
  frame.facts.rdma = {opcode_str(opcode), whole.len, whole.num_segments};
  layer.line("{}, STag {:#010x}, TO {:#x}, {} bytes{}", opcode_str(opcode), whole.stag, whole.to, whole.len,
             in_segments(whole.num_segments));
  upper_.on_transfer({.kind = opcode == Opcode::kWrite ? Transfer::Kind::kWrite : Transfer::Kind::kReadResponse,
                      .from = from,
                      .stag = whole.stag,
                      .to = whole.to,
                      .len = whole.len,
                      .head = whole.head},
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
    ddp.field("DV", kDdpControlAt, 1, "{}", header.dv);
    ddp.field("QN", kQnAt, 4, "{}", header.qn);
    ddp.field("MSN", kMsnAt, 4, "{}", header.msn.value);
    ddp.field("MO", kMoAt, 4, "{}", header.mo);
    ddp.field("payload", ddp::kUntaggedHeaderLen, payload.size(), "{} bytes", len);
  }
  find_header_faults(false, header.dv, control, header.qn, frame);
  if (header.qn >= kNumQueues) {
    frame.findings.push_back({"DDP-7.1-01", fmt::format("queue {} does not exist", header.qn),
                              terminated(rdmap::to_terminate(ddp::Error::kInvalidQn))});
    return;
  }
  Untagged& queue = halves_[static_cast<std::size_t>(from)].queues[header.qn];
  keep_order(queue, header, frame);
  const std::size_t kept = std::min(payload.size(), kMaxMessage - std::min(kMaxMessage, queue.octets.size()));
  // Octets behind ones that are missing have no place.
  if (queue.octets.size() == queue.len) {
    queue.octets.insert(queue.octets.end(), payload.begin(), payload.begin() + static_cast<std::ptrdiff_t>(kept));
  }
  queue.len += len;
  ++queue.num_segments;
  if (!header.last) return;
  on_message(from, header, queue, frame);
  queue.octets.clear();
  queue.len = queue.num_segments = 0;
  queue.broken = false;
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
  frame.message = queue.octets;
  if (queue.broken) {
    LayerWriter(frame, LayerKind::kRdmap, options_, Source::kUlpdu)
        .line("{}, MSN {}, whose beginning is not in the capture", opcode_str(opcode), header.msn.value);
    return;
  }
  frame.facts.rdma = {opcode_str(opcode), queue.len, queue.num_segments};
  frame.facts.is_terminate = opcode == Opcode::kTerminate;
  switch (opcode) {
    case Opcode::kReadRequest: return tell_read_request(from, header, frame);
    case Opcode::kTerminate: return tell_terminate(frame);
    case Opcode::kAtomicRequest: return tell_atomic_request(header, frame);
    case Opcode::kAtomicResponse: return tell_atomic_response(header, frame);
    default: return tell_send(from, opcode, header, queue, frame);
  }
}

void RdmapDecoder::tell_send(Side from, Opcode opcode, const ddp::UntaggedHeader& header, const Untagged& queue,
                             Frame& frame) {
  Send send{.from = from, .octets = queue.octets, .len = queue.len};
  {
    LayerWriter layer(frame, LayerKind::kRdmap, options_, Source::kUlpdu);
    layer.line("{}, MSN {}, {} bytes{}", opcode_str(opcode), header.msn.value, queue.len,
               in_segments(queue.num_segments));
    layer.field("RV", kRdmapControlAt, 1, "{}", rdmap::parse_control(header.rsvd_ulp).rv);
    layer.field("Opcode", kRdmapControlAt, 1, "{} ({})", static_cast<int>(opcode), opcode_str(opcode));
    if (rdmap::invalidates(opcode)) {
      send.invalidated = header.rsvd_ulp_8_39;
      layer.line(", invalidates STag {:#010x}", header.rsvd_ulp_8_39);
      layer.field("Invalidate STag", kInvalidateAt, 4, "{:#010x}", header.rsvd_ulp_8_39);
    }
  }
  if (rdmap::is_send(opcode)) upper_.on_send(send, frame);
}

void RdmapDecoder::tell_read_request(Side from, const ddp::UntaggedHeader& header, Frame& frame) {
  LayerWriter layer(frame, LayerKind::kRdmap, options_, Source::kMessage);
  const auto request = rdmap::parse_read_request_header(frame.message);
  if (!request) {
    layer.line("RDMA Read Request of {} bytes, not 28", frame.message.size());
    frame.findings.push_back({"RDMAP-4.4-01", "a Read Request has 28 octets", terminated(rdmap::kStreamCatastrophic)});
    return;
  }
  layer.line("RDMA Read Request, MSN {}: {} bytes at STag {:#010x}, TO {:#x} to STag {:#010x}, TO {:#x}",
             header.msn.value, request->size, request->src_stag.value, request->src_to, request->sink_stag.value,
             request->sink_to);
  layer.field("Data Sink STag", 0, 4, "{:#010x}", request->sink_stag.value);
  layer.field("Data Sink TO", 4, 8, "{:#x}", request->sink_to);
  layer.field("RDMA Read Message Size", 12, 4, "{}", request->size);
  layer.field("Data Source STag", 16, 4, "{:#010x}", request->src_stag.value);
  layer.field("Data Source TO", 20, 8, "{:#x}", request->src_to);
  upper_.on_transfer({.kind = Transfer::Kind::kReadRequest,
                      .from = from,
                      .stag = request->src_stag.value,
                      .to = request->src_to,
                      .len = request->size,
                      .sink_stag = request->sink_stag.value,
                      .sink_to = request->sink_to},
                     frame, layer);
}

void RdmapDecoder::tell_terminate(Frame& frame) {
  LayerWriter layer(frame, LayerKind::kRdmap, options_, Source::kMessage);
  const auto message = rdmap::parse_terminate(frame.message);
  if (!message) {
    layer.line("Terminate of {} bytes: too short", frame.message.size());
    return;
  }
  layer.line("Terminate, {}", rdmap::describe(message->siw.value_or(message->what)));
  const rdmap::Diagnosis diagnosis = rdmap::diagnose(*message, rdmap::Course::kReceived);
  if (!diagnosis.told.empty()) layer.line("; {}", diagnosis.told);
  if (!diagnosis.where.empty()) layer.line("; {}", diagnosis.where);
  if (!diagnosis.requirements.empty()) layer.line(" [{}]", diagnosis.requirements);
  if (!diagnosis.cause.empty()) layer.line(". Likely cause: {}", diagnosis.cause);
  layer.field("Layer, EType, Error Code", 0, 2, "{}", rdmap::describe(message->what));
  if (message->segment_len) layer.field("DDP Segment Length", 4, 2, "{}", *message->segment_len);
}

void RdmapDecoder::tell_atomic_request(const ddp::UntaggedHeader& header, Frame& frame) {
  LayerWriter layer(frame, LayerKind::kRdmap, options_, Source::kMessage);
  const auto request = rdmap::parse_atomic_request_header(frame.message);
  if (!request) {
    layer.line("Atomic Request of {} bytes, not 52", frame.message.size());
    return;
  }
  const bool is_add = request->aop_code == static_cast<std::uint8_t>(rdmap::AtomicOp::kFetchAdd);
  layer.line("Atomic Request, MSN {}: {} {:#x} at STag {:#010x}, TO {:#x}, request {:#x}", header.msn.value,
             is_add ? "FetchAdd of" : "CmpSwap to", request->operands.add_swap, request->stag.value, request->to,
             request->request_id);
}

void RdmapDecoder::tell_atomic_response(const ddp::UntaggedHeader& header, Frame& frame) {
  LayerWriter layer(frame, LayerKind::kRdmap, options_, Source::kMessage);
  const auto response = rdmap::parse_atomic_response_header(frame.message);
  if (!response) {
    layer.line("Atomic Response of {} bytes, not 12", frame.message.size());
    return;
  }
  layer.line("Atomic Response, MSN {}: the word was {:#x}, request {:#x}", header.msn.value, response->original,
             response->request_id);
}

}  // namespace weft::apps::dissect
