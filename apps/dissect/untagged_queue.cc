#include "apps/dissect/untagged_queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "apps/dissect/effect.h"
#include "apps/dissect/segment_rules.h"
#include "ddp/error.h"
#include "rdmap/terminate.h"

namespace weft::apps::dissect {

void UntaggedQueue::on_gap() {
  if (!std::exchange(is_resuming_, true)) {
    due_ = next_msn_;
    was_inside_ = message_.num_segments != 0;
  }
  message_.broken = true;
  next_msn_.reset();
}

// The MSN says how many messages the capture lacks. One of which it lacks a segment is one of them; returns whether
// that one is under way.
bool UntaggedQueue::resume(const ddp::UntaggedHeader& header, Frame& frame) {
  is_resuming_ = false;
  resumed_.emplace(std::nullopt);
  const bool was_inside = std::exchange(was_inside_, false);
  if (!due_) return false;
  const std::uint32_t num = header.msn.value - *due_;
  if (static_cast<std::int32_t>(num) < 0) {
    if (next_msn_) return false;  // keep_order finds it
    frame.findings.push_back(
        {"DDP-7.1-09", fmt::format("MSN {} in queue {}, where {} was due before", header.msn.value, header.qn, *due_),
         terminated(rdmap::to_terminate(ddp::Error::kMsnRange))});
    return false;
  }
  const bool is_part = !next_msn_ && (header.mo != 0 || (was_inside && num == 0));
  resumed_.emplace(num + (is_part ? 1 : 0));
  return is_part;
}

bool UntaggedQueue::take(const ddp::UntaggedHeader& header, ConstBytes payload, std::size_t len, Frame& frame) {
  const bool is_part = is_resuming_ && resume(header, frame);
  keep_order(header, frame);
  message_.counted |= is_part;
  if (message_.num_segments != 0 && !message_.broken) judge_same(header, frame);
  opcode_ = rdmap::parse_control(header.rsvd_ulp).opcode;
  rsvd_ulp_8_39_ = header.rsvd_ulp_8_39;
  keep(header, payload, len);
  if (message_.len > UINT32_MAX && message_.len - len <= UINT32_MAX) find_too_long(frame);
  if (!header.last) return false;
  if (message_.len == 0 && message_.num_segments > 1 && !message_.broken)
    find_empty_segments(message_.num_segments, frame);
  if (message_.scattered && !message_.broken) judge_order(header, frame);
  return true;
}

void UntaggedQueue::end_message() {
  if (!octets_.empty()) {
    held_.now -= octets_.capacity();
    held_.last = std::exchange(octets_, {});
  }
  begin();
}

// Most messages have one segment, and no octets here.
void UntaggedQueue::begin() {
  if (octets_.capacity() != 0) {
    held_.now -= octets_.capacity();
    octets_ = {};
  }
  if (message_.scattered) runs_ = {};
  message_ = {};
}

// RFC 5041 section 5.3: MSNs in order. A message begins with the first segment that has the MSN which is due; behind a
// gap, with MO 0.
void UntaggedQueue::keep_order(const ddp::UntaggedHeader& header, Frame& frame) {
  const std::uint32_t msn = header.msn.value;
  const bool is_due = next_msn_ && *next_msn_ == msn;
  if (next_msn_ && !is_due) {
    frame.findings.push_back({"DDP-7.1-09",
                              fmt::format("MSN {} in queue {}, where {} is due", msn, header.qn, *next_msn_),
                              terminated(rdmap::to_terminate(ddp::Error::kMsnRange))});
    if (odd_msns_.size() < kMaxOddMsns) odd_msns_.push_back(msn);
  }
  if (message_.num_segments == 0 || !is_due) {
    if (message_.num_segments != 0) begin();
    message_.broken = !is_due && header.mo != 0;
  }
  next_msn_ = header.last ? header.msn.next().value : msn;
}

// The segments of a message have the same opcode and the same octets for RDMAP.
void UntaggedQueue::judge_same(const ddp::UntaggedHeader& header, Frame& frame) const {
  const std::uint8_t opcode = rdmap::parse_control(header.rsvd_ulp).opcode;
  if (opcode != opcode_) {
    frame.findings.push_back({"RDMAP-7.2-02", fmt::format("opcode {} inside a message of opcode {}", opcode, opcode_),
                              terminated(rdmap::kUnexpectedOpcode)});
  }
  if (header.rsvd_ulp_8_39 != rsvd_ulp_8_39_) {
    frame.findings.push_back({"DDP-4.3-05",
                              fmt::format("bits 8 to 39 of RsvdULP are {:#x} inside a message that began with {:#x}",
                                          header.rsvd_ulp_8_39, rsvd_ulp_8_39_),
                              "the receiver takes them from any segment of the message"});
  }
}

// A message of one segment stays where it is: most are.
void UntaggedQueue::keep(const ddp::UntaggedHeader& header, ConstBytes payload, std::size_t len) {
  const std::size_t mo = header.mo;
  if (message_.scattered || mo != message_.len) note_place(mo, len);
  if (header.last && message_.num_segments == 0 && mo == 0) {
    message_.whole = payload.first(std::min(payload.size(), kMaxMessage));
  } else if (const std::size_t kept = std::min(payload.size(), kMaxMessage - std::min(kMaxMessage, mo));
             !message_.is_cut && has_room(mo, kept)) {
    held_.now -= octets_.capacity();
    octets_.resize(std::max(octets_.size(), mo + kept));
    held_.now += octets_.capacity();
    std::copy_n(payload.begin(), kept, octets_.begin() + static_cast<std::ptrdiff_t>(mo));
    message_.whole = octets_;
  } else {
    message_.is_cut = true;  // octets behind ones that are missing are not kept
  }
  message_.is_cut |= payload.size() != len;
  message_.len += len;
  message_.end = std::max(message_.end, mo + len);
  ++message_.num_segments;
}

// Segments that follow one another need no list.
void UntaggedQueue::note_place(std::size_t mo, std::size_t len) {
  if (!std::exchange(message_.scattered, true) && message_.len != 0) runs_.add({0, message_.len});
  if (len != 0) runs_.add({mo, mo + len});
}

// Whether `kept` octets at `mo` can be held. Holes take memory for which no octet came: there is room for few of them.
bool UntaggedQueue::has_room(std::size_t mo, std::size_t kept) const {
  const std::size_t size = std::max(octets_.size(), mo + kept);
  const std::size_t more = size - std::min(size, octets_.capacity());
  return mo < kMaxMessage && size <= message_.len + kept + kMaxHoles && held_.now + more <= HeldMessages::kMax;
}

// Segments come in the order of their MOs (RFC 5041 section 5.3), and beside each other.
void UntaggedQueue::judge_order(const ddp::UntaggedHeader& header, Frame& frame) {
  message_.broken = message_.is_cut;
  if (message_.end == message_.len && runs_.fill({0, message_.end})) {
    frame.findings.push_back({"DDP-5.3-02",
                              fmt::format("the segments of MSN {} are not in the order of their MOs", header.msn.value),
                              "the receiver places them by their MOs, unless it takes them in order alone"});
    return;
  }
  message_.broken = true;
  frame.findings.push_back(
      {"DDP-7.1-07",
       message_.end == message_.len
           ? fmt::format("{} bytes in all: some segments overlap, and leave a hole", message_.len)
           : fmt::format("{} bytes end at MO {}: they are not beside each other", message_.len, message_.end),
       terminated(rdmap::to_terminate(ddp::Error::kInvalidMo))});
}

bool UntaggedQueue::may_have_sent(ddp::Msn msn) const {
  if (is_resuming_ || !next_msn_ || odd_msns_.size() == kMaxOddMsns) return true;
  if (std::ranges::find(odd_msns_, msn.value) != odd_msns_.end()) return true;
  const auto ahead = static_cast<std::int32_t>(msn.value - *next_msn_);
  return ahead < 0 || (ahead == 0 && message_.num_segments != 0);
}

}  // namespace weft::apps::dissect
