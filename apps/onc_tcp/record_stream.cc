#include "apps/onc_tcp/record_stream.h"

#include <algorithm>
#include <utility>

namespace weft::onc_tcp {

std::array<MutBytes, 2> RecordReceiver::space() {
  if (state_ == State::kFragment) {
    const MutBytes place = record_.memory.octets().subspan(record_.len);
    return {place.first(std::min(fragment_left_, place.size())), staging_};
  }
  if (state_ != State::kMark) return {};
  // Only a part of a mark can be staged here.
  std::copy(staging_.begin() + static_cast<std::ptrdiff_t>(staged_begin_),
            staging_.begin() + static_cast<std::ptrdiff_t>(staged_end_), staging_.begin());
  staged_end_ -= std::exchange(staged_begin_, 0);
  return {MutBytes(staging_).subspan(staged_end_), MutBytes()};
}

void RecordReceiver::received(std::size_t n) {
  if (state_ == State::kFragment) {
    const std::size_t direct = std::min({n, fragment_left_, record_.memory.octets().size() - record_.len});
    record_.len += direct;
    fragment_left_ -= direct;
    n -= direct;
  }
  staged_end_ += n;
}

RecordReceiver::Outcome RecordReceiver::next() {
  while (true) {
    switch (state_) {
      case State::kBroken: return Outcome::kTooLong;
      case State::kDone: return Outcome::kRecord;
      case State::kMark:
        if (staged() < kMarkLen) return Outcome::kNeedMore;
        if (on_mark() == Outcome::kTooLong) return Outcome::kTooLong;
        break;
      case State::kMemory:
        if (!make_room()) return Outcome::kNoRoom;
        state_ = State::kFragment;
        break;
      case State::kFragment:
        copy_staged();
        if (fragment_left_ == 0) {
          state_ = last_ ? State::kDone : State::kMark;
        } else if (is_full()) {
          state_ = State::kMemory;
        } else {
          return Outcome::kNeedMore;
        }
        break;
    }
  }
}

Record RecordReceiver::take() {
  state_ = State::kMark;
  num_fragments_ = 0;
  if (client_ && record_.memory) record_.memory.attach(std::make_shared<Room::Claim>(std::move(claim_)));
  claim_ = Room::Claim(client_);
  return std::exchange(record_, {});
}

void RecordReceiver::close() {
  record_ = {};
  claim_ = {};
  client_.reset();
  state_ = State::kBroken;
}

RecordReceiver::Outcome RecordReceiver::on_mark() {
  std::uint32_t word = 0;
  for (std::size_t i = 0; i < kMarkLen; ++i) word = word << 8 | staging_[staged_begin_ + i];
  staged_begin_ += kMarkLen;
  last_ = (word & kLastFragment) != 0;
  fragment_left_ = word & ~kLastFragment;
  const bool too_long = ++num_fragments_ > kMaxFragments || fragment_left_ > limits_.max_record - record_.len;
  state_ = too_long ? State::kBroken : State::kMemory;
  return too_long ? Outcome::kTooLong : Outcome::kNeedMore;
}

// Returns the bytes of the next larger Buffer. After a fragment that is not the last, more may follow. The Buffer then
// gets at least twice its bytes: otherwise each fragment would copy the record.
std::size_t RecordReceiver::next_size() const {
  const std::size_t have = record_.memory.octets().size(), announced = record_.len + fragment_left_;
  const std::size_t most = have == 0 ? limits_.first : have < kMostNfs ? kMostNfs : 4 * have;
  const std::size_t next = std::min(announced, most);
  return last_ ? next : std::min(limits_.max_record, std::max(next, 2 * have));
}

// Does nothing while the Buffer still has free bytes.
bool RecordReceiver::make_room() {
  if (fragment_left_ == 0 || !is_full()) return true;
  const std::size_t size = next_size();
  if (!claim_.resize(size)) return false;
  rpcrdma::Buffer larger = pool_.take(size);
  if (!larger) {
    claim_.resize(record_.memory.octets().size());
    return false;
  }
  std::copy_n(record_.memory.octets().begin(), record_.len, larger.octets().begin());
  record_.memory = std::move(larger);
  return true;
}

void RecordReceiver::copy_staged() {
  const std::size_t len = std::min({fragment_left_, staged(), record_.memory.octets().size() - record_.len});
  std::copy_n(staging_.begin() + static_cast<std::ptrdiff_t>(staged_begin_), len,
              record_.memory.octets().begin() + static_cast<std::ptrdiff_t>(record_.len));
  staged_begin_ += len;
  record_.len += len;
  fragment_left_ -= len;
  if (staged() == 0) staged_begin_ = staged_end_ = 0;
}

void RecordSender::push(std::unique_ptr<OutRecord> record) {
  std::size_t len = 0;
  for (const ConstBytes part : record->parts) len += part.size();
  Entry entry{std::move(record), {}, kMarkLen + len};
  const std::uint32_t word = kLastFragment | static_cast<std::uint32_t>(len);
  for (std::size_t i = 0; i < kMarkLen; ++i) entry.mark[i] = static_cast<std::uint8_t>(word >> (24 - 8 * i));
  queued_ += entry.len;
  entries_.push_back(std::move(entry));
}

std::size_t RecordSender::gather(std::span<ConstBytes> out) const {
  std::size_t num = 0, skip = done_;
  const auto add = [&](ConstBytes part) {
    const std::size_t gone = std::min(skip, part.size());
    skip -= gone;
    part = part.subspan(gone);
    if (!part.empty() && num < out.size()) out[num++] = part;
  };
  for (const Entry& entry : entries_) {
    if (num == out.size()) break;
    add(entry.mark);
    for (const ConstBytes part : entry.record->parts) add(part);
  }
  return num;
}

void RecordSender::clear() {
  entries_.clear();
  done_ = queued_ = 0;
}

void RecordSender::sent(std::size_t n) {
  queued_ -= n;
  done_ += n;
  while (!entries_.empty() && done_ >= entries_.front().len) {
    done_ -= entries_.front().len;
    entries_.pop_front();
  }
}

}  // namespace weft::onc_tcp
