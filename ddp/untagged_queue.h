#pragma once

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

// check_qn refuses the number of a queue that the stream does not have, which has num_queues of them; to be asked
// before it is used as an index.
constexpr std::optional<Error> check_qn(std::uint32_t qn, std::uint32_t num_queues = kNumQueues) {
  if (violates("DDP-7.1-01", qn >= num_queues)) return Error::kInvalidQn;
  return std::nullopt;
}

// UntaggedQueue is the receiving side of one queue: which message is open and how much of it has come. Buffers are the
// caller's. Stricter than RFC 5041 asks, since the LLP is in order: MSNs without gaps, MOs without holes or overlaps.
class UntaggedQueue {
 public:
  explicit UntaggedQueue(Msn next = {}) : msn_(next) {}

  // The MSN of the open message, or of the next one where none is open.
  Msn msn() const { return msn_; }
  // Octets of the open message so far.
  std::uint64_t received() const { return received_; }
  // Whether a message is begun and its L=1 segment has not come.
  bool open() const { return open_; }

  // check_msn: whether the segment belongs to the message that is due. To be asked before a buffer is taken for it.
  std::optional<Error> check_msn(const UntaggedHeader& header) const;

  // check judges a whole segment of payload_len octets, of this queue, before anything of it is placed. buffer_len is
  // the length of the message's buffer, absent where none is posted. Empty segments are checked like any others
  // (DDP-A-05).
  std::optional<Error> check(const UntaggedHeader& header, std::size_t payload_len,
                             std::optional<std::uint64_t> buffer_len) const;

  // advance takes in a segment that check passed and that has been placed at received(). Returns the message's length
  // where this was its last segment: it is delivered, and the queue waits for the next MSN.
  std::optional<std::uint32_t> advance(const UntaggedHeader& header, std::size_t payload_len);

 private:
  Msn msn_;
  std::uint64_t received_ = 0;
  bool open_ = false;
};

}  // namespace weft::ddp
