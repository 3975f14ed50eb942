#pragma once

#include <cstddef>
#include <vector>

namespace weft::apps::dissect {

// Ring is a queue in one piece of memory, whose elements are plain values. It holds no memory before its first element,
// and keeps what it has taken.
// kFirst: the elements that it has room for at first, a power of two.
template <typename T, std::size_t kFirst = 16>
class Ring {
 public:
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  // The oldest element is number 0. Precondition: i < size().
  T& operator[](std::size_t i) { return slots_[(first_ + i) & (slots_.size() - 1)]; }
  const T& operator[](std::size_t i) const { return slots_[(first_ + i) & (slots_.size() - 1)]; }
  T& front() { return slots_[first_]; }

  void push_back(const T& value) {
    if (size_ == slots_.size()) grow();
    ++size_;
    (*this)[size_ - 1] = value;
  }
  // Precondition: not empty.
  void pop_front() {
    first_ = (first_ + 1) & (slots_.size() - 1);
    --size_;
  }

 private:
  // Rare: kept out of the functions that every message runs through.
  [[gnu::noinline]] void grow() {
    std::vector<T> more(slots_.empty() ? kFirst : 2 * slots_.size());
    for (std::size_t i = 0; i < size_; ++i) more[i] = (*this)[i];
    slots_.swap(more);
    first_ = 0;
  }

  std::vector<T> slots_;
  std::size_t first_ = 0, size_ = 0;
};

}  // namespace weft::apps::dissect
