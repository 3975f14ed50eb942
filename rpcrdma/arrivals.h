#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/ledger.h"
#include "base/time.h"

namespace weft::rpcrdma {

// Arrivals bounds how often connections of one group of addresses (peer_group) end each other where all places are
// taken. Otherwise peers that connect again as soon as they lost their place would end all connections of their group
// before a Call is done, and spend the server's time on handshakes. In a group with n connections one ends for a
// newcomer of the group each kLife / n, and as many at once as kAhead has of these times. So a connection keeps its
// place for two seconds on average.
//
// The newcomers in excess (T: a connect request, a socket) wait in the order of their arrival, each with a Lease for
// its group. At most a quarter as many wait as the group has connections, so the last newcomer waits for half a second.
// No newcomer is refused for want of room in the line: the first one in it then has its turn at once. A value without
// I/O or clock.
template <typename T>
class Arrivals {
 public:
  static constexpr Duration kLife = std::chrono::seconds(2);
  // No newcomer waits longer for its turn than this, however few connections its group has.
  static constexpr Duration kAhead = std::chrono::milliseconds(500);

  // The most newcomers that wait, of all groups together. One group has at most half of them.
  explicit Arrivals(std::size_t max) : places_({.all = max, .leaves_as_much = true, .one_may_fill = false}) {}

  // Whether a newcomer of this group may end one of its connections now. The ones that wait are before it.
  bool may_end(const std::string& group, TimePoint now) const {
    const auto at = groups_.find(group);
    return at == groups_.end() || (at->second.line.empty() && at->second.turn <= now);
  }
  // A newcomer of this group, which has `num` connections, ends one of them.
  void on_end(const std::string& group, std::size_t num, TimePoint now) {
    const Duration one = std::min<Duration>(kLife / std::max<std::size_t>(num, 1), kAhead);
    // Ends before the turn put it off no further.
    change(groups_.try_emplace(group).first,
           [&](Group& of) { of.turn = std::min(std::max(of.turn, now - kAhead), now) + one; });
    forget(now);
  }

  // Lets the newcomer of a group with `num` connections wait. Returns the one that does not wait any more, if there is
  // no room for both.
  std::optional<T> add(const std::string& group, std::size_t num, T newcomer) {
    std::optional<T> first;
    if (places_.held_by(group) >= num / 4 || places_.asks(group, 1) != Ledger::Verdict::kFits) {
      if (places_.held_by(group) == 0) return newcomer;
      first = take_first(groups_.find(group));
    }
    change(groups_.try_emplace(group).first, [&](Group& of) {
      of.line.push_back({places_.enter(group).take(1), std::move(newcomer)});
    });
    return first;
  }
  // The first one of a group that may end one of its connections now.
  std::optional<T> take_due(TimePoint now) {
    if (waiting_.empty() || waiting_.begin()->first > now) return {};
    return take_first(groups_.find(waiting_.begin()->second));
  }
  // The first one of a group that has_place(group) is true for: places have become free.
  template <typename F>
  std::optional<T> take_if(F&& has_place) {
    for (const auto& [turn, group] : waiting_)
      if (has_place(group)) return take_first(groups_.find(group));
    return {};
  }
  // Drops the newcomers that is_gone(newcomer) is true for.
  template <typename F>
  void drop_if(F&& is_gone) {
    for (auto at = groups_.begin(); at != groups_.end(); ++at) {
      if (at->second.line.empty()) continue;
      change(at, [&](Group& of) { std::erase_if(of.line, [&](const Waiting& one) { return is_gone(one.newcomer); }); });
    }
  }

  std::size_t size() const { return places_.held(); }
  std::size_t num_of(const std::string& group) const { return places_.held_by(group); }
  // Groups that it remembers.
  std::size_t num_groups() const { return groups_.size(); }
  // When the next newcomer has its turn.
  std::optional<TimePoint> next() const {
    return waiting_.empty() ? std::nullopt : std::optional(waiting_.begin()->first);
  }

 private:
  struct Waiting {
    Lease place;
    T newcomer;
  };
  struct Group {
    TimePoint turn = TimePoint::min();  // from now on one of its connections may end for another one
    std::deque<Waiting> line;
  };
  using Groups = std::map<std::string, Group>;
  using Turns = std::set<std::pair<TimePoint, std::string>>;

  Turns& turns_of(const Group& group) { return group.line.empty() ? resting_ : waiting_; }
  template <typename F>
  void change(Groups::iterator at, F&& f) {
    Group& group = at->second;
    turns_of(group).erase({group.turn, at->first});
    f(group);
    turns_of(group).emplace(group.turn, at->first);
  }
  T take_first(Groups::iterator at) {
    std::optional<T> first;
    change(at, [&](Group& of) {
      first = std::move(of.line.front().newcomer);
      of.line.pop_front();
    });
    return std::move(*first);
  }
  // A group that may have kAhead again is like one that was never here.
  void forget(TimePoint now) {
    while (!resting_.empty() && resting_.begin()->first <= now - kAhead) {
      groups_.erase(resting_.begin()->second);
      resting_.erase(resting_.begin());
    }
  }

  Ledger places_;
  Groups groups_;
  Turns waiting_, resting_;  // the groups with newcomers that wait, and the others
};

}  // namespace weft::rpcrdma
