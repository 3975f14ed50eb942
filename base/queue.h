#pragma once

#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace weft {

// Queue is a queue of a client or a connection. Unlike std::deque it has no memory before its first element and after
// trim: a server has queues for thousands of clients at rest. Otherwise it keeps its memory. Elements move when others
// come. Not thread-safe.
template <typename T>
class Queue {
 public:
  bool empty() const { return items_.empty(); }
  std::size_t size() const { return items_.size() - begin_; }
  // Preconditions: the element exists. References are valid until the next change.
  T& front() { return items_[begin_]; }
  const T& front() const { return items_[begin_]; }
  T& operator[](std::size_t i) { return items_[begin_ + i]; }
  // All elements, the oldest first.
  std::span<const T> items() const { return std::span(items_).subspan(begin_); }

  void push_back(T item) { items_.push_back(std::move(item)); }
  T& emplace_back() { return items_.emplace_back(); }
  void pop_front() {
    if (begin_ + 1 == items_.size()) return clear();
    if constexpr (!std::is_trivially_destructible_v<T>) [[maybe_unused]]
      const T popped(std::move(front()));
    ++begin_;
    // At most once for as many elements as it moves.
    if (begin_ >= kMostPopped && begin_ >= size()) {
      items_.erase(items_.begin(), at(0));
      begin_ = 0;
    }
  }
  void erase(std::size_t i) {
    if (i == 0) return pop_front();
    items_.erase(at(i));
  }
  // Empties the queue. Returns its elements, the oldest first.
  std::vector<T> take_all() {
    items_.erase(items_.begin(), at(0));
    begin_ = 0;
    return std::exchange(items_, {});
  }
  // Gives the memory back if the queue is empty.
  void trim() {
    if (empty()) std::vector<T>().swap(items_);
  }

 private:
  static constexpr std::size_t kMostPopped = 16;

  auto at(std::size_t i) { return items_.begin() + static_cast<std::ptrdiff_t>(begin_ + i); }
  void clear() {
    items_.clear();
    begin_ = 0;
  }

  std::vector<T> items_;   // empty if the queue is
  std::size_t begin_ = 0;  // the elements before it were popped
};

}  // namespace weft
