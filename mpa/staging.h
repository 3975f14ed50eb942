#pragma once

#include <cassert>
#include <memory>

#include "base/bytes.h"

namespace weft::mpa {

// Staging is a receive buffer that stays in cache: FPDUs are received into it, verified there, and then placed. It
// belongs to a worker, which lends it to one connection at a time. A connection keeps its unconsumed octets in its own
// memory when it gives the buffer back (rdmap::Stream::park). Not thread-safe.
class Staging {
 public:
  static constexpr std::size_t kDefaultCapacity = 512 * 1024;

  // capacity in octets; holds at least two of the largest FPDU (2 + 65535 + 3 + 4 octets, more with Markers).
  explicit Staging(std::size_t capacity = kDefaultCapacity) : octets_(new std::uint8_t[capacity]), capacity_(capacity) {
    assert(capacity >= 2 * 66 * 1024);
  }

  // The received octets that are not consumed yet. Valid until the next call of a member that is not const.
  ConstBytes pending() const { return {octets_.get() + begin_, end_ - begin_}; }

  // The room for the next octets: at least min_len of them. Moves the pending octets to the front if necessary.
  // Precondition: pending().size() + min_len <= capacity.
  MutBytes space(std::size_t min_len) {
    if (begin_ == end_) begin_ = end_ = 0;
    if (capacity_ - end_ < min_len) compact();
    assert(capacity_ - end_ >= min_len);
    return {octets_.get() + end_, capacity_ - end_};
  }

  // len octets have arrived in the view of space().
  void commit(std::size_t len) {
    assert(len <= capacity_ - end_);
    end_ += len;
  }

  // Drops the first len pending octets. Views of them stay valid until the next space().
  void consume(std::size_t len) {
    assert(len <= end_ - begin_);
    begin_ += len;
  }

  std::size_t capacity() const { return capacity_; }

 private:
  void compact();

  std::unique_ptr<std::uint8_t[]> octets_;
  std::size_t capacity_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace weft::mpa
