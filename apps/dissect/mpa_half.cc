#include "apps/dissect/mpa_half.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <variant>

#include "apps/dissect/markers.h"
#include "base/begins_with.h"
#include "mpa/crc32c.h"
#include "mpa/fpdu.h"
#include "mpa/fpdu_reader.h"

namespace weft::apps::dissect {

namespace {

constexpr std::uint16_t kLowBits = 0x0003;  // of FPDUPTR
// The Key of a startup frame: "MPA ID Req Frame" or "MPA ID Rep Frame" (RFC 5044 section 7.1.1).
constexpr std::size_t kKeyLen = 16;
constexpr std::size_t kKeyKindAt = 9;

mpa::FrameKind kind_of(ConstBytes octets) {
  const bool is_reply = octets.size() > kKeyKindAt && octets[kKeyKindAt] == 'p';
  return is_reply ? mpa::FrameKind::kReply : mpa::FrameKind::kRequest;
}

constexpr std::string_view kRequestKey = "MPA ID Req Frame", kReplyKey = "MPA ID Rep Frame";

bool begins_with_key(ConstBytes octets) {
  return begins_with(octets, kRequestKey) || begins_with(octets, kReplyKey);
}

bool crc_fits(ConstBytes wire) {
  const std::size_t covered = wire.size() - mpa::kCrcLen;
  return mpa::crc32c(wire.first(covered)) == mpa::parse_crc(wire.subspan(covered).first<mpa::kCrcLen>());
}

// Whether the first octets are those of a Key, but for a few. Other protocols do not come so near by accident.
bool is_nearly_key(ConstBytes octets) {
  constexpr std::size_t kMaxWrong = 8;
  std::size_t num_wrong = 0;
  for (std::size_t i = 0; i < kKeyLen; ++i) num_wrong += octets[i] != static_cast<std::uint8_t>(kRequestKey[i]) ? 1 : 0;
  return num_wrong <= kMaxWrong;
}

}  // namespace

void MpaHalf::set_terms(const Terms& terms) {
  terms_ = terms;
  phase_ = 0;
  // The search looks at the first FPDU, and waits for octets behind it: the terms make this needless.
  if (state_ == State::kSearch && skipped_ == 0) state_ = State::kFpdus;
}

// In streaming mode, the octets are the ULP's, and the startup frame begins a TCP segment.
void MpaHalf::look_for_startup(ConstBytes octets) {
  streaming_left_ -= std::min<std::uint64_t>(streaming_left_, octets.size());
  if (state_ == State::kStart || !begins_with_key(octets)) return;
  state_ = State::kStart;
  skipped_ = 0;
  pending_.clear();
}

void MpaHalf::on_octets(ConstBytes octets, const Arrival& arrival) {
  if (streaming_left_ != 0) look_for_startup(octets);
  if (state_ == State::kForeign) return pass_over(octets.size(), arrival);
  finder_.on_octets(octets.size());
  if (!octets.empty()) last_ = arrival;
  ConstBytes rest = octets;
  if (!pending_.empty()) {
    pending_.insert(pending_.end(), octets.begin(), octets.end());
    rest = pending_;
  }
  while (!rest.empty()) {
    const State before = state_;
    const std::size_t taken = step(rest, arrival);
    if (taken == 0 && state_ == before) break;
    rest = rest.subspan(taken);
  }
  if (state_ == State::kForeign) rest = {};
  if (pending_.empty()) {
    pending_.assign(rest.begin(), rest.end());
  } else {
    pending_.erase(pending_.begin(), pending_.end() - static_cast<std::ptrdiff_t>(rest.size()));
  }
}

std::size_t MpaHalf::step(ConstBytes octets, const Arrival& arrival) {
  switch (state_) {
    case State::kStart: return take_startup(octets, arrival);
    case State::kFpdus: return take_fpdu(octets, arrival);
    case State::kSearch: return search(octets, arrival);
    case State::kForeign: return 0;
    case State::kSkip: {
      const auto len = static_cast<std::size_t>(std::min<std::uint64_t>(skip_, octets.size()));
      advance(len);
      skip_ -= len;
      if (skip_ == 0) state_ = State::kFpdus;
      return len;
    }
  }
  return 0;
}

// Octets behind a startup frame that cannot be read. Their number is told at the end.
void MpaHalf::pass_over(std::uint64_t len, const Arrival& arrival) {
  if (!has_bad_startup_ || len == 0) return;
  tell_gap();
  skipped_ += len;
  last_ = arrival;
}

void MpaHalf::end(const Arrival& arrival) {
  is_ending_ = true;
  on_octets({}, arrival);
  if (!has_front_of_fpdu()) return;
  sink_.on_cut_short(pending_, arrival);
  pending_.clear();
}

// Behind a bad CRC, the octets may be none of an FPDU.
bool MpaHalf::has_front_of_fpdu() const {
  return state_ == State::kFpdus && !was_bad_crc_ && !pending_.empty();
}

void MpaHalf::tell_gap() {
  if (!std::exchange(told_gap_, true)) sink_.on_gap();
}

void MpaHalf::finish() {
  const Arrival arrival = last_;
  is_ending_ = true;
  resume(arrival);
  const std::uint64_t len = skipped_ + pending_.size();
  const bool is_unread = state_ == State::kSearch || (state_ == State::kForeign && has_bad_startup_);
  if (is_unread && len != 0) sink_.on_skipped(len, arrival);
  if (has_front_of_fpdu()) sink_.on_unfinished(pending_, arrival);
}

void MpaHalf::advance(std::size_t len) {
  position_ += len;
}

std::size_t MpaHalf::take_startup(ConstBytes octets, const Arrival& arrival) {
  const auto parsed = mpa::parse_startup_frame(octets, kind_of(octets));
  if (std::holds_alternative<mpa::NeedMore>(parsed)) return 0;
  if (const auto* bad = std::get_if<mpa::BadFrame>(&parsed); bad != nullptr) {
    const bool has_key =
        octets.size() >= kKeyLen && (bad->fault != mpa::StartupFault::kForeign || is_nearly_key(octets));
    if (has_key) sink_.on_bad_startup_frame(*bad, octets.first(kKeyLen), arrival);
    state_ = saw_start_ ? State::kForeign : State::kSearch;
    has_bad_startup_ = has_key && saw_start_;
    return 0;
  }
  const auto& whole = std::get<mpa::ParsedFrame>(parsed);
  state_ = State::kFpdus;
  has_startup_ = true;
  streaming_left_ = position_ = phase_ = 0;
  sink_.on_startup_frame(whole.frame, octets.first(whole.len), arrival);
  return whole.len;
}

std::size_t MpaHalf::take_fpdu(ConstBytes octets, const Arrival& arrival) {
  if (may_have_other_markers()) {
    if (try_other_markers(octets, is_ending_) == FpduFinder::Guess::kMore && !is_ending_) return 0;
  }
  const mpa::MarkerLayout markers = layout();
  const std::size_t length_end = markers.stream_len(mpa::kUlpduLengthLen);
  if (octets.size() < length_end) return 0;
  const bool is_certain = terms_.is_known && !was_bad_crc_;
  if (const auto guess = is_certain ? FpduFinder::Guess::kYes : can_tell(octets); guess != FpduFinder::Guess::kYes) {
    if (guess == FpduFinder::Guess::kNo) begin_search();
    return 0;
  }
  const std::size_t ulpdu_len = ulpdu_length(octets.subspan(length_end - 2));
  if (ulpdu_len == 0) {
    const bool bad_marker =
        terms_.is_known && !markers_fit(octets, markers, markers.num_before(mpa::kUlpduLengthLen - 1));
    sink_.on_empty_ulpdu(octets.first(length_end), bad_marker, arrival);
    advance(length_end);
    // The search may have taken other octets for an FPDU.
    state_ = was_lost_ ? State::kSearch : State::kForeign;
    return length_end;
  }
  const std::size_t len = markers.stream_len(mpa::fpdu_len(ulpdu_len));
  if (octets.size() < len) return 0;
  was_bad_crc_ = report_fpdu(octets.first(len), ulpdu_len, false, arrival) == CrcVerdict::kBad;
  const std::size_t taken = was_bad_crc_ ? behind_bad_crc(octets, len, length_end) : len;
  advance(taken);
  return taken;
}

// Behind a bad CRC, an FPDU that does not begin where ULPDU_Length says tells that this field is wrong. The next FPDU
// may then be inside the octets of the bad one.
std::size_t MpaHalf::behind_bad_crc(ConstBytes octets, std::size_t len, std::size_t length_end) {
  FpduFinder::Shape next = shape();
  next.phase += len;
  if (FpduFinder::try_headers(octets.subspan(len), next, 1) != FpduFinder::Guess::kNo) return len;
  begin_search();
  return finder_.pays_for(len) ? length_end : len;
}

// A Marker stands before the first FPDU (MPA-4.3-09): without Markers, its octets are a ULPDU_Length of 0.
FpduFinder::Guess MpaHalf::try_other_markers(ConstBytes octets, bool is_cut) {
  using Guess = FpduFinder::Guess;
  if (octets.size() < mpa::kMarkerLen) return Guess::kMore;
  const bool begins_with_marker =
      std::ranges::all_of(octets.first(mpa::kMarkerLen), [](std::uint8_t octet) { return octet == 0; });
  Guess guess = Guess::kNo;
  const std::size_t length_at = begins_with_marker ? mpa::kMarkerLen : 0;
  if (octets.size() < length_at + mpa::kUlpduLengthLen) return octets.size() > length_at ? Guess::kMore : Guess::kNo;
  if (begins_with_marker != terms_.markers && ulpdu_length(octets.subspan(length_at)) != 0) {
    const FpduFinder::Shape others{.markers = !terms_.markers, .crc = terms_.crc};
    guess = finder_.try_known(octets, others);
    if (guess == Guess::kMore && is_cut) guess = FpduFinder::try_headers(octets, others, 1);
  }
  if (guess == Guess::kMore) return guess;
  has_tried_markers_ = true;
  if (guess == Guess::kNo) return guess;
  marker_mistake_ = terms_.markers ? MarkerMistake::kMissing : MarkerMistake::kUnwanted;
  terms_.markers = !terms_.markers;
  return guess;
}

// The start of an FPDU is certain here. If its header makes sense, or if its CRC fits, so is its length.
FpduFinder::Guess MpaHalf::try_proven(ConstBytes octets) {
  using Guess = FpduFinder::Guess;
  const mpa::MarkerLayout markers = layout();
  const std::size_t length_end = markers.stream_len(mpa::kUlpduLengthLen);
  if (octets.size() < length_end) return Guess::kMore;
  const std::size_t ulpdu_len = ulpdu_length(octets.subspan(length_end - 2));
  const std::size_t len = markers.stream_len(mpa::fpdu_len(ulpdu_len));
  const Guess header = FpduFinder::try_headers(octets, shape(), 1);
  if (header == Guess::kMore || (header == Guess::kYes && octets.size() < len)) return Guess::kMore;
  const bool is_whole = ulpdu_len != 0 && octets.size() >= len && finder_.pays_for(len);
  if (is_whole && (header == Guess::kYes || crc_fits(octets.first(len)))) return Guess::kYes;
  is_damaged_ = true;
  return Guess::kNo;
}

void MpaHalf::begin_search() {
  state_ = State::kSearch;
  if (num_proven_ < kProof) num_proven_ = 0;
  num_fitting_ = 0;
  was_bad_crc_ = false;
}

FpduFinder::Guess MpaHalf::can_tell(ConstBytes octets) {
  if (was_bad_crc_) return FpduFinder::try_headers(octets, shape(), 1);
  if (terms_.is_known || std::exchange(was_found_, false)) return FpduFinder::Guess::kYes;
  const auto guess = finder_.try_next(octets, shape());
  return guess == FpduFinder::Guess::kNo && has_proof() ? try_proven(octets) : guess;
}

CrcVerdict MpaHalf::report_fpdu(ConstBytes wire, std::size_t ulpdu_len, bool cut, const Arrival& arrival) {
  streaming_left_ = 0;
  const mpa::MarkerLayout markers = layout();
  Fpdu fpdu{.wire = wire,
            .wire_len = markers.stream_len(mpa::fpdu_len(ulpdu_len)),
            .ulpdu_len = ulpdu_len,
            .length_at = markers.stream_len(mpa::kUlpduLengthLen) - mpa::kUlpduLengthLen,
            .position = position_,
            .cut = cut,
            .markers = markers};
  const std::size_t bare_len = markers.bare_len(wire.size());
  const std::size_t present = std::min(bare_len - std::min(bare_len, mpa::kUlpduLengthLen), ulpdu_len);
  if (terms_.markers) {
    take_markers(fpdu, present);
  } else {
    fpdu.ulpdu = wire.subspan(mpa::kUlpduLengthLen, present);
  }
  fpdu.crc = cut ? CrcVerdict::kUnknown : judge_crc(wire);
  fpdu.follows_bad_crc = was_bad_crc_;
  fpdu.marker_mistake = std::exchange(marker_mistake_, MarkerMistake::kNone);
  if (!terms_.is_known && !cut && fpdu.crc != CrcVerdict::kBad) {
    num_fitting_ = std::min(kProof, num_fitting_ + wire.size());
  }
  if (!terms_.is_known && terms_.crc && fpdu.crc == CrcVerdict::kGood) {
    num_proven_ = std::min(kProof, num_proven_ + wire.size());
  }
  sink_.on_fpdu(fpdu, arrival);
  return fpdu.crc;
}

// Markers that a guess has found are not judged.
void MpaHalf::take_markers(Fpdu& fpdu, std::size_t present) {
  const mpa::MarkerLayout& markers = fpdu.markers;
  bare_.resize(present);
  mpa::Ulpdu(fpdu.wire, markers, present).copy(0, bare_);
  fpdu.ulpdu = bare_;
  if (!terms_.is_known) return;
  const std::size_t num =
      std::min(markers.num_within(fpdu.wire.size()), markers.num_before(mpa::fpdu_len(fpdu.ulpdu_len) - 1));
  for (std::size_t i = 0; i < num; ++i) {
    const auto marker = marker_at(fpdu.wire, markers, i);
    const bool fits = mpa::marker_fits(markers, i, marker);
    fpdu.bad_marker |= !fits;
    fpdu.has_reserved_half |= fits && (marker[0] != 0 || marker[1] != 0);
    fpdu.has_low_bits |= fits && (mpa::parse_fpduptr(marker) & kLowBits) != 0;
  }
}

CrcVerdict MpaHalf::judge_crc(ConstBytes wire) const {
  if (!has_proof()) return terms_.crc ? CrcVerdict::kGood : CrcVerdict::kUnknown;
  if (!terms_.crc) return CrcVerdict::kUnused;
  return crc_fits(wire) ? CrcVerdict::kGood : CrcVerdict::kBad;
}

// The capture lacks the rest of the FPDU that has begun. If its length is certain, its front is reported and its rest
// skipped. No CRC proves the front, and its header may be wrong as long as the place of the Markers is a guess. More
// octets than that length have waited for the guess about Markers only if the terms are wrong.
void MpaHalf::report_front(const Arrival& arrival) {
  using Guess = FpduFinder::Guess;
  const bool is_open = may_have_other_markers() && try_other_markers(pending_, true) == Guess::kMore;
  if (is_open && pending_.size() >= mpa::kMarkerLen) return;
  const mpa::MarkerLayout markers = layout();
  const std::size_t length_end = markers.stream_len(mpa::kUlpduLengthLen);
  const bool is_certain = terms_.is_known && !was_bad_crc_;
  const bool can_be_told =
      is_certain || (knows_shape() && FpduFinder::try_headers(pending_, shape(), 1) == Guess::kYes);
  if (pending_.size() < length_end || !can_be_told) return;
  const std::size_t ulpdu_len = ulpdu_length(ConstBytes(pending_).subspan(length_end - 2));
  const std::size_t len = markers.stream_len(mpa::fpdu_len(ulpdu_len));
  if (ulpdu_len == 0 || pending_.size() >= len) return;
  skip_ = len - pending_.size();
  report_fpdu(pending_, ulpdu_len, true, arrival);
  advance(pending_.size());
  pending_.clear();
  state_ = State::kSkip;
}

void MpaHalf::on_missing(std::uint64_t len, const Arrival& arrival) {
  if (state_ == State::kForeign) return pass_over(len, arrival);
  on_octets({}, arrival);
  if (state_ == State::kFpdus) report_front(arrival);
  if (state_ == State::kSkip && len <= skip_) {
    skip_ -= len;
    position_ += len;
    if (skip_ == 0) state_ = State::kFpdus;
    return;
  }
  tell_gap();
  is_damaged_ = false;
  skipped_ += pending_.size() + len;
  position_ += pending_.size() + len;
  pending_.clear();
  skip_ = 0;
  begin_search();
}

std::size_t MpaHalf::search(ConstBytes octets, const Arrival& arrival) {
  const bool by_marker = terms_.is_known && terms_.markers;
  const std::size_t passed = by_marker ? search_by_marker(octets) : search_by_header(octets);
  // What the side sends is not read until the search ends, and what the other side answers cannot be judged.
  if (passed != 0) tell_gap();
  position_ += passed;
  skipped_ += passed;
  was_lost_ |= state_ != State::kSearch;
  if (state_ != State::kSearch) {
    told_gap_ = false;
    const std::uint64_t len = std::exchange(skipped_, 0);
    if (std::exchange(is_damaged_, false) && len != 0) {
      sink_.on_damaged(len, arrival);
    } else {
      sink_.on_skipped(len, arrival);
    }
  }
  return passed;
}

// A Marker whose FPDUPTR leads back to an octet that is here names the start of an FPDU.
std::size_t MpaHalf::search_by_marker(ConstBytes octets) {
  const mpa::MarkerLayout markers = layout();
  const std::size_t num = markers.num_within(octets.size());
  for (std::size_t i = 0; i < num; ++i) {
    const std::size_t at = markers.marker_offset(i);
    const std::size_t back = mpa::parse_fpduptr(marker_at(octets, markers, i));
    if (back > at) continue;
    state_ = State::kFpdus;
    return at - back;
  }
  // The next Marker may lead back into the octets since the last one.
  return num == 0 ? 0 : markers.marker_offset(num - 1) + mpa::kMarkerLen;
}

std::size_t MpaHalf::search_by_header(ConstBytes octets) {
  using Guess = FpduFinder::Guess;
  for (std::size_t at = 0; at < octets.size(); ++at) {
    FpduFinder::Shape found = shape();
    const ConstBytes here = octets.subspan(at);
    const Guess guess = has_proof() ? finder_.try_known(here, found) : finder_.try_any(here, position_ + at, found);
    if (guess == Guess::kNo) continue;
    if (guess == Guess::kMore) return at;
    if (!has_proof()) {
      terms_.markers = found.markers;
      terms_.crc = found.crc;
      phase_ = (found.phase - (position_ + at)) % mpa::kMarkerSpacing;
      was_found_ = true;
    }
    state_ = State::kFpdus;
    return at;
  }
  return octets.size();
}

}  // namespace weft::apps::dissect
