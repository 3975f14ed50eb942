#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "mpa/wire/release_memory.h"

namespace weft::rdmap {

// Ring is a queue whose elements are named by sequence numbers. A number is never used again. begin_seq() names the
// oldest element, end_seq() the element of the next push_back. Memory grows by doubling and is kept until trim, so a
// busy queue allocates nothing. Not thread-safe.
template <typename T>
class Ring {
 public:
  bool empty() const { return begin_ == end_; }
  std::size_t size() const { return static_cast<std::size_t>(end_ - begin_); }
  std::uint64_t begin_seq() const { return begin_; }
  std::uint64_t end_seq() const { return end_; }
  bool holds(std::uint64_t seq) const { return seq - begin_ < end_ - begin_; }

  // Precondition: holds(seq). A reference is valid until the next push_back.
  T& operator[](std::uint64_t seq) {
    assert(holds(seq));
    return slots_[seq & (slots_.size() - 1)];
  }
  const T& operator[](std::uint64_t seq) const {
    assert(holds(seq));
    return slots_[seq & (slots_.size() - 1)];
  }
  T& front() { return (*this)[begin_]; }
  T& back() { return (*this)[end_ - 1]; }

  T& push_back(T value) {
    if (size() == slots_.size()) grow();
    T& slot = slots_[end_ & (slots_.size() - 1)];
    slot = std::move(value);
    ++end_;
    return slot;
  }
  // Makes the slot behind the last element an element. It still holds the values of an earlier element. Use it for
  // types that are cheaper to overwrite than to move.
  T& extend() {
    if (size() == slots_.size()) grow();
    return slots_[end_++ & (slots_.size() - 1)];
  }
  // The element stays in its slot until it is overwritten. Move its resources out first.
  void pop_front() {
    assert(!empty());
    ++begin_;
  }
  // Gives the memory back if nothing is queued.
  void trim() {
    if (empty()) release_memory(slots_);
  }
  void clear() {
    while (!empty()) {
      front() = T();
      pop_front();
    }
  }

 private:
  void grow() {
    std::vector<T> wider(slots_.empty() ? 8 : slots_.size() * 2);
    for (std::uint64_t seq = begin_; seq != end_; ++seq) wider[seq & (wider.size() - 1)] = std::move((*this)[seq]);
    slots_ = std::move(wider);
  }

  std::vector<T> slots_;  // a power of two of them
  std::uint64_t begin_ = 0;
  std::uint64_t end_ = 0;
};

}  // namespace weft::rdmap
