#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <optional>

#include "ddp/error.h"
#include "ddp/segment.h"
#include "requirements/violates.h"

namespace weft::ddp {

// The queues of RFC 5040 section 3.1: 0 for Sends, 1 for RDMA Read Requests, 2 for Terminates.
inline constexpr std::uint32_t kNumQueues = 3;
// With queue 3 of RFC 7306 section 10.2, for Atomic Responses.
inline constexpr std::uint32_t kNumQueuesWithAtomics = 4;

// check_qn refuses a queue number that the stream does not have. num_queues is the number of the stream's queues. Call
// it before qn is used as an index.
constexpr std::optional<Error> check_qn(std::uint32_t qn, std::uint32_t num_queues = kNumQueues) {
  if (violates("DDP-7.1-01", qn >= num_queues)) return Error::kInvalidQn;
  return std::nullopt;
}

// UntaggedQueue is the receiving side of one queue: the open message and how much of it has arrived. The buffers are
// the caller's. It is stricter than RFC 5041 requires, since the LLP is in order: MSNs have no gaps, MOs have no holes
// or overlaps. Inline: three calls for each segment, and an optional that is returned from a call costs more than they
// do.
class UntaggedQueue {
 public:
  explicit UntaggedQueue(Msn next = {}) : msn_(next) {}

  // The MSN of the open message, or of the next message if none is open.
  Msn msn() const { return msn_; }
  // The octets of the open message that have arrived.
  std::uint64_t received() const { return received_; }
  // Whether a message has begun and its L=1 segment has not arrived.
  bool open() const { return open_; }

  // check_msn checks that the segment belongs to the message that is due. Call it before a buffer is taken for the
  // message.
  std::optional<Error> check_msn(const UntaggedHeader& header) const {
    // On an in-order LLP only one MSN can be due, so a gap is refused too (DDP-A-02).
    if (violates("DDP-7.1-09", header.msn != msn_)) return Error::kMsnRange;
    return std::nullopt;
  }

  // check judges a whole segment of this queue, of payload_len octets, before any of it is placed. buffer_len is the
  // length of the message's buffer, absent if none is posted. Empty segments are checked like all others (DDP-A-05).
  std::optional<Error> check(const UntaggedHeader& header, std::size_t payload_len,
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

  // advance takes in a segment that check passed and that has been placed at received(). Returns the message's length
  // if this was its last segment: the message is delivered, and the queue waits for the next MSN.
  std::optional<std::uint32_t> advance(const UntaggedHeader& header, std::size_t payload_len) {
    assert(header.msn == msn_ && header.mo == received_);
    received_ += payload_len;
    open_ = !header.last;
    if (open_) return std::nullopt;
    const auto len = static_cast<std::uint32_t>(received_);
    received_ = 0;
    msn_ = msn_.next();
    return len;
  }

 private:
  Msn msn_;
  std::uint64_t received_ = 0;
  bool open_ = false;
};

}  // namespace weft::ddp
