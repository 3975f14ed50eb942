#include "apps/onc_tcp/record.h"

#include <algorithm>

namespace weft::onc_tcp {

RecordReader::Outcome RecordReader::next(ConstBytes& input) {
  if (state_ == State::kBroken) return Outcome::kTooLong;
  if (state_ == State::kDone) {
    record_.clear();
    num_fragments_ = 0;
    state_ = State::kMark;
  }
  while (true) {
    if (state_ == State::kMark) {
      const std::size_t len = std::min(kMarkLen - mark_len_, input.size());
      std::copy_n(input.begin(), len, mark_ + mark_len_);
      mark_len_ += len;
      input = input.subspan(len);
      if (mark_len_ < kMarkLen) return Outcome::kNeedMore;
      if (on_mark() == Outcome::kTooLong) return Outcome::kTooLong;
    }
    const std::size_t len = std::min(fragment_left_, input.size());
    record_.insert(record_.end(), input.begin(), input.begin() + static_cast<std::ptrdiff_t>(len));
    input = input.subspan(len);
    fragment_left_ -= len;
    if (fragment_left_ > 0) return Outcome::kNeedMore;
    state_ = last_ ? State::kDone : State::kMark;
    if (last_) return Outcome::kRecord;
  }
}

RecordReader::Outcome RecordReader::on_mark() {
  const std::uint32_t word = std::uint32_t{mark_[0]} << 24 | std::uint32_t{mark_[1]} << 16 |
                             std::uint32_t{mark_[2]} << 8 | std::uint32_t{mark_[3]};
  mark_len_ = 0;
  last_ = (word & kLastFragment) != 0;
  fragment_left_ = word & ~kLastFragment;
  state_ = State::kFragment;
  if (++num_fragments_ > kMaxFragments || fragment_left_ > max_record_ - record_.size()) {
    state_ = State::kBroken;
    return Outcome::kTooLong;
  }
  return Outcome::kNeedMore;
}

void emit_record(ConstBytes message, std::vector<std::uint8_t>& out) {
  const std::uint32_t word = kLastFragment | static_cast<std::uint32_t>(message.size());
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<std::uint8_t>(word >> shift));
  out.insert(out.end(), message.begin(), message.end());
}

}  // namespace weft::onc_tcp
