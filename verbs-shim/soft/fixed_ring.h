#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <vector>

namespace weft::verbs::soft {

// FixedRing is a queue with a fixed capacity. It has memory for as many elements as it once held at the same time,
// rounded up: a queue of a million entries that holds few costs little. A slot keeps its last element, so that the next
// one reuses the memory of that element.
template <typename T>
class FixedRing {
 public:
  explicit FixedRing(std::size_t capacity) : capacity_(capacity) {}
  std::size_t capacity() const { return capacity_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  bool full() const { return size_ == capacity_; }
  // Precondition of the next five: the element exists, or (extend) the ring is not full.
  T& operator[](std::size_t i) { return slots_[wrap(head_ + i)]; }
  T& front() { return slots_[head_]; }
  T& back() { return slots_[wrap(head_ + size_ - 1)]; }
  T& extend() {
    assert(!full());
    if (size_ == slots_.size()) grow();
    return slots_[wrap(head_ + size_++)];
  }
  void pop_front() {
    assert(!empty());
    head_ = wrap(head_ + 1);
    --size_;
  }
  // Drops the newest elements beyond the first num.
  void truncate(std::size_t num) { size_ = num; }

 private:
  static constexpr std::size_t kFirstSlots = 16;

  std::size_t wrap(std::size_t i) const { return i >= slots_.size() ? i - slots_.size() : i; }
  void grow() {
    std::rotate(slots_.begin(), slots_.begin() + static_cast<std::ptrdiff_t>(head_), slots_.end());
    head_ = 0;
    slots_.resize(std::min(capacity_, std::max(kFirstSlots, 2 * slots_.size())));
  }

  const std::size_t capacity_;
  std::vector<T> slots_;
  std::size_t head_ = 0;
  std::size_t size_ = 0;
};

}  // namespace weft::verbs::soft
