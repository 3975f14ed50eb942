#include "apps/dissect/segment_rules.h"

#include <fmt/format.h>

#include "apps/dissect/effect.h"
#include "apps/dissect/segment_layer.h"
#include "ddp/error.h"
#include "ddp/segment.h"
#include "ddp/untagged_queue.h"
#include "rdmap/atomic.h"
#include "rdmap/terminate.h"

namespace weft::apps::dissect {

using rdmap::Opcode;

void find_set_bits(std::uint8_t ddp_rsvd, std::uint8_t rsvd_ulp, Frame& frame) {
  constexpr std::string_view kEffect = "the receiver does not look at them";
  if (ddp_rsvd != 0) {
    frame.findings.push_back({"DDP-4.1-10", fmt::format("Rsvd of DDP is {:#x}", ddp_rsvd), std::string(kEffect)});
  }
  if ((rsvd_ulp & kRsv) != 0) {
    frame.findings.push_back({"RDMAP-4.1-09", "Rsv of RDMAP is not zero", std::string(kEffect)});
  }
}

void find_odd_invalidate_stag(Opcode opcode, std::uint32_t word, Frame& frame) {
  const bool is_rfc7306 = opcode >= Opcode::kImmediate;
  frame.findings.push_back({is_rfc7306 ? "EXT-4.1-07" : "RDMAP-4.1-11",
                            fmt::format("the Invalidate STag field is {:#x} in a message that invalidates none", word),
                            "the receiver does not look at it"});
}

void find_wrong_header(bool tagged, std::uint8_t dv, rdmap::Control control, std::uint32_t qn,
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
  } else if (!tagged && qn < ddp::kNumQueuesWithAtomics && qn != rdmap::queue_of(opcode)) {
    // DDP refuses a queue that does not exist, before RDMAP looks at the opcode.
    frame.findings.push_back(
        {"RDMAP-7.2-02", fmt::format("{} in queue {}", opcode_str(opcode), qn), terminated(rdmap::kUnexpectedOpcode)});
  }
}

namespace {

// What M, D and R announce, and the T bit of the terminated header (RFC 5040 section 4.8). Without these octets, a
// Terminate may be as long as any. The word of siw is read as it stands: siw sends one segment.
std::size_t terminate_len(ConstBytes message) {
  constexpr std::size_t kBitsAt = 2, kHeaderAt = rdmap::kTerminateControlLen + 2;
  constexpr std::uint8_t kM = 0x80, kD = 0x40, kR = 0x20, kTagged = 0x80;
  if (message.size() < rdmap::kTerminateControlLen) return rdmap::kTerminateMaxLen;
  const std::uint8_t bits = message[kBitsAt];
  std::size_t len = (bits & (kM | kD)) != 0 ? kHeaderAt : rdmap::kTerminateControlLen;
  if ((bits & kR) != 0) len += rdmap::kReadRequestHeaderLen;
  if ((bits & kD) == 0) return len;
  const bool is_tagged = message.size() > kHeaderAt && (message[kHeaderAt] & kTagged) != 0;
  return len + (is_tagged ? ddp::kTaggedHeaderLen : ddp::kUntaggedHeaderLen);
}

// The octets of a message whose length is known.
std::size_t len_of(Opcode opcode, ConstBytes message) {
  switch (opcode) {
    case Opcode::kReadRequest: return rdmap::kReadRequestHeaderLen;
    case Opcode::kTerminate: return terminate_len(message);
    case Opcode::kImmediate:
    case Opcode::kImmediateSe: return rdmap::kImmediateLen;
    case Opcode::kAtomicRequest: return rdmap::kAtomicRequestHeaderLen;
    case Opcode::kAtomicResponse: return rdmap::kAtomicResponseHeaderLen;
    default: return 0;
  }
}

}  // namespace

void find_missing_last(const ddp::UntaggedHeader& header, ConstBytes message, std::size_t len, Frame& frame) {
  const Opcode opcode{rdmap::parse_control(header.rsvd_ulp).opcode};
  const std::size_t due = len_of(opcode, message);
  if (header.last || due == 0 || header.mo >= due || header.mo + len < due) return;
  frame.findings.push_back(
      {"DDP-4.1-04",
       fmt::format("{} of {} bytes without L, and no more of it can come", opcode_str(opcode), header.mo + len),
       "the receiver waits for the rest of the message"});
}

// Rare: kept out of the functions that every segment runs through.
[[gnu::cold]] void find_too_long(Frame& frame) {
  frame.findings.push_back({"DDP-5.2-02", "a message has more than 2^32 - 1 bytes",
                            may_end("the receiver may take it for a shorter one, or end the connection")});
}

[[gnu::cold]] void find_empty_segments(std::size_t num, Frame& frame) {
  frame.findings.push_back(
      {"DDP-5.2-11", fmt::format("a message without bytes in {} segments", num), "the receiver takes it as it stands"});
}

}  // namespace weft::apps::dissect
