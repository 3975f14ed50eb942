#include "apps/dissect/terminate_layer.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "apps/dissect/effect.h"
#include "apps/dissect/layer_writer.h"
#include "rdmap/diagnosis.h"
#include "rdmap/header.h"
#include "rdmap/terminate.h"

namespace weft::apps::dissect {

namespace {

std::string hex(ConstBytes octets) {
  std::string text = "0x";
  for (const std::uint8_t octet : octets) fmt::format_to(std::back_inserter(text), "{:02x}", octet);
  return text;
}

constexpr std::size_t kBitsAt = 2, kLenAt = 4, kHeadersAt = 6;

// Bits: which parts behind the control octets a Terminate announces.
struct Bits {
  bool m = false, d = false, r = false;
};

Bits bits_as_rfc(unsigned octet) {
  return {(octet & 0x80) != 0, (octet & 0x40) != 0, (octet & 0x20) != 0};
}
Bits bits_as_siw(unsigned octet) {
  return {(octet & 1) != 0, (octet & 2) != 0, (octet & 4) != 0};
}
Bits bits_of(ConstBytes body, const rdmap::TerminateMessage& message) {
  return message.siw ? bits_as_siw(body[kBitsAt]) : bits_as_rfc(body[kBitsAt]);
}

// The control octets as RFC 5040 has them, and where siw wrote them, as it meant them.
void tell_control(ConstBytes body, const rdmap::TerminateMessage& message, LayerWriter& layer) {
  const Bits bits = bits_as_rfc(body[kBitsAt]);
  layer.field("Layer", 0, 1, "{}", static_cast<int>(message.what.layer));
  layer.field("EType", 0, 1, "{}", message.what.etype);
  layer.field("Error Code", 1, 1, "{}", message.what.code);
  layer.field("M (DDP Segment Length)", kBitsAt, 1, "{}", int{bits.m});
  layer.field("D (DDP header)", kBitsAt, 1, "{}", int{bits.d});
  layer.field("R (RDMAP header)", kBitsAt, 1, "{}", int{bits.r});
  layer.field("meaning", 0, 2, "{}", rdmap::describe(message.what));
  if (!message.siw) return;
  const Bits meant = bits_as_siw(body[kBitsAt]);
  layer.field("Layer, as siw wrote it", 0, 1, "{}", static_cast<int>(message.siw->layer));
  layer.field("EType, as siw wrote it", 0, 1, "{}", message.siw->etype);
  layer.field("M, as siw wrote it", kBitsAt, 1, "{}", int{meant.m});
  layer.field("D, as siw wrote it", kBitsAt, 1, "{}", int{meant.d});
  layer.field("R, as siw wrote it", kBitsAt, 1, "{}", int{meant.r});
  layer.field("meaning, as siw wrote it", 0, 2, "{}", rdmap::describe(*message.siw));
}

void tell_fields(ConstBytes body, const rdmap::TerminateMessage& message, LayerWriter& layer) {
  if (!layer.wants_fields()) return;
  tell_control(body, message, layer);
  if (message.segment_len) layer.field("DDP Segment Length", kLenAt, 2, "{}", *message.segment_len);
  if (message.ddp_header_len != 0) {
    layer.field("terminated DDP header", kHeadersAt, message.ddp_header_len, "{}", hex(message.ddp()));
  }
  if (message.has_rdma_header) {
    layer.field("terminated RDMAP header", kHeadersAt + message.ddp_header_len, message.rdma_header.size(), "{}",
                hex(message.rdma_header));
  }
}

// Failures of the sender itself and of TCP, and startup frames with which the sender cannot go on, though they are
// legal (RFC 6581 sections 9.1 and 9.2).
bool blames_nobody(const rdmap::Terminate& what) {
  constexpr std::uint8_t kLost = 0x01, kLocal = 0x05, kIrd = 0x06, kRtr = 0x07;
  constexpr std::uint8_t kRemoteOperation = 2, kGlobal = 0x08;
  if (what.layer == rdmap::Layer::kLlp) {
    return what.code == kLost || what.code == kLocal || what.code == kIrd || what.code == kRtr;
  }
  if (what.layer == rdmap::Layer::kRdma && what.etype == kRemoteOperation && what.code == kGlobal) return true;
  return what.etype == 0;
}

Place message_place(std::size_t at, std::size_t len) {
  return {Source::kMessage, static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(len)};
}

void judge(const rdmap::Terminate& what, const rdmap::Diagnosis& diagnosis, Frame& frame) {
  if (diagnosis.requirements.empty() || blames_nobody(what)) return;
  const std::string where = diagnosis.where.empty() ? "" : "; " + diagnosis.where;
  frame.findings.push_back({diagnosis.requirements.substr(0, diagnosis.requirements.find(' ')),
                            fmt::format("this Terminate blames the other side: {}{}", rdmap::describe(what), where),
                            may_end(fmt::format("the connection ends. Likely cause: {}", diagnosis.cause)),
                            message_place(0, rdmap::kTerminateControlLen), true});
}

// RFC 5040 section 7.1 and figure 10, RFC 7306 section 8.1 say for each error which headers the Terminate repeats.
template <typename Add>
void judge_headers(const rdmap::Terminate& what, const rdmap::TerminateMessage& message, const Bits& bits, Add add) {
  constexpr std::uint8_t kTaggedBuffer = 1, kUntaggedBuffer = 2, kRemoteProtection = 1;
  constexpr std::string_view kTakes = "the receiver takes the error as it stands";
  const Place announced = message_place(kBitsAt, 1);
  const ConstBytes ddp = message.ddp();
  if (what.layer == rdmap::Layer::kLlp && (bits.d || bits.r)) {
    add("RDMAP-7.1-02", "an error of the LLP with headers of a message", "the receiver may blame a message for it",
        announced);
  }
  const bool is_of_segment =
      what.layer == rdmap::Layer::kDdp && (what.etype == kTaggedBuffer || what.etype == kUntaggedBuffer);
  if (is_of_segment && !bits.d) {
    add("RDMAP-7.1-03", "an error of a DDP segment without the header of the segment", std::string(kTakes), announced);
  }
  if (ddp.empty()) return;
  const rdmap::Opcode opcode{rdmap::parse_control(ddp[1]).opcode};
  const bool is_read = opcode == rdmap::Opcode::kReadRequest;
  if (bits.r && !is_read) {
    add(opcode >= rdmap::Opcode::kImmediate ? "EXT-8.1-02" : "RDMAP-7.1-03",
        "R is set, and the terminated message is no RDMA Read Request", std::string(kTakes), announced);
  }
  if (is_read && !bits.r && what.layer == rdmap::Layer::kRdma && what.etype == kRemoteProtection) {
    add("RDMAP-7.1-04", "an RDMA Read Request is refused without its RDMAP header", std::string(kTakes), announced);
  }
}

// RFC 5040 section 4.8: the parts are those that M, D and R announce, and nothing else.
void judge_parts(ConstBytes body, const rdmap::TerminateMessage& message, Frame& frame) {
  const auto add = [&frame](std::string_view requirement, std::string what, std::string effect, Place place) {
    frame.findings.push_back({requirement, std::move(what), std::move(effect), place});
  };
  const Place control = message_place(0, rdmap::kTerminateControlLen), announced = message_place(kBitsAt, 1);
  const std::string takes_error = "the receiver takes the error without this header";
  if (message.siw) {
    add("RDMAP-4.8-02",
        "the control bytes in the order of a little-endian siw: Layer and EType swapped, M, D and R last",
        "a receiver that does not know siw takes another error from it, and no headers", control);
  }
  constexpr std::uint8_t kReserved = 0x1f;
  if (!message.siw && ((body[kBitsAt] & kReserved) != 0 || body[kBitsAt + 1] != 0)) {
    add("RDMAP-4.8-12", "Reserved bits of the control bytes are not zero", "the receiver does not look at them",
        message_place(kBitsAt, 2));
  }
  const Bits bits = bits_of(body, message);
  const bool has_len = body.size() >= kHeadersAt;
  if ((bits.m || bits.d) && !has_len) {
    add("RDMAP-4.8-15", "the DDP Segment Length that M or D announces is missing", takes_error, announced);
  }
  const bool lacks_ddp = bits.d && message.ddp_header_len == 0;
  if (lacks_ddp) add("RDMAP-4.8-16", "D is set, and the terminated DDP header is missing", takes_error, announced);
  const bool lacks_rdma = bits.r && !message.has_rdma_header;
  if (lacks_rdma) add("RDMAP-4.8-18", "R is set, and the terminated RDMAP header is missing", takes_error, announced);
  const rdmap::Terminate& what = message.siw ? *message.siw : message.what;
  if (bits.d && what.layer == rdmap::Layer::kRdma && what.etype == 0) {
    add("RDMAP-4.8-17", "a local catastrophic error with a DDP header", "the receiver may blame a message for it",
        control);
  }
  judge_headers(what, message, bits, add);
  if (lacks_ddp || lacks_rdma) return;
  const std::size_t headers_at = bits.m || bits.d ? kHeadersAt : rdmap::kTerminateControlLen;
  const std::size_t due = headers_at + message.ddp_header_len + (bits.r ? rdmap::kReadRequestHeaderLen : 0);
  if (body.size() <= due) return;
  add("RDMAP-4.8-01", fmt::format("{} bytes that neither M, D nor R announces", body.size() - due),
      "the receiver does not look at them", message_place(due, body.size() - due));
}

}  // namespace

void tell_terminate(ConstBytes body, bool is_whole, Frame& frame, LayerWriter& layer) {
  const auto message = rdmap::parse_terminate(body);
  if (!message) {
    layer.line(FMT_COMPILE("Terminate of {} bytes: too short"), body.size());
    if (is_whole) {
      frame.findings.push_back({"RDMAP-4.8-01", "a Terminate has 4 bytes at least",
                                may_end("the receiver ends the connection without a reason")});
    }
    return;
  }
  const rdmap::Terminate& what = message->siw ? *message->siw : message->what;
  const rdmap::Diagnosis diagnosis = rdmap::diagnose(*message, rdmap::Course::kReceived);
  layer.line(FMT_COMPILE("Terminate, {}"), rdmap::describe(what));
  if (!diagnosis.told.empty()) layer.line(FMT_COMPILE("; {}"), diagnosis.told);
  if (!diagnosis.where.empty()) layer.line(FMT_COMPILE("; {}"), diagnosis.where);
  if (!diagnosis.requirements.empty()) layer.line(FMT_COMPILE(" [{}]"), diagnosis.requirements);
  if (!diagnosis.cause.empty()) layer.line(FMT_COMPILE(". Likely cause: {}"), diagnosis.cause);
  tell_fields(body, *message, layer);
  if (!is_whole) return;
  judge_parts(body, *message, frame);
  judge(what, diagnosis, frame);
}

}  // namespace weft::apps::dissect
