#include "ddp/untagged_queue.h"

#include <algorithm>
#include <cassert>

#include "requirements/violates.h"

namespace weft::ddp {

std::optional<Error> UntaggedQueue::check_msn(const UntaggedHeader& header) const {
  // On an in-order LLP only one MSN can be due, so a gap is refused too (DDP-A-02).
  if (violates("DDP-7.1-09", header.msn != msn_)) return Error::kMsnRange;
  return std::nullopt;
}

std::optional<Error> UntaggedQueue::check(const UntaggedHeader& header, std::size_t payload_len,
                                          std::optional<std::uint64_t> buffer_len) const {
  if (const auto error = check_msn(header)) return error;
  if (violates("DDP-7.1-02", !buffer_len)) return Error::kNoBuffer;
  if (violates("DDP-7.1-07", header.mo != received_)) return Error::kInvalidMo;  // DDP-A-04
  // A message holds fewer than 2^32 octets, however large its buffer (DDP-5.2-02).
  const std::uint64_t limit = std::min<std::uint64_t>(buffer_len.value_or(0), UINT32_MAX);
  const bool fits = received_ <= limit && payload_len <= limit - received_;
  if (violates("DDP-7.1-08", !fits)) return Error::kMessageTooLong;
  return std::nullopt;
}

std::optional<std::uint32_t> UntaggedQueue::advance(const UntaggedHeader& header, std::size_t payload_len) {
  assert(header.msn == msn_ && header.mo == received_);
  received_ += payload_len;
  open_ = !header.last;
  if (open_) return std::nullopt;
  const auto len = static_cast<std::uint32_t>(received_);
  received_ = 0;
  msn_ = msn_.next();
  return len;
}

}  // namespace weft::ddp
