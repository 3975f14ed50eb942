#include "verbs-shim/soft/frame_cutter.h"

#include <algorithm>
#include <utility>

#include "mpa/fpdu.h"
#include "mpa/marker.h"

namespace weft::verbs::soft {

namespace {

constexpr std::size_t kControlLen = 2;  // octets of control of DDP and RDMAP
constexpr std::size_t kFlagsAt = 16, kPdLengthAt = 18;
constexpr std::uint8_t kMarkersFlag = 0x80;                   // M of a startup frame (RFC 5044 section 7.1.1)
constexpr std::uint8_t kTaggedFlag = 0x80, kLastFlag = 0x40;  // T and L of a DDP header (RFC 5041 section 4.1)
constexpr std::uint8_t kOpcodeMask = 0x0f;                    // RFC 5040 section 4.1, the octet behind it

std::size_t u16(const std::uint8_t* at) {
  return static_cast<std::size_t>(at[0]) << 8 | at[1];
}

}  // namespace

// An FPDU shows its length, its T and L bits and its opcode in its first four octets, a Marker apart.
std::size_t FrameCutter::head_len() const {
  if (!wants_markers_) return mpa::kStartupHeaderLen;
  const auto layout = markers_ ? mpa::MarkerLayout::at(position_) : mpa::MarkerLayout();
  return layout.stream_len(mpa::kUlpduLengthLen + kControlLen);
}

void FrameCutter::look_at_head() {
  if (!wants_markers_) {
    frame_len_ = mpa::kStartupHeaderLen + u16(&head_[kPdLengthAt]);
    return;
  }
  const auto layout = markers_ ? mpa::MarkerLayout::at(position_) : mpa::MarkerLayout();
  const std::size_t length_end = layout.stream_len(mpa::kUlpduLengthLen);
  frame_len_ = layout.stream_len(mpa::fpdu_len(u16(&head_[length_end - mpa::kUlpduLengthLen])));
  const std::uint8_t control = head_[layout.stream_offset(mpa::kUlpduLengthLen)];
  tagged_ = (control & kTaggedFlag) != 0;
  if (!tagged_) return;
  const std::uint8_t opcode = head_[layout.stream_offset(mpa::kUlpduLengthLen + 1)] & kOpcodeMask;
  continues_ = std::exchange(is_inside_[opcode], (control & kLastFlag) == 0);
}

std::size_t FrameCutter::limit() const {
  const std::size_t limit = !frame_len_ || !tagged_ ? limits_.other : continues_ ? limits_.tagged_more : limits_.tagged;
  return limit == 0 ? SIZE_MAX : limit;
}

void FrameCutter::add(ConstBytes octets) {
  while (!octets.empty()) {
    if (!frame_len_) {
      const std::size_t len = head_len();
      const std::size_t more = std::min(len - std::min(len, seen_), octets.size());
      std::copy_n(octets.begin(), more, head_.begin() + static_cast<std::ptrdiff_t>(seen_));
      if (seen_ + more == len) look_at_head();
    }
    std::size_t n = std::min(octets.size(), kMaxPacket - packet_len_);
    if (frame_len_) n = std::min(n, *frame_len_ - seen_);
    const std::size_t kept = std::min(n, limit() - std::min(limit(), seen_));
    kept_.insert(kept_.end(), octets.begin(), octets.begin() + static_cast<std::ptrdiff_t>(kept));
    seen_ += n;
    packet_len_ += n;
    octets = octets.subspan(n);
    const bool whole = frame_len_ && seen_ == *frame_len_;
    if (whole || packet_len_ == kMaxPacket) flush();
    if (!whole) continue;
    if (wants_markers_) position_ += seen_;
    if (!wants_markers_) wants_markers_ = (head_[kFlagsAt] & kMarkersFlag) != 0;
    seen_ = 0;
    frame_len_.reset();
    tagged_ = continues_ = was_cut_ = false;
  }
}

void FrameCutter::flush() {
  if (packet_len_ == 0) return;
  const bool is_cut = kept_.size() < packet_len_;
  put_(kept_, packet_len_, is_cut && !continues_ && !std::exchange(was_cut_, is_cut || was_cut_));
  kept_.clear();
  packet_len_ = 0;
}

}  // namespace weft::verbs::soft
