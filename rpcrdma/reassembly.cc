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
  part_at_ = now;
  if (!reserve(octets_.size() + part.payload.size())) return Verdict::kShort;
  octets_.insert(octets_.end(), part.payload.begin(), part.payload.end());
  ++num_parts_;
  if (part.kind == Kind::kMiddle) return Verdict::kTaken;
  state_ = State::kWhole;
  share_.give_back(sequence_.direction, held_ - octets_.capacity());
  held_ = octets_.capacity();
  return Verdict::kWhole;
}

// The memory is never more than the share. The share may be more than the memory. There is room for twice the octets
// that arrived from the first part on: the usual second and last part then moves nothing.
bool Reassembly::reserve(std::size_t len) {
  if (len <= octets_.capacity()) return true;
  const std::size_t room = std::min(2 * len, max_octets_);
  if (room > held_) {
    const std::size_t taken = share_.take(sequence_.direction, room - held_, max_octets_ - held_);
    if (taken == 0) return false;
    held_ += taken;
  }
  octets_.reserve(room);
  return true;
}

// Refuses the RPC message that the part says to belong to. An error that names the XID of a sequence ends the sequence.
Reassembly::Verdict Reassembly::refuse_part(const Part& part, Verdict verdict) {
  const bool ends_sequence = state_ == State::kCollecting && sequence_of(part) == sequence_;
  if (ends_sequence) drop();
  if (part.kind == Kind::kMiddle || (ends_sequence && part.kind != Kind::kInline)) refused_ = sequence_of(part);
  return verdict;
}

Reassembly::Joined Reassembly::take_message() {
  held_ = 0;
  Joined message(std::move(octets_), sequence_.direction, share_);
  drop();
  return message;
}

void Reassembly::refuse(Direction direction, std::uint32_t xid) {
  refused_ = Sequence{direction, xid};
  if (state_ == State::kCollecting && sequence_ == *refused_) drop();
}

void Reassembly::on_last(Direction direction, std::uint32_t xid) {
  const Sequence ended{direction, xid};
  if (refused_ == ended) refused_.reset();
  if (state_ == State::kCollecting && sequence_ == ended) drop();
}

std::optional<Reassembly::Sequence> Reassembly::on_time(TimePoint now) {
  if (state_ != State::kCollecting || now < *next_timeout()) return {};
  const Sequence late = sequence_;
  refuse(late.direction, late.xid);
  return late;
}

std::optional<TimePoint> Reassembly::next_timeout() const {
  if (state_ != State::kCollecting) return {};
  return share_.is_wanted && share_.is_wanted() ? std::min(deadline_, part_at_ + limits_.max_pause) : deadline_;
}

void Reassembly::drop() {
  if (held_ != 0) share_.give_back(sequence_.direction, std::exchange(held_, 0));
  octets_ = std::vector<std::uint8_t>();  // {} would keep the memory
  num_parts_ = 0;
  state_ = State::kIdle;
}

}  // namespace weft::rpcrdma
