#include <algorithm>
#include <cassert>
#include <cstring>

#include "mpa/wire/release_memory.h"
#include "rdmap/stream.h"

// Direct placement: the receive path of FPDUs that do not pass through staging.
namespace weft::rdmap {

namespace {

// The octets to read behind a directly placed payload: its PAD and CRC, and the next FPDU up to the end of its headers.
// So the next payload can be placed directly too. At most four Markers are among them.
constexpr std::size_t kTailLen = 3 + mpa::kCrcLen + mpa::kUlpduLengthLen + Receiver::kHeadLen + 4 * mpa::kMarkerLen;

}  // namespace

bool Stream::begin_direct(mpa::Staging& staging) {
  const auto fpdu = reader_->partial(staging);
  if (!fpdu) return false;
  const std::size_t arrived = fpdu->arrived_ulpdu_len();
  const std::size_t head_len = std::min(fpdu->ulpdu_len, Receiver::kHeadLen);
  if (arrived < head_len || fpdu->ulpdu_len - arrived < std::max<std::size_t>(config_.direct_min_len, 1)) return false;
  std::array<std::uint8_t, Receiver::kHeadLen> scratch;
  // A segment to refuse is received through staging: a bad CRC is the better reason, and is known only at the end.
  if (receiver_.check(fpdu->ulpdu().view(0, head_len, scratch), fpdu->ulpdu_len) != Receiver::Verdict::kTaken)
    return false;
  if (receiver_.placed_len() == 0) return false;
  if (receiver_.find_memory(0, direct_views_) != Receiver::Verdict::kTaken) return false;
  direct_.emplace(*fpdu, receiver_.header_len(), reader_->crc(), staging, direct_views_);
  return true;
}

std::span<const MutBytes> Stream::rx_buffers(mpa::Staging& staging) {
  rx_views_.clear();
  if (state_ == State::kClosed || state_ == State::kIdle || eof_) return {};
  if (!parked_.empty()) {
    assert(staging.pending().empty());
    const MutBytes space = staging.space(parked_.size());
    std::memcpy(space.data(), parked_.data(), parked_.size());
    staging.commit(parked_.size());
    release_memory(parked_);  // not clear: it would keep room for an FPDU as long as the connection lasts
  }
  if (direct_ && !direct_->payload_done()) {
    // Memory that is gone meanwhile gets no more octets: on_direct_rx ends the stream when the next octets arrive.
    if (receiver_.find_memory(direct_->payload_received(), direct_views_) == Receiver::Verdict::kTaken)
      direct_->append_buffers(direct_views_, rx_views_);
  }
  const std::size_t need = std::max<std::size_t>(rx_need_, 1);
  const bool short_tail = direct_ || placing_ == Placing::kDirectNext;
  const MutBytes space = staging.space(short_tail ? std::max(need, kTailLen) : need);
  rx_views_.push_back(short_tail ? space.first(std::max(need, kTailLen)) : space);
  return rx_views_;
}

void Stream::on_direct_rx(mpa::Staging& staging, std::size_t n, TimePoint now) {
  const bool memory_gone = rx_views_.size() == 1 && !direct_->payload_done();
  for (std::size_t i = 0; i + 1 < rx_views_.size(); ++i) {
    const std::size_t len = std::min(n, rx_views_[i].size());
    direct_->on_rx(rx_views_[i].first(len));
    n -= len;
  }
  staging.commit(n);
  if (!memory_gone) return;
  receiver_.settle_refusal();
  fail(receiver_.message(), now);
}

bool Stream::finish_direct(mpa::Staging& staging, TimePoint now) {
  rx_need_ = 1;
  rx_partial_ = true;
  if (!direct_->payload_done()) return false;
  const auto end = direct_->finish(staging);
  if (const auto* more = std::get_if<mpa::NeedMore>(&end)) {
    rx_need_ = more->len;
    return false;
  }
  direct_.reset();
  if (const auto* error = std::get_if<mpa::Error>(&end)) {
    TerminateMessage message;
    message.what = to_terminate(reader_->fail(*error));
    fail(message, now);
    return false;
  }
  reader_->skip(std::get<mpa::DirectFpdu::Verified>(end).stream_len);
  rx_partial_ = false;
  placing_ = Placing::kDirectNext;
  on_valid_fpdu();
  const auto verdict = receiver_.invalidate();
  if (verdict == Receiver::Verdict::kTaken) {
    receiver_.deliver();
    on_delivered();
    return true;
  }
  receiver_.settle_refusal();
  on_verdict(verdict, now);
  return false;
}

}  // namespace weft::rdmap
