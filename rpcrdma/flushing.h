#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/ledger.h"
#include "base/time.h"

namespace weft::rpcrdma {

// Flushing holds connections that have ended, for the time in which their queue pairs may return shared Receives. Each
// has a Lease for its group of addresses (peer_group), if there is room: while the group has fewer than `max_in_group`,
// and all groups together have fewer than `max`. Connections end at any time, so one beyond that is held without a
// Lease: a group that ends many connections is refused alone. A value without I/O.
template <typename T>
class Flushing {
 public:
  Flushing(std::size_t max, std::size_t max_in_group) : places_({.address = max_in_group, .all = max}) {}

  // Adds one, whatever the room. `until` never falls from one call to the next.
  void add(TimePoint until, const std::string& group, std::unique_ptr<T> one) {
    entries_.push_back({until, places_.enter(group).take(1), std::move(one)});
  }
  bool has_room(const std::string& group) const { return places_.asks(group, 1) == Ledger::Verdict::kFits; }
  std::size_t num_of(const std::string& group) const { return places_.held_by(group); }
  std::size_t size() const { return entries_.size(); }
  // Destroys the connections whose time is over.
  void drop(TimePoint now) {
    while (!entries_.empty() && entries_.front().until <= now) entries_.pop_front();
  }
  std::optional<TimePoint> next() const {
    return entries_.empty() ? std::nullopt : std::optional(entries_.front().until);
  }

 private:
  struct Entry {
    TimePoint until;
    Lease place;
    std::unique_ptr<T> one;
  };

  Ledger places_;
  std::deque<Entry> entries_;
};

}  // namespace weft::rpcrdma
