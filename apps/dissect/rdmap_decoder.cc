#include "apps/dissect/rdmap_decoder.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <variant>

#include "apps/dissect/effect.h"
#include "apps/dissect/layer_writer.h"
#include "apps/dissect/segment_layer.h"
#include "apps/dissect/segment_rules.h"
#include "apps/dissect/terminate_layer.h"
#include "ddp/error.h"
#include "mpa/fpdu.h"
#include "rdmap/atomic.h"
#include "rdmap/terminate.h"

namespace weft::apps::dissect {

namespace {

using rdmap::Opcode;

void tell_segments(std::size_t num, LayerWriter& layer) {
  if (num != 1) layer.line(FMT_COMPILE(" in {} segments"), num);
}

// What a message of each opcode proves of its sender, as Record::deeds.
constexpr std::array<std::uint16_t, 16> kDeedsOf = [] {
  std::array<std::uint16_t, 16> deeds{};
  for (std::uint8_t i = 0; i < deeds.size(); ++i) {
    const Opcode opcode{i};
    deeds[i] = kSentMessage | kSentUntagged;
    if (rdmap::invalidates(opcode)) deeds[i] |= kSentInvalidate;
    if (opcode >= Opcode::kImmediate) deeds[i] |= kSentExtension;
    if (opcode == Opcode::kReadRequest) deeds[i] |= kSentRead;
    if (opcode == Opcode::kAtomicRequest) deeds[i] |= kSentAtomic;
  }
  return deeds;
}();

}  // namespace

void RdmapDecoder::on_startup_frame(Side from) {
  for (UntaggedQueue& queue : half(from).queues) queue.on_start();
}

void RdmapDecoder::on_start(Side from, const Start& start) {
  version_ = start.version;
  Half& own = half(from);
  if (!own.was_early) own.rtr_due = start.rtr;
  own.is_enhanced = start.is_enhanced;
  own.may_lack_ird = start.may_lack_ird;
  own.may_lack_rtr = start.may_lack_rtr;
  rules_.on_start(from, start.ird, start.is_responder);
}

void RdmapDecoder::on_fpdu(Side from, const Fpdu& fpdu, Frame& frame) {
  if (!version_) {
    // An FPDU before the Reply, or without one: the directions are not in their order.
    half(from).was_early = true;
    on_early_fpdu();
  }
  rules_.on_fpdu(from, frame);
  if (fpdu.crc == CrcVerdict::kBad) return on_damaged(from, fpdu, frame);
  if (fpdu.ulpdu_len > mpa::kMaxMulpdu) {
    frame.findings.push_back({"MPA-3-05", fmt::format("a ULPDU of {} bytes, above {}", fpdu.ulpdu_len, mpa::kMaxMulpdu),
                              may_end("the receiver may have no room for it, and end the connection")});
  }
  const auto segment = ddp::parse_segment_wire(fpdu.ulpdu);
  if (!segment) {
    LayerWriter layer(frame, LayerKind::kDdp, options_, Source::kUlpdu);
    layer.text("a DDP segment without a whole header");
    if (fpdu.cut) return on_gap(from);
    frame.findings.push_back({"DDP-4.4-01", "the ULPDU is shorter than its header",
                              terminated(rdmap::to_terminate(ddp::Error::kLocalCatastrophic))});
    return;
  }
  if (half(from).rtr_due.any()) judge_first(half(from), fpdu, *segment, frame);
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

void RdmapDecoder::on_early_fpdu() {
  rules_.stop("an FPDU stands before the MPA startup frames of both sides, or without them");
}

// The octets of an FPDU whose CRC does not fit may be any: they are told, and prove nothing.
void RdmapDecoder::on_damaged(Side from, const Fpdu& fpdu, Frame& frame) {
  if (why_uncertain_.empty()) why_uncertain_ = "the CRC of an FPDU does not fit";
  on_gap(from);
  const auto segment = ddp::parse_segment_wire(fpdu.ulpdu);
  if (!segment) return;
  std::visit(
      [&](const auto& header) {
        tell_segment(header, segment->payload.size(), segment->payload.size(), options_, frame);
        LayerWriter layer(frame, LayerKind::kRdmap, options_, Source::kUlpdu);
        tell_control(header.rsvd_ulp, layer);
        const auto control = rdmap::parse_control(header.rsvd_ulp);
        if (control.opcode >= rdmap::kNumOpcodes7306) return;
        layer.line(FMT_COMPILE("{} by its header, of {} bytes"), opcode_str(Opcode{control.opcode}),
                   segment->payload.size());
      },
      segment->header);
}

// RFC 6581 section 9.2: the initiator's first message has no octets, and is of a kind that the Reply names. It may give
// up instead.
void RdmapDecoder::judge_first(Half& half, const Fpdu& fpdu, const ddp::Segment& segment, Frame& frame) {
  const mpa::RtrSet due = std::exchange(half.rtr_due, {});
  const auto* tagged = std::get_if<ddp::TaggedHeader>(&segment.header);
  const auto* untagged = std::get_if<ddp::UntaggedHeader>(&segment.header);
  const Opcode opcode{rdmap::parse_control(tagged != nullptr ? tagged->rsvd_ulp : untagged->rsvd_ulp).opcode};
  if (fpdu.cut || opcode == Opcode::kTerminate) return;
  const auto read = rdmap::parse_read_request_header(segment.payload);
  const bool is_empty = opcode == Opcode::kReadRequest ? read && read->size == 0 : segment.payload.empty();
  const bool is_due = (due.write && opcode == Opcode::kWrite) || (due.read && opcode == Opcode::kReadRequest) ||
                      (due.send && rdmap::is_send(opcode));
  if (is_empty && is_due) return;
  frame.findings.push_back({"MPA2-9.2-09", "the initiator's first message is no ready-to-receive that the Reply names",
                            may_end("the responder may go on, or end the connection")});
}

void RdmapDecoder::on_gap(Side from) {
  note_gap(from, "bytes are missing in the capture or unreadable");
  Half& own = half(from);
  for (UntaggedQueue& queue : own.queues) queue.on_gap();
  own.writes.on_gap();
  own.read_responses.on_gap();
  own.stags.on_gap();
  own.sent.on_gap();
  own.rtr_due = {};
}

void RdmapDecoder::on_overtaken(Side of) {
  note_gap(of, "a packet acknowledges bytes that the capture does not have before it");
  upper_.on_overtaken(of);
  for (UntaggedQueue& queue : half(of).queues) queue.on_overtaken();
  half(of).stags.on_gap();
  half(of).sent.on_gap();
}

Record RdmapDecoder::record(Side accused) const {
  const Half& own = halves_[static_cast<std::size_t>(accused)];
  const Half& accuser = halves_[static_cast<std::size_t>(other(accused))];
  return {.is_complete = rules_.is_judging() && !own.has_gap && !own.has_unread,
          .deeds = own.deeds,
          .version = version_,
          .knows_requests = rules_.knows_requests(accused),
          .may_lack_ird = accuser.may_lack_ird,
          .may_lack_rtr = accuser.may_lack_rtr,
          .is_set_up = !accuser.is_enhanced || (accuser.deeds & kSentMessage) != 0};
}

void RdmapDecoder::note_deeds(Half& own, const ddp::UntaggedHeader& header, std::size_t len) {
  const Opcode opcode{rdmap::parse_control(header.rsvd_ulp).opcode};
  if (opcode == Opcode::kTerminate) {
    own.deeds |= (own.deeds & kSentTerminate) != 0 ? kSentTerminates : kSentTerminate;
    return;
  }
  own.deeds |= kDeedsOf[static_cast<std::size_t>(opcode)];
  if (len != 0) own.deeds |= kSentOctets;
  if (header.mo != 0 || !header.last) own.deeds |= kSentOffset;
  if (header.qn >= ddp::kNumQueues) own.deeds |= kSentQueue;
}

void RdmapDecoder::note_gap(Side of, std::string_view why) {
  if (why_uncertain_.empty()) why_uncertain_ = why;
  half(of).has_gap = true;
  rules_.on_gap(of);
  upper_.on_gap(of);
}

void RdmapDecoder::on_tagged(Side from, const ddp::TaggedHeader& header, ConstBytes payload, std::size_t len,
                             Frame& frame) {
  tell_segment(header, payload.size(), len, options_, frame);
  half(from).stags.on_sent(header.stag);
  half(from).sent.on_sent(SentSegments::sent_of(header, len));
  half(from).deeds |= kSentMessage | (len != 0 ? kSentTagged : 0);
  const auto control = rdmap::parse_control(header.rsvd_ulp);
  find_reserved_bits(header.rsvd, header.rsvd_ulp, frame);
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
  if (opcode == Opcode::kReadResponse && rules_.on_read_response(from, header, len, frame))
    half(from).sent.note_asked();
  const bool is_write = opcode == Opcode::kWrite;
  TaggedMessages& messages = is_write ? half(from).writes : half(from).read_responses;
  messages.judge(header, len, !is_write, frame);
  if (is_write && messages.splits(header)) {
    upper_.on_written(from, messages.stretch().stag, messages.stretch().to, messages.stretch().len);
  }
  messages.keep(header, payload, len, frame.arrival.time);
  LayerWriter layer(frame, LayerKind::kRdmap, options_, Source::kUlpdu);
  if (options_.fields) tell_control(header.rsvd_ulp, layer);
  if (!header.last) return;
  tell_tagged(from, opcode, messages.stretch(), frame, layer);
  messages.end_message();
}

void RdmapDecoder::tell_tagged(Side from, Opcode opcode, const TaggedMessages::Stretch& stretch, Frame& frame,
                               LayerWriter& layer) {
  frame.facts.rdma = {opcode_str(opcode), stretch.len, stretch.num_segments};
  layer.line(FMT_COMPILE("{}, STag {}, TO {:#x}, {} bytes"), opcode_str(opcode), Hex32(stretch.stag), stretch.to,
             stretch.len);
  tell_segments(stretch.num_segments, layer);
  upper_.on_transfer({.kind = opcode == Opcode::kWrite ? Transfer::Kind::kWrite : Transfer::Kind::kReadResponse,
                      .from = from,
                      .stag = stretch.stag,
                      .to = stretch.to,
                      .len = stretch.len,
                      .head = stretch.head,
                      .began = stretch.began,
                      .in_order = rules_.is_judging()},
                     frame, layer);
}

void RdmapDecoder::on_untagged(Side from, const ddp::UntaggedHeader& header, ConstBytes payload, std::size_t len,
                               Frame& frame) {
  tell_segment(header, payload.size(), len, options_, frame);
  note_deeds(half(from), header, len);
  const auto control = rdmap::parse_control(header.rsvd_ulp);
  const bool is_read = Opcode{control.opcode} == Opcode::kReadRequest;
  half(from).sent.on_sent(SentSegments::sent_of(header, len),
                          is_read ? rdmap::parse_read_request_header(payload) : std::nullopt);
  find_reserved_bits(header.rsvd, header.rsvd_ulp, frame);
  find_header_faults(false, header.dv, control, header.qn, version_, frame);
  if (control.opcode < rdmap::kNumOpcodes7306) {
    find_invalidate_stag(Opcode{control.opcode}, header.rsvd_ulp_8_39, frame);
  }
  LayerWriter layer(frame, LayerKind::kRdmap, options_, Source::kUlpdu);
  if (options_.fields) {
    tell_control(header.rsvd_ulp, layer);
    tell_invalidate(header, layer);
  }
  if (header.qn >= kNumQueues) {
    frame.findings.push_back({"DDP-7.1-01", fmt::format("queue {} does not exist", header.qn),
                              terminated(rdmap::to_terminate(ddp::Error::kInvalidQn))});
    return;
  }
  UntaggedQueue& queue = half(from).queues[header.qn];
  const bool is_end = queue.take(header, payload, len, frame);
  if (!header.last) find_missing_last(header, queue.octets(), len, frame);
  const auto num_lost = queue.resumed();
  if (num_lost && header.qn == 0) upper_.on_resumed(from, *num_lost);
  if (!is_end) return;
  on_message(from, header, queue, frame);
  queue.end_message();
}

void RdmapDecoder::on_message(Side from, const ddp::UntaggedHeader& header, const UntaggedQueue& queue, Frame& frame) {
  const auto control = rdmap::parse_control(header.rsvd_ulp);
  if (control.opcode >= rdmap::kNumOpcodes7306) return;
  const Opcode opcode{control.opcode};
  frame.message = queue.octets();
  LayerWriter layer = LayerWriter::again(frame, options_, Source::kMessage);
  if (queue.is_broken()) {
    if (why_uncertain_.empty()) why_uncertain_ = "the capture lacks a part of a message";
    rules_.on_gap(from);
    if (header.qn == 0 && !queue.is_counted()) upper_.on_resumed(from, 1);
    layer.line(FMT_COMPILE("{}, MSN {}, whose beginning is not in the capture"), opcode_str(opcode), header.msn.value);
    return;
  }
  frame.facts.rdma = {opcode_str(opcode), queue.len(), queue.num_segments()};
  frame.facts.is_terminate = opcode == Opcode::kTerminate;
  const bool is_whole = queue.is_whole();
  switch (opcode) {
    case Opcode::kReadRequest: return tell_read_request(from, header, is_whole, frame, layer);
    case Opcode::kTerminate:
      tell_terminate(frame.message, is_whole, frame, layer);
      // The other side's fault is the one that the first Terminate named.
      if (rules_.has_terminated(from)) std::erase_if(frame.findings, [](const Finding& one) { return one.is_blame; });
      rules_.on_terminate(from);
      if (is_whole && rules_.is_judging()) judge_terminated(from, frame);
      return;
    case Opcode::kAtomicRequest: return tell_atomic_request(from, header, is_whole, frame, layer);
    case Opcode::kAtomicResponse: return tell_atomic_response(from, header, is_whole, frame, layer);
    default: return tell_send(from, opcode, header, queue, frame, layer);
  }
}

// What of the named message shows that the side has not sent it. Empty: it may have.
std::string RdmapDecoder::unsent_message(const Half& half, const ddp::Segment& named) {
  if (const auto* tagged = std::get_if<ddp::TaggedHeader>(&named.header)) {
    return half.stags.may_have_sent(tagged->stag) ? "" : fmt::format("STag {:#010x}", tagged->stag.value);
  }
  const auto& untagged = std::get<ddp::UntaggedHeader>(named.header);
  if (untagged.qn >= kNumQueues || half.queues[untagged.qn].may_have_sent(untagged.msn)) return "";
  return fmt::format("MSN {} of queue {}", untagged.msn.value, untagged.qn);
}

// RFC 5040 section 7.1: the header in a Terminate is that of a message which has come. siw may write any MSN.
void RdmapDecoder::judge_terminated(Side from, Frame& frame) const {
  const auto message = rdmap::parse_terminate(frame.message);
  if (!message || message->siw) return;
  const auto named = ddp::parse_segment_wire(message->ddp());
  if (!named) return;
  const Half& other_half = halves_[static_cast<std::size_t>(other(from))];
  if (other_half.has_unread) return;  // the receiver may have refused a message there by its headers
  const std::string what = unsent_message(other_half, *named);
  if (what.empty()) {
    SentSegments::Weighed weighed = other_half.sent.weigh(*named, *message);
    frame.facts.names_asked = weighed.is_asked;
    frame.facts.misnamed = std::move(weighed.unsent);
    return;
  }
  const auto* untagged = std::get_if<ddp::UntaggedHeader>(&named->header);
  const bool is_read =
      untagged != nullptr && Opcode{rdmap::parse_control(untagged->rsvd_ulp).opcode} == Opcode::kReadRequest;
  frame.facts.names_unsent = true;
  frame.findings.push_back(
      {is_read ? "RDMAP-7.1-04" : "RDMAP-7.1-03",
       fmt::format("the terminated header has {}, and the other side has not sent it yet", what),
       "the receiver blames another message, or none",
       {Source::kMessage, rdmap::kTerminateControlLen + 2, static_cast<std::uint32_t>(message->ddp_header_len)}});
}

void RdmapDecoder::tell_send(Side from, Opcode opcode, const ddp::UntaggedHeader& header, const UntaggedQueue& queue,
                             Frame& frame, LayerWriter& layer) {
  Send send{.from = from, .octets = queue.octets(), .len = queue.len(), .in_order = rules_.is_judging()};
  layer.line(FMT_COMPILE("{}, MSN {}, {} bytes"), opcode_str(opcode), header.msn.value, queue.len());
  tell_segments(queue.num_segments(), layer);
  if (rdmap::invalidates(opcode)) {
    send.invalidated = header.rsvd_ulp_8_39;
    layer.line(FMT_COMPILE(", invalidates STag {}"), Hex32(header.rsvd_ulp_8_39));
  }
  if (rdmap::is_immediate(opcode)) return tell_immediate(queue, frame, layer);
  if (rdmap::is_send(opcode)) upper_.on_send(send, frame);
}

void RdmapDecoder::tell_immediate(const UntaggedQueue& queue, Frame& frame, LayerWriter& layer) {
  if (queue.len() != rdmap::kImmediateLen) {
    frame.findings.push_back({"EXT-6.3-04", fmt::format("Immediate Data of {} bytes, not 8", queue.len()),
                              terminated(rdmap::kStreamCatastrophic)});
    return;
  }
  if (!queue.is_whole()) return;
  layer.text(": ");
  std::string hex;
  for (const std::uint8_t octet : queue.octets()) hex += fmt::format("{:02x}", octet);
  layer.line(FMT_COMPILE("{}"), hex);
  layer.field("Immediate Data", 0, rdmap::kImmediateLen, "0x{}", hex);
}

// A request or response that the rules cannot count is a gap for them.
void RdmapDecoder::tell_cut(Side from, const Frame& frame, LayerWriter& layer) {
  if (why_uncertain_.empty()) why_uncertain_ = "the capture cut a packet";
  rules_.on_gap(from);
  layer.line(FMT_COMPILE("{}, which the capture cut short"), frame.facts.rdma->operation);
}

void RdmapDecoder::tell_read_request(Side from, const ddp::UntaggedHeader& header, bool is_whole, Frame& frame,
                                     LayerWriter& layer) {
  const auto request = rdmap::parse_read_request_header(frame.message);
  if (!request) {
    if (!is_whole) return tell_cut(from, frame, layer);
    layer.line(FMT_COMPILE("RDMA Read Request of {} bytes, not 28"), frame.facts.rdma->octets);
    const bool is_short = frame.message.size() < rdmap::kReadRequestHeaderLen;
    frame.findings.push_back(
        {is_short ? "RDMAP-4.4-01" : "DDP-7.1-08", "a Read Request has 28 bytes",
         terminated(is_short ? rdmap::kStreamCatastrophic : rdmap::to_terminate(ddp::Error::kMessageTooLong))});
    return;
  }
  layer.line(FMT_COMPILE("RDMA Read Request, MSN {}: {} bytes at STag {}, TO {:#x} to STag {}, TO {:#x}"),
             header.msn.value, request->size, Hex32(request->src_stag.value), request->src_to,
             Hex32(request->sink_stag.value), request->sink_to);
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
    if (!is_whole) return tell_cut(from, frame, layer);
    layer.line(FMT_COMPILE("Atomic Request of {} bytes, not 52"), frame.facts.rdma->octets);
    frame.findings.push_back({"EXT-4.2-01", "an Atomic Request has 52 bytes", terminated(rdmap::kStreamCatastrophic)});
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
  constexpr std::uint64_t kAtomicLen = 8;
  if (rdmap::is_atomic_op(request->aop_code) && request->to % kAtomicLen != 0) {
    frame.findings.push_back({is_add ? "EXT-5.1.1-04" : "EXT-5.1.2-04",
                              fmt::format("an Atomic at TO {:#x}, which is no multiple of 8", request->to),
                              terminated(rdmap::kStreamCatastrophic)});
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
    if (!is_whole) return tell_cut(from, frame, layer);
    layer.line(FMT_COMPILE("Atomic Response of {} bytes, not 12"), frame.facts.rdma->octets);
    frame.findings.push_back(
        {"EXT-5.2.2-06", "an Atomic Response has 12 bytes", terminated(rdmap::kStreamCatastrophic)});
    return;
  }
  layer.line(FMT_COMPILE("Atomic Response, MSN {}: the word was {:#x}, request {:#x}"), header.msn.value,
             response->original, response->request_id);
  layer.field("Original Request Identifier", 0, 4, "{:#x}", response->request_id);
  layer.field("Original Remote Data Value", 4, 8, "{:#x}", response->original);
  rules_.on_atomic_response(from, response->request_id, frame);
}

}  // namespace weft::apps::dissect
