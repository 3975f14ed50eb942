#pragma once

#include <cassert>
#include <cstddef>
#include <vector>

namespace weft::verbs::soft {

// FixedRing is a queue with a fixed number of slots. A slot keeps its last element, so that the next one reuses the
// memory of that element.
template <typename T>
class FixedRing {
 public:
  explicit FixedRing(std::size_t capacity) : slots_(capacity) {}
  std::size_t capacity() const { return slots_.size(); }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  bool full() const { return size_ == slots_.size(); }
  // Precondition of the next four: the element exists, or (extend) a slot is free.
  T& operator[](std::size_t i) { return slots_[wrap(head_ + i)]; }
  T& front() { return slots_[head_]; }
  T& extend() {
    assert(!full());
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
  std::size_t wrap(std::size_t i) const { return i >= slots_.size() ? i - slots_.size() : i; }

  std::vector<T> slots_;
  std::size_t head_ = 0;
  std::size_t size_ = 0;
};

}  // namespace weft::verbs::soft
