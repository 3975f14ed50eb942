#include "apps/dissect/terminate_layer.h"

#include <fmt/format.h>

#include <string>

#include "apps/dissect/layer_writer.h"
#include "rdmap/diagnosis.h"
#include "rdmap/terminate.h"

namespace weft::apps::dissect {

namespace {

std::string hex(ConstBytes octets) {
  std::string text = "0x";
  for (const std::uint8_t octet : octets) fmt::format_to(std::back_inserter(text), "{:02x}", octet);
  return text;
}

void tell_fields(ConstBytes body, const rdmap::TerminateMessage& message, LayerWriter& layer) {
  constexpr std::size_t kBitsAt = 2, kLenAt = 4, kHeadersAt = 6;
  if (!layer.wants_fields()) return;
  const std::uint8_t bits = body[kBitsAt];
  layer.field("Layer", 0, 1, "{}", static_cast<int>(message.what.layer));
  layer.field("EType", 0, 1, "{}", message.what.etype);
  layer.field("Error Code", 1, 1, "{}", message.what.code);
  layer.field("M (DDP Segment Length)", kBitsAt, 1, "{}", bits >> 7 & 1);
  layer.field("D (DDP header)", kBitsAt, 1, "{}", bits >> 6 & 1);
  layer.field("R (RDMAP header)", kBitsAt, 1, "{}", bits >> 5 & 1);
  layer.field("meaning", 0, 2, "{}", rdmap::describe(message.what));
  if (message.siw) layer.field("meaning, as siw wrote it", 0, 2, "{}", rdmap::describe(*message.siw));
  if (message.segment_len) layer.field("DDP Segment Length", kLenAt, 2, "{}", *message.segment_len);
  if (message.ddp_header_len != 0) {
    layer.field("terminated DDP header", kHeadersAt, message.ddp_header_len, "{}", hex(message.ddp()));
  }
  if (message.has_rdma_header) {
    layer.field("terminated RDMAP header", kHeadersAt + message.ddp_header_len, message.rdma_header.size(), "{}",
                hex(message.rdma_header));
  }
}

// Failures of the sender itself, and of TCP.
bool is_own_failure(const rdmap::Terminate& what) {
  constexpr std::uint8_t kLost = 0x01, kLocal = 0x05;
  if (what.layer == rdmap::Layer::kLlp) return what.code == kLost || what.code == kLocal;
  return what.etype == 0;
}

void judge(const rdmap::Terminate& what, const rdmap::Diagnosis& diagnosis, Frame& frame) {
  if (diagnosis.requirements.empty() || is_own_failure(what)) return;
  const std::string where = diagnosis.where.empty() ? "" : "; " + diagnosis.where;
  frame.findings.push_back({diagnosis.requirements.substr(0, diagnosis.requirements.find(' ')),
                            fmt::format("this Terminate blames the other side: {}{}", rdmap::describe(what), where),
                            fmt::format("the connection ends. Likely cause: {}", diagnosis.cause)});
}

}  // namespace

void tell_terminate(ConstBytes body, bool is_whole, Frame& frame, LayerWriter& layer) {
  const auto message = rdmap::parse_terminate(body);
  if (!message) {
    layer.line(FMT_COMPILE("Terminate of {} bytes: too short"), body.size());
    if (is_whole) {
      frame.findings.push_back(
          {"RDMAP-4.8-01", "a Terminate has 4 octets at least", "the receiver ends the connection without a reason"});
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
  if (is_whole) judge(what, diagnosis, frame);
}

}  // namespace weft::apps::dissect
