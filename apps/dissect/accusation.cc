#include "apps/dissect/accusation.h"

#include <fmt/format.h>

#include <algorithm>
#include <variant>
#include <vector>

#include "ddp/segment.h"
#include "ddp/untagged_queue.h"
#include "rdmap/atomic.h"
#include "rdmap/header.h"

namespace weft::apps::dissect {

using rdmap::Opcode;
using Proof = Trial::Proof;

struct Trial::Header {
  bool is_tagged = false;
  std::uint8_t dv = 0, rv = 0;
  Opcode opcode{};
  std::uint32_t qn = 0, mo = 0;
  std::uint64_t to = 0;
  std::optional<std::size_t> len = {};                // octets behind the header
  std::optional<rdmap::ReadRequestHeader> read = {};  // of an RDMA Read Request
  std::optional<std::uint8_t> version = {};           // that is due
};

namespace {

using Header = Trial::Header;

bool is_read(const Header& one) {
  return !one.is_tagged && one.opcode == Opcode::kReadRequest && !(one.read && one.read->size == 0);
}
bool reads(const Header& one) {
  return is_read(one) || (!one.is_tagged && one.opcode == Opcode::kAtomicRequest);
}
// The address of an Atomic Request is not looked at.
bool read_wraps(const Header& one) {
  if (!one.is_tagged && one.opcode == Opcode::kAtomicRequest) return true;
  return is_read(one) && (!one.read || one.read->src_to > UINT64_MAX - one.read->size);
}
bool invalidates(const Header& one) {
  return !one.is_tagged && rdmap::invalidates(one.opcode);
}
bool reads_or_invalidates(const Header& one) {
  return reads(one) || invalidates(one);
}
bool places(const Header& one) {
  return one.is_tagged && one.len.value_or(1) != 0;
}
// DDP has no code for rights that are missing, and RNICs use RDMAP's for Writes, too (DDP-A-07).
bool needs_rights(const Header& one) {
  return reads_or_invalidates(one) || places(one);
}
bool has_other_rv(const Header& one) {
  return !one.version || one.rv != *one.version;
}
bool has_other_dv(const Header& one) {
  return !one.version || one.dv != *one.version;
}
// Receivers need not know RFC 7306.
bool has_odd_opcode(const Header& one) {
  if (one.opcode >= Opcode::kImmediate || one.is_tagged != rdmap::is_tagged(one.opcode)) return true;
  return !one.is_tagged && one.qn != rdmap::queue_of(one.opcode);
}
bool wraps(const Header& one) {
  return places(one) && (!one.len || one.to > UINT64_MAX - *one.len);
}
bool is_tagged_of_other_version(const Header& one) {
  return one.is_tagged && has_other_dv(one);
}
bool is_untagged(const Header& one) {
  return !one.is_tagged;
}
bool is_untagged_of_other_version(const Header& one) {
  return !one.is_tagged && has_other_dv(one);
}
bool has_odd_queue(const Header& one) {
  return !one.is_tagged && one.qn >= ddp::kNumQueues;
}
// The buffers of the queues behind Sends have a known length.
bool is_long(const Header& one) {
  if (one.is_tagged) return false;
  const std::uint64_t end = one.mo + std::uint64_t{one.len.value_or(SIZE_MAX >> 32)};
  if (one.opcode == Opcode::kReadRequest) return end > rdmap::kReadRequestHeaderLen;
  return end != 0;
}

constexpr std::uint16_t kReads = kSentRead | kSentAtomic;

constexpr Trial kTrials[] = {
    {rdmap::Layer::kRdma, 0, -1, Proof::kOwn},
    {rdmap::Layer::kRdma, 1, 0x00, Proof::kHidden, kReads | kSentInvalidate, reads_or_invalidates,
     "it has sent neither an RDMA Read Request nor a Send with Invalidate"},
    {rdmap::Layer::kRdma, 1, 0x01, Proof::kHidden, kReads, reads, "it has sent no RDMA Read Request for bytes"},
    {rdmap::Layer::kRdma, 1, 0x02, Proof::kHidden, kReads | kSentTagged | kSentInvalidate, needs_rights,
     "it has sent no message that needs access rights"},
    {rdmap::Layer::kRdma, 1, 0x03, Proof::kHidden, kReads | kSentInvalidate, reads_or_invalidates,
     "it has sent neither an RDMA Read Request nor a Send with Invalidate"},
    {rdmap::Layer::kRdma, 1, 0x04, Proof::kShown, kReads, read_wraps, "none of its RDMA Read Requests passes 2^64"},
    {rdmap::Layer::kRdma, 1, 0x09, Proof::kHidden, kSentInvalidate, invalidates, "it has sent no Send with Invalidate"},
    {rdmap::Layer::kRdma, 1, 0xff, Proof::kHidden, kReads | kSentInvalidate, reads_or_invalidates,
     "it has sent neither an RDMA Read Request nor a Send with Invalidate"},
    {rdmap::Layer::kRdma, 2, 0x05, Proof::kShown, kSentMessage, has_other_rv,
     "all its messages have the RV that is due"},
    {rdmap::Layer::kRdma, 2, 0x06, Proof::kShown, kSentMessage, has_odd_opcode,
     "all its messages have opcodes of RFC 5040, each in its model and queue"},
    {rdmap::Layer::kRdma, 2, 0x07, Proof::kHidden, kSentMessage, nullptr, "it has sent no message"},
    {rdmap::Layer::kRdma, 2, 0x08, Proof::kOwn},
    {rdmap::Layer::kRdma, 2, 0x09, Proof::kHidden, kSentInvalidate, invalidates, "it has sent no Send with Invalidate"},
    {rdmap::Layer::kRdma, 2, 0xff, Proof::kHidden, kSentMessage, nullptr, "it has sent no message"},

    {rdmap::Layer::kDdp, 0, 0x00, Proof::kOwn},
    {rdmap::Layer::kDdp, 1, 0x00, Proof::kHidden, kSentTagged, places, "it has sent no tagged segment with bytes"},
    {rdmap::Layer::kDdp, 1, 0x01, Proof::kHidden, kSentTagged, places, "it has sent no tagged segment with bytes"},
    {rdmap::Layer::kDdp, 1, 0x02, Proof::kHidden, kSentTagged, places, "it has sent no tagged segment with bytes"},
    {rdmap::Layer::kDdp, 1, 0x03, Proof::kShown, kSentTagged, wraps, "none of its tagged segments passes 2^64"},
    {rdmap::Layer::kDdp, 1, 0x04, Proof::kShown, kSentMessage, is_tagged_of_other_version,
     "all its tagged segments have the DV that is due"},
    {rdmap::Layer::kDdp, 2, 0x01, Proof::kShown, kSentMessage, has_odd_queue,
     "all its segments are for queues of RFC 5040"},
    {rdmap::Layer::kDdp, 2, 0x02, Proof::kHidden, kSentUntagged | kSentTerminate, is_untagged,
     "it has sent no untagged message"},
    {rdmap::Layer::kDdp, 2, 0x03, Proof::kShown, kSentUntagged, is_untagged, "all its MSNs are the ones that were due"},
    {rdmap::Layer::kDdp, 2, 0x04, Proof::kHidden, kSentOffset, is_untagged,
     "all its messages are of one segment, at MO 0"},
    {rdmap::Layer::kDdp, 2, 0x05, Proof::kHidden, kSentOctets, is_long, "it has sent no untagged message with bytes"},
    {rdmap::Layer::kDdp, 2, 0x06, Proof::kShown, kSentMessage, is_untagged_of_other_version,
     "all its untagged segments have the DV that is due"},
    {rdmap::Layer::kDdp, 3, -1, Proof::kNever, 0, nullptr, "the code is reserved, and no end may send it over MPA"},

    {rdmap::Layer::kLlp, 0, 0x01, Proof::kOwn},
    {rdmap::Layer::kLlp, 0, 0x02, Proof::kShown, 0, nullptr, "every CRC of it fits, or CRCs are not in use"},
    {rdmap::Layer::kLlp, 0, 0x03, Proof::kShown, 0, nullptr, "its Markers and ULPDU_Lengths agree"},
    {rdmap::Layer::kLlp, 0, 0x04, Proof::kShown, 0, nullptr, "its startup frame breaks no rule"},
    {rdmap::Layer::kLlp, 0, 0x05, Proof::kOwn, 0, nullptr, "the set-up of the connection was over"},
    {rdmap::Layer::kLlp, 0, 0x06, Proof::kOwn, 0, nullptr, "no ORD of the responder is above the sender's IRD"},
    {rdmap::Layer::kLlp, 0, 0x07, Proof::kOwn, 0, nullptr, "both startup frames name one RTR, or none is due"},
};

constexpr std::uint8_t kIrdCode = 0x06, kRtrCode = 0x07, kNoBufferCode = 0x02, kUntaggedType = 2;

// The header of the message that the Terminate names.
std::optional<Header> header_of(const rdmap::TerminateMessage& message, const Record& accused) {
  const auto segment = ddp::parse_segment_wire(message.ddp());
  if (!segment) return std::nullopt;
  Header header{.version = accused.version};
  std::size_t header_len = ddp::kUntaggedHeaderLen;
  const auto take = [&header](std::uint8_t dv, std::uint8_t rsvd_ulp) {
    const auto control = rdmap::parse_control(rsvd_ulp);
    header.dv = dv;
    header.rv = control.rv;
    header.opcode = Opcode{control.opcode};
  };
  if (const auto* tagged = std::get_if<ddp::TaggedHeader>(&segment->header)) {
    header_len = ddp::kTaggedHeaderLen;
    header.is_tagged = true;
    header.to = tagged->to;
    take(tagged->dv, tagged->rsvd_ulp);
  } else {
    const auto& untagged = std::get<ddp::UntaggedHeader>(segment->header);
    header.qn = untagged.qn;
    header.mo = untagged.mo;
    take(untagged.dv, untagged.rsvd_ulp);
  }
  // siw counts the octets behind the header alone.
  const std::size_t before = message.siw ? 0 : header_len;
  if (message.segment_len && *message.segment_len >= before) header.len = *message.segment_len - before;
  if (message.has_rdma_header) header.read = rdmap::parse_read_request_header(message.rdma_header);
  return header;
}

// Requests of one queue are counted, and a stream has one Terminate.
std::string refute_no_buffer(const Header& header, const Record& accused) {
  constexpr std::uint32_t kTerminates = 2;
  if (header.qn == kTerminates && (accused.deeds & kSentTerminates) == 0) return "it has sent no second Terminate";
  if (header.qn != 0 && header.qn != kTerminates && accused.knows_requests) {
    return "it has no more RDMA Reads and Atomics under way than the other side takes";
  }
  return "";
}

std::string refute_own(const rdmap::Terminate& what, const Trial& trial, const Record& accused) {
  if (trial.without.empty() || !accused.is_complete) return "";
  const bool is_possible = what.code == kIrdCode   ? accused.may_lack_ird
                           : what.code == kRtrCode ? accused.may_lack_rtr
                                                   : true;
  if (!is_possible) return std::string(trial.without);
  return accused.is_set_up ? "the set-up of the connection was over" : "";
}

// One reading of the control octets. Empty: nothing contradicts it.
std::string refute(const rdmap::Terminate& what, const Trial& trial, const std::optional<Header>& header,
                   const Record& accused, const Shown& shown) {
  if (trial.proof == Proof::kNever) return std::string(trial.without);
  if (trial.proof == Proof::kOwn) return refute_own(what, trial, accused);
  if (shown.has_shown(what)) return "";
  // Where the opcode and the model or queue of a message do not agree, a receiver goes by either.
  if (header && header->opcode < Opcode::kImmediate && has_odd_opcode(*header)) return "";
  if (header && trial.can_be != nullptr && !trial.can_be(*header)) {
    return "the terminated header is that of a message without this fault";
  }
  if (!accused.is_complete) return "";
  const bool is_no_buffer =
      what.layer == rdmap::Layer::kDdp && what.etype == kUntaggedType && what.code == kNoBufferCode;
  // A message with a fault may have no buffer for it.
  if (is_no_buffer && header && !shown.has_shown_any()) {
    if (auto why = refute_no_buffer(*header, accused); !why.empty()) return why;
  }
  if (trial.deeds != 0 && (trial.deeds & accused.deeds) == 0)
    return fmt::format("the other side is right: {}", trial.without);
  // A receiver may take one fault for another.
  if (trial.proof != Proof::kShown || shown.has_shown_any()) return "";
  const bool may_be_unknown = (trial.can_be == has_odd_opcode && (accused.deeds & kSentExtension) != 0) ||
                              (trial.can_be == has_odd_queue && (accused.deeds & kSentQueue) != 0) ||
                              (trial.can_be == read_wraps && (accused.deeds & kSentAtomic) != 0);
  return may_be_unknown ? "" : std::string(trial.without);
}

// Without headers, the control octets may be in the order of siw.
std::vector<rdmap::Terminate> readings_of(const rdmap::TerminateMessage& message) {
  if (message.siw) return {*message.siw};
  std::vector<rdmap::Terminate> readings = {message.what};
  const bool has_headers = message.segment_len || message.ddp_header_len != 0 || message.has_rdma_header;
  const rdmap::Terminate swapped{static_cast<rdmap::Layer>(message.what.etype),
                                 static_cast<std::uint8_t>(message.what.layer), message.what.code};
  if (!has_headers && swapped != message.what) readings.push_back(swapped);
  return readings;
}

}  // namespace

std::span<const Trial> trials() {
  return kTrials;
}

const Trial* find_trial(const rdmap::Terminate& what) {
  const auto trial = std::ranges::find_if(kTrials, [&](const Trial& one) {
    return one.layer == what.layer && one.etype == what.etype && (one.code < 0 || one.code == what.code);
  });
  return trial == std::end(kTrials) ? nullptr : &*trial;
}

std::string refutation_of(const rdmap::TerminateMessage& message, const Record& accused, const Shown& shown) {
  const auto header = header_of(message, accused);
  std::string first;
  for (const rdmap::Terminate& what : readings_of(message)) {
    const Trial* trial = find_trial(what);
    if (trial == nullptr) continue;
    std::string why = refute(what, *trial, header, accused, shown);
    // A failure of siw's own is no accusation: the words as they stand count.
    const bool is_accusation = trial->proof != Proof::kOwn || !trial->without.empty();
    if (why.empty() && (first.empty() || is_accusation)) return "";
    if (first.empty()) first = std::move(why);
  }
  return first;
}

}  // namespace weft::apps::dissect
