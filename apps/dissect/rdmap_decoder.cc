#include "apps/dissect/rdmap_decoder.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <variant>

#include "apps/dissect/effect.h"
#include "apps/dissect/layer_writer.h"
#include "apps/dissect/terminate_layer.h"
#include "ddp/error.h"
#include "mpa/fpdu.h"
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

// Bits that are sent as zero, and that no receiver looks at.
inline void find_reserved_bits(std::uint8_t ddp_rsvd, std::uint8_t rsvd_ulp, Frame& frame) {
  constexpr std::uint8_t kRsv = 0x30;
  if (ddp_rsvd == 0 && (rsvd_ulp & kRsv) == 0) [[likely]]
    return;
  constexpr std::string_view kEffect = "the receiver does not look at them";
  if (ddp_rsvd != 0) {
    frame.findings.push_back({"DDP-4.1-10", fmt::format("Rsvd of DDP is {:#x}", ddp_rsvd), std::string(kEffect)});
  }
  if ((rsvd_ulp & kRsv) != 0) {
    frame.findings.push_back({"RDMAP-4.1-09", "Rsv of RDMAP is not zero", std::string(kEffect)});
  }
}

// The words of Invalidate STag in a message that invalidates nothing.
void find_invalidate_stag(Opcode opcode, std::uint32_t word, Frame& frame) {
  if (word == 0 || rdmap::invalidates(opcode)) return;
  const bool is_rfc7306 = opcode >= Opcode::kImmediate;
  frame.findings.push_back({is_rfc7306 ? "EXT-4.1-07" : "RDMAP-4.1-11",
                            fmt::format("the Invalidate STag field is {:#x} in a message that invalidates none", word),
                            "the receiver does not look at it"});
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

// Rare: kept out of the functions that every segment runs through.
[[gnu::cold]] void find_too_long(Frame& frame) {
  frame.findings.push_back({"DDP-5.2-02", "a message has more than 2^32 - 1 octets",
                            "the receiver may take it for a shorter one, or end the connection"});
}

[[gnu::cold]] void find_empty_segments(std::size_t num, Frame& frame) {
  frame.findings.push_back({"DDP-5.2-11", fmt::format("a message without octets in {} segments", num),
                            "the receiver takes it as it stands"});
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
  Half& half = halves_[static_cast<std::size_t>(from)];
  if (!half.was_early) half.rtr_due = start.rtr;
  rules_.on_start(from, start.ird, start.is_responder);
}

void RdmapDecoder::on_fpdu(Side from, const Fpdu& fpdu, Frame& frame) {
  if (!version_) {
    // An FPDU before the Reply, or without one: the directions are not in their order.
    halves_[static_cast<std::size_t>(from)].was_early = true;
    stop_judging("an FPDU stands before the MPA startup frames of both sides, or without them");
  }
  rules_.on_fpdu(from, frame);
  if (fpdu.ulpdu_len > mpa::kMaxMulpdu) {
    frame.findings.push_back({"MPA-3-05", fmt::format("a ULPDU of {} bytes, above {}", fpdu.ulpdu_len, mpa::kMaxMulpdu),
                              "the receiver may have no room for it, and end the connection"});
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
  Half& half = halves_[static_cast<std::size_t>(from)];
  if (half.rtr_due.any()) judge_first(half, fpdu, *segment, frame);
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
                            "the responder may go on, or end the connection"});
}

void RdmapDecoder::on_gap(Side from) {
  stop_judging("bytes are missing in the capture");
  upper_.on_gap(from);
  Half& half = halves_[static_cast<std::size_t>(from)];
  for (Untagged& queue : half.queues) {
    queue.broken = true;
    queue.next_msn.reset();
  }
  half.rtr_due = {};
  for (Tagged& under_way : half.tagged) under_way.num_segments = 0;
  half.extents = {};
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
  if (opcode == Opcode::kReadResponse) rules_.on_read_response(from, header, len, frame);
  const std::size_t index = opcode == Opcode::kWrite ? 0 : 1;
  Tagged& under_way = halves_[static_cast<std::size_t>(from)].tagged[index];
  const bool continues =
      under_way.num_segments != 0 && under_way.stag == header.stag.value && under_way.to + under_way.len == header.to;
  if (under_way.num_segments != 0 && under_way.stag != header.stag.value && rules_.is_judging()) {
    frame.findings.push_back(
        {"DDP-4.2-08",
         fmt::format("STag {:#010x} inside a message that began with {:#010x}", header.stag.value, under_way.stag),
         "the receiver places the message in several buffers, or ends the connection"});
    halves_[static_cast<std::size_t>(from)].extents[index].is_mixed = true;
  }
  Extent& extent = halves_[static_cast<std::size_t>(from)].extents[index];
  const bool is_alone = header.last && extent.num_segments == 0;
  if (!is_alone && rules_.is_judging()) judge_extent(extent, header, len, frame);
  if (!continues) {
    const bool is_split = under_way.num_segments != 0 && opcode == Opcode::kWrite;
    if (is_split) upper_.on_written(from, under_way.stag, under_way.to, under_way.len);
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

// RFC 5041 section 5.2: the segments of a message are beside each other. Their order is of no matter.
void RdmapDecoder::judge_extent(Extent& extent, const ddp::TaggedHeader& header, std::size_t len, Frame& frame) {
  const std::uint64_t before = extent.len;
  extent.is_mixed |= header.to > UINT64_MAX - len;
  if (len != 0) {
    extent.begin = std::min(extent.begin, header.to);
    extent.end = std::max(extent.end, header.to + len);
  }
  extent.len += len;
  ++extent.num_segments;
  if (before <= UINT32_MAX && extent.len > UINT32_MAX) find_too_long(frame);
  if (!header.last) return;
  const Extent whole = std::exchange(extent, {});
  if (whole.len == 0 && whole.num_segments > 1) find_empty_segments(whole.num_segments, frame);
  const bool is_response =
      rdmap::parse_control(header.rsvd_ulp).opcode == static_cast<std::uint8_t>(Opcode::kReadResponse);
  if (is_response || whole.is_mixed || whole.len == 0 || whole.end - whole.begin == whole.len) return;
  frame.findings.push_back({"DDP-5.2-09",
                            fmt::format("{} bytes from TO {:#x} to {:#x}: the segments are not beside each other",
                                        whole.len, whole.begin, whole.end),
                            "the receiver places them by their TOs, and leaves octets as they were"});
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
  find_reserved_bits(header.rsvd, header.rsvd_ulp, frame);
  find_header_faults(false, header.dv, control, header.qn, version_, frame);
  if (control.opcode < rdmap::kNumOpcodes7306) {
    find_invalidate_stag(Opcode{control.opcode}, header.rsvd_ulp_8_39, frame);
  }
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
  if (queue.num_segments != 0 && !queue.broken && control.opcode != queue.opcode) {
    frame.findings.push_back({"RDMAP-7.2-02",
                              fmt::format("opcode {} inside a message of opcode {}", control.opcode, queue.opcode),
                              terminated(rdmap::kUnexpectedOpcode)});
  }
  if (queue.num_segments != 0 && !queue.broken && header.rsvd_ulp_8_39 != queue.rsvd_ulp_8_39) {
    frame.findings.push_back({"DDP-4.3-05",
                              fmt::format("bits 8 to 39 of RsvdULP are {:#x} inside a message that began with {:#x}",
                                          header.rsvd_ulp_8_39, queue.rsvd_ulp_8_39),
                              "the receiver takes them from any segment of the message"});
  }
  queue.opcode = control.opcode;
  queue.rsvd_ulp_8_39 = header.rsvd_ulp_8_39;
  keep(queue, header, payload, len);
  if (queue.len > UINT32_MAX && queue.len - len <= UINT32_MAX) find_too_long(frame);
  if (!header.last) return;
  if (queue.len == 0 && queue.num_segments > 1 && !queue.broken) find_empty_segments(queue.num_segments, frame);
  judge_order(queue, header, frame);
  on_message(from, header, queue, frame);
  // The frame shows the octets until it is told.
  held_.now -= queue.octets.capacity();
  held_.last = std::exchange(queue.octets, {});
  begin(queue);
}

RdmapDecoder::~RdmapDecoder() {
  for (Half& half : halves_) std::ranges::for_each(half.queues, [this](Untagged& queue) { begin(queue); });
}

void RdmapDecoder::begin(Untagged& queue) {
  held_.now -= queue.octets.capacity();
  queue.octets = {};
  queue.whole = {};
  queue.len = queue.end = queue.num_segments = 0;
  queue.broken = queue.is_cut = queue.scattered = false;
}

// A message of one segment stays where it is: most are.
void RdmapDecoder::keep(Untagged& queue, const ddp::UntaggedHeader& header, ConstBytes payload, std::size_t len) {
  const std::size_t mo = header.mo;
  queue.scattered |= mo != queue.len;
  if (header.last && queue.num_segments == 0 && mo == 0) {
    queue.whole = payload.first(std::min(payload.size(), kMaxMessage));
  } else if (const std::size_t kept = std::min(payload.size(), kMaxMessage - std::min(kMaxMessage, mo));
             !queue.is_cut && has_room(queue, mo, kept)) {
    held_.now -= queue.octets.capacity();
    queue.octets.resize(std::max(queue.octets.size(), mo + kept));
    held_.now += queue.octets.capacity();
    std::copy_n(payload.begin(), kept, queue.octets.begin() + static_cast<std::ptrdiff_t>(mo));
    queue.whole = queue.octets;
  } else {
    queue.is_cut = true;  // octets behind ones that are missing are not kept
  }
  queue.is_cut |= payload.size() != len;
  queue.len += len;
  queue.end = std::max(queue.end, mo + len);
  ++queue.num_segments;
}

// Whether `kept` octets at `mo` can be held. Holes take memory for which no octet came: there is room for few of them.
bool RdmapDecoder::has_room(const Untagged& queue, std::size_t mo, std::size_t kept) const {
  const std::size_t size = std::max(queue.octets.size(), mo + kept);
  const std::size_t more = size - std::min(size, queue.octets.capacity());
  return mo < kMaxMessage && size <= queue.len + kept + kMaxHoles && held_.now + more <= HeldMessages::kMax;
}

// RFC 5041 section 5.3: MSNs in order. A message begins with the first segment that has the MSN which is due; behind a
// gap, with MO 0.
void RdmapDecoder::keep_order(Untagged& queue, const ddp::UntaggedHeader& header, Frame& frame) {
  const std::uint32_t msn = header.msn.value;
  const bool is_due = queue.next_msn && *queue.next_msn == msn;
  if (queue.next_msn && !is_due) {
    frame.findings.push_back({"DDP-7.1-09",
                              fmt::format("MSN {} in queue {}, where {} is due", msn, header.qn, *queue.next_msn),
                              terminated(rdmap::to_terminate(ddp::Error::kMsnRange))});
  }
  if (queue.num_segments == 0 || !is_due) {
    begin(queue);
    queue.broken = !is_due && header.mo != 0;
  }
  queue.next_msn = header.last ? header.msn.next().value : msn;
}

// Segments come in the order of their MOs (RFC 5041 section 5.3), and beside each other.
void RdmapDecoder::judge_order(Untagged& queue, const ddp::UntaggedHeader& header, Frame& frame) {
  if (!queue.scattered || queue.broken) return;
  queue.broken = queue.is_cut;
  if (queue.end == queue.len) {
    frame.findings.push_back({"DDP-5.3-02",
                              fmt::format("the segments of MSN {} are not in the order of their MOs", header.msn.value),
                              "the receiver places them by their MOs, unless it takes them in order alone"});
    return;
  }
  queue.broken = true;
  frame.findings.push_back({"DDP-7.1-07",
                            fmt::format("{} bytes end at MO {}: they are not beside each other", queue.len, queue.end),
                            terminated(rdmap::to_terminate(ddp::Error::kInvalidMo))});
}

void RdmapDecoder::on_message(Side from, const ddp::UntaggedHeader& header, Untagged& queue, Frame& frame) {
  const auto control = rdmap::parse_control(header.rsvd_ulp);
  if (control.opcode >= rdmap::kNumOpcodes7306) return;
  const Opcode opcode{control.opcode};
  frame.message = queue.whole;
  LayerWriter layer = LayerWriter::again(frame, options_, Source::kMessage);
  if (queue.broken) {
    stop_judging("the capture lacks a part of a message");
    layer.line(FMT_COMPILE("{}, MSN {}, whose beginning is not in the capture"), opcode_str(opcode), header.msn.value);
    return;
  }
  frame.facts.rdma = {opcode_str(opcode), queue.len, queue.num_segments};
  frame.facts.is_terminate = opcode == Opcode::kTerminate;
  const bool is_whole = queue.whole.size() == queue.len;
  switch (opcode) {
    case Opcode::kReadRequest: return tell_read_request(from, header, is_whole, frame, layer);
    case Opcode::kTerminate:
      rules_.on_terminate(from);
      tell_terminate(frame.message, is_whole, frame, layer);
      if (is_whole && rules_.is_judging()) judge_terminated(from, frame);
      return;
    case Opcode::kAtomicRequest: return tell_atomic_request(from, header, is_whole, frame, layer);
    case Opcode::kAtomicResponse: return tell_atomic_response(from, header, is_whole, frame, layer);
    default: return tell_send(from, opcode, header, queue, frame, layer);
  }
}

// RFC 5040 section 7.1: the header in a Terminate is that of a message which has come. siw may write any MSN.
void RdmapDecoder::judge_terminated(Side from, Frame& frame) const {
  const auto message = rdmap::parse_terminate(frame.message);
  if (!message || message->siw) return;
  const auto segment = ddp::parse_segment_wire(message->ddp());
  const auto* header = segment ? std::get_if<ddp::UntaggedHeader>(&segment->header) : nullptr;
  if (header == nullptr || header->qn >= kNumQueues) return;
  const Untagged& queue = halves_[static_cast<std::size_t>(other(from))].queues[header->qn];
  if (!queue.next_msn) return;
  const auto ahead = static_cast<std::int32_t>(header->msn.value - *queue.next_msn);
  if (ahead < 0 || (ahead == 0 && queue.num_segments != 0)) return;
  const bool is_read = rdmap::parse_control(header->rsvd_ulp).opcode == static_cast<std::uint8_t>(Opcode::kReadRequest);
  frame.findings.push_back(
      {is_read ? "RDMAP-7.1-04" : "RDMAP-7.1-03",
       fmt::format("the terminated header has MSN {} of queue {}, and the other side has not sent it yet",
                   header->msn.value, header->qn),
       "the receiver blames another message, or none",
       {Source::kMessage, rdmap::kTerminateControlLen + 2, static_cast<std::uint32_t>(message->ddp_header_len)}});
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

// A request or response that the rules cannot count is a gap for them.
void RdmapDecoder::tell_cut(const Frame& frame, LayerWriter& layer) {
  stop_judging("the capture cut a packet");
  layer.line(FMT_COMPILE("{}, which the capture cut short"), frame.facts.rdma->operation);
}

void RdmapDecoder::tell_read_request(Side from, const ddp::UntaggedHeader& header, bool is_whole, Frame& frame,
                                     LayerWriter& layer) {
  const auto request = rdmap::parse_read_request_header(frame.message);
  if (!request) {
    if (!is_whole) return tell_cut(frame, layer);
    layer.line(FMT_COMPILE("RDMA Read Request of {} bytes, not 28"), frame.facts.rdma->octets);
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
    if (!is_whole) return tell_cut(frame, layer);
    layer.line(FMT_COMPILE("Atomic Request of {} bytes, not 52"), frame.facts.rdma->octets);
    frame.findings.push_back({"EXT-4.2-01", "an Atomic Request has 52 octets", terminated(rdmap::kStreamCatastrophic)});
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
    if (!is_whole) return tell_cut(frame, layer);
    layer.line(FMT_COMPILE("Atomic Response of {} bytes, not 12"), frame.facts.rdma->octets);
    frame.findings.push_back(
        {"EXT-5.2.2-06", "an Atomic Response has 12 octets", terminated(rdmap::kStreamCatastrophic)});
    return;
  }
  layer.line(FMT_COMPILE("Atomic Response, MSN {}: the word was {:#x}, request {:#x}"), header.msn.value,
             response->original, response->request_id);
  layer.field("Original Request Identifier", 0, 4, "{:#x}", response->request_id);
  layer.field("Original Remote Data Value", 4, 8, "{:#x}", response->original);
  rules_.on_atomic_response(from, response->request_id, frame);
}

}  // namespace weft::apps::dissect
