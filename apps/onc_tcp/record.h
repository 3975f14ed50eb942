#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/bytes.h"

// Record marking (RFC 5531 section 11) separates ONC RPC messages on a TCP connection. There are no sockets here.
namespace weft::onc_tcp {

inline constexpr std::uint32_t kLastFragment = 0x80000000;
inline constexpr std::size_t kMarkLen = 4;
// The most fragments of one record. Empty fragments are legal, so a record could otherwise go on for ever.
inline constexpr std::size_t kMaxFragments = 1024;

// RecordReader puts records together from the octets of a TCP stream, however the stream is cut. It holds at most
// max_record octets. Not thread-safe.
class RecordReader {
 public:
  enum class Outcome : std::uint8_t {
    kNeedMore,  // the whole input was taken, the record is not complete
    kRecord,    // record() is complete; the octets behind it are still in the input
    kTooLong,   // over max_record or kMaxFragments: the stream cannot be read further
  };

  explicit RecordReader(std::size_t max_record) : max_record_(max_record) {}

  // next takes octets off the front of `input` up to the end of the next record. The previous record is dropped.
  Outcome next(ConstBytes& input);

  // The complete record, until next() is called again.
  const std::vector<std::uint8_t>& record() const { return record_; }
  std::vector<std::uint8_t> take_record() { return std::move(record_); }

 private:
  enum class State : std::uint8_t { kMark, kFragment, kDone, kBroken };

  Outcome on_mark();

  std::size_t max_record_;
  State state_ = State::kMark;
  std::uint8_t mark_[kMarkLen] = {};
  std::size_t mark_len_ = 0;
  std::size_t fragment_left_ = 0;
  bool last_ = false;
  std::size_t num_fragments_ = 0;
  std::vector<std::uint8_t> record_;
};

// emit_record appends message as one record of one fragment. message is shorter than 2^31 octets.
void emit_record(ConstBytes message, std::vector<std::uint8_t>& out);

}  // namespace weft::onc_tcp
