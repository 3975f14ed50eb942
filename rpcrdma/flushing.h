#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/time.h"

namespace weft::rpcrdma {

// Flushing holds connections that have ended, for the time in which their queue pairs may return shared Receives. Each
// belongs to a group of addresses (peer_group). A group has room while it has fewer than `max_in_group`, and all groups
// together have fewer than `max`. The entries of a group beyond `max_in_group` do not count for the other groups: a
// group that ends many connections is refused alone. A value without I/O.
template <typename T>
class Flushing {
 public:
  Flushing(std::size_t max, std::size_t max_in_group) : max_(max), max_in_group_(max_in_group) {}

  // Adds one, whatever the room: connections end at any time. `until` never falls from one call to the next.
  void add(TimePoint until, const std::string& group, std::unique_ptr<T> one) {
    if (++num_in_group_[group] <= max_in_group_) ++num_counted_;
    entries_.push_back({until, group, std::move(one)});
  }
  bool has_room(const std::string& group) const { return num_counted_ < max_ && num_of(group) < max_in_group_; }
  std::size_t num_of(const std::string& group) const {
    const auto found = num_in_group_.find(group);
    return found == num_in_group_.end() ? 0 : found->second;
  }
  std::size_t size() const { return entries_.size(); }
  // Destroys the connections whose time is over.
  void drop(TimePoint now) {
    while (!entries_.empty() && entries_.front().until <= now) {
      const auto group = num_in_group_.find(entries_.front().group);
      if (group->second-- <= max_in_group_) --num_counted_;
      if (group->second == 0) num_in_group_.erase(group);
      entries_.pop_front();
    }
  }
  std::optional<TimePoint> next() const {
    return entries_.empty() ? std::nullopt : std::optional(entries_.front().until);
  }

 private:
  struct Entry {
    TimePoint until;
    std::string group;
    std::unique_ptr<T> one;
  };

  std::size_t max_, max_in_group_;
  std::deque<Entry> entries_;
  std::map<std::string, std::size_t> num_in_group_;
  std::size_t num_counted_ = 0;  // at most max_in_group_ of each group
};

}  // namespace weft::rpcrdma
