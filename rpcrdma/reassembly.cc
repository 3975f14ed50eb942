#include "rpcrdma/reassembly.h"

#include <algorithm>

#include "requirements/violates.h"
#include "rpcrdma/xdr/xdr.h"

namespace weft::rpcrdma {

namespace {

using Kind = Reassembly::Part::Kind;

Reassembly::Sequence sequence_of(const Reassembly::Part& part) {
  return {part.direction, part.xid};
}

bool begins_with(ConstBytes payload, std::uint32_t xid) {
  xdr::XdrReader in(payload);
  std::uint32_t word = 0;
  return in.u32(word) && word == xid;
}

}  // namespace

Reassembly::Verdict Reassembly::on_message(const Part& part, TimePoint now) {
  if (state_ == State::kWhole) drop();
  if (part.kind == Kind::kExempt) return Verdict::kAlone;
  if (violates("W2-7.1.4-1", is_refused(part))) {
    if (part.kind != Kind::kMiddle) refused_.reset();
    return Verdict::kDiscard;
  }
  if (state_ == State::kCollecting) return add(part, now);
  return part.kind == Kind::kMiddle ? begin(part, now) : Verdict::kAlone;
}

// Messages that are no RPC messages have no XID of their own.
bool Reassembly::is_refused(const Part& part) const {
  return part.kind != Kind::kOther && refused_ == sequence_of(part);
}

Reassembly::Verdict Reassembly::begin(const Part& part, TimePoint now) {
  // A later part of an RPC message that was refused and forgotten is found out here, too.
  if (violates("W2-7.2-1", !begins_with(part.payload, part.xid))) return refuse_part(part, Verdict::kBadXdr);
  if (violates("W2-6.3.3-3", part.is_barred)) return refuse_part(part, Verdict::kInvalCont);
  state_ = State::kCollecting;
  sequence_ = sequence_of(part);
  max_octets_ = 0;
  deadline_ = now + limits_.max_time;
  const Verdict verdict = add(part, now);
  if (verdict == Verdict::kShort) drop();
  return verdict;
}

Reassembly::Verdict Reassembly::add(const Part& part, TimePoint now) {
  const bool may_belong = part.kind == Kind::kMiddle || part.kind == Kind::kInline;
  if (violates("W2-6.3.6-3 W2-6.3.9-2", !may_belong)) return refuse_part(part, Verdict::kInvalCont);
  if (violates("W2-6.3.6-4", sequence_of(part) != sequence_)) return refuse_part(part, Verdict::kInvalCont);
  max_octets_ = std::max(max_octets_, std::min(limits_.max_octets, part.max_octets));
  const std::size_t room = max_octets_ - octets_.size();
  const bool fits = part.payload.size() <= room && part.announced <= room - part.payload.size();
  if (violates("W2-6.6.2-1", !fits || num_parts_ >= limits_.max_parts)) return refuse_part(part, Verdict::kTooLong);
  if (!reserve(octets_.size() + part.payload.size())) {
    on_short(now);
    return Verdict::kShort;
  }
  octets_.insert(octets_.end(), part.payload.begin(), part.payload.end());
  on_progress(part.payload.size(), now);
  ++num_parts_;
  if (part.kind == Kind::kMiddle) return Verdict::kTaken;
  state_ = State::kWhole;
  if (lease_.amount() > octets_.capacity()) (void)lease_.resize(octets_.capacity());
  return Verdict::kWhole;
}

// The memory is never more than the share. The share may be more than the memory. There is room for twice the octets
// that arrived from the first part on: the usual second and last part then moves nothing.
bool Reassembly::reserve(std::size_t len) {
  if (len <= octets_.capacity()) return true;
  const std::size_t room = std::min(2 * len, max_octets_);
  const auto held = static_cast<std::size_t>(lease_.amount());
  if (room > held && share_.take && !share_.take(sequence_.direction, lease_, room - held, max_octets_ - held)) {
    return false;
  }
  octets_.reserve(room);
  return true;
}

void Reassembly::on_short(TimePoint now) {
  if (!short_since_) short_since_ = now;
}

// Time in which this end makes the peer wait is not the peer's.
void Reassembly::on_progress(std::size_t octets, TimePoint now) {
  if (short_since_) {
    deadline_ += now - *short_since_;
    short_since_.reset();
    earned_.reset();
  }
  if (!is_wanted()) {
    earned_.reset();
  } else if (!earned_) {
    earned_.emplace(limits_.while_others_wait, now);
  } else {
    earned_->earn(octets, lease_.amount(), now);
  }
}

// Refuses the RPC message that the part says to belong to. An error that names the XID of a sequence ends the sequence.
Reassembly::Verdict Reassembly::refuse_part(const Part& part, Verdict verdict) {
  const bool ends_sequence = state_ == State::kCollecting && sequence_of(part) == sequence_;
  if (ends_sequence) drop();
  if (part.kind == Kind::kMiddle || (ends_sequence && part.kind != Kind::kInline)) refused_ = sequence_of(part);
  return verdict;
}

Reassembly::Joined Reassembly::take_message() {
  Joined message{std::move(octets_), std::move(lease_)};
  drop();
  return message;
}

void Reassembly::refuse(Direction direction, std::uint32_t xid) {
  refused_ = Sequence{direction, xid};
  if (state_ == State::kCollecting && sequence_ == *refused_) drop();
}

void Reassembly::on_malformed(std::uint32_t xid) {
  if (state_ == State::kCollecting && sequence_ == Sequence{Direction::kCall, xid}) refuse(Direction::kCall, xid);
}

void Reassembly::on_last(Direction direction, std::uint32_t xid) {
  const Sequence ended{direction, xid};
  if (refused_ == ended) refused_.reset();
  if (state_ == State::kCollecting && sequence_ == ended) drop();
}

std::optional<Reassembly::Sequence> Reassembly::on_time(TimePoint now) {
  if (state_ != State::kCollecting) return {};
  if (!is_wanted()) {
    earned_.reset();
  } else if (!short_since_ && !earned_) {
    earned_.emplace(limits_.while_others_wait, now);
  }
  const auto end = next_timeout();
  if (!end || now < *end) return {};
  const Sequence late = sequence_;
  refuse(late.direction, late.xid);
  return late;
}

std::optional<TimePoint> Reassembly::next_timeout() const {
  if (state_ != State::kCollecting || short_since_) return {};
  if (!is_wanted()) return deadline_;
  // Others have begun to wait: on_time is due.
  return earned_ ? std::min(deadline_, earned_->end()) : deadline_ - limits_.max_time;
}

void Reassembly::drop() {
  lease_ = Lease();
  octets_ = std::vector<std::uint8_t>();  // {} would keep the memory
  num_parts_ = 0;
  earned_.reset();
  short_since_.reset();
  state_ = State::kIdle;
}

}  // namespace weft::rpcrdma
